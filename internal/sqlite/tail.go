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
	tailEvents = 4096    // of one receiver that are kept in memory
	tailBytes  = 4 << 20 // of their data

	// How often others' events are looked for: while the log is being written, and when nothing has come for restAfter.
	pollEvery  = 20 * time.Millisecond
	restEvery  = 100 * time.Millisecond
	restAfter  = time.Second
	doubtEvery = time.Second // and when commits ring
)

// A tail is the end of the log in memory, by receiver. Followers read from it, and are woken by it.
type tail struct {
	mu        sync.Mutex
	following bool
	base      int64           // what came after it is here, up to upto, but for what the boxes dropped
	upto      int64           //
	own       int64           // the last event that this process wrote
	all       box             // every event
	boxes     map[string]*box // those for somebody, by receiver
	watchers  map[string]map[chan struct{}]bool
	watching  int
	stop      chan struct{} // ends the poll
}

// A box holds the newest events of one receiver, oldest first.
type box struct {
	events []swarm.Event
	bytes  int
	floor  int64 // everything after this number is here
}

func (b *box) add(e swarm.Event) {
	b.events = append(b.events, e)
	b.bytes += len(e.Data)
	drop := 0
	if len(b.events) >= 2*tailEvents { // seldom, so that it costs nothing per event
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
		b.events = slices.Clone(b.events[drop:])
	}
}

func (b *box) after(seq int64) []swarm.Event {
	return b.events[sort.Search(len(b.events), func(i int) bool { return b.events[i].Seq > seq }):]
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

// position is how far the tail has come; ok is false when nobody follows.
func (t *tail) position() (upto int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.upto, t.following
}

// push puts in what this process wrote after the event first. It says true when others wrote in between, so that the file has
// to be read.
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

// deliver puts events in that follow each other, and wakes who waits for them. The tail is locked.
func (t *tail) deliver(es []swarm.Event) {
	for _, e := range es {
		if e.Seq <= t.upto {
			continue
		}
		t.upto = e.Seq
		t.all.add(e)
		t.wake("")
		for _, to := range receivers(e.To) {
			t.box(to).add(e)
			t.wake(to)
		}
	}
}

// receivers are those who are given what is addressed to one: an agent's mail is also that of whoever reads all agents'.
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
		es = t.all.after(after)
		return slices.Clone(es[:min(limit, len(es))]), true
	}
	for _, r := range to {
		if b := t.boxes[r]; after < t.base || b != nil && after < b.floor {
			return nil, false
		}
	}
	for i, r := range to {
		if b := t.boxes[r]; b != nil && !slices.Contains(to[:i], r) {
			new := b.after(after)
			es = append(es, new[:min(limit, len(new))]...)
		}
	}
	if len(to) > 1 {
		slices.SortFunc(es, func(a, b swarm.Event) int { return int(a.Seq - b.Seq) })
		es = slices.CompactFunc(es, func(a, b swarm.Event) bool { return a.Seq == b.Seq }) // an agent's mail, asked for by its name and with all agents'
	}
	return es[:min(limit, len(es))], true
}

// fresh says whether the tail may answer without a look at the file: it has our own events, and somebody watches, so that
// others' are looked for all the time.
func (t *tail) fresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.following && t.upto >= t.own && t.watching > 0
}

// extend puts older events in front: those for somebody between the number after and the base.
func (t *tail) extend(after int64, boxes map[string]*box) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for to, old := range boxes {
		b := t.boxes[to]
		switch {
		case b == nil:
			t.boxes[to] = old
		case b.floor <= t.base: // it has dropped nothing: the old ones join it without a gap
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

// wake wakes who watches a receiver; "" is everybody's.
func (t *tail) wake(to string) {
	for c := range t.watchers[to] {
		select {
		case c <- struct{}{}:
		default: // it has not seen the last value yet, and will find this event too
		}
	}
}

// Watch gives a channel that holds a value soon after an event for one of the receivers was appended, see [swarm.Log].
func (l *Log) Watch(to ...string) (<-chan struct{}, func()) {
	if _, ok := l.tail.position(); !ok {
		_ = l.follow() // a failure shows at the next read
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

// poll looks for what other processes append, as long as somebody watches. While the log is being written it looks every
// pollEvery; at rest it waits until a commit rings. While this process writes it need not look: each of its commits finds what
// others committed before it.
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
		if ours != writes {
			writes = ours
			timer.Reset(pollEvery)
			continue
		}
		ring := make(chan struct{}, 1)
		watch, told := listen(l.path+".lock", ring) // before the look: what is committed after it rings
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

// rest waits for a commit. If another process made it, it looks at once; one of our own is no reason to hurry. It says false
// when the poll is over.
func (l *Log) rest(stop, ring chan struct{}, writes int64, timer *time.Timer) bool {
	for {
		timer.Reset(doubtEvery)
		select {
		case <-stop:
			return false
		case <-ring:
			return l.writes.Load() != writes || l.look()
		case <-timer.C: // who wrote may have died before it rang, or be of an older version
			if !l.look() {
				return false
			}
		}
	}
}

// look brings the tail up to date. It says false when the log is closed.
func (l *Log) look() bool {
	err := l.follow()
	if err != nil {
		l.tail.wakeAll() // they will read, and learn why
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
