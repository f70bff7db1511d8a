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

// A recorder is an observer that keeps what it saw, in order.
type recorder struct{ saw []string }

func (w *recorder) Event(e *swarm.Event) {
	if e.Turn != "" {
		w.saw = append(w.saw, string(e.Kind)+" "+string(e.Turn))
	}
}
func (w *recorder) Delta(_ string, d swarm.Delta) { w.saw = append(w.saw, d.Text) }

func appendAll(t *testing.T, log swarm.Log, events ...swarm.Event) {
	t.Helper()
	if _, err := log.Append(t.Context(), swarm.Batch{Events: events}); err != nil {
		t.Fatal(err)
	}
}

func newFollowed(t *testing.T) (*follower, *recorder) {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	plan := swarm.NewEvent(swarm.PlanAdded, swarm.Plan{Tasks: []swarm.Task{{Name: "a", Agent: "a"}, {Name: "b", Agent: "b"}}, Groups: []swarm.Group{{Iterations: 2}}})
	appendAll(t, log, swarm.NewEvent(swarm.RunStarted, swarm.RunStart{ID: "run"}), plan)
	w := &recorder{}
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
	f.queueDelta(task, turn, swarm.Delta{Kind: swarm.DeltaText, Text: text})
}

// However late the observer is, it sees deltas between the start and the end of their turn.
func TestWordsStandInTheirTurn(t *testing.T) {
	f, w := newFollowed(t)
	appendAll(t, f.log, turnEvent(swarm.TurnStarted, "a/1/1"), turnEvent(swarm.TurnStarted, "b/1/1"))
	f.hear("a/1/1", "a1")
	f.hear("b/1/1", "b1")
	appendAll(t, f.log, turnEvent(swarm.TurnEnded, "a/1/1"), turnEvent(swarm.TurnStarted, "a/2/1"))
	f.hear("a/2/1", "a2")
	f.hear("b/1/1", "b2")
	if err := f.deliver(); err != nil {
		t.Fatal(err)
	}
	f.hear("b/1/1", "b3")
	f.hear("a/2/1", "a3")
	appendAll(t, f.log, turnEvent(swarm.TurnEnded, "b/1/1"))
	if _, err := f.stop(); err != nil {
		t.Fatal(err)
	}
	want := "turn_started a/1/1, a1, turn_started b/1/1, b1, b2, turn_ended a/1/1, turn_started a/2/1, a2, b3, a3, turn_ended b/1/1"
	if got := strings.Join(w.saw, ", "); got != want {
		t.Errorf("told: %s", got)
	}
}

// A turn that fills the queue waits until the observer has seen it.
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
	if _, err := f.stop(); err != nil || len(w.saw) != 101 {
		t.Errorf("told %d, %v", len(w.saw), err)
	}
}

// A follower that has failed queues nothing.
func TestAFailedFollowerKeepsNoWords(t *testing.T) {
	f, _ := newFollowed(t)
	appendAll(t, f.log, turnEvent(swarm.TurnStarted, "nosuch/1/1"))
	f.hear("nosuch/1/1", "x")
	if err := f.deliver(); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Fatal(err)
	}
	f.hear("nosuch/1/1", strings.Repeat("x", maxPending))
	if len(f.pending) != 0 || f.bytes != 0 {
		t.Errorf("%d words of %d bytes wait", len(f.pending), f.bytes)
	}
	if _, err := f.stop(); err == nil {
		t.Error("nobody says so")
	}
}

// many is enough events for the fold to be stored.
func many() []swarm.Event {
	return slices.Repeat([]swarm.Event{swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "again"})}, foldEvery)
}

func storedFold(log swarm.RunLog) int64 {
	seq, _, _ := log.LoadFold(foldName, foldVersion)
	return seq
}

// A driver stores its fold on its way, so that readers of a long or killed run need not fold it
// all.
func TestADriverStoresItsFold(t *testing.T) {
	for name, o := range map[string]Observer{"observed": &recorder{}, "alone": nil} {
		f, _ := newFollowed(t)
		f.observer = o
		if err := f.deliver(); err != nil || storedFold(f.log) != 0 {
			t.Fatal(name, storedFold(f.log), err)
		}
		appendAll(t, f.log, many()...)
		if err := f.deliver(); err != nil || storedFold(f.log) != foldEvery+2 {
			t.Errorf("%s: stored up to %d, %v", name, storedFold(f.log), err)
		}
	}
}

// A reader of a run without a driver stores its fold, and the next reader continues from it.
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
