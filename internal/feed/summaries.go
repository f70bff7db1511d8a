package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// The names of the events of a list of runs.
const (
	SummaryEvent = "summary" // a run is new, or its summary has changed
	RemovedEvent = "removed" // a run was deleted
)

// How runs are looked for. No store tells of other runs than the one that is open, so the list must be
// polled.
const (
	summaryTime = 250 * time.Millisecond // so a run changes at most four times a second
	fullPass    = 8                      // every eighth pass reads the whole list
	settled     = 20                     // the other passes stop after so many runs that are as they were
	firstRuns   = 100                    // runs that a new listener gets, beside those that go on
)

// Summaries follow the runs of a folder, or of all folders, for the listeners of a list of runs. One
// goroutine polls for all of them. It lives while there are listeners.
type Summaries struct {
	home     *statedir.Home
	dir      string
	anywhere bool

	mu        sync.Mutex
	listeners int
	stop      context.CancelFunc
	rows      map[swarm.RunID]*summaryRow
	version   int64         // of the newest change
	more      chan struct{} // closed when there is a newer one
}

// A summaryRow is the newest summary of a run, encoded.
type summaryRow struct {
	id      swarm.RunID
	version int64 // its last change
	wire    []byte
	rests   bool // no process drives it
	removed bool
}

// NewSummaries follows the runs that were started in a folder, or with anywhere all runs.
func NewSummaries(h *statedir.Home, dir string, anywhere bool) *Summaries {
	return &Summaries{home: h, dir: dir, anywhere: anywhere, more: make(chan struct{})}
}

// Join begins to follow the runs for a listener. When it returns, the list has been read once. The
// caller calls leave when it listens no more.
func (s *Summaries) Join() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners++; s.listeners == 1 {
		ctx, stop := context.WithCancel(context.Background())
		s.stop, s.rows = stop, map[swarm.RunID]*summaryRow{}
		w := &summaryWatch{feed: s, live: map[swarm.RunID]*liveRun{}}
		changed := w.pass(s.rows)
		s.publish(changed)
		go w.run(ctx)
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.listeners--; s.listeners == 0 {
			s.stop()
		}
	})
}

// Take returns the changes after a version as events for the wire, the oldest first, with the newest
// version. Of several changes of a run only the newest is there. more is closed when there are others.
// A listener that has nothing yet asks after -1, and gets the newest runs and all that go on.
func (s *Summaries) Take(after int64) (wire []byte, version int64, more <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []*summaryRow
	for _, row := range s.rows {
		if row.version > after && (after >= 0 || !row.removed) {
			rows = append(rows, row)
		}
	}
	if after < 0 {
		slices.SortFunc(rows, func(a, b *summaryRow) int { return cmp.Compare(b.id, a.id) }) // the newest first
		n := 0
		rows = slices.DeleteFunc(rows, func(row *summaryRow) bool { n++; return n > firstRuns && row.rests })
	}
	slices.SortFunc(rows, func(a, b *summaryRow) int { return cmp.Compare(a.version, b.version) })
	for _, row := range rows {
		wire = append(wire, row.wire...)
	}
	return wire, s.version, s.more
}

// publish puts rows in the place of those that they change. The mutex is held.
func (s *Summaries) publish(changed []*summaryRow) {
	if len(changed) == 0 {
		return
	}
	for _, row := range changed {
		s.version++
		row.version = s.version
		s.rows[row.id] = row
	}
	close(s.more)
	s.more = make(chan struct{})
}

// A summaryWatch is the polling goroutine of Summaries. Only it uses the fields.
type summaryWatch struct {
	feed   *Summaries
	live   map[swarm.RunID]*liveRun
	passes int
}

// A liveRun is a run that a process drives. Its fold stays in memory, so each event is read once.
type liveRun struct {
	reader *run.Reader
	view   *view.Run
}

func (w *summaryWatch) run(ctx context.Context) {
	defer func() {
		for _, l := range w.live {
			l.reader.Close()
		}
	}()
	tick := time.NewTicker(summaryTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		w.feed.mu.Lock()
		rows := make(map[swarm.RunID]*summaryRow, len(w.feed.rows))
		for id, row := range w.feed.rows {
			rows[id] = row
		}
		w.feed.mu.Unlock()
		changed := w.pass(rows) // without the mutex: it reads files
		w.feed.mu.Lock()
		if ctx.Err() == nil {
			w.feed.publish(changed)
		}
		w.feed.mu.Unlock()
	}
}

// pass looks at the runs and returns the rows that have changed.
func (w *summaryWatch) pass(rows map[swarm.RunID]*summaryRow) (changed []*summaryRow) {
	full := w.passes%fullPass == 0
	w.passes++
	note := func(s swarm.RunSummary, rests bool) {
		row := &summaryRow{id: s.ID, wire: namedFrame(SummaryEvent, s), rests: rests}
		if old := rows[s.ID]; old == nil || !bytes.Equal(old.wire, row.wire) || old.rests != rests {
			changed = append(changed, row)
			rows[s.ID] = row
		}
	}
	seen, still := map[swarm.RunID]bool{}, 0
	for entry, err := range w.feed.home.Store.Runs(context.Background(), swarm.RunQuery{}) {
		if err != nil {
			return changed // the next pass tries again
		}
		if !full && still >= settled {
			break
		}
		seen[entry.ID] = true
		old := rows[entry.ID]
		switch {
		case w.live[entry.ID] != nil:
		case entry.Saved && !w.feed.anywhere && entry.Dir != w.feed.dir:
			still++ // it stays a run of another folder
		case entry.Saved && (entry.Status.Ended() || entry.Status == swarm.Interrupted):
			before := len(changed)
			note(entry.RunSummary, true)
			if still++; len(changed) > before {
				still = 0
			}
		case old != nil && old.rests && !entry.Saved: // its log cannot be read
			still++
		default:
			w.follow(entry.ID, note)
		}
	}
	for id, l := range w.live {
		s, driven, err := l.reader.Advance(l.view)
		switch {
		case err != nil:
			w.drop(id)
		case !driven:
			w.drop(id)
			note(s, true)
		default:
			note(s, false)
		}
	}
	if full {
		for id, row := range rows {
			if !seen[id] && !row.removed {
				w.drop(id)
				changed = append(changed, &summaryRow{id: id, wire: namedFrame(RemovedEvent, map[string]swarm.RunID{"id": id}), rests: true, removed: true})
			}
		}
	}
	return changed
}

// follow begins to follow a run that may have a driver.
func (w *summaryWatch) follow(id swarm.RunID, note func(s swarm.RunSummary, rests bool)) {
	s := w.feed.home.Summary(id)
	if !s.Begun() || !w.feed.anywhere && s.Dir != w.feed.dir {
		return
	}
	if s.Problem != "" || s.Status.Ended() || s.Status == swarm.Interrupted {
		note(s, true)
		return
	}
	reader, err := run.OpenReader(w.feed.home, id)
	if err != nil {
		return // it is looked at again with the next pass
	}
	v, err := reader.Fold()
	if err != nil {
		reader.Close()
		return
	}
	w.live[id] = &liveRun{reader, v}
}

func (w *summaryWatch) drop(id swarm.RunID) {
	if l := w.live[id]; l != nil {
		l.reader.Close()
		delete(w.live, id)
	}
}

// namedFrame encodes a value as an event without a number.
func namedFrame(name string, value any) []byte {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	_ = json.NewEncoder(&b).Encode(value) // cannot fail; ends the line
	b.WriteString("\n")
	return b.Bytes()
}
