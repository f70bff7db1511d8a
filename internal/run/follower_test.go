package run

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/sqlite"
)

// A teller is an observer that keeps what it was told, in order.
type teller struct{ told []string }

func (w *teller) Event(e *swarm.Event) {
	if e.Turn != "" {
		w.told = append(w.told, string(e.Kind)+" "+string(e.Turn))
	}
}
func (w *teller) Delta(_ string, d swarm.Delta) { w.told = append(w.told, d.Text) }

func appendAll(t *testing.T, log swarm.Log, events ...swarm.Event) {
	t.Helper()
	if _, err := log.Append(t.Context(), swarm.Batch{Events: events}); err != nil {
		t.Fatal(err)
	}
}

func newFollowed(t *testing.T) (*follower, *teller) {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	plan := swarm.NewEvent(swarm.PlanAdded, swarm.Plan{Tasks: []swarm.Task{{Name: "a", Agent: "a"}, {Name: "b", Agent: "b"}}, Groups: []swarm.Group{{Iterations: 2}}})
	appendAll(t, log, swarm.NewEvent(swarm.RunStarted, swarm.RunStart{ID: "run"}), plan)
	w := &teller{}
	return newFollower("run", log, Options{Observer: w}), w
}

func turnEvent(kind swarm.EventKind, turn swarm.TurnID) swarm.Event {
	task, _, _ := strings.Cut(string(turn), "/")
	e := swarm.NewEvent(kind, struct{}{})
	e.Task, e.Agent, e.Turn = task, task, turn
	return e
}

func (f *follower) hear(turn, text string) {
	task, _, _ := strings.Cut(turn, "/")
	f.say(task, turn, swarm.Delta{Kind: swarm.DeltaText, Text: text})
}

// However late the observer is told, words stand between the start and the end of their turn.
func TestWordsStandInTheirTurn(t *testing.T) {
	f, w := newFollowed(t)
	appendAll(t, f.log, turnEvent(swarm.TurnStarted, "a/1/1"), turnEvent(swarm.TurnStarted, "b/1/1"))
	f.hear("a/1/1", "a1")
	f.hear("b/1/1", "b1")
	appendAll(t, f.log, turnEvent(swarm.TurnEnded, "a/1/1"), turnEvent(swarm.TurnStarted, "a/2/1"))
	f.hear("a/2/1", "a2")
	f.hear("b/1/1", "b2")
	if err := f.tell(); err != nil {
		t.Fatal(err)
	}
	f.hear("b/1/1", "b3")
	f.hear("a/2/1", "a3")
	appendAll(t, f.log, turnEvent(swarm.TurnEnded, "b/1/1"))
	if _, err := f.stop(); err != nil {
		t.Fatal(err)
	}
	want := "turn_started a/1/1, a1, turn_started b/1/1, b1, b2, turn_ended a/1/1, turn_started a/2/1, a2, b3, a3, turn_ended b/1/1"
	if got := strings.Join(w.told, ", "); got != want {
		t.Errorf("told: %s", got)
	}
}

// A turn that says much waits until the observer has been told.
func TestWhatIsSaidIsBounded(t *testing.T) {
	f, w := newFollowed(t)
	appendAll(t, f.log, turnEvent(swarm.TurnStarted, "a/1/1"))
	text := strings.Repeat("x", 32<<10)
	for i := range 100 {
		f.hear("a/1/1", text)
		if f.bytes > maxPending {
			t.Fatalf("after %d words %d bytes wait", i+1, f.bytes)
		}
	}
	if _, err := f.stop(); err != nil || len(w.told) != 101 {
		t.Errorf("told %d, %v", len(w.told), err)
	}
}

// A follower that has failed keeps nothing.
func TestAFailedFollowerKeepsNoWords(t *testing.T) {
	f, _ := newFollowed(t)
	appendAll(t, f.log, turnEvent(swarm.TurnStarted, "nosuch/1/1"))
	f.hear("nosuch/1/1", "x")
	if err := f.tell(); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Fatal(err)
	}
	f.hear("nosuch/1/1", strings.Repeat("x", maxPending))
	if len(f.said) != 0 || f.bytes != 0 {
		t.Errorf("%d words of %d bytes wait", len(f.said), f.bytes)
	}
	if _, err := f.stop(); err == nil {
		t.Error("nobody says so")
	}
}

// many are so many events that a fold of them is stored.
func many() []swarm.Event {
	return slices.Repeat([]swarm.Event{swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "again"})}, foldEvery)
}

func storedFold(log swarm.RunLog) int64 {
	seq, _, _ := log.LoadFold(foldName, foldVersion)
	return seq
}

// A driver stores its fold on its way, so that readers of a run that goes on, or that was killed, need not fold it all.
func TestADriverStoresItsFold(t *testing.T) {
	for name, o := range map[string]Observer{"observed": &teller{}, "alone": nil} {
		f, _ := newFollowed(t)
		f.observer = o
		if err := f.tell(); err != nil || storedFold(f.log) != 0 {
			t.Fatal(name, storedFold(f.log), err)
		}
		appendAll(t, f.log, many()...)
		if err := f.tell(); err != nil || storedFold(f.log) != foldEvery+2 {
			t.Errorf("%s: stored up to %d, %v", name, storedFold(f.log), err)
		}
	}
}

// A look at a run that was left stores what it had to fold, and the next one goes on from there.
func TestALookStoresALongFold(t *testing.T) {
	s := newTimelineTest(t)
	appendAll(t, s.log, many()...)
	if _, err := s.log.Own(t.Context(), "1", Lease); err != nil {
		t.Fatal(err)
	}
	if v, err := s.reader.Fold(); err != nil || storedFold(s.log) != 0 {
		t.Fatalf("while it is driven: %d of %d, %v", storedFold(s.log), v.Seq, err)
	}
	if err := s.log.Disown(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	v, err := s.reader.Fold()
	if err != nil || storedFold(s.log) != v.Seq {
		t.Fatalf("%d of %d, %v", storedFold(s.log), v.Seq, err)
	}
	again, err := s.reader.Fold()
	if err != nil || !reflect.DeepEqual(again.Picture(), v.Picture()) {
		t.Errorf("%v, not %v, %v", again.Picture(), v.Picture(), err)
	}
}
