// Package local is the engine that runs loops in this process.
//
// The run's log is the journal. To resume a loop, the engine starts it again and gives it the
// events that are addressed to it, in the log's order. A loop is deterministic, so it makes the
// same calls and decides the same facts again. A call whose end is in the log is not made again,
// and a fact that is in the log is not written again. So a crash at any append leaves a log from
// which the run continues.
//
// Each loop has one goroutine, which owns its state. Turns and child loops run in goroutines of
// their own. They report back through the log only, so the log has the order in which the loop
// learns of things.
package local

import (
	"context"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
)

// Run begins or resumes the loop of a call, and returns its result. When it returns, all its
// goroutines have ended.
func Run(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	w := newWorkers(ctx)
	defer w.all.Wait()
	defer stop(nil)
	return run(ctx, stop, w, h, "", c)
}

// run runs one loop: the root, or a child of the loop parent. An error stops all loops of the run.
func run(ctx context.Context, stop context.CancelCauseFunc, w *workers, h *engine.Adapters, parent string, c flow.Call) (flow.Result, error) {
	wake, off := h.Log.Watch(engine.Inbox(c)...)
	defer off()
	x := &fx{ctx: ctx, stop: stop, workers: w, h: h, loop: c, wake: wake,
		ended: map[string]flow.Result{}, known: map[string]bool{}, asked: map[string]*open{}}
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

// An fx implements the effects of one loop. It belongs to the loop's goroutine, so its fields have
// no mutex.
type fx struct {
	ctx     context.Context
	stop    context.CancelCauseFunc
	workers *workers
	h       *engine.Adapters
	loop    flow.Call
	wake    <-chan struct{}

	in     []swarm.Event          // events that were read, and not yet given to the loop
	read   int64                  // the last event that was read
	loaded int64                  // the last event that was in the log when the loop was begun or resumed
	owners int                    // number of owners among them
	owned  int64                  // the last change of owner among them; 0 = there is none
	given  int64                  // the last event given
	now    time.Time              // the time of that event
	ended  map[string]flow.Result // ends by call, as the log had them when the loop was resumed
	known  map[string]bool        // facts by key, as the log had them then
	asked  map[string]*open       // calls whose end was not given yet
}

// An open call is one that the loop has made, and whose end it was not given yet.
type open struct {
	call    flow.Call // as first made, with the newest Timeout
	started bool      // by this process
}

// page is how many events load reads at once.
const page = 10_000

// load reads all events that the log holds for this loop.
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
			case e.Kind == swarm.RunOwned:
				if x.owners++; x.owners > 1 {
					x.owned = e.Seq
				}
			case e.Kind == swarm.ApprovalAsked: // an agent's approval, or the loop's own
				x.known[e.Key] = true
			}
			kept = append(kept, e)
		}
		x.in = kept
	}
}

// fetch reads up to n newer events for the loop.
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

// before returns the result of a call that the log had when the loop was resumed. A different call
// under the same id means that the loop is not the one that wrote the log.
func (x *fx) before(c flow.Call) (flow.Result, bool, error) {
	r, ok := x.ended[c.ID]
	if ok && r.Call != c.Print() {
		return r, ok, swarm.Errorf(swarm.Storage, "the log has %q under %s, and the loop asks for %q: the run was made by another version of the program",
			r.Call, c.ID, c.Print())
	}
	return r, ok, nil
}

// issue adds the facts to a call that only the engine knows. Again says that an earlier owner may
// have made the call. It can have done so only if its loop was given the same events. So a call
// that follows from a newer event is made for the first time. So is every call of a run's first
// owner, whose fence is 1.
func (x *fx) issue(c flow.Call) flow.Call {
	c.Fence = x.loop.Fence
	c.Again = c.Fence > 1 && x.given <= x.loaded
	return c
}

// Do makes a short call and waits for its result.
func (x *fx) Do(c flow.Call) (flow.Result, error) {
	if r, ok, err := x.before(c); ok || err != nil {
		return r, err
	}
	return x.h.Call(x.ctx, x.loop.ID, x.issue(c))
}

// Go starts a turn or a child loop. The loop gets its end from Next. A call that the loop makes
// again after a change of owner starts once, after the last one.
func (x *fx) Go(c flow.Call) error {
	o := x.asked[c.ID]
	if o == nil {
		o = &open{call: x.issue(c)}
		x.asked[c.ID] = o
	}
	o.call.Timeout = c.Timeout
	if _, ok, err := x.before(o.call); ok || err != nil {
		return err
	}
	if o.started || o.call.Reissued && x.given < x.owned {
		return nil
	}
	o.started, c = true, o.call
	x.workers.do(func() {
		var err error
		if flow.Loops[c.Kind] != nil {
			_, err = run(x.ctx, x.stop, x.workers, x.h, x.loop.ID, c)
		} else {
			_, err = x.h.Call(x.ctx, x.loop.ID, c)
		}
		if err != nil { // Another process owns the run, or the disk failed. This process must stop driving it.
			x.stop(err)
		}
	})
	return nil
}

// Tell writes a fact, lazily: the next durable append takes it along. A resumed loop decides facts
// again that are in the log. They are not written again.
func (x *fx) Tell(f flow.Fact) error {
	if x.known[f.Key] {
		delete(x.known, f.Key)
		return nil
	}
	return x.append(true, engine.Event(x.loop.ID, f))
}

// append writes an event with the fence. The end of the context does not cancel a write, so that
// its result is known.
func (x *fx) append(lazy bool, e swarm.Event) error {
	_, err := x.h.Log.Append(context.WithoutCancel(x.ctx), swarm.Batch{Fence: x.loop.Fence, Lazy: lazy, Events: []swarm.Event{e}})
	return err
}

// Next waits for the next event that is addressed to the loop.
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
			if !ok || e.Kind == swarm.CallEnded { // The result of a short call was given by Do.
				continue
			}
			if id := s.Result.ID; ends(s) && x.asked[id] != nil {
				delete(x.asked, id)
				delete(x.ended, id)
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
		if len(x.asked) == 0 { // No turn is open whose end would take the lazy facts along.
			x.h.Log.Flush()
		}
		select {
		case <-x.wake:
		case <-x.ctx.Done():
			return flow.Signal{}, context.Cause(x.ctx)
		case <-timer: // A tick goes through the log, so that a resumed loop gets it in the same place.
			timer = nil
			if err := x.append(true, swarm.Event{Kind: swarm.Tick, To: swarm.ToLoop(x.loop.ID)}); err != nil {
				return flow.Signal{}, err
			}
		}
	}
}

// ends reports whether a signal is the end of a call.
func ends(s flow.Signal) bool {
	_, is := s.Body.(swarm.CallEnd)
	return is
}

// Now returns the time of the last event given. A resumed loop so sees the same times.
func (x *fx) Now() time.Time { return x.now }

// finish writes the loop's end, and waits until it is durable. All lazy facts of the loop are
// durable with it.
func (x *fx) finish(parent string, r flow.Result) error {
	end := r.CallEnd
	end.ID, end.Call = x.loop.ID, x.loop.Print()
	e := swarm.Event{Kind: swarm.LoopEnded, Key: swarm.EndKey(x.loop.ID), Agent: x.loop.Agent, Data: swarm.Encode(end)}
	if parent != "" {
		e.To = swarm.ToLoop(parent)
	}
	return x.append(false, e)
}
