package desk

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"swarm"
)

// WatchOptions are the options of a [Watcher]. The zero value is the usual.
type WatchOptions struct {
	// Poll is how often a desk is looked at although the system told of no change. On a shared folder
	// the system does not tell of changes that another machine makes.
	Poll time.Duration
	// PollOnly is how often a desk is looked at that the system cannot watch, because it has too many
	// watches.
	PollOnly time.Duration
	Patience time.Duration // of the readers: [DefaultPatience]
	Confirm  time.Duration // of the readers: [DefaultConfirm]
	NoNotify bool          // poll only
	// Pause is the least time between two changes that are told of the same state, such as its
	// progress. The last one is always told. 0 = each is told.
	Pause time.Duration
}

const (
	defaultPoll     = 2 * time.Second
	defaultPollOnly = 500 * time.Millisecond
	// minPause is the least time between two readings of one desk. A worker that rewrites its status a
	// thousand times a second must not cost more than others.
	minPause = 5 * time.Millisecond
)

// A Watcher follows the status of many desks. It has one goroutine and one instance of the system's
// notifications, whatever the number of desks.
type Watcher struct {
	options WatchOptions
	notify  *fsnotify.Watcher // nil = poll only
	calls   chan func()
	done    chan struct{}
	ended   chan struct{}
	close   sync.Once

	// The goroutine of run owns what follows.
	desks   map[string]*watched // by path
	blind   int                 // how many of them have no notifications
	early   map[*watched]bool   // those that are due before the next poll
	polled  time.Time           // when all were polled
	partial time.Time           // when those without notifications were polled
}

// A watched is a desk that is followed.
type watched struct {
	desk     *Desk
	path     string // when it was added
	reader   *StatusReader
	notified bool
	seen     fingerprint
	unsure   bool      // the file may have changed after it was read, within the clock's granularity
	read     time.Time // the last reading
	due      time.Time // the next one, if it is early
	told     *Reading  // the last that was told; nil = none
	toldAt   time.Time // when
	changes  chan Reading
}

// NewWatcher starts a watcher. Close ends it.
func NewWatcher(o WatchOptions) *Watcher {
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	if o.PollOnly <= 0 {
		o.PollOnly = defaultPollOnly
	}
	w := &Watcher{options: o, calls: make(chan func()), done: make(chan struct{}),
		ended: make(chan struct{}), desks: map[string]*watched{}, early: map[*watched]bool{}}
	if !o.NoNotify {
		w.notify, _ = fsnotify.NewWatcher() // the system may have no more instances: then it polls
	}
	go w.run()
	return w
}

// Close ends the watcher.
func (w *Watcher) Close() {
	w.close.Do(func() { close(w.done) })
	<-w.ended
}

// Notified reports how many desks are followed by notifications. The others are polled.
func (w *Watcher) Notified() (n int) {
	w.call(func() { n = len(w.desks) - w.blind })
	return n
}

// call has the goroutine do something, unless it has ended.
func (w *Watcher) call(do func()) {
	finished := make(chan struct{})
	select {
	case w.calls <- func() { do(); close(finished) }:
		<-finished
	case <-w.ended:
	}
}

// Add follows a desk, and returns the channel of its changes: each tells that the status has changed, or
// that the worker broke the protocol. The first one is the status as it is now, as soon as that can be
// read. last is the status that the caller knows of; see [NewStatusReader].
//
// The receiver may be slow. A change that it has not taken is replaced by a newer one, so the states in
// between may be left out. Remove and Close close the channel. The desk must stay open until then.
func (w *Watcher) Add(d *Desk, last Status) <-chan Reading {
	it := &watched{desk: d, path: d.path, reader: NewStatusReader(d, last), changes: make(chan Reading, 1)}
	if w.options.Patience > 0 {
		it.reader.Patience = w.options.Patience
	}
	if w.options.Confirm > 0 {
		it.reader.Confirm = w.options.Confirm
	}
	w.call(func() {
		if old := w.desks[d.path]; old != nil {
			w.forget(old)
		}
		w.desks[d.path] = it
		// Watch first, then read: a change in between is seen.
		if it.notified = w.notify != nil && w.notify.Add(d.path) == nil; !it.notified {
			w.blind++
		}
		w.look(it, time.Now())
	})
	return it.changes
}

// Remove stops following a desk.
func (w *Watcher) Remove(d *Desk) {
	w.call(func() {
		if it := w.desks[d.path]; it != nil {
			w.forget(it)
		}
	})
}

func (w *Watcher) forget(it *watched) {
	delete(w.desks, it.path)
	delete(w.early, it)
	close(it.changes)
	if !it.notified {
		w.blind--
		return
	}
	_ = w.notify.Remove(it.path) // the folder may be gone
}

func (w *Watcher) run() {
	defer close(w.ended)
	defer func() {
		for _, it := range w.desks {
			close(it.changes)
		}
	}()
	var changes chan fsnotify.Event
	var errs chan error
	if w.notify != nil {
		defer w.notify.Close()
		changes, errs = w.notify.Events, w.notify.Errors
	}
	w.polled, w.partial = time.Now(), time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(w.nextDue()))
		select {
		case <-w.done:
			return
		case do := <-w.calls:
			do()
		case e := <-changes:
			if it := w.desks[filepath.Dir(e.Name)]; it != nil && filepath.Base(e.Name) == StatusFile {
				w.soon(it, time.Now())
			}
		case err := <-errs:
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				w.pollAll(time.Now(), func(*watched) bool { return true })
			}
		case now := <-timer.C:
			w.tick(now)
		}
	}
}

// soon reads a desk at once, or after a pause if it was read just now.
func (w *Watcher) soon(it *watched, now time.Time) {
	if due := it.read.Add(minPause); due.After(now) {
		it.unsure = true
		w.plan(it, due)
		return
	}
	w.look(it, now)
}

// plan has a desk read at a time, or before if that is planned already.
func (w *Watcher) plan(it *watched, due time.Time) {
	if !w.early[it] || due.Before(it.due) {
		w.early[it], it.due = true, due
	}
}

// nextDue is when the goroutine has something to do although nothing happens. Few desks are early at
// any time.
func (w *Watcher) nextDue() time.Time {
	next := w.polled.Add(w.options.Poll)
	if w.blind > 0 {
		if t := w.partial.Add(w.options.PollOnly); t.Before(next) {
			next = t
		}
	}
	for it := range w.early {
		if it.due.Before(next) {
			next = it.due
		}
	}
	return next
}

func (w *Watcher) tick(now time.Time) {
	for it := range w.early {
		if !it.due.After(now) {
			delete(w.early, it)
			w.look(it, now)
		}
	}
	switch {
	case !now.Before(w.polled.Add(w.options.Poll)):
		w.polled, w.partial = now, now
		w.pollAll(now, func(it *watched) bool { return it.changed() })
	case !now.Before(w.partial.Add(w.options.PollOnly)):
		w.partial = now
		w.pollAll(now, func(it *watched) bool { return !it.notified && it.changed() })
	}
}

func (w *Watcher) pollAll(now time.Time, wanted func(*watched) bool) {
	for _, it := range w.desks {
		if wanted(it) {
			w.look(it, now)
		}
	}
}

// changed reports whether the file may have changed since it was read. It costs one system call.
func (it *watched) changed() bool { return it.unsure || it.desk.stat() != it.seen }

// racy is how new a file may be when it is read, so that a later change may leave its time as it is.
// Shared folders have coarse times and other clocks.
const racy = 3 * time.Second

// look reads a desk, and tells if there is something new.
func (w *Watcher) look(it *watched, now time.Time) {
	it.seen, it.read = it.desk.stat(), now
	it.unsure = now.Sub(it.seen.changed).Abs() < racy
	reading := it.reader.Read(now)
	if due := it.reader.Due(); !due.IsZero() {
		it.unsure = true
		w.plan(it, due)
	}
	if reading.Writing || it.told != nil && same(*it.told, reading) {
		return
	}
	if next := it.toldAt.Add(w.options.Pause); it.told != nil && next.After(now) && onlyProgress(*it.told, reading) {
		w.plan(it, next) // it is read again then, so the newest progress is told
		return
	}
	it.told, it.toldAt = &reading, now
	select {
	case <-it.changes: // the receiver has not taken it: this one is newer
	default:
	}
	it.changes <- reading // only this goroutine sends, so there is room
}

// onlyProgress reports whether two readings have the same state, and no broken rule.
func onlyProgress(a, b Reading) bool {
	return a.Status.State == b.Status.State && a.Violation == nil && b.Violation == nil
}

// same reports whether two readings tell the same.
func same(a, b Reading) bool {
	return (a.Violation == nil) == (b.Violation == nil) &&
		(a.Violation == nil || a.Violation.Error() == b.Violation.Error()) &&
		string(swarm.Encode(a.Status)) == string(swarm.Encode(b.Status))
}

// Follow waits until an attempt at a desk has ended, and returns how. tell is called with each change; it
// may be nil. gone delivers how the worker's program ended, once; it is nil if the worker is
// external. An attempt ends
//   - when its program has ended: a program that leaves no final state has failed with [AgentExited],
//   - when an external worker has set a final state,
//   - when the worker breaks the protocol, which is the reading's Violation.
//
// The error is that of ctx. At a timeout the status is read once more, so that work that was finished in time
// counts, however late the system tells of it.
func (w *Watcher) Follow(ctx context.Context, d *Desk, last Status, gone <-chan string, tell func(Reading)) (Reading, error) {
	changes := w.Add(d, last)
	defer w.Remove(d)
	now := Reading{Status: last}
	for {
		select {
		case <-ctx.Done():
			cut := swarm.CutError(ctx)
			if gone == nil && swarm.KindOf(cut) == swarm.TimedOut { // the worker may have finished just before the timeout
				if r := d.Status(context.WithoutCancel(ctx)); r.Status.State.Final() && checkMove(now.Status.State, r.Status.State) == nil {
					if tell != nil {
						tell(r)
					}
					return r, nil
				}
			}
			return now, cut
		case how := <-gone:
			end := NewStatusReader(d, now.Status).Finish(how)
			if tell != nil {
				tell(end)
			}
			return end, nil
		case r, ok := <-changes:
			if !ok {
				return now, swarm.Errorf(swarm.Stopped, "the desk %s is no longer followed", d.Name())
			}
			now = r
			if tell != nil {
				tell(r)
			}
			if r.Violation != nil || gone == nil && r.Status.State.Final() {
				return r, nil
			}
		}
	}
}
