package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/statedir"
)

// turns writes turns with many different outcomes.
func (s *timelineTest) turns() {
	s.start("a/1/1", 1)
	s.event(swarm.TurnTool, "a", "a/1/1", swarm.ToolUse{Name: "lost in the crash"})
	s.start("b/1/1", 1)
	s.start("a/1/1", 2)
	s.event(swarm.TurnTool, "a", "a/1/1", swarm.ToolUse{Name: "Read", Input: []byte(`{"path":"a.go"}`)})
	s.event(swarm.TurnTool, "b", "b/1/1", swarm.ToolUse{Name: "Write"})
	s.event(swarm.TurnFile, "a", "a/1/1", swarm.FileChange{Path: "a.go"})
	s.event(swarm.HandoffInjected, "a", "a/1/1", swarm.Injection{Tool: "Read", Inputs: swarm.Inputs{From: 1, Upto: 2}})
	s.event(swarm.TurnEnded, "a", "a/1/1", swarm.CallEnd{Status: swarm.CallFailed, Reason: "no", Output: swarm.HashOf([]byte("bad")), Bytes: 3}, "bad")
	s.event(swarm.TurnEnded, "a", "a/1/2", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.OverBudget}) // it was never begun
	s.end("a/2/1", "kept of another run")
	s.start("a/2/2", 1)
	s.event(swarm.TurnEnded, "a", "a/2/2", swarm.CallEnd{Status: swarm.CallFailed, Output: swarm.HashOf([]byte("worse")), Bytes: 5}, "worse")
	s.start("a/2/3", 1)
	s.event(swarm.TurnEnded, "a", "a/2/3", swarm.CallEnd{Status: swarm.CallCut})
}

// A turn that is found by its keys is the one that a pass over the log collects.
func TestTurn(t *testing.T) {
	s := newTimelineTest(t)
	for _, name := range []string{"a", "a/1", "a/1/1"} {
		if _, err := s.reader.Turn(name); swarm.KindOf(err) != swarm.BadInput || !strings.Contains(err.Error(), "no turn") {
			t.Errorf("%s of a run without turns: %v", name, err)
		}
	}
	s.turns()
	d, err := s.reader.Details()
	if err != nil || len(d.Turns) != 6 {
		t.Fatal(len(d.Turns), err)
	}
	for _, want := range d.Turns {
		if got, err := s.reader.Turn(string(want.ID)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n%+v, %v, not\n%+v", want.ID, got, err, want)
		}
	}
	for name, want := range map[string]swarm.TurnID{"a": "a/2/3", "a/1": "a/1/2", "a/2": "a/2/3", "b": "b/1/1", "b/1": "b/1/1"} {
		if got, err := s.reader.Turn(name); err != nil || got.ID != want {
			t.Errorf("%s: %s, %v; want %s", name, got.ID, err, want)
		}
	}
	for _, name := range []string{"c", "a/3", "a/1/3", "a/x", "a//", "", "/", "b/1/1/1"} {
		if got, err := s.reader.Turn(name); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %s, %v", name, got.ID, err)
		}
	}
}

func TestOutputOfIteration(t *testing.T) {
	s := newTimelineTest(t)
	s.turns()
	for _, c := range []struct {
		iteration int
		good      bool
		want      swarm.TurnID
	}{{1, false, "a/1/1"}, {1, true, ""}, {2, false, "a/2/2"}, {2, true, "a/2/1"}, {3, false, ""}} {
		if got, err := s.reader.Output("a", c.iteration, c.good); err != nil || got.Turn != c.want {
			t.Errorf("iteration %d, good %v: %q, %v, want %q", c.iteration, c.good, got.Turn, err, c.want)
		}
	}
}

// linesOf returns the lines of a timeline, and how many of them come after the first event.
func linesOf(t *testing.T, s *Timeline) (all []Line, late int) {
	t.Helper()
	l := Lines{Fn: func(line Line) error { all = append(all, line); return nil }}
	before := -1
	err := s.ReadNew(func(m Entry) error {
		if m.Event != nil && before < 0 {
			before = len(all)
		}
		return l.Take(m)
	})
	if err := errors.Join(err, l.End()); err != nil {
		t.Fatal(err)
	}
	if before < 0 {
		return all, 0
	}
	return all, len(all) - before
}

// A timeline of the last events ends as the whole one does, wherever it begins.
func TestStoryOfLast(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	s := newTimelineTest(t)
	iteration, starts, streams := [2]int{1, 1}, [2]int{}, [2]*statedir.StreamWriter{}
	for i := range 60 {
		n := random.IntN(2)
		task := string(rune('a' + n))
		turn := string(swarm.NewTurnID(task, iteration[n], 1))
		switch do := random.IntN(10); {
		case do == 0:
			s.event(swarm.Notice, task, "", swarm.Reason{Reason: fmt.Sprint("notice ", i)})
		case starts[n] == 0 || do == 1:
			starts[n]++
			s.start(turn, starts[n])
			streams[n] = s.streams.Turn(turn, starts[n])
		case do < 5:
			streams[n].Close()
			s.end(turn, "all in all\n")
			iteration[n], starts[n] = iteration[n]+1, 0
		default:
			streams[n].Write("text", strings.Repeat(fmt.Sprintf("word %d of %s\n", i, turn), random.IntN(3))+"half a line")
		}
	}
	v, err := s.reader.Fold()
	if err := errors.Join(err, s.streams.Flush()); err != nil {
		t.Fatal(err)
	}
	whole, _ := linesOf(t, s.reader.Timeline())
	for n := range v.Seq + 2 {
		st, all, err := s.reader.TimelineOfLast(EndOf(v), n)
		if err != nil || all != (n >= v.Seq) {
			t.Fatal(n, all, err)
		}
		part, late := linesOf(t, st)
		if all && len(part) != len(whole) || late > len(whole) || !slices.Equal(part[len(part)-late:], whole[len(whole)-late:]) {
			t.Fatalf("seed %d: the last %d events tell\n%v\nand all of them\n%v", seed, n, part, whole)
		}
	}
}

// Pieces of two streams with the same time come in the order in which their turns started. The turns
// that ran when a later timeline begins may be known in another order.
func TestPiecesWithTheSameTime(t *testing.T) {
	at := time.Unix(1, 0)
	piece := func(start int64, turn swarm.TurnID) *source {
		return &source{start: start, turn: turn, records: []statedir.Record{{Time: at, Kind: "text", Text: "x"}}}
	}
	st := &Timeline{sources: []*source{piece(5, "b/1/1"), piece(2, "a/1/1")}}
	var turns []swarm.TurnID
	err := st.emitUntil(at, func(e Entry) error {
		turns = append(turns, e.Turn)
		return nil
	})
	if err != nil || !slices.Equal(turns, []swarm.TurnID{"a/1/1", "b/1/1"}) {
		t.Errorf("%v, %v", turns, err)
	}
}

// A run without a driver does not change, so a list does not open its log.
func TestAnInterruptedRunIsNotFoldedForAList(t *testing.T) {
	s := swarm.RunSummary{ID: storyID, Status: swarm.Interrupted, Done: 1}
	if got := Current(nil, s); !reflect.DeepEqual(got, s) {
		t.Errorf("%+v", got)
	}
}

// A full turn has every text that the log stores of it, with injected mail in its order.
func TestFullTurn(t *testing.T) {
	s := newTimelineTest(t)
	hash := func(text string) swarm.Hash { return swarm.HashOf([]byte(text)) }
	s.event(swarm.TurnStarted, "a", "a/1/1", swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Prompt: hash("all of it"), Sent: hash("the new part")}, "all of it", "the new part")
	for _, mail := range []string{"first", "second"} {
		s.event(swarm.HandoffInjected, "a", "a/1/1", swarm.Injection{Tool: "Read", Text: hash(mail)}, mail)
	}
	running, err := s.reader.Turn("a")
	if err != nil {
		t.Fatal(err)
	}
	full, err := s.reader.Full(running)
	if err != nil || full.PromptText != "all of it" || full.SentText != "the new part" || full.OutputText != "" || !slices.Equal(full.InjectedText, []string{"first", "second"}) {
		t.Errorf("%+v, %v", full, err)
	}
	s.end("a/1/1", "an answer")
	ended, err := s.reader.Turn("a")
	if err != nil {
		t.Fatal(err)
	}
	if full, err = s.reader.Full(ended); err != nil || full.OutputText != "an answer" {
		t.Errorf("%+v, %v", full, err)
	}
}
