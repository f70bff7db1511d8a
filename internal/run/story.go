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

// A Moment is one thing that happened in a run: an event, or something that a turn said.
type Moment struct {
	Time  time.Time
	Event *swarm.Event // nil = a turn said something
	Task  string
	Turn  string
	Kind  string // of what it said: a provider's text, stderr, thinking, tool, …; home.Gap for what was not kept
	Text  string // a piece, not a line
	Gap   int64  // of kind home.Gap: how many bytes are missing
}

// Delta is what a turn said, as a screen takes it.
func (m Moment) Delta() swarm.Delta {
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

// A Story tells a run in the order of time: its events, and between them what its turns said, from their streams. Where a
// stream is gone, what was kept of the turn's output stands in. It can be asked again for what has happened since.
type Story struct {
	Only func(task string) bool // whose streams are read; nil = everybody's

	look    *Look
	streams *statedir.StreamsReader
	after   int64         // the last event that was told
	before  []swarm.Event // the starts of the turns that ran then and were not met yet
	voices  []*turnVoice
	settled time.Duration // how long after a turn's end what it said is surely in its stream
}

// A turnVoice is what a turn said and says. It is listened to for a moment after the turn's end, because what was said last may
// come after it.
type turnVoice struct {
	task, turn string
	stream     *statedir.StreamReader // nil = it never had one
	heard      []statedir.Record      // and not told yet
	spoke      bool                   // some of it was output
	ended      time.Time              // zero = it runs
	output     swarm.Hash
}

// Story tells the run from its beginning.
func (l *Look) Story() *Story {
	return &Story{look: l, streams: l.home.ReadStreams(l.ID), settled: time.Second}
}

// StoryFrom tells the run from where a fold of it stands, and what the turns have said that run there.
func (l *Look) StoryFrom(v *view.Run) (*Story, error) {
	s := l.Story()
	s.after = v.Seq
	for i := range v.Len() {
		t := v.At(i)
		if !t.InTurn() || t.Turn == "" {
			continue
		}
		last, err := l.runningStart(t.Turn, v.Seq)
		if err != nil {
			return nil, err
		}
		if last != nil {
			s.before = append(s.before, *last)
		}
	}
	return s, nil
}

// StoryOfLast tells the last n events that a fold of the run knows. From the first of them on it is the story that is told from the
// beginning of the run; before it stands some of what was said earlier. It also says whether the story is whole.
func (l *Look) StoryOfLast(v *view.Run, n int64) (s *Story, whole bool, err error) {
	s = l.Story()
	if s.after = max(0, v.Seq-n); s.after == 0 {
		return s, true, nil
	}
	turns, err := l.runningAt(s.after, v)
	for _, turn := range turns {
		var last *swarm.Event
		if last, err = l.runningStart(turn, s.after); err == nil && last != nil {
			s.before = append(s.before, *last)
		}
		if err != nil {
			break
		}
	}
	return s, false, err
}

// runningAt is the turns that may have been running when an event was written, by what came of them after it: they run still, have
// ended or have started again since.
func (l *Look) runningAt(seq int64, v *view.Run) (turns []string, err error) {
	seen := map[string]bool{}
	err = l.log.Scan(seq, func(e *swarm.Event) error {
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
	for i := range v.Len() {
		if t := v.At(i); t.Status == swarm.Running && t.Turn != "" && !seen[t.Turn] {
			turns = append(turns, t.Turn)
		}
	}
	return turns, err
}

// runningStart is the start of a turn that was running when an event was written, or nil.
func (l *Look) runningStart(turn string, at int64) (*swarm.Event, error) {
	if end, ended, err := l.log.Find(swarm.EndKey(turn)); err != nil || ended && end.Seq <= at {
		return nil, err
	}
	return l.lastStart(turn, at)
}

// lastStart is the last start of a turn up to an event, or nil.
func (l *Look) lastStart(turn string, upto int64) (last *swarm.Event, err error) {
	for n := 1; ; n++ {
		e, ok, err := l.log.Find(swarm.StartKey(turn, n))
		if err != nil || !ok || e.Seq > upto {
			return last, err
		}
		last = &e
	}
}

// Said calls fn with what a turn has said since it was started last, as far as that is kept.
func (l *Look) Said(turn string, fn func(statedir.Record) error) error {
	return l.said(l.home.ReadStreams(l.ID), turn, fn)
}

func (l *Look) said(streams *statedir.StreamsReader, turn string, fn func(statedir.Record) error) error {
	e, err := l.lastStart(turn, math.MaxInt64)
	if err != nil || e == nil {
		return err
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	_, err = streams.Turn(turn, start.Start).Read(fn)
	return err
}

// Tell calls fn with what has happened and was not told yet. It never waits.
func (s *Story) Tell(fn func(Moment) error) error {
	driven := s.look.Driven()
	for i := range s.before {
		if err := s.meet(&s.before[i]); err != nil {
			return err
		}
	}
	s.before = nil
	for _, v := range s.voices {
		if err := v.listen(); err != nil {
			return err
		}
	}
	err := s.look.log.Scan(s.after, func(e *swarm.Event) error {
		s.after = e.Seq
		if err := s.upto(e.Time, fn); err != nil {
			return err
		}
		if err := s.hear(e, driven, fn); err != nil {
			return err
		}
		return fn(Moment{Time: e.Time, Event: e, Task: e.Task, Turn: e.Turn})
	})
	if err != nil {
		return err
	}
	return s.rest(driven, fn)
}

// Follow tells the run until it is through or nobody drives it any more, or ctx ends.
func (s *Story) Follow(ctx context.Context, fn func(Moment) error) error {
	p := s.look.newPulse()
	defer p.stop()
	for {
		driven := s.look.Driven() // asked first: what its driver said before it left is told below
		if err := s.Tell(fn); err != nil || !driven {
			return err
		}
		if err := p.wait(ctx, len(s.voices) > 0); err != nil {
			return err
		}
	}
}

// hear takes note of the turns that an event begins or ends.
func (s *Story) hear(e *swarm.Event, driven bool, fn func(Moment) error) error {
	if s.Only != nil && !s.Only(e.Task) {
		return nil
	}
	switch e.Kind {
	case swarm.TurnStarted:
		if v := s.leave(e.Turn); v != nil { // cut by a crash
			if err := v.tell(fn); err != nil {
				return err
			}
		}
		return s.meet(e)
	case swarm.TurnEnded:
		return s.end(e, driven, fn)
	}
	return nil
}

func (s *Story) meet(e *swarm.Event) error {
	if s.Only != nil && !s.Only(e.Task) {
		return nil
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	v := &turnVoice{task: e.Task, turn: e.Turn, stream: s.streams.Turn(e.Turn, start.Start)}
	s.voices = append(s.voices, v)
	return v.listen()
}

// leave forgets a turn's voice and returns it, or nil.
func (s *Story) leave(turn string) *turnVoice {
	for i, v := range s.voices {
		if v.turn == turn && v.ended.IsZero() {
			s.voices = slices.Delete(s.voices, i, i+1)
			return v
		}
	}
	return nil
}

// end tells what a turn that has ended still had to say.
func (s *Story) end(e *swarm.Event, driven bool, fn func(Moment) error) error {
	end, err := swarm.Body[swarm.CallEnd](e)
	if err != nil {
		return err
	}
	v := s.leave(e.Turn)
	if v == nil { // it was done in another run
		v = &turnVoice{task: e.Task, turn: e.Turn}
	}
	v.ended, v.output = e.Time, end.Output
	if err := v.listen(); err != nil {
		return err
	}
	if err := v.tell(fn); err != nil {
		return err
	}
	if driven && v.stream != nil && time.Since(v.ended) < s.settled {
		s.voices = append(s.voices, v)
		return nil
	}
	return s.standIn(v, fn)
}

// rest tells what was said after the last event, and leaves the turns that will say nothing more.
func (s *Story) rest(driven bool, fn func(Moment) error) error {
	if err := s.upto(time.Time{}, fn); err != nil {
		return err
	}
	var open []*turnVoice
	for _, v := range s.voices {
		if v.ended.IsZero() || driven && time.Since(v.ended) < s.settled {
			open = append(open, v)
			continue
		}
		if err := s.standIn(v, fn); err != nil {
			return err
		}
	}
	s.voices = open
	return nil
}

// standIn tells the output that was kept of a turn whose stream has none.
func (s *Story) standIn(v *turnVoice, fn func(Moment) error) error {
	if v.spoke {
		return nil
	}
	text, err := s.look.Text(v.output)
	if err != nil || len(text) == 0 {
		return err
	}
	return fn(Moment{Time: v.ended, Task: v.task, Turn: v.turn, Kind: string(swarm.DeltaText), Text: string(text)})
}

// upto tells what was said until a time, or all that was heard, in order.
func (s *Story) upto(t time.Time, fn func(Moment) error) error {
	for {
		var first *turnVoice
		for _, v := range s.voices {
			if len(v.heard) > 0 && (first == nil || v.heard[0].Time.Before(first.heard[0].Time)) {
				first = v
			}
		}
		if first == nil || !t.IsZero() && first.heard[0].Time.After(t) {
			return nil
		}
		if err := first.next(fn); err != nil {
			return err
		}
	}
}

// listen reads what is new in the stream.
func (v *turnVoice) listen() error {
	if v.stream == nil {
		return nil
	}
	last := time.Time{}
	_, err := v.stream.Read(func(r statedir.Record) error {
		if r.Time.IsZero() { // a gap has no time of its own
			r.Time = last
		}
		last = r.Time
		v.spoke = v.spoke || r.Kind == string(swarm.DeltaText)
		v.heard = append(v.heard, r)
		return nil
	})
	return err
}

// tell tells all that was heard.
func (v *turnVoice) tell(fn func(Moment) error) error {
	for len(v.heard) > 0 {
		if err := v.next(fn); err != nil {
			return err
		}
	}
	return nil
}

func (v *turnVoice) next(fn func(Moment) error) error {
	r := v.heard[0]
	v.heard = v.heard[1:]
	return fn(Moment{Time: r.Time, Task: v.task, Turn: v.turn, Kind: r.Kind, Text: r.Text, Gap: r.Gap})
}
