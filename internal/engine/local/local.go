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
	x := &fx{ctx: ctx, stop: stop, workers: w, h: h, loop: c, wake: wake}
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
	return r, x.append(false, x.journal.End(parent, r)) // all lazy facts of the loop are durable with it
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
	journal *engine.Journal
	read    int64 // the last event that was read
}

// page is how many events load reads at once.
const page = 10_000

// load reads all events that the log holds for this loop.
func (x *fx) load() error {
	first, err := x.h.Log.Read(0, 1)
	if err != nil {
		return err
	}
	var began time.Time
	if len(first) > 0 {
		began = first[0].Time
	}
	x.journal = engine.NewJournal(x.loop, began)
	for {
		events, err := x.fetch(page)
		if err != nil || len(events) == 0 {
			return err
		}
		if err := x.journal.Load(events); err != nil {
			return err
		}
	}
}

// fetch reads up to n newer events for the loop.
func (x *fx) fetch(n int) ([]swarm.Event, error) {
	events, err := x.h.Log.Read(x.read, n, engine.Inbox(x.loop)...)
	if err != nil {
		return nil, err
	}
	if len(events) > 0 {
		x.read = events[len(events)-1].Seq
	}
	return events, context.Cause(x.ctx)
}

// Do makes a short call and waits for its result.
func (x *fx) Do(c flow.Call) (flow.Result, error) {
	if r, ok, err := x.journal.Before(c); ok || err != nil {
		return r, err
	}
	return x.h.Call(x.ctx, x.loop.ID, x.journal.Issue(c))
}

// Go starts a turn or a child loop. The loop gets its end from Next.
func (x *fx) Go(c flow.Call) error {
	c, start, err := x.journal.Start(c)
	if err != nil || !start {
		return err
	}
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

// Tell writes a fact, lazily: the next durable append takes it along.
func (x *fx) Tell(f flow.Fact) error {
	if x.journal.Told(f) {
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
		if s, ok, err := x.journal.Next(); ok || err != nil {
			return s, err
		}
		events, err := x.fetch(256)
		if err != nil {
			return flow.Signal{}, err
		}
		if len(events) > 0 {
			x.journal.Add(events)
			continue
		}
		if x.journal.Open() == 0 { // No turn is open whose end would take the lazy facts along.
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

// Now returns the time of the last event given.
func (x *fx) Now() time.Time { return x.journal.Now() }
