package run

import (
	"strconv"
	"sync"
	"time"

	"swarm"
	"swarm/internal/view"
)

// The stored fold of a log is a cache: it may be deleted at any time.
const (
	foldName  = "view"
	foldEvery = 20_000
)

var foldVersion = strconv.Itoa(view.Version)

// View folds a log. It starts from the stored fold, if there is one.
func View(log swarm.RunLog, id swarm.RunID) (*view.Run, error) {
	v, _, err := fold(log, id)
	return v, err
}

// fold also returns the number of the event up to which the fold was stored.
func fold(log swarm.RunLog, id swarm.RunID) (v *view.Run, stored int64, err error) {
	v = view.New(id)
	if _, data, ok := log.LoadFold(foldName, foldVersion); ok {
		if known, err := view.Unmarshal(data); err == nil {
			v = known
		}
	}
	stored = v.Seq
	return v, stored, log.Scan(v.Seq, v.Apply)
}

// foldDue reports whether so many events follow the stored fold that it should be stored again for
// the next reader. A fold is as large as its plan, so the fold of a large plan is stored less
// often.
func foldDue(v *view.Run, stored int64) bool {
	return v.Seq-stored >= max(foldEvery, 4*int64(v.Len()))
}

// storeFold stores the fold of a log.
func storeFold(log swarm.RunLog, v *view.Run) error {
	return log.SaveFold(foldName, foldVersion, v.Seq, v.Marshal())
}

// batchDelay is how late an observer sees events and deltas. They are delivered in batches: an
// observer that is woken by each event would work between the end of one turn and the start of the
// next, and delay the run.
const batchDelay = 10 * time.Millisecond

// foldDelay is how far the fold lags behind in a run without an observer.
const foldDelay = time.Second

// The bound of the queue of deltas.
const (
	// maxPending bounds the deltas that wait for the observer, in bytes. A turn that produces more
	// is held back until they are delivered.
	maxPending = 256 << 10
	deltaCost  = 64 // counted for a delta besides its text
)

// A follower folds the log of a run while it is driven, and shows it to the observer. The observer
// gets the events in order, and the deltas of a turn between the turn's start and its end.
//
// Two goroutines deliver: the follower's own, and a turn that has filled the queue. The mutex
// delivering makes them take turns and is locked first; mu guards the queue and is held for moments
// only, so that a turn can queue a delta while a batch is delivered.
type follower struct {
	log      swarm.RunLog
	observer Observer
	delay    time.Duration
	nudge    chan struct{} // a delta was queued
	quit     chan struct{}
	done     sync.WaitGroup

	delivering sync.Mutex // guards the following fields: one batch at a time
	view       *view.Run
	stored     int64                 // the fold is stored up to this event
	begun      map[swarm.TurnID]bool // turns whose start the observer has seen, and whose end it has not
	err        error                 // the first error; nothing is delivered after it

	mu      sync.Mutex  // guards the following fields
	pending []turnDelta // deltas that wait for the observer
	bytes   int         // their cost
}

// A turnDelta is a delta with its turn.
type turnDelta struct {
	task  string
	turn  swarm.TurnID
	delta swarm.Delta
}

func (w *turnDelta) cost() int { return deltaCost + len(w.delta.Text) }

func newFollower(id swarm.RunID, log swarm.RunLog, o Options) *follower {
	f := &follower{log: log, observer: o.Observer, delay: batchDelay, nudge: make(chan struct{}, 1), quit: make(chan struct{}),
		view: view.New(id), begun: map[swarm.TurnID]bool{}}
	if o.View != nil {
		f.view = o.View
	}
	switch {
	case o.Observer == nil:
		f.delay = foldDelay
	case o.AtOnce:
		f.delay = 0
	}
	return f
}

// start follows the log in a goroutine of its own.
func (f *follower) start() {
	f.done.Go(func() {
		wake, off := f.log.Watch()
		defer off()
		for {
			if f.deliver() != nil {
				return
			}
			select {
			case <-wake:
			case <-f.nudge:
			case <-f.quit:
				return
			}
			if f.delay > 0 {
				select {
				case <-time.After(f.delay):
				case <-f.quit:
					return
				}
			}
		}
	})
}

// queueDelta queues a delta for the observer. If the queue is full, it delivers the queue itself:
// that is the backpressure on the turn.
func (f *follower) queueDelta(task, turn string, d swarm.Delta) {
	if f.observer == nil {
		return
	}
	if d.Tool != nil { // the provider still changes it
		use := *d.Tool
		d.Tool = &use
	}
	w := turnDelta{task, swarm.TurnID(turn), d}
	f.mu.Lock()
	f.pending, f.bytes = append(f.pending, w), f.bytes+w.cost()
	full := f.bytes > maxPending
	f.mu.Unlock()
	if full {
		_ = f.deliver() // stop returns the error
		return
	}
	select {
	case f.nudge <- struct{}{}:
	default: // the follower is about to look
	}
}

// deliver folds the new events and shows them to the observer, with the queued deltas.
func (f *follower) deliver() error {
	f.delivering.Lock()
	defer f.delivering.Unlock()
	if f.err == nil {
		f.deliverDeltas(func(turn swarm.TurnID) bool { return f.begun[turn] })
		if f.err = f.catchUp(); f.err == nil && foldDue(f.view, f.stored) {
			f.err = f.store()
		}
	}
	if f.err != nil { // nothing will be delivered: turns must not wait for it
		f.takeDeltas(func(swarm.TurnID) bool { return true })
	}
	return f.err
}

// store stores the fold, so that readers of a long run, or of one that was killed, need not fold it
// from its beginning. A run that was resumed may have a newer stored fold already.
func (f *follower) store() error {
	if seq, _, ok := f.log.LoadFold(foldName, foldVersion); ok {
		f.stored = max(f.stored, seq)
	}
	if !foldDue(f.view, f.stored) {
		return nil
	}
	f.stored = f.view.Seq
	return storeFold(f.log, f.view)
}

// catchUp reads by [swarm.Events], which serves events that were just written from memory.
func (f *follower) catchUp() error {
	for e, err := range swarm.Events(f.log, f.view.Seq) {
		if err == nil {
			err = f.event(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// event folds one event and shows it. Deltas of the turn may be queued already, because no delta is
// delivered before its turn's start.
func (f *follower) event(e *swarm.Event) error {
	if f.observer == nil {
		return f.apply(e)
	}
	its := func(turn swarm.TurnID) bool { return turn == e.Turn }
	if e.Kind == swarm.TurnEnded {
		f.deliverDeltas(its)
		delete(f.begun, e.Turn)
	}
	f.observer.Event(e)
	if e.Kind == swarm.TurnStarted {
		f.begun[e.Turn] = true
		f.deliverDeltas(its)
	}
	return f.apply(e) // does nothing if the observer shares the fold and has applied the event
}

// apply folds one event, and stores the fold if it is one of those by which past moments are found.
func (f *follower) apply(e *swarm.Event) error {
	if err := f.view.Apply(e); err != nil || !keepsPast(f.view) {
		return err
	}
	return storePast(f.log, f.view)
}

// deliverDeltas shows the observer the queued deltas of some turns.
func (f *follower) deliverDeltas(whose func(turn swarm.TurnID) bool) {
	for _, w := range f.takeDeltas(whose) {
		f.observer.Delta(w.task, w.delta)
	}
}

// takeDeltas removes the deltas of some turns from the queue and returns them.
func (f *follower) takeDeltas(whose func(turn swarm.TurnID) bool) (some []turnDelta) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := f.pending[:0]
	for _, w := range f.pending {
		if whose(w.turn) {
			some, f.bytes = append(some, w), f.bytes-w.cost()
		} else {
			rest = append(rest, w)
		}
	}
	clear(f.pending[len(rest):])
	f.pending = rest
	return some
}

// stop delivers what is left and returns the last picture.
func (f *follower) stop() (view.Picture, error) {
	close(f.quit)
	f.done.Wait()
	err := f.deliver()
	return f.view.Picture(), err
}
