package temporal

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"

	"swarm"
	"swarm/internal/engine"
)

// A watch tells a workflow of the records that others write for its loop: mail, control, answers. It
// lives as long as this process has the workflow in memory, and the workflow learns of records here. If
// that process dies, the next one that gets the workflow has another watch.
type watch struct {
	known atomic.Int64 // the newest record that the workflow knows
	ctx   context.Context
	leave context.CancelFunc
}

const (
	again = 5 * time.Second  // how long a workflow may take to learn of a record before it is told again
	stale = 15 * time.Second // how long until this process takes it that another one has the workflow
)

// attend starts the watch of a workflow that knows the records up to a number.
func (w *Worker) attend(in input, upto int64) *watch {
	x := &watch{}
	x.know(upto)
	x.ctx, x.leave = context.WithCancel(w.ctx)
	w.all.Go(func() {
		for x.ctx.Err() == nil {
			if err := x.follow(w, in); err != nil && x.ctx.Err() == nil {
				select {
				case <-x.ctx.Done():
				case <-time.After(w.o.Pause):
				}
			}
		}
	})
	return x
}

// know notes what the workflow knows.
func (x *watch) know(upto int64) { x.known.Store(upto) }

// over reports whether the watch was left while the worker goes on.
func (x *watch) over(w *Worker) bool { return x.ctx.Err() != nil && w.ctx.Err() == nil }

// follow tells the workflow of records until the watch is left, or something fails.
func (x *watch) follow(w *Worker, in input) error {
	h, err := w.o.Open(in.Run, in.Call.Fence)
	if errors.Is(err, swarm.ErrFenced) {
		x.leave() // the workflow is told so when it writes
	}
	if err != nil {
		return err
	}
	defer h.Release()
	inbox := engine.Inbox(in.Call)
	woken, off := h.Log.Watch(inbox...)
	defer off()
	var read, before int64 // the last record that was read; the newest that the workflow knew then
	var told time.Time     // when the workflow was told of more than that; zero = it was not
	for first, late := true, false; ; first = false {
		known := x.known.Load()
		if known != before {
			before, told = known, time.Time{}
		}
		if first || late {
			if _, ended, err := h.Log.Find(swarm.EndKey(in.Call.ID)); err != nil {
				return err
			} else if ended {
				x.leave()
				return nil
			}
		}
		if read = max(read, known); late {
			read = known
		}
		news := int64(0)
		for e, err := range swarm.Events(h.Log, read, inbox...) {
			if err != nil {
				return err
			}
			if read = e.Seq; engine.IsSignal(e.Kind) && (late || !answered(e.Kind)) {
				news = read
			}
		}
		if news > known {
			if !told.IsZero() && time.Since(told) > stale {
				x.leave()
				return nil
			}
			if err := x.tell(w, in, h.Log, news); err != nil {
				return err
			}
			if told.IsZero() {
				told = time.Now()
			}
		}
		select {
		case <-x.ctx.Done():
			return nil
		case <-h.Context.Done():
			return context.Cause(h.Context)
		case <-woken:
			late = false
		case <-time.After(again):
			late = true
		}
	}
}

// tell sends the hint that there are records up to a number. A workflow that has ended needs none.
func (x *watch) tell(w *Worker, in input, log swarm.Log, upto int64) error {
	if err := secure(log, upto); err != nil {
		return err
	}
	err := w.o.Client.SignalWorkflow(x.ctx, w.o.Prefix+string(in.Run), "", wake, upto)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		x.leave()
		return nil
	}
	return err
}

// answered reports whether the workflow learns of a record by the answer of the activity that has
// written it.
func answered(kind swarm.EventKind) bool {
	switch kind {
	case swarm.TurnEnded, swarm.ActionEnded, swarm.CheckEnded, swarm.LoopEnded, swarm.CallEnded, swarm.Tick:
		return true
	}
	return false
}
