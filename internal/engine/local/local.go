// Package local runs loops in this process. The run's log is the journal: a loop is resumed by giving it, in the log's order,
// the records that are addressed to it. A call whose end is among them is not made again.
package local

import (
	"context"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
)

// Run begins the loop that c calls for, or resumes it, and returns its result. When it returns, its adapters have stopped.
func Run(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	w := newWorkers(ctx)
	defer w.all.Wait()
	defer stop(nil)
	return run(ctx, stop, w, h, "", c)
}

func run(ctx context.Context, stop context.CancelCauseFunc, w *workers, h *engine.Adapters, parent string, c flow.Call) (flow.Result, error) {
	wake, off := h.Log.Watch(engine.Inbox(c)...)
	defer off()
	x := &fx{ctx: ctx, stop: stop, workers: w, h: h, loop: c, wake: wake, ended: map[string]flow.Result{}, known: map[string]bool{}, asked: map[string]bool{}}
	if err := x.load(); err != nil {
		return flow.Result{}, err
	}
	loop := flow.Loops[c.Kind]
	if loop == nil {
		return flow.Result{}, swarm.Errorf(swarm.Storage, "there is no loop %q", c.Kind)
	}
	r, err := loop(x, c)
	if err != nil {
		stop(err)
		return r, err
	}
	return r, x.finish(parent, r)
}

// An fx is what one loop asks of the world. It belongs to the loop's goroutine.
type fx struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	workers *workers
	h       *engine.Adapters
	loop    flow.Call
	wake    <-chan struct{}

	in     []swarm.Event          // read, not yet given to the loop
	read   int64                  // up to which event
	loaded int64                  // the last event that was there when the loop was begun or resumed
	given  int64                  // the last event given
	now    time.Time              // its time
	ended  map[string]flow.Result // what the log held when the loop was resumed: ends by call
	known  map[string]bool        // and facts by key
	asked  map[string]bool        // calls whose end has not been given yet
}

const page = 10_000

// load reads what the log holds for this loop.
func (x *fx) load() error {
	first, err := x.h.Log.Read(0, 1)
	if err != nil {
		return err
	}
	if len(first) > 0 {
		x.now = first[0].Time
	}
	for {
		n := len(x.in)
		if err := x.fetch(page); err != nil {
			return err
		}
		if len(x.in) == n {
			x.loaded = x.read
			return nil
		}
		kept := x.in[:n]
		for _, e := range x.in[n:] {
			s, ok, err := engine.Signal(e)
			switch {
			case err != nil:
				return err
			case !ok:
				x.known[e.Key] = true
				continue
			case ends(s):
				x.ended[s.Result.ID] = s.Result
			case e.Kind == swarm.ApprovalAsked: // an agent's, or the loop's own
				x.known[e.Key] = true
			}
			kept = append(kept, e)
		}
		x.in = kept
	}
}

func (x *fx) fetch(n int) error {
	events, err := x.h.Log.Read(x.read, n, engine.Inbox(x.loop)...)
	if err != nil {
		return err
	}
	if len(events) > 0 {
		x.in, x.read = append(x.in, events...), events[len(events)-1].Seq
	}
	return context.Cause(x.ctx)
}

// before is the answer that the log had for a call when the loop was resumed.
func (x *fx) before(c flow.Call) (flow.Result, bool, error) {
	r, ok := x.ended[c.ID]
	if ok && r.Call != c.Print() {
		return r, ok, swarm.Errorf(swarm.Storage, "the log has %q under %s, and the loop asks for %q: the run was made by another version of the program", r.Call, c.ID, c.Print())
	}
	return r, ok, nil
}

// issue completes a call by what only the engine knows. An earlier owner can have made it only if that owner's loop was given the
// same records, so a call that follows from a newer record is made for the first time. So is every call of a run's first owner.
func (x *fx) issue(c flow.Call) flow.Call {
	c.Fence = x.loop.Fence
	c.Again = c.Fence > 1 && x.given <= x.loaded
	return c
}

func (x *fx) Do(c flow.Call) (flow.Result, error) {
	if r, ok, err := x.before(c); ok || err != nil {
		return r, err
	}
	return x.h.Call(x.ctx, x.loop.ID, x.issue(c))
}

func (x *fx) Go(c flow.Call) error {
	x.asked[c.ID] = true
	if _, ok, err := x.before(c); ok || err != nil {
		delete(x.ended, c.ID)
		return err
	}
	c = x.issue(c)
	x.workers.do(func() {
		var err error
		if flow.Loops[c.Kind] != nil {
			_, err = run(x.ctx, x.stop, x.workers, x.h, x.loop.ID, c)
		} else {
			_, err = x.h.Call(x.ctx, x.loop.ID, c)
		}
		if err != nil { // another process has the run, or the disk failed: this one is done with it
			x.stop(err)
		}
	})
	return nil
}

func (x *fx) Tell(f flow.Fact) error {
	if x.known[f.Key] {
		delete(x.known, f.Key)
		return nil
	}
	return x.append(true, engine.Event(x.loop.ID, f))
}

func (x *fx) append(lazy bool, e swarm.Event) error {
	_, err := x.h.Log.Append(context.WithoutCancel(x.ctx), swarm.Batch{Fence: x.loop.Fence, Lazy: lazy, Events: []swarm.Event{e}})
	return err
}

func (x *fx) Next(most time.Duration) (flow.Signal, error) {
	var timer <-chan time.Time
	if most > 0 {
		t := time.NewTimer(most)
		defer t.Stop()
		timer = t.C
	}
	for {
		for len(x.in) > 0 {
			e := x.in[0]
			x.in = x.in[1:]
			s, ok, err := engine.Signal(e)
			if err != nil {
				return s, err
			}
			if !ok || e.Kind == swarm.CallEnded { // a short call was answered where it was asked
				continue
			}
			if id := s.Result.ID; ends(s) && x.asked[id] {
				delete(x.asked, id)
			} else if ends(s) {
				return s, swarm.Errorf(swarm.Storage, "the log has the end of %s, for which the loop never asked: the run was made by another version of the program", id)
			}
			x.given, x.now = e.Seq, e.Time
			return s, nil
		}
		if err := x.fetch(256); err != nil {
			return flow.Signal{}, err
		}
		if len(x.in) > 0 {
			continue
		}
		if len(x.asked) == 0 { // nothing runs whose end would take along what the loop has told
			x.h.Log.Flush()
		}
		select {
		case <-x.wake:
		case <-x.ctx.Done():
			return flow.Signal{}, context.Cause(x.ctx)
		case <-timer: // it comes back through the log, so that a resumed loop sees it in its place
			timer = nil
			if err := x.append(true, swarm.Event{Kind: swarm.Tick, To: swarm.ToLoop(x.loop.ID)}); err != nil {
				return flow.Signal{}, err
			}
		}
	}
}

// ends says whether a signal is the end of a call.
func ends(s flow.Signal) bool {
	return s.Kind == swarm.TurnEnded || s.Kind == swarm.LoopEnded || s.Kind == swarm.CallEnded
}

func (x *fx) Now() time.Time { return x.now }

// finish writes down the loop's own end, and with it, on disk, everything that it had told.
func (x *fx) finish(parent string, r flow.Result) error {
	end := r.CallEnd
	end.ID, end.Call = x.loop.ID, x.loop.Print()
	e := swarm.Event{Kind: swarm.LoopEnded, Key: swarm.EndKey(x.loop.ID), Agent: x.loop.Agent, Data: swarm.Encode(end)}
	if parent != "" {
		e.To = swarm.ToLoop(parent)
	}
	return x.append(false, e)
}
