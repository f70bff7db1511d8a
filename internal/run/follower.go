package run

import (
	"strconv"
	"sync"
	"time"

	"swarm"
	"swarm/internal/view"
)

// foldName and foldEvery are the stored fold of a log: a shortcut that may be thrown away at any time.
const (
	foldName  = "view"
	foldEvery = 20_000
)

var foldVersion = strconv.Itoa(view.Version)

// View folds a log: from its stored fold, if there is one, and on from there.
func View(log swarm.RunLog, id swarm.RunID) (*view.Run, error) {
	v, _, err := fold(log, id)
	return v, err
}

// fold also says up to which event the fold was stored.
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

// foldDue says whether so much has come since a fold was stored that the next reader should not fold it again. A fold is as large as
// its plan, so that of a large plan is stored less often.
func foldDue(v *view.Run, stored int64) bool {
	return v.Seq-stored >= max(foldEvery, 4*int64(v.Len()))
}

// storeFold stores the fold of a log.
func storeFold(log swarm.RunLog, v *view.Run) error {
	return log.SaveFold(foldName, foldVersion, v.Seq, v.Marshal())
}

// batchDelay is how long an observer waits before it is shown what has happened. Events and words are handed over in batches, because an
// observer that is woken by each event does its work between the end of one turn and the start of the next.
const batchDelay = 10 * time.Millisecond

// foldDelay is how far the fold of a run is behind that nobody observes.
const foldDelay = time.Second

// maxSaid bounds what turns have said and the observer was not told yet, in bytes. A turn that says more waits for the observer.
const (
	maxPending = 256 << 10
	deltaCost  = 64 // of one that has no text
)

// A follower folds the log of a run while it is driven, and shows it to the observer: each event in its order, and the words of a
// turn between its start and its end.
type follower struct {
	log      swarm.RunLog
	observer Observer
	delay    time.Duration
	nudge    chan struct{} // somebody has said something
	quit     chan struct{}
	done     sync.WaitGroup

	telling sync.Mutex // guards what follows: one batch at a time
	view    *view.Run
	stored  int64                 // up to which event the fold was stored
	begun   map[swarm.TurnID]bool // turns whose start was told, and whose end was not
	err     error                 // the first one; nothing is told after it

	mu    sync.Mutex  // guards what follows
	said  []turnDelta // and not told yet
	bytes int         // what they cost
}

// A turnDelta is something that a turn has said.
type turnDelta struct {
	task  string
	turn  swarm.TurnID
	delta swarm.Delta
}

func (w *turnDelta) cost() int { return deltaCost + len(w.delta.Text) }

func newFollower(id swarm.RunID, log swarm.RunLog, o Options) *follower {
	f := &follower{log: log, observer: o.Observer, delay: batchDelay, nudge: make(chan struct{}, 1), quit: make(chan struct{}), view: view.New(id), begun: map[swarm.TurnID]bool{}}
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

// start follows the log beside the run.
func (f *follower) start() {
	f.done.Go(func() {
		wake, off := f.log.Watch()
		defer off()
		for {
			if f.tell() != nil {
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

// say has the observer told what a turn says.
func (f *follower) say(task, turn string, d swarm.Delta) {
	if f.observer == nil {
		return
	}
	if d.Tool != nil { // its maker goes on with it
		use := *d.Tool
		d.Tool = &use
	}
	w := turnDelta{task, swarm.TurnID(turn), d}
	f.mu.Lock()
	f.said, f.bytes = append(f.said, w), f.bytes+w.cost()
	full := f.bytes > maxPending
	f.mu.Unlock()
	if full {
		_ = f.tell() // stop returns the error
		return
	}
	select {
	case f.nudge <- struct{}{}:
	default: // the follower will find this too
	}
}

// tell folds the events that are new and shows them, with what was said, to the observer.
func (f *follower) tell() error {
	f.telling.Lock()
	defer f.telling.Unlock()
	if f.err == nil {
		f.speak(func(turn swarm.TurnID) bool { return f.begun[turn] })
		if f.err = f.catchUp(); f.err == nil && foldDue(f.view, f.stored) {
			f.err = f.store()
		}
	}
	if f.err != nil { // nobody will be told
		f.take(func(swarm.TurnID) bool { return true })
	}
	return f.err
}

// store stores the fold, so that readers of a long run, and of one that was killed, need not fold it from its beginning. A run that is
// driven on may have a later one.
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

// catchUp reads what the log keeps in memory: what is followed has just been written.
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

// event folds one event and shows it. The words of its turn may be here already, since nobody is told a word before its turn's start.
func (f *follower) event(e *swarm.Event) error {
	if f.observer == nil {
		return f.view.Apply(e)
	}
	its := func(turn swarm.TurnID) bool { return turn == e.Turn }
	if e.Kind == swarm.TurnEnded {
		f.speak(its)
		delete(f.begun, e.Turn)
	}
	f.observer.Event(e)
	if e.Kind == swarm.TurnStarted {
		f.begun[e.Turn] = true
		f.speak(its)
	}
	return f.view.Apply(e) // if the observer keeps the fold, it has done so already, and nothing is done here
}

// speak tells the observer what some turns have said.
func (f *follower) speak(whose func(turn swarm.TurnID) bool) {
	for _, w := range f.take(whose) {
		f.observer.Delta(w.task, w.delta)
	}
}

// take takes what some turns have said.
func (f *follower) take(whose func(turn swarm.TurnID) bool) (some []turnDelta) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := f.said[:0]
	for _, w := range f.said {
		if whose(w.turn) {
			some, f.bytes = append(some, w), f.bytes-w.cost()
		} else {
			rest = append(rest, w)
		}
	}
	clear(f.said[len(rest):])
	f.said = rest
	return some
}

// stop folds what is left and gives the last picture.
func (f *follower) stop() (view.Picture, error) {
	close(f.quit)
	f.done.Wait()
	err := f.tell()
	return f.view.Picture(), err
}
