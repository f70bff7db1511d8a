package sqlite

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"swarm"
)

const (
	tailEvents = 4096    // events of one receiver that are kept in memory
	tailBytes  = 4 << 20 // bytes of their data

	// Intervals of the poll for events of other processes: while the log is being written, and when
	// nothing has come for restAfter.
	pollEvery  = 20 * time.Millisecond
	restEvery  = 100 * time.Millisecond
	restAfter  = time.Second
	doubtEvery = time.Second // the interval at rest when commits ring
)

// A tail is the end of the log in memory, by receiver. Followers read from it, and it wakes them.
// mu guards all fields.
type tail struct {
	mu        sync.Mutex
	following bool
	base      int64           // events after base, up to upto, are here, except those that the boxes dropped
	upto      int64           // the newest event that is here
	own       int64           // the last event that this process wrote
	all       box             // every event
	boxes     map[string]*box // the addressed events, by receiver
	watchers  map[string]map[chan struct{}]bool
	watching  int
	stop      chan struct{} // ends the poll
}

// A box holds the newest events of one receiver, oldest first. An event that is in several boxes is
// in memory once.
type box struct {
	events []*swarm.Event
	bytes  int
	floor  int64 // everything after this number is here
}

func (b *box) add(e *swarm.Event) {
	b.events = append(b.events, e)
	b.bytes += len(e.Data)
	drop := 0
	if len(b.events) >= 2*tailEvents { // rarely, so that the cost per event is small
		drop = len(b.events) - tailEvents
	}
	for bytes := b.bytes; bytes > tailBytes && drop < len(b.events)-1; drop++ {
		bytes -= len(b.events[drop].Data)
	}
	if drop > 0 {
		for _, e := range b.events[:drop] {
			b.bytes -= len(e.Data)
		}
		b.floor = b.events[drop-1].Seq
		clear(b.events[:drop])
		b.events = b.events[drop:] // without a copy: a receiver of much data drops an event for each that comes
	}
}

// after returns the first events after a number.
func (b *box) after(seq int64, limit int) []*swarm.Event {
	es := b.events[sort.Search(len(b.events), func(i int) bool { return b.events[i].Seq > seq }):]
	return es[:min(limit, len(es))]
}

func (t *tail) init() {
	t.boxes = map[string]*box{}
	t.watchers = map[string]map[chan struct{}]bool{}
}

// start begins to follow after an event.
func (t *tail) start(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.following {
		t.following, t.base, t.upto, t.all.floor = true, seq, seq, seq
	}
}

// position returns how far the tail has come. If nothing follows the log, ok is false.
func (t *tail) position() (upto int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.upto, t.following
}

// push adds the events that this process wrote after the event first. It returns true if other
// processes wrote in between: the caller then has to read the file.
func (t *tail) push(first int64, wrote []swarm.Event) (behind bool) {
	if len(wrote) == 0 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = wrote[len(wrote)-1].Seq
	if t.following && first <= t.upto {
		t.deliver(wrote)
	}
	return t.following && t.upto < t.own
}

// deliver adds consecutive events, and wakes their watchers. The caller holds mu.
func (t *tail) deliver(es []swarm.Event) {
	for i := range es {
		if es[i].Seq <= t.upto {
			continue
		}
		e := new(swarm.Event)
		*e = es[i] // whose memory is the caller's
		t.upto = e.Seq
		t.all.add(e)
		t.wake("")
		for _, to := range receivers(e.To) {
			t.box(to).add(e)
			t.wake(to)
		}
	}
}

// receivers returns all boxes of an event with this receiver: an agent's mail also goes to the
// readers of all agents' mail.
func receivers(to string) []string {
	switch {
	case to == "":
		return nil
	case len(to) > len(swarm.ToAgents) && strings.HasPrefix(to, swarm.ToAgents):
		return []string{to, swarm.ToAgents}
	}
	return []string{to}
}

func (t *tail) box(to string) *box {
	b := t.boxes[to]
	if b == nil {
		b = &box{floor: t.base}
		t.boxes[to] = b
	}
	return b
}

// read answers from memory, if everything that is asked for is there.
func (t *tail) read(after int64, limit int, to []string) (es []swarm.Event, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(to) == 0 {
		if after < t.all.floor {
			return nil, false
		}
		return values(t.all.after(after, limit)), true
	}
	for _, r := range to {
		if b := t.boxes[r]; after < t.base || b != nil && after < b.floor {
			return nil, false
		}
	}
	var found []*swarm.Event
	for i, r := range to {
		if b := t.boxes[r]; b != nil && !slices.Contains(to[:i], r) {
			found = append(found, b.after(after, limit)...)
		}
	}
	if len(to) > 1 {
		slices.SortFunc(found, func(a, b *swarm.Event) int { return int(a.Seq - b.Seq) })
		found = slices.CompactFunc(found, func(a, b *swarm.Event) bool { return a.Seq == b.Seq }) // an agent's mail, asked for by its name and with all agents'
	}
	return values(found[:min(limit, len(found))]), true
}

func values(es []*swarm.Event) []swarm.Event {
	if len(es) == 0 {
		return nil
	}
	all := make([]swarm.Event, len(es))
	for i, e := range es {
		all[i] = *e
	}
	return all
}

// fresh reports whether the tail may answer without a look at the file. It has the events of this
// process, and those of other processes are polled for while something is watched.
func (t *tail) fresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.following && t.upto >= t.own && t.watching > 0
}

// extend adds older events in front: the addressed ones between the number after and the base.
func (t *tail) extend(after int64, boxes map[string]*box) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for to, old := range boxes {
		b := t.boxes[to]
		switch {
		case b == nil:
			t.boxes[to] = old
		case b.floor <= t.base: // It has dropped nothing, so the old events join it without a gap.
			for _, e := range b.events {
				old.add(e)
			}
			t.boxes[to] = old
		}
	}
	for to, b := range t.boxes {
		if boxes[to] == nil && b.floor == t.base {
			b.floor = after
		}
	}
	t.base = after
}

// wake wakes the watchers of a receiver. "" stands for the watchers of all events.
func (t *tail) wake(to string) {
	for c := range t.watchers[to] {
		select {
		case c <- struct{}{}:
		default: // The watcher has not read the last value yet, and will find this event too.
		}
	}
}

// Watch returns a channel that holds a value soon after an event for one of the receivers was
// appended, see [swarm.Log].
func (l *Log) Watch(to ...string) (<-chan struct{}, func()) {
	if _, ok := l.tail.position(); !ok {
		_ = l.follow() // A failure shows at the next read.
	}
	if len(to) == 0 {
		to = []string{""}
	}
	c := make(chan struct{}, 1)
	t := &l.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range to {
		if t.watchers[r] == nil {
			t.watchers[r] = map[chan struct{}]bool{}
		}
		t.watchers[r][c] = true
	}
	if t.watching++; t.watching == 1 {
		t.stop = make(chan struct{})
		go l.poll(t.stop)
	}
	var once sync.Once
	return c, func() { once.Do(func() { t.unwatch(c, to) }) }
}

func (t *tail) unwatch(c chan struct{}, to []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range to {
		if delete(t.watchers[r], c); len(t.watchers[r]) == 0 {
			delete(t.watchers, r)
		}
	}
	if t.watching--; t.watching == 0 {
		close(t.stop)
	}
}

// poll looks for events of other processes, as long as something is watched. While the log is being
// written it looks every pollEvery. At rest it waits until a commit rings. While this process
// writes, it looks only if the mark says that another one did too.
func (l *Log) poll(stop chan struct{}) {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	upto, since := int64(-1), time.Now() // how far the log had come, and since when
	for writes := l.writes.Load(); ; {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		ours := l.writes.Load()
		busy := ours != writes
		if writes = ours; busy && !l.mayLack() {
			timer.Reset(pollEvery)
			continue
		}
		ring := make(chan struct{}, 1)
		watch, told := listen(l.path+".lock", ring) // before the look, so that a later commit rings
		if !l.look() {
			return
		}
		if told {
			if !l.rest(stop, ring, writes, timer) {
				unlisten(watch, ring)
				return
			}
			timer.Reset(pollEvery)
			continue
		}
		now, _ := l.tail.position()
		if now != upto {
			upto, since = now, time.Now()
		}
		timer.Reset(pollEvery)
		if time.Since(since) > restAfter {
			timer.Reset(restEvery)
		}
	}
}

// rest waits for a commit. If another process made it, the poll looks at once. A commit of this
// process needs no look. It returns false when the poll is over.
func (l *Log) rest(stop, ring chan struct{}, writes int64, timer *time.Timer) bool {
	for {
		timer.Reset(doubtEvery)
		select {
		case <-stop:
			return false
		case <-ring:
			return l.writes.Load() != writes || l.look()
		case <-timer.C: // The writer may have died before it rang, or be an older version.
			if !l.look() {
				return false
			}
		}
	}
}

// look brings the tail up to date. It returns false if the log is closed.
func (l *Log) look() bool {
	err := l.follow()
	if err != nil {
		l.tail.wakeAll() // They read, and get the error.
	}
	return swarm.KindOf(err) != swarm.Stopped
}

func (t *tail) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for to := range t.watchers {
		t.wake(to)
	}
}
