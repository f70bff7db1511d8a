package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// A timelineTest is a run whose log and streams a test writes. It is read from outside.
type timelineTest struct {
	*testing.T
	home    *statedir.Home
	log     swarm.RunLog
	reader  *Reader
	streams *statedir.StreamsWriter
}

const storyID = "20260101-000000-0000000"

func newTimelineTest(t *testing.T) *timelineTest {
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.MakeRuns(); err != nil {
		t.Fatal(err)
	}
	log, err := h.Store.Create(t.Context(), storyID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := &timelineTest{T: t, home: h, log: log, streams: h.WriteStreams(storyID)}
	s.event(swarm.RunStarted, "", "", swarm.RunStart{ID: storyID, Kind: swarm.PipelineRun, Name: "main"})
	s.event(swarm.PlanAdded, "", "", swarm.Plan{Tasks: []swarm.Task{{Name: "a", Agent: "a"}, {Name: "b", Agent: "b"}},
		Groups: []swarm.Group{{Iterations: 1}}, Agents: []swarm.Agent{{Name: "a"}, {Name: "b"}}})
	s.event(swarm.RunOwned, "", "", swarm.Ownership{PID: os.Getpid(), Fence: 1})
	if s.reader, err = OpenReader(h, storyID); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.reader.Close() })
	return s
}

func (s *timelineTest) event(kind swarm.EventKind, task, turn string, body any, texts ...string) {
	s.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	e := swarm.Event{Kind: kind, Task: task, Agent: task, Turn: swarm.TurnID(turn), Data: data}
	switch body := body.(type) {
	case swarm.TurnStart:
		e.Key = swarm.StartKey(swarm.TurnID(turn), body.Start)
	case swarm.CallEnd:
		e.Key = swarm.EndKey(turn)
	}
	b := swarm.Batch{Events: []swarm.Event{e}}
	for _, text := range texts {
		b.Bodies = append(b.Bodies, []byte(text))
	}
	if _, err := s.log.Append(context.Background(), b); err != nil {
		s.Fatal(err)
	}
}

func (s *timelineTest) start(turn string, n int) {
	s.Helper()
	task, _, _ := strings.Cut(turn, "/")
	s.event(swarm.TurnStarted, task, turn, swarm.TurnStart{Iteration: 1, Attempt: 1, Start: n, Prompt: swarm.NoText})
}

func (s *timelineTest) end(turn, output string) {
	s.Helper()
	task, _, _ := strings.Cut(turn, "/")
	end := swarm.CallEnd{ID: turn, Status: swarm.CallOK, Output: swarm.NoText}
	if output == "" {
		s.event(swarm.TurnEnded, task, turn, end)
		return
	}
	end.Output, end.Bytes = swarm.HashOf([]byte(output)), int64(len(output))
	s.event(swarm.TurnEnded, task, turn, end, output)
}

// text is a timeline as text, one line for each entry.
func (s *timelineTest) text(st *Timeline) string {
	s.Helper()
	if err := s.streams.Flush(); err != nil {
		s.Fatal(err)
	}
	var b strings.Builder
	err := st.ReadNew(func(m Entry) error {
		switch {
		case m.Event != nil && m.Turn != "":
			fmt.Fprintf(&b, "%s %s\n", m.Event.Kind, m.Turn)
		case m.Event != nil:
			fmt.Fprintf(&b, "%s\n", m.Event.Kind)
		default:
			fmt.Fprintf(&b, "%s %s: %s\n", m.Turn, m.Kind, m.Text)
		}
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return b.String()
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("told:\n%s\nwant:\n%s", got, want)
	}
}

const begun = "run_started\nplan_added\nrun_owned\n"

// Pieces of two parallel streams are emitted in the order of time, between the events, and only
// once.
func TestStoryInOrder(t *testing.T) {
	s := newTimelineTest(t)
	s.start("a/1/1", 1)
	a := s.streams.Turn("a/1/1", 1)
	a.Write("text", "one")
	s.start("b/1/1", 1)
	b := s.streams.Turn("b/1/1", 1)
	a.Write("stderr", "two")
	b.Write("text", "three")
	a.Write("text", "four")
	st := s.reader.Timeline()
	same(t, s.text(st), begun+"turn_started a/1/1\na/1/1 text: one\nturn_started b/1/1\na/1/1 stderr: two\nb/1/1 text: three\na/1/1 text: four\n")
	same(t, s.text(st), "")
	b.Write("text", "five")
	b.Close()
	s.end("b/1/1", "threefive")
	same(t, s.text(st), "b/1/1 text: five\nturn_ended b/1/1\n")
	a.Close()
	s.end("a/1/1", "onefour")
	same(t, s.text(st), "turn_ended a/1/1\n")
}

// The stored output replaces a missing stream. A turn with a stream does not emit its output twice.
func TestStoryWithoutStreams(t *testing.T) {
	s := newTimelineTest(t)
	s.start("a/1/1", 1)
	s.end("a/1/1", "all of it")
	s.end("b/1/1", "kept from another run")
	want := begun + "turn_started a/1/1\na/1/1 text: all of it\nturn_ended a/1/1\nb/1/1 text: kept from another run\nturn_ended b/1/1\n"
	same(t, s.text(s.reader.Timeline()), want)

	w := s.streams.Turn("a/1/1", 1)
	w.Write("text", "all of it, as it was said")
	w.Close()
	same(t, s.text(s.reader.Timeline()), strings.Replace(want, "a/1/1 text: all of it\n", "a/1/1 text: all of it, as it was said\n", 1))
}

// In a driven run the last piece of a stream may come after the turn's end. It is emitted, and the
// stored output does not replace it before.
func TestStoryLateWords(t *testing.T) {
	s := newTimelineTest(t)
	owner, err := s.log.Own(context.Background(), "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.start("a/1/1", 1)
	s.end("a/1/1", "late")
	st := s.reader.Timeline()
	st.settled = time.Hour
	same(t, s.text(st), begun+"turn_started a/1/1\nturn_ended a/1/1\n")
	w := s.streams.Turn("a/1/1", 1)
	w.Write("text", "late")
	w.Close()
	same(t, s.text(st), "a/1/1 text: late\n")
	if err := s.log.Disown(context.Background(), owner.Fence); err != nil {
		t.Fatal(err)
	}
	same(t, s.text(st), "")
}

// A turn that was cut and started again has two streams, emitted one after the other.
func TestStoryOfATurnThatWasCut(t *testing.T) {
	s := newTimelineTest(t)
	for n := 1; n <= 2; n++ {
		s.start("a/1/1", n)
		w := s.streams.Turn("a/1/1", n)
		w.Write("text", fmt.Sprintf("start %d", n))
		w.Close()
	}
	same(t, s.text(s.reader.Timeline()), begun+"turn_started a/1/1\na/1/1 text: start 1\nturn_started a/1/1\na/1/1 text: start 2\n")

	// After a fold only the stream of the running start is emitted.
	v, err := s.reader.Fold()
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.reader.TimelineFrom(v)
	if err != nil {
		t.Fatal(err)
	}
	same(t, s.text(st), "a/1/1 text: start 2\n")
}

// Only the streams of the selected tasks are read.
func TestStoryOfSomeTasks(t *testing.T) {
	s := newTimelineTest(t)
	for _, turn := range []string{"a/1/1", "b/1/1"} {
		s.start(turn, 1)
		s.end(turn, "output of "+turn)
	}
	st := s.reader.Timeline()
	st.Only = func(task string) bool { return task == "b" }
	got := s.text(st)
	if strings.Contains(got, "output of a") || !strings.Contains(got, "output of b/1/1") {
		t.Errorf("told:\n%s", got)
	}
}

// Follow ends when the driver leaves, after all that was written before.
func TestFollowUntilTheEnd(t *testing.T) {
	s := newTimelineTest(t)
	owner, err := s.log.Own(context.Background(), "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	seen, done := make(chan string, 100), make(chan error)
	go func() {
		done <- s.reader.Timeline().Follow(context.Background(), func(m Entry) error {
			if m.Event != nil {
				seen <- string(m.Event.Kind)
			}
			return nil
		})
	}()
	for want := range strings.FieldsSeq(begun) {
		if got := <-seen; got != want {
			t.Fatalf("told %s, want %s", got, want)
		}
	}
	s.event(swarm.RunEnded, "", "", swarm.RunEnd{Status: swarm.Completed})
	if got := <-seen; got != "run_ended" {
		t.Fatalf("told %s", got)
	}
	if err := s.log.Disown(context.Background(), owner.Fence); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A run without a driver is interrupted. A run that was never driven is about to run.
func TestPictureOfARunThatWasLeft(t *testing.T) {
	s := newTimelineTest(t)
	s.event(swarm.TaskStarted, "a", "", swarm.Iteration{Iteration: 1, Of: 1})
	s.start("a/1/1", 1)
	p, err := s.reader.Picture()
	if err != nil {
		t.Fatal(err)
	}
	if p.Status != swarm.Interrupted || p.Tasks[0].Status != swarm.Pending {
		t.Errorf("the run is %s, its task %s", p.Status, p.Tasks[0].Status)
	}
	d, err := s.reader.Details()
	if err != nil {
		t.Fatal(err)
	}
	if d.Turns[0].Status != swarm.Interrupted {
		t.Errorf("the turn is %s", d.Turns[0].Status)
	}
	why, err := s.reader.Why("a")
	if err != nil || len(why.Chain) != 1 || why.Chain[0].Status != swarm.Pending {
		t.Errorf("why: %+v, %v", why.Chain, err)
	}
	if _, err := s.log.Own(context.Background(), "test", time.Minute); err != nil {
		t.Fatal(err)
	}
	if p, _ = s.reader.Picture(); p.Status != swarm.Running || p.Tasks[0].Status != swarm.Running {
		t.Errorf("driven again, the run is %s, its task %s", p.Status, p.Tasks[0].Status)
	}
}

func TestARunIsOwnedFromItsBeginning(t *testing.T) {
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Start(context.Background(), h, swarm.RunStart{Dir: "/", Time: time.Now()}, &swarm.Plan{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := OpenReader(h, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Driven() {
		t.Error("a run that was made this moment is not driven by who made it")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if l.Driven() {
		t.Error("a run that was left is driven")
	}
	sum, err := Summarize(l.log, r.ID)
	if err != nil || sum.ID != r.ID || sum.Dir != "/" || sum.Status != swarm.Running {
		t.Errorf("%+v, %v", sum, err)
	}
	if _, err := OpenReader(h, "20260101-000000-none"); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("a run that is not there: %v", err)
	}
}
