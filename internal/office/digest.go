package office

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"swarm"
)

// A Shelf keeps what somebody has made of a log. It may be thrown away at any time.
type Shelf interface {
	LoadFold(name, version string) (seq int64, data []byte, ok bool)
	SaveFold(name, version string, seq int64, data []byte) error
}

// What is kept there: another version whenever events say more to an office than they did.
const (
	digestName    = "office"
	digestVersion = "1"
	digestEvery   = 5000 // events that are rather read than kept
	mostDigested  = 5000 // events that are rather kept than read
)

// A digest is which events have made an office what it is: taken once more, in their order, they make another one the same. Of those
// of which there are many, mail and turns, only the newest that says a thing is in it, so it is as large as the team and not as the log.
type digest struct {
	kept map[string]int64 // by what an event says: its number
	upto int64            // of the one that was stored
}

// silent are the kinds of which there can be many, and that say nothing to an office.
var silent = map[swarm.EventKind]bool{
	swarm.TaskStarted: true, swarm.TaskRetrying: true, swarm.TaskCompleted: true, swarm.TaskFailed: true, swarm.TaskSkipped: true, swarm.TaskCancelled: true, swarm.IterationStarted: true,
	swarm.TurnTool: true, swarm.TurnFile: true, swarm.CallEnded: true, swarm.LoopEnded: true, swarm.Tick: true, swarm.Control: true, swarm.HandoffReturned: true, swarm.ReplyOverdue: true,
	swarm.WaitBegan: true, swarm.WaitEnded: true, swarm.ArtifactStored: true, swarm.TopicPublished: true, swarm.Notice: true,
}

// note adds an event that the office has just taken.
func (d *digest) note(o *Office, e *swarm.Event) {
	if d == nil || silent[e.Kind] {
		return
	}
	says := strconv.FormatInt(e.Seq, 10) // what no other says
	_, asked := d.kept["asked "+e.Agent] // the ends of its turns say more
	switch {
	case e.Kind == swarm.HandoffStored && e.Agent != swarm.Orchestrator:
		to := o.agent(strings.TrimPrefix(e.To, swarm.ToAgents))
		says = fmt.Sprintf("mail %s %s %v %v", e.To, e.Agent, to.wanted == e.Seq, to.urgent == e.Seq)
	case e.Kind == swarm.HandoffConsumed:
		says = "used " + e.Agent
	case e.Kind == swarm.ApprovalAsked:
		d.kept["asked "+e.Agent] = e.Seq
	case e.Kind == swarm.TurnStarted && !asked:
		says = started(e.Agent)
	case e.Kind == swarm.TurnEnded && !asked:
		if o.agent(e.Agent).turn == "" {
			delete(d.kept, started(e.Agent)) // later ends do not say that this one has ended
		}
		end, err := swarm.Body[swarm.CallEnd](e)
		if err != nil || end.Status == swarm.CallCut {
			return
		}
		says = "ended " + e.Agent + " " + string(end.Status)
	}
	d.kept[says] = e.Seq
}

func started(agent string) string { return "started " + agent }

// open takes what is on the shelf. The office is locked, and has read nothing.
func (o *Office) open() error {
	if o.Shelf == nil {
		return nil
	}
	seq, data, ok := o.Shelf.LoadFold(digestName, digestVersion)
	if !ok {
		return nil
	}
	var kept map[string]int64
	if err := json.Unmarshal(data, &kept); err != nil || kept == nil {
		return err
	}
	for _, at := range slices.Compact(slices.Sorted(maps.Values(kept))) {
		events, err := o.Log.Read(at-1, 1)
		if err == nil && (len(events) == 0 || events[0].Seq != at || at > seq) {
			err = swarm.Errorf(swarm.Storage, "the log has no event %d", at)
		}
		if err == nil {
			err = o.take(&events[0])
		}
		if err != nil {
			return err
		}
	}
	o.read, o.digest.kept, o.digest.upto = seq, kept, seq
	return nil
}

// Keep puts what the office has read on its shelf, when it was much, so that the next one need not read it.
func (o *Office) Keep() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.digest
	if d == nil || o.read-d.upto < digestEvery || len(d.kept) > mostDigested {
		return nil
	}
	return o.keep()
}

func (o *Office) keep() error {
	o.digest.upto = o.read
	return o.Shelf.SaveFold(digestName, digestVersion, o.read, swarm.Encode(o.digest.kept))
}
