package turn

import (
	"context"
	"sync"

	"swarm"
	"swarm/internal/flow"
)

// A controlWatch cuts running turns when a control record asks for it. One goroutine reads the
// records for all turns, from the first turn until Close. A goroutine per turn would wake a second
// processor in the middle of every turn.
type controlWatch struct {
	mu    sync.Mutex
	turns map[*controlled]bool
	stop  chan struct{} // nil = the goroutine is not running
}

// A controlled turn is a running turn. The mutex of controlWatch guards it.
type controlled struct {
	c    flow.Call
	cut  context.CancelCauseFunc
	read int64 // sequence number of the last control record read
	over bool  // the turn was cut

	onlyCancel bool // other records do not cut it
}

// watchControl cuts the turn when a control record asks for it, until stop is called. It considers
// the records after c.Since, the last one that the loop has seen. It has read once when it returns,
// so a record appended before is never missed.
func (r *Runner) watchControl(c flow.Call, cut context.CancelCauseFunc) (stop func()) {
	return r.watch(&controlled{c: c, cut: cut, read: c.Since})
}

func (r *Runner) watch(t *controlled) (stop func()) {
	w := &r.control
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil {
		w.stop, w.turns = make(chan struct{}), map[*controlled]bool{}
		wake, off := r.Log.Watch(swarm.ToControl)
		go r.followControl(wake, off, w.stop)
	}
	w.turns[t] = true
	r.readControl(t)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.turns, t)
	}
}

func (r *Runner) followControl(wake <-chan struct{}, off func(), stop chan struct{}) {
	defer off()
	for {
		select {
		case <-wake:
		case <-stop:
			return
		}
		r.control.mu.Lock()
		for t := range r.control.turns {
			r.readControl(t)
		}
		r.control.mu.Unlock()
	}
}

func (w *controlWatch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
}

// cancelled returns the error of a turn that a control record has cancelled already, or nil.
func (r *Runner) cancelled(c flow.Call) (why error) {
	r.readControl(&controlled{c: c, read: c.Since, onlyCancel: true, cut: func(cause error) {
		if swarm.KindOf(cause) == swarm.CutByCancel {
			why = cause
		}
	}})
	return why
}

// readControl reads the control records that the turn has not seen yet.
func (r *Runner) readControl(t *controlled) {
	for !t.over {
		events, err := r.Log.Read(t.read, 1000, swarm.ToControl)
		if err != nil {
			t.over = true
			t.cut(swarm.Errorf(swarm.Storage, "control records cannot be read: %w", err))
			return
		}
		for _, e := range events {
			t.read = e.Seq
			if kind := wantsCut(e, t.c); kind != "" && (kind == swarm.CutByCancel || !t.onlyCancel) {
				t.over = true
				t.cut(swarm.Errorf(kind, "%s", kind))
				return
			}
		}
		if len(events) == 0 {
			return
		}
	}
}

func wantsCut(e swarm.Event, c flow.Call) swarm.ErrorKind {
	k, err := swarm.Body[swarm.ControlCommand](&e)
	if err != nil || k.Target != "" && k.Target != c.Task && k.Target != c.Agent && k.Target != c.ID {
		return ""
	}
	switch k.Command {
	case swarm.CommandCancel:
		return swarm.CutByCancel
	case swarm.CommandInterrupt:
		return swarm.CutToSpeak
	case swarm.CommandReset:
		if k.Target == c.Agent {
			return swarm.CutToReset
		}
	}
	return ""
}
