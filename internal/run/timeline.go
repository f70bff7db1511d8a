package run

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// An Entry is one thing that happened in a run: an event, or a piece of a turn's stream.
type Entry struct {
	Time  time.Time
	Event *swarm.Event // nil = a piece of a stream
	Task  string
	Turn  swarm.TurnID
	Kind  string // of a piece: text, stderr, thinking, tool, …; statedir.Gap if it was not stored
	Text  string // a fragment, not a line
	Gap   int64  // of kind statedir.Gap: how many bytes are missing
}

// Delta returns a piece of a stream as the delta that it was made from, for a screen.
func (m Entry) Delta() swarm.Delta {
	d := swarm.Delta{Kind: swarm.DeltaKind(m.Kind), Text: m.Text}
	switch {
	case m.Kind == statedir.Gap:
		d = swarm.Delta{Kind: swarm.DeltaText, Text: gapText(m.Gap)}
	case d.Kind == swarm.DeltaToolFailed:
		name, output, _ := strings.Cut(m.Text, ": ")
		d = swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{Name: name, Output: output, Failed: true}}
	case d.Kind == swarm.DeltaTool, d.Kind == swarm.DeltaToolDone:
		d.Text, d.Tool = "", &swarm.ToolUse{Name: m.Text}
	case d.Kind == swarm.DeltaFile:
		d.Text, d.File = "", m.Text
	}
	return d
}

// A Timeline is a run in the order of time: its events, and between them the streams of its turns.
// If a stream is gone, the stored output of the turn replaces it. A timeline is not for concurrent
// use.
type Timeline struct {
	Only func(task string) bool // the tasks whose streams are read; nil = all

	reader  *Reader
	streams *statedir.StreamsReader
	after   int64         // the last event that was emitted
	before  []swarm.Event // starts of turns that already ran at that event; their streams are not open yet
	sources []*source
	settled time.Duration // how long after a turn's end its stream is surely complete
}

// A source is the stream of a turn. It is read for a moment after the turn's end, because its last
// records may be written after it.
type source struct {
	start     int64 // the event that started the turn
	task      string
	turn      swarm.TurnID
	stream    *statedir.StreamReader // nil = the turn has no stream
	records   []statedir.Record      // read, but not emitted yet
	hasOutput bool                   // some of them were output
	ended     time.Time              // zero = the turn runs
	output    swarm.Hash
}

// Timeline returns the timeline from the run's beginning.
func (r *Reader) Timeline() *Timeline {
	return &Timeline{reader: r, streams: r.home.ReadStreams(r.ID), settled: time.Second}
}

// TimelineFrom returns the timeline after the last event of a fold, with the whole streams of the
// turns that run there.
func (r *Reader) TimelineFrom(v *view.Run) (*Timeline, error) {
	s := r.Timeline()
	s.after = v.Seq
	for i := range v.Len() {
		t := v.At(i)
		if !t.InTurn() || t.Turn == "" {
			continue
		}
		last, err := r.runningStart(t.Turn, v.Seq)
		if err != nil {
			return nil, err
		}
		if last != nil {
			s.before = append(s.before, *last)
		}
	}
	return s, nil
}

// A TimelineEnd is where a run stands: its last event, and the turns that run there.
type TimelineEnd struct {
	Seq     int64
	Running []swarm.TurnID
}

// EndOf returns where the run stood at a fold of it.
func EndOf(v *view.Run) TimelineEnd {
	end := TimelineEnd{Seq: v.Seq}
	for i := range v.Len() {
		if t := v.At(i); t.Status == swarm.Running && t.Turn != "" {
			end.Running = append(end.Running, t.Turn)
		}
	}
	return end
}

// Ended returns where the run stands if it has ended. It needs no fold, which would be as large as
// the run's plan.
func (r *Reader) Ended() (end TimelineEnd, ok bool, err error) {
	e, ok, err := r.log.Find(string(swarm.RunEnded))
	return TimelineEnd{Seq: e.Seq}, ok, err
}

// TimelineOfLast returns the timeline of the last n events before an end. From the first of them on
// it equals the timeline from the beginning. Some earlier pieces of streams come before it. whole
// reports whether the timeline covers the whole run.
func (r *Reader) TimelineOfLast(end TimelineEnd, n int64) (s *Timeline, whole bool, err error) {
	s = r.Timeline()
	if s.after = max(0, end.Seq-n); s.after == 0 {
		return s, true, nil
	}
	turns, err := r.runningAt(s.after, end.Running)
	for _, turn := range turns {
		var last *swarm.Event
		if last, err = r.runningStart(turn, s.after); err == nil && last != nil {
			s.before = append(s.before, *last)
		}
		if err != nil {
			break
		}
	}
	return s, false, err
}

// runningAt returns the turns that may have been running when an event was written. Later events
// show them: such a turn still runs, ended later, or was started again later.
func (r *Reader) runningAt(seq int64, now []swarm.TurnID) (turns []swarm.TurnID, err error) {
	seen := map[swarm.TurnID]bool{}
	err = r.log.Scan(seq, func(e *swarm.Event) error {
		started := e.Kind == swarm.TurnStarted
		if !started && e.Kind != swarm.TurnEnded || seen[e.Turn] {
			return nil
		}
		seen[e.Turn] = true
		if !started || e.Key != swarm.StartKey(e.Turn, 1) {
			turns = append(turns, e.Turn)
		}
		return nil
	})
	for _, turn := range now {
		if !seen[turn] {
			turns = append(turns, turn)
		}
	}
	return turns, err
}

// runningStart returns the start of a turn if the turn was running when an event was written, else
// nil.
func (r *Reader) runningStart(turn swarm.TurnID, at int64) (*swarm.Event, error) {
	if end, ended, err := r.log.Find(swarm.EndKey(string(turn))); err != nil || ended && end.Seq <= at {
		return nil, err
	}
	return r.lastStart(turn, at)
}

// lastStart returns the last start of a turn up to an event, or nil.
func (r *Reader) lastStart(turn swarm.TurnID, upto int64) (last *swarm.Event, err error) {
	for n := 1; ; n++ {
		e, ok, err := r.log.Find(swarm.StartKey(turn, n))
		if err != nil || !ok || e.Seq > upto {
			return last, err
		}
		last = &e
	}
}

// ReadStream calls fn with the stored stream of a turn's last start.
func (r *Reader) ReadStream(turn swarm.TurnID, fn func(statedir.Record) error) error {
	return r.readStream(r.home.ReadStreams(r.ID), turn, fn)
}

func (r *Reader) readStream(streams *statedir.StreamsReader, turn swarm.TurnID, fn func(statedir.Record) error) error {
	stream, err := r.streamOf(streams, turn)
	if err == nil && stream != nil {
		_, err = stream.Read(fn)
	}
	return err
}

// streamOf returns the reader of the stream of a turn's last start; nil = it has not started.
func (r *Reader) streamOf(streams *statedir.StreamsReader, turn swarm.TurnID) (*statedir.StreamReader, error) {
	e, err := r.lastStart(turn, math.MaxInt64)
	if err != nil || e == nil {
		return nil, err
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return nil, err
	}
	return streams.Turn(turn, start.Start), nil
}

// ReadNew calls fn with the entries since the last call. It never waits.
func (t *Timeline) ReadNew(fn func(Entry) error) error {
	driven := t.reader.Driven()
	for i := range t.before {
		if err := t.addSource(&t.before[i]); err != nil {
			return err
		}
	}
	t.before = nil
	for _, v := range t.sources {
		if err := v.read(); err != nil {
			return err
		}
	}
	err := t.reader.log.Scan(t.after, func(e *swarm.Event) error {
		t.after = e.Seq
		if err := t.emitUntil(e.Time, fn); err != nil {
			return err
		}
		if err := t.track(e, driven, fn); err != nil {
			return err
		}
		return fn(Entry{Time: e.Time, Event: e, Task: e.Task, Turn: e.Turn})
	})
	if err != nil {
		return err
	}
	return t.rest(driven, fn)
}

// Follow calls fn with new entries until the run does not go on or ctx ends.
func (t *Timeline) Follow(ctx context.Context, fn func(Entry) error) error {
	p := t.reader.newPoller()
	defer p.stop()
	for {
		goesOn := t.reader.GoesOn() // first: the last entries of a driver that leaves now are read below
		if err := t.ReadNew(fn); err != nil || !goesOn {
			return err
		}
		if err := p.wait(ctx, len(t.sources) > 0); err != nil {
			return err
		}
	}
}

// track opens and ends the sources of the turns that an event starts or ends.
func (t *Timeline) track(e *swarm.Event, driven bool, fn func(Entry) error) error {
	if t.Only != nil && !t.Only(e.Task) {
		return nil
	}
	switch e.Kind {
	case swarm.TurnStarted:
		if v := t.removeSource(e.Turn); v != nil { // a crash cut the earlier start
			if err := v.emitAll(fn); err != nil {
				return err
			}
		}
		return t.addSource(e)
	case swarm.TurnEnded:
		return t.end(e, driven, fn)
	}
	return nil
}

func (t *Timeline) addSource(e *swarm.Event) error {
	if t.Only != nil && !t.Only(e.Task) {
		return nil
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	v := &source{start: e.Seq, task: e.Task, turn: e.Turn, stream: t.streams.Turn(e.Turn, start.Start)}
	t.sources = append(t.sources, v)
	return v.read()
}

// removeSource removes a running turn's source and returns it, or nil.
func (t *Timeline) removeSource(turn swarm.TurnID) *source {
	for i, v := range t.sources {
		if v.turn == turn && v.ended.IsZero() {
			t.sources = slices.Delete(t.sources, i, i+1)
			return v
		}
	}
	return nil
}

// end emits the rest of a turn that has ended.
func (t *Timeline) end(e *swarm.Event, driven bool, fn func(Entry) error) error {
	end, err := swarm.Body[swarm.CallEnd](e)
	if err != nil {
		return err
	}
	v := t.removeSource(e.Turn)
	if v == nil { // carried over from another run
		v = &source{task: e.Task, turn: e.Turn}
	}
	v.ended, v.output = e.Time, end.Output
	if err := v.read(); err != nil {
		return err
	}
	if err := v.emitAll(fn); err != nil {
		return err
	}
	if driven && v.stream != nil && time.Since(v.ended) < t.settled {
		t.sources = append(t.sources, v)
		return nil
	}
	return t.emitOutput(v, fn)
}

// rest emits the pieces after the last event, and closes the sources that are complete.
func (t *Timeline) rest(driven bool, fn func(Entry) error) error {
	if err := t.emitUntil(time.Time{}, fn); err != nil {
		return err
	}
	var open []*source
	for _, v := range t.sources {
		if v.ended.IsZero() || driven && time.Since(v.ended) < t.settled {
			open = append(open, v)
			continue
		}
		if err := t.emitOutput(v, fn); err != nil {
			return err
		}
	}
	t.sources = open
	return nil
}

// emitOutput emits the stored output of a turn whose stream has none.
func (t *Timeline) emitOutput(v *source, fn func(Entry) error) error {
	if v.hasOutput {
		return nil
	}
	text, err := t.reader.Text(v.output)
	if err != nil || len(text) == 0 {
		return err
	}
	return fn(Entry{Time: v.ended, Task: v.task, Turn: v.turn, Kind: string(swarm.DeltaText), Text: string(text)})
}

// emitUntil emits the pieces up to a time in order, or all if the time is zero.
func (t *Timeline) emitUntil(limit time.Time, fn func(Entry) error) error {
	for {
		var first *source
		for _, v := range t.sources {
			if len(v.records) > 0 && (first == nil || v.isBefore(first)) {
				first = v
			}
		}
		if first == nil || !limit.IsZero() && first.records[0].Time.After(limit) {
			return nil
		}
		if err := first.emitNext(fn); err != nil {
			return err
		}
	}
}

// isBefore says whether the next record of a source comes before that of another one. Of records with
// the same time, that of the turn that started first does, wherever the timeline begins.
func (s *source) isBefore(other *source) bool {
	if c := s.records[0].Time.Compare(other.records[0].Time); c != 0 {
		return c < 0
	}
	return s.start < other.start
}

// read reads the new records of the stream.
func (s *source) read() error {
	if s.stream == nil {
		return nil
	}
	last := time.Time{}
	_, err := s.stream.Read(func(r statedir.Record) error {
		if r.Time.IsZero() { // a gap has no time of its own
			r.Time = last
		}
		last = r.Time
		s.hasOutput = s.hasOutput || r.Kind == string(swarm.DeltaText)
		s.records = append(s.records, r)
		return nil
	})
	return err
}

// emitAll emits everything that was read.
func (s *source) emitAll(fn func(Entry) error) error {
	for len(s.records) > 0 {
		if err := s.emitNext(fn); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) emitNext(fn func(Entry) error) error {
	r := s.records[0]
	s.records = s.records[1:]
	return fn(Entry{Time: r.Time, Task: s.task, Turn: s.turn, Kind: r.Kind, Text: r.Text, Gap: r.Gap})
}
