package turn

import (
	"testing"

	"swarm"
	"swarm/internal/flow"
)

// A turn that has not begun is only cut by a cancel. Records before it, such as a message that
// interrupts, must not keep the cancel from being found.
func TestOnlyACancelCutsATurnThatHasNotBegun(t *testing.T) {
	r := &Runner{Log: newLog(t)}
	defer r.control.close()
	tell := func(command swarm.Command, target string) {
		t.Helper()
		e := swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: command, Target: target})
		e.To = swarm.ToControl
		if _, err := r.Log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{e}}); err != nil {
			t.Fatal(err)
		}
	}
	c := flow.Call{ID: "a/1/1", Task: "a", Agent: "a"}
	cuts := make(chan error, 2)
	tell(swarm.CommandInterrupt, "a")
	stop := r.watch(&controlled{c: c, cut: func(cause error) { cuts <- cause }, onlyCancel: true})
	defer stop()
	if len(cuts) > 0 {
		t.Fatalf("it was cut: %v", <-cuts)
	}
	if why := r.cancelled(c); why != nil {
		t.Errorf("it is cancelled: %v", why)
	}
	tell(swarm.CommandCancel, "")
	if kind := swarm.KindOf(<-cuts); kind != swarm.CutByCancel {
		t.Errorf("it was cut as %s", kind)
	}
	if kind := swarm.KindOf(r.cancelled(c)); kind != swarm.CutByCancel {
		t.Errorf("the cancel after an interrupt is taken for %q", kind)
	}
}

// After a crash the log may have a start of the same turn that was cut. It is no other turn whose end
// would make room.
func TestATurnIsAloneBesideItsOwnStart(t *testing.T) {
	r, w := &Runner{}, &work{turn: "a/1/1"}
	a := &r.fold.account
	a.reserved, a.pending = map[swarm.TurnID]swarm.Usage{"a/1/1": {InputTokens: 5}}, map[swarm.TurnID]pendingStart{"a/1/1": {}}
	if !r.runsAlone(w) {
		t.Error("its own reservation is taken for that of another turn")
	}
	a.reserved["b/1/1"] = swarm.Usage{InputTokens: 5}
	if r.runsAlone(w) {
		t.Error("the reservation of another turn is overlooked")
	}
	delete(a.reserved, "b/1/1")
	a.pending["b/1/1"] = pendingStart{}
	if r.runsAlone(w) {
		t.Error("a start of another turn that is not in the log yet is overlooked")
	}
}
