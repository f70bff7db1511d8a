package office

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/sqlite"
)

// BenchmarkSend is one send_handoff, from the call to the answer, beside the bare append of the same event that runs in turn with it.
func BenchmarkSend(b *testing.B) {
	log, err := sqlite.Create(filepath.Join(b.TempDir(), "run.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(b.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.PlanAdded, Data: mail.Encode(team)}}}); err != nil {
		b.Fatal(err)
	}
	s := (&Office{Log: log}).Sit("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	_, stop := log.Watch(swarm.ToControl) // as every turn does
	defer stop()
	var sending, bare time.Duration
	n := 0
	for b.Loop() {
		n++
		args := json.RawMessage(fmt.Sprintf(`{"to":"coder","message":"message %d","structured":{"files":["a.go","b.go"],"n":%d},"response":{"expectation":"optional"}}`, n, n))
		start := time.Now()
		if _, err := s.Call(context.Background(), "send_handoff", args); err != nil {
			b.Fatal(err)
		}
		sending += time.Since(start)
		e := swarm.Event{Kind: swarm.HandoffStored, To: "@bare", Key: fmt.Sprint("bare:", n), Agent: "planner", Task: "plan", Turn: "plan/1/1", Data: args}
		start = time.Now()
		if _, err := log.Append(context.Background(), swarm.Batch{Events: []swarm.Event{e}}); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(start)
	}
	b.ReportMetric(float64(sending.Microseconds())/float64(n), "µs/send")
	b.ReportMetric(float64(bare.Microseconds())/float64(n), "µs/bare-append")
}
