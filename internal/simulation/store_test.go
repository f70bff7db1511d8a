package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/storetest"
)

// A disk is the log of one run as all processes share it. Events up to synced survive the loss of
// power; what was written after them does not.
type disk struct {
	seed uint64

	mu       sync.Mutex
	events   []swarm.Event
	keys     map[string]int64
	bodies   map[swarm.Hash][]byte
	written  []swarm.Hash // the bodies in the order in which they were written
	synced   int          // events that survive a loss of power
	safe     int          // bodies that survive it
	fence    int64
	version  string // of the loops
	owner    *handle
	lived    time.Time // the owner has taken or renewed its lease
	until    time.Time // its lease ends
	watchers map[*watcher]bool
	handles  int
	instants map[int64]bool // taken by delays
	slow     bool           // wakes come late, as between processes; otherwise before Append returns
}

func newDisk(seed uint64) *disk {
	return &disk{seed: seed, keys: map[string]int64{}, bodies: map[swarm.Hash][]byte{swarm.NoText: nil}, watchers: map[*watcher]bool{}, instants: map[int64]bool{}}
}

// A handle is the log as one process has it open.
type handle struct {
	*disk
	number int
	fate   func(*handle, *swarm.Batch) fate // decides what happens to an append; nil = it succeeds
	lag    bool                             // the process's loops learn of others' appends late
	delays bool                             // appends take time

	// The mutex of disk guards the fields below.
	pending []swarm.Batch // lazy batches that are not written
	lost    map[int64]error
	failed  error
	seen    int // events that loops of this process may read; all others read to the end
	timer   bool
	closed  bool
	dead    error // why every call fails: the process is dead
}

// A fate is what happens to an append.
type fate struct {
	before error // it fails, and nothing is written
	after  error // it is written, and the caller is told an error
	dies   bool  // the process dies with that error
	power  bool  // the power is lost soon after it is written
}

// A watcher is one Watch.
type watcher struct {
	h       *handle
	to      []string
	id      string
	wake    chan struct{}
	pending bool
}

// flushAfter is the moment after which lazy and early batches reach the disk by themselves.
const flushAfter = 20 * time.Millisecond

func (d *disk) open() *handle {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handles++
	return &handle{disk: d, number: d.handles, lost: map[int64]error{}, seen: len(d.events)}
}

func (h *handle) alive() error {
	switch {
	case h.dead != nil:
		return h.dead
	case h.closed:
		return swarm.Errorf(swarm.Stopped, "the log is closed")
	}
	return nil
}

func (h *handle) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if h.delays {
		h.delayAppend(b, "before")
		defer h.delayAppend(b, "after")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var f fate
	if h.fate != nil {
		f = h.fate(h, &b)
	}
	if f.before != nil {
		if f.dies {
			h.die(f.before)
		} else if b.Lazy {
			h.lose(b, f.before)
			return nil, nil
		}
		return nil, f.before
	}
	seqs, err := h.append(b)
	if f.after != nil {
		if f.dies {
			h.write()
			h.die(f.after)
		}
		return nil, f.after
	}
	return seqs, err
}

// delayAppend makes the start and the end of a turn take time. Other appends may be made under a
// mutex, and a goroutine that waits for a mutex holds up the virtual clock.
func (h *handle) delayAppend(b swarm.Batch, when string) {
	for _, e := range b.Events {
		if e.Kind == swarm.TurnStarted || e.Kind == swarm.TurnEnded {
			h.delay(0, 10*time.Millisecond, "append", when, h.number, e.Key)
		}
	}
}

func (h *handle) append(b swarm.Batch) ([]int64, error) {
	if b.Lazy {
		h.pending = append(h.pending, b)
		h.later()
		return nil, nil
	}
	h.write()
	seqs, err := h.commit(b)
	switch {
	case err != nil:
		return nil, err
	case b.Early:
		h.later()
	default:
		h.sync()
	}
	h.seen = len(h.events)
	return seqs, nil
}

// later writes and syncs after a moment.
func (h *handle) later() {
	if h.timer {
		return
	}
	h.timer = true
	time.AfterFunc(flushAfter, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.timer = false
		if h.alive() == nil {
			h.write()
			h.sync()
		}
	})
}

// write writes the lazy batches. Nothing that the same owner appends after a lost one is written.
func (h *handle) write() {
	pending := h.pending
	h.pending = nil
	for _, b := range pending {
		if _, err := h.commit(b); err != nil {
			h.lose(b, err)
		}
	}
}

func (h *handle) lose(b swarm.Batch, err error) {
	h.failed = errors.Join(h.failed, err)
	if b.Fence != 0 {
		h.lost[b.Fence] = err
	}
}

// secure makes sure that an event that a reader is given is not lost any more.
func (d *disk) secure(seq int64) {
	if seq > int64(d.synced) {
		d.sync()
	}
}

func (d *disk) sync() { d.synced, d.safe = len(d.events), len(d.written) }

// commit gives a batch its place in the order.
func (h *handle) commit(b swarm.Batch) ([]int64, error) {
	d := h.disk
	if b.Fence != 0 {
		if err := h.lost[b.Fence]; err != nil {
			return nil, err
		}
		if b.Fence != d.fence || d.owner == nil {
			return nil, swarm.ErrFenced
		}
	}
	for _, key := range b.Absent {
		if d.keys[key] != 0 {
			return nil, swarm.ErrStale
		}
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	if n := len(d.events); n > 0 && d.events[n-1].Time.After(now) {
		now = d.events[n-1].Time
	}
	seqs, added := make([]int64, len(b.Events)), []swarm.Event(nil)
	fresh := map[string]swarm.Event{}
	for i, e := range b.Events {
		old, there := fresh[e.Key]
		if seq := d.keys[e.Key]; seq != 0 {
			old, there = d.events[seq-1], true
		}
		if there && e.Key != "" {
			e.Seq, e.Time = old.Seq, old.Time
			if !reflect.DeepEqual(e, old) {
				return nil, swarm.ErrConflict
			}
			seqs[i] = old.Seq
			continue
		}
		e.Seq, e.Time = int64(len(d.events)+len(added)+1), now
		fresh[e.Key], seqs[i] = e, e.Seq
		added = append(added, e)
	}
	for _, body := range b.Bodies {
		if hash := swarm.HashOf(body); d.bodies[hash] == nil && hash != swarm.NoText {
			d.bodies[hash] = slices.Clone(body)
			d.written = append(d.written, hash)
		}
	}
	for _, e := range added {
		if d.events = append(d.events, e); e.Key != "" {
			d.keys[e.Key] = e.Seq
		}
	}
	d.announce(h, added)
	return seqs, nil
}

// announce wakes the watchers of events.
func (d *disk) announce(by *handle, added []swarm.Event) {
	if len(added) == 0 {
		return
	}
	last := added[len(added)-1].Seq
	for w := range d.watchers {
		switch {
		case w.pending || !slices.ContainsFunc(added, func(e swarm.Event) bool { return matches(e.To, w.to) }):
		case d.slow:
			w.pending = true
			most := time.Millisecond
			if w.h != by {
				most = 300 * time.Millisecond // another process learns of it by polling
			}
			time.AfterFunc(d.length(0, most, "wake", w.id, last), func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				w.send()
			})
		default:
			w.send()
		}
	}
}

func (w *watcher) send() {
	w.pending = false
	if w.h.alive() != nil || !w.h.watchers[w] {
		return
	}
	w.h.seen = len(w.h.events)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func matches(to string, receivers []string) bool {
	return len(receivers) == 0 || slices.Contains(receivers, to) || slices.Contains(receivers, swarm.ToAgents) && strings.HasPrefix(to, swarm.ToAgents)
}

func (h *handle) Flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alive() == nil {
		h.write()
	}
}

func (h *handle) Read(after int64, limit int, to ...string) (found []swarm.Event, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return nil, err
	}
	end := len(h.events)
	loop := slices.ContainsFunc(to, func(r string) bool { return strings.HasPrefix(r, swarm.ToLoop("")) })
	if loop && h.lag {
		end = min(end, h.seen)
	}
	for i := max(0, after); i < int64(end) && len(found) < limit; i++ {
		if e := h.events[i]; matches(e.To, to) {
			found = append(found, e)
		}
	}
	if !loop && len(found) > 0 {
		h.secure(found[len(found)-1].Seq)
	}
	return found, nil
}

func (h *handle) Find(key string) (swarm.Event, bool, error) {
	if turn, ok := strings.CutPrefix(key, swarm.CarriedOverKey("")); ok && h.delays {
		h.delay(0, 5*time.Millisecond, "begin", h.number, turn) // turns that a loop starts together begin one after the other
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return swarm.Event{}, false, err
	}
	if seq := h.keys[key]; seq != 0 && key != "" {
		h.secure(seq)
		return h.events[seq-1], true, nil
	}
	return swarm.Event{}, false, nil
}

func (h *handle) Body(hash swarm.Hash) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return nil, err
	}
	body, ok := h.bodies[hash]
	if !ok {
		return nil, swarm.ErrNoBody
	}
	return slices.Clone(body), nil
}

func (h *handle) Watch(to ...string) (<-chan struct{}, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &watcher{h: h, to: to, id: fmt.Sprint(h.number, to, time.Now().UnixNano()), wake: make(chan struct{}, 1)}
	h.watchers[w] = true
	return w.wake, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, w)
	}
}

func (h *handle) Own(_ context.Context, loops string, lease time.Duration) (o swarm.Ownership, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return o, err
	}
	if who, ok := h.current(); ok && h.owner != h {
		return o, &swarm.OwnedError{Owner: who}
	}
	if h.version != "" && h.version != loops {
		return o, swarm.Errorf(swarm.BadInput, "the run has loops of version %s", h.version)
	}
	if h.fate != nil { // it is written to disk, too
		if f := h.fate(h, &swarm.Batch{}); f.before != nil || f.after != nil {
			if f.dies {
				h.die(errCrash)
			}
			return o, errors.Join(f.before, f.after)
		}
	}
	o = swarm.Ownership{PID: os.Getpid(), Fence: h.fence + 1, Lived: h.lived}
	if n := len(h.events); h.fence > 0 && n > 0 && h.events[n-1].Time.After(h.lived) && !h.events[n-1].Time.After(h.until) {
		o.Lived = h.events[n-1].Time
	}
	h.fence++
	h.version, h.owner = loops, h
	h.extend(lease)
	return o, nil
}

// extend extends the lease from now on.
func (d *disk) extend(lease time.Duration) {
	d.lived = time.Now().UTC().Truncate(time.Microsecond)
	d.until = d.lived.Add(lease)
}

// current returns the owner, if it lives and its lease has not ended.
func (d *disk) current() (swarm.Owner, bool) {
	if d.owner == nil || d.owner.alive() != nil || time.Now().After(d.until) {
		return swarm.Owner{}, false
	}
	return swarm.Owner{Engine: "local", PID: os.Getpid(), Fence: d.fence, Until: d.until}, true
}

func (h *handle) Renew(_ context.Context, fence int64, lease time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	if h.owner != h || h.fence != fence {
		return swarm.ErrFenced
	}
	h.extend(lease)
	return nil
}

func (h *handle) Disown(_ context.Context, fence int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	if h.owner != h || h.fence != fence {
		return swarm.ErrFenced
	}
	h.owner, h.lived = nil, time.Now().UTC().Truncate(time.Microsecond)
	return nil
}

func (h *handle) Owner(context.Context) (swarm.Owner, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.current()
	return o, ok, nil
}

func (h *handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alive() != nil {
		return nil
	}
	h.write()
	h.sync()
	h.closed = true
	return h.failed
}

// die ends the process. Its lazy batches are lost. What it has written stays, as long as there is
// power.
func (h *handle) die(why error) {
	if h.dead == nil {
		h.dead, h.pending = why, nil
	}
}

// losePower ends all processes. Everything that was not synced is lost.
func (d *disk) losePower() {
	for _, e := range d.events[d.synced:] {
		delete(d.keys, e.Key)
	}
	for _, hash := range d.written[d.safe:] {
		delete(d.bodies, hash)
	}
	d.events, d.written = d.events[:d.synced:d.synced], d.written[:d.safe:d.safe]
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		d := newDisk(0)
		return func(*testing.T) storetest.Store { return d.open() }
	})
}
