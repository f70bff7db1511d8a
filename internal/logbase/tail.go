package logbase

import (
	"slices"
	"sort"
	"strings"
	"sync"

	"swarm"
)

const (
	tailEvents = 4096    // events of one receiver that are kept in memory
	tailBytes  = 4 << 20 // bytes of their data
)

// A Tail is the end of the log in memory, by receiver. Followers read from it, and it wakes them.
type Tail struct {
	fills     sync.Mutex // one Backfill at a time; taken before mu
	mu        sync.Mutex // guards the fields below
	following bool
	base      int64           // events after base, up to upto, are here, except those that the boxes dropped
	upto      int64           // the newest event that is here
	own       int64           // the last event that this process wrote
	all       box             // every event
	boxes     map[string]*box // the addressed events, by receiver
	watchers  map[string]map[chan struct{}]bool
	watching  int
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

// Start begins to follow after an event.
func (t *Tail) Start(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.following {
		t.following, t.base, t.upto, t.all.floor = true, seq, seq, seq
	}
}

// Position returns how far the tail has come. If nothing follows the log, ok is false.
func (t *Tail) Position() (upto int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.upto, t.following
}

// Push adds the events that this process wrote after the event first. It returns true if other
// processes wrote in between: the caller then has to read the log.
func (t *Tail) Push(first int64, wrote []swarm.Event) (behind bool) {
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

// Deliver adds consecutive events, and wakes their watchers.
func (t *Tail) Deliver(es []swarm.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deliver(es)
}

// deliver is Deliver for a caller that holds mu.
func (t *Tail) deliver(es []swarm.Event) {
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

func (t *Tail) box(to string) *box {
	b := t.boxes[to]
	if b == nil {
		b = &box{floor: t.base}
		if t.boxes == nil {
			t.boxes = map[string]*box{}
		}
		t.boxes[to] = b
	}
	return b
}

// Read answers from memory, if everything that is asked for is there.
func (t *Tail) Read(after int64, limit int, to []string) (es []swarm.Event, ok bool) {
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

// Fresh reports whether the tail may answer without a look at the store. It has the events of this
// process, and those of other processes are polled for while something is watched.
func (t *Tail) Fresh() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.following && t.upto >= t.own && t.watching > 0
}

// extend adds older events in front: the addressed ones between the number after and the base.
func (t *Tail) extend(after int64, boxes map[string]*box) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.boxes == nil {
		t.boxes = map[string]*box{}
	}
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
func (t *Tail) wake(to string) {
	for c := range t.watchers[to] {
		select {
		case c <- struct{}{}:
		default: // The watcher has not read the last value yet, and will find this event too.
		}
	}
}

// WakeAll wakes every watcher: they read, and get the error.
func (t *Tail) WakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for to := range t.watchers {
		t.wake(to)
	}
}

// Watch returns a channel that holds a value soon after an event for one of the receivers was
// appended, see [swarm.Log]. It calls begin when nothing was watched before, and end when nothing is
// watched any more. Both are called under the tail's mutex, so they come in turn.
func (t *Tail) Watch(to []string, begin, end func()) (<-chan struct{}, func()) {
	if len(to) == 0 {
		to = []string{""}
	}
	c := make(chan struct{}, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range to {
		if t.watchers[r] == nil {
			if t.watchers == nil {
				t.watchers = map[string]map[chan struct{}]bool{}
			}
			t.watchers[r] = map[chan struct{}]bool{}
		}
		t.watchers[r][c] = true
	}
	if t.watching++; t.watching == 1 {
		begin()
	}
	var once sync.Once
	return c, func() { once.Do(func() { t.unwatch(c, to, end) }) }
}

func (t *Tail) unwatch(c chan struct{}, to []string, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range to {
		if delete(t.watchers[r], c); len(t.watchers[r]) == 0 {
			delete(t.watchers, r)
		}
	}
	if t.watching--; t.watching == 0 {
		end()
	}
}

// A Walker calls f with consecutive events after a number, in order, until f returns false or a page
// is full. full returns the event with its data. A Walker returns the number of the last event, and
// whether there may be more.
type Walker func(after int64, f func(seq int64, to string, full func() swarm.Event) bool) (last int64, more bool, err error)

// Backfill reads the log after a number into memory, for all receivers at once. One scan serves every
// inbox and loop of a resumed run, and checks every event that it passes.
func (t *Tail) Backfill(after int64, walk Walker) error {
	t.fills.Lock()
	defer t.fills.Unlock()
	t.mu.Lock()
	base := t.base
	t.mu.Unlock()
	if after >= base {
		return nil
	}
	boxes := map[string]*box{}
	for from, more := after, true; more && from < base; {
		var err error
		from, more, err = walk(from, func(seq int64, to string, full func() swarm.Event) bool {
			if to == "" {
				return seq < base
			}
			e := full()
			for _, to := range receivers(e.To) {
				if boxes[to] == nil {
					boxes[to] = &box{floor: after}
				}
				boxes[to].add(&e)
			}
			return seq < base
		})
		if err != nil {
			return err
		}
	}
	t.extend(after, boxes)
	return nil
}

// Addressed reports whether an event with this receiver is for one of some readers.
func Addressed(to string, readers []string) bool {
	return slices.ContainsFunc(receivers(to), func(to string) bool { return slices.Contains(readers, to) })
}

// ToLoop reports whether a loop is among the receivers.
func ToLoop(to []string) bool {
	return slices.ContainsFunc(to, func(to string) bool { return strings.HasPrefix(to, swarm.ToLoop("")) })
}
