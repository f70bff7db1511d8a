package turn

import (
	"context"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/toolrule"
)

// batches is a log that keeps what is appended to it.
type batches struct {
	swarm.Log
	all []swarm.Batch
}

func (b *batches) Append(_ context.Context, batch swarm.Batch) ([]int64, error) {
	b.all = append(b.all, batch)
	return []int64{1}, nil
}

// The start of an action is on disk before its tool runs, unless the tool only reads files.
func TestTheStartOfAnActionWaitsForTheDisk(t *testing.T) {
	for tool, lazy := range map[string]bool{
		toolrule.FileList: true, toolrule.FileRead: true, toolrule.FileWrite: false, toolrule.Command: false, toolrule.WebFetch: false, "search__find": false,
	} {
		log := &batches{}
		start, err := (&Runner{Log: log}).beginAction(t.Context(), flow.Call{ID: "action/takao/3/1", Agent: "takao", Ref: "takao/3/1"}, tool)
		if err != nil || start != 1 || len(log.all) != 1 || log.all[0].Lazy != lazy || log.all[0].Early {
			t.Errorf("%s: start %d, %v, %+v", tool, start, err, log.all)
		}
	}
}
