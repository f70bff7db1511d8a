package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/engine/temporal"
	"swarm/internal/excerpt"
	"swarm/internal/flow"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A worker drives runs: it owns them, has their loops run by Temporal, and notifies people. It also
// makes calls of runs that other workers drive.
//
// The workflow of a run goes on while its owner lives. If the owner is lost, another worker takes the
// run when the lease ends, under a new fence and with a new workflow.
type worker struct {
	ctx      context.Context // ends when the worker is to stop
	home     *statedir.Home
	options  run.Options // of every run
	temporal *temporal.Worker
	out      io.Writer
	all      sync.WaitGroup // the runs that it drives, and those that it assists

	mu     sync.Mutex // guards out and the next two fields
	served map[swarm.RunID]*access
	closed bool                       // nothing is added to served any more
	seen   map[swarm.RunID]*candidate // only the goroutine of serve uses it
}

// An access is what this process has for the calls of a run under one owner: the adapters of the run
// that it drives, or those of an assistant. A process has one access of a run at a time, because the
// programs of a run are ended together.
type access struct {
	fence    int64
	adapters *engine.Adapters
	ctx      context.Context // its end ends the calls
	stop     context.CancelCauseFunc
	ready    chan struct{} // closed when adapters or err are set
	err      error         // why there are no adapters
	gone     chan struct{} // closed when it is no longer in served

	leaving bool           // no call begins any more; guarded by the worker's mutex
	uses    sync.WaitGroup // Add is called under that mutex
}

// newWorker makes a worker that works until ctx ends.
func newWorker(ctx context.Context, h *statedir.Home, out io.Writer) *worker {
	return &worker{ctx: ctx, home: h, out: out, served: map[swarm.RunID]*access{}, seen: map[swarm.RunID]*candidate{}}
}

// say prints a line.
func (w *worker) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, format+"\n", args...)
}

// errChanging refuses a call while this process changes what it has of the run.
var errChanging = swarm.Errorf(swarm.Other, "the run is just getting another owner")

// fault reports why a call could not be made here. Temporal has it made again.
func (w *worker) fault(id swarm.RunID, err error) {
	if w.ctx.Err() == nil && !errors.Is(err, errChanging) {
		w.say("run %s: a call could not be made here: %s", id, err)
	}
}

// open is [temporal.Options.Open]. It makes an assistant for a run that another worker drives.
func (w *worker) open(id swarm.RunID, fence int64) (temporal.Access, error) {
	w.mu.Lock()
	a := w.served[id]
	switch {
	case w.closed:
		w.mu.Unlock()
		return temporal.Access{}, context.Cause(w.ctx)
	case a == nil:
		a = w.enter(id, fence)
		w.all.Go(func() { w.assist(id, a) })
	case a.fence > fence:
		w.mu.Unlock()
		return temporal.Access{}, swarm.ErrFenced
	case a.fence < fence || a.leaving:
		w.mu.Unlock()
		if a.fence < fence {
			a.stop(swarm.ErrFenced)
		}
		return temporal.Access{}, errChanging
	}
	a.uses.Add(1)
	w.mu.Unlock()
	<-a.ready
	if a.err != nil {
		a.uses.Done()
		return temporal.Access{}, a.err
	}
	return temporal.Access{Adapters: a.adapters, Context: a.ctx, Release: sync.OnceFunc(a.uses.Done)}, nil
}

// enter adds the access of a run. The caller has the mutex.
func (w *worker) enter(id swarm.RunID, fence int64) *access {
	a := &access{fence: fence, ready: make(chan struct{}), gone: make(chan struct{})}
	a.ctx, a.stop = context.WithCancelCause(w.ctx)
	w.served[id] = a
	return a
}

// replace adds the access of a run that this process drives from now on, when what it had of the run
// is closed.
func (w *worker) replace(id swarm.RunID, fence int64) *access {
	for {
		w.mu.Lock()
		old := w.served[id]
		if old == nil {
			defer w.mu.Unlock()
			return w.enter(id, fence)
		}
		w.mu.Unlock()
		old.stop(swarm.ErrFenced)
		<-old.gone
	}
}

// leave ends the calls of a run in this process, and waits for them.
func (w *worker) leave(a *access, why error) {
	w.mu.Lock()
	a.leaving = true
	w.mu.Unlock()
	a.stop(why)
	a.uses.Wait()
}

// remove removes an access that nothing uses any more.
func (w *worker) remove(id swarm.RunID, a *access) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.served, id)
	close(a.gone)
}

// engine is the engine of the runs that this process drives.
func (w *worker) engine(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
	w.mu.Lock()
	a := w.served[h.Turn.Run]
	w.mu.Unlock()
	defer context.AfterFunc(ctx, func() { a.stop(context.Cause(ctx)) })()
	a.adapters = h
	close(a.ready)
	h.Log.Flush() // the loop may run on another machine, and needs the record of its owner
	r, err := w.temporal.Run(ctx, h.Turn.Run, c)
	w.leave(a, err)
	return r, err
}

// assistEvery is how often an assistant looks whether its run still needs it.
const assistEvery = 2 * time.Second

// assist makes an assistant for the calls of a run, and keeps it until the run has ended or has another
// owner.
func (w *worker) assist(id swarm.RunID, a *access) {
	defer w.remove(id, a)
	var helper *run.Assistant
	start, err := run.ReadStart(w.home, id)
	if err == nil {
		err = checkFolder(start)
	}
	if err == nil {
		helper, err = run.Assist(w.ctx, w.home, id, a.fence, w.options)
	}
	if err != nil {
		a.err = err
		close(a.ready)
		w.leave(a, err)
		return
	}
	a.adapters = helper.Adapters
	close(a.ready)
	w.leave(a, w.needed(a, helper.Log()))
	if err := helper.Close(); err != nil {
		w.say("run %s: something that the agents used could not be ended: %s", id, err)
	}
}

// needed waits until a run needs no assistant, and returns why.
func (w *worker) needed(a *access, log swarm.RunLog) error {
	for {
		select {
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		case <-time.After(assistEvery):
		}
		owner, _, err := log.Owner(a.ctx)
		if err == nil && owner.Fence != a.fence {
			return swarm.ErrFenced
		}
		if _, ended, err := log.Find(swarm.EndKey(swarm.RootLoop)); err == nil && ended {
			return nil
		}
	}
}

// A candidate is a run that may need a worker.
type candidate struct {
	settled bool // it never will
	checked bool // start is known
	start   swarm.RunStart
	pause   time.Duration // after the next error

	mu      sync.Mutex // guards the fields below
	driving bool       // by this process
	next    time.Time  // when to look again
	said    string     // what was last said about it
}

// isBusy reports whether the run needs no look now.
func (c *candidate) isBusy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.driving || time.Now().Before(c.next)
}

// later sets when to look again, and whether this process drives the run.
func (c *candidate) later(driving bool, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.driving, c.next = driving, time.Now().Add(pause)
}

const (
	scanEvery  = 500 * time.Millisecond
	lookEvery  = 2 * time.Second // at a run that another worker drives
	allEvery   = time.Minute     // at all runs, and not only at the newest
	enoughSeen = 200             // runs that need no worker, before the scan stops
	firstPause = time.Second     // after the first error of a run
	mostPause  = 5 * time.Minute
)

// serve looks for runs that need a worker, and drives them, until the worker is to stop. When it
// returns, this process drives and assists no run.
func (w *worker) serve() {
	var last time.Time
	for w.ctx.Err() == nil {
		all := time.Since(last) >= allEvery
		if all {
			last = time.Now()
		}
		if err := w.scan(all); err != nil && w.ctx.Err() == nil {
			w.say("the runs cannot be listed: %s", err)
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(scanEvery):
		}
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.all.Wait()
}

// scan looks at the newest runs, and at those that were seen to need a worker.
func (w *worker) scan(all bool) error {
	settled, met := 0, map[swarm.RunID]bool{}
	for e, err := range w.home.Store.Runs(w.ctx, swarm.RunQuery{}) {
		if err != nil {
			return err
		}
		c := w.candidate(e.ID)
		if c.settled = c.settled || e.Saved && e.Status.Ended(); !c.settled {
			settled, met[e.ID] = 0, true
			w.consider(e.ID, c)
		} else if settled++; settled >= enoughSeen && !all {
			break
		}
	}
	for id, c := range w.seen {
		switch {
		case c.settled || met[id] || c.isBusy():
		case all: // it was removed
			c.settled = true
		default:
			w.consider(id, c)
		}
	}
	return nil
}

func (w *worker) candidate(id swarm.RunID) *candidate {
	c := w.seen[id]
	if c == nil {
		c = &candidate{pause: firstPause}
		w.seen[id] = c
	}
	return c
}

// consider drives a run if it is left to workers and has no owner.
func (w *worker) consider(id swarm.RunID, c *candidate) {
	if c.isBusy() {
		return
	}
	c.later(false, lookEvery) // unless it is driven below
	if !c.checked {
		start, err := run.ReadStart(w.home, id)
		if err != nil {
			return // it may have no first event yet
		}
		if c.checked, c.start = true, start; start.Engine != swarm.EngineTemporal {
			c.settled = true
			return
		}
	}
	l, err := run.OpenReader(w.home, id)
	if err != nil {
		return
	}
	defer l.Close()
	_, ended, err := l.Ended()
	if c.settled = ended; err != nil || ended || l.Driven() {
		return
	}
	if err := checkFolder(c.start); err != nil {
		w.sayOnce(id, c, err)
		c.later(false, allEvery)
		return
	}
	c.later(true, 0)
	w.all.Go(func() {
		if !w.drive(id, c) {
			c.later(false, 0)
			return
		}
		c.later(false, c.pause)
		c.pause = min(2*c.pause, mostPause)
	})
}

// drive drives a run to its end. again says that it failed, and is tried again later.
func (w *worker) drive(id swarm.RunID, c *candidate) (again bool) {
	r, err := run.Open(w.home, id)
	if err != nil {
		w.sayOnce(id, c, err)
		return true
	}
	defer r.Close()
	if err := r.Take(w.ctx); err != nil {
		var owned *swarm.OwnedError
		if !errors.As(err, &owned) && w.ctx.Err() == nil { // else another worker was faster
			w.sayOnce(id, c, err)
		}
		return true
	}
	a := w.replace(id, r.Fence())
	defer w.remove(id, a)
	w.say("run %s: driven here", id)
	p, err := r.Drive(w.ctx, w.options)
	if a.adapters == nil { // it did not come to its engine
		a.err = errChanging
		close(a.ready)
		w.leave(a, err)
	}
	if err != nil {
		w.sayOnce(id, c, err)
		return true
	}
	w.say("run %s: %s%s", id, p.Status, excerpt.Reason(p.Reason))
	return false
}

// sayOnce prints an error of a run, unless it was the last thing that was said about the run.
func (w *worker) sayOnce(id swarm.RunID, c *candidate, err error) {
	text := err.Error()
	if hint := swarm.HintOf(err); hint != "" {
		text += "; " + hint
	}
	c.mu.Lock()
	known := c.said == text
	c.said = text
	c.mu.Unlock()
	if !known {
		w.say("run %s: %s", id, text)
	}
}

// checkFolder refuses a run whose folder this machine does not have.
func checkFolder(start swarm.RunStart) error {
	if at, err := os.Stat(start.Dir); err != nil || !at.IsDir() {
		return swarm.Errorf(swarm.NotFound, "this machine has no folder %s", start.Dir).WithHint("the machines share it under the same path")
	}
	if start.File == "" || start.NoFile {
		return nil
	}
	file := start.File
	if !filepath.IsAbs(file) {
		file = filepath.Join(start.Dir, file)
	}
	if _, err := os.Stat(file); err != nil {
		return swarm.Errorf(swarm.NotFound, "the folder %s of this machine has no %s, so it is another one", start.Dir, start.File).
			WithHint("the machines share it under the same path")
	}
	return nil
}

// kill ends the processes of agents at once.
func (w *worker) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.served {
		process.Kill(id)
	}
}
