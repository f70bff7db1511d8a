package feed

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// newRun makes a run of two events without a driver.
func newRun(t *testing.T) (*statedir.Home, swarm.RunID) {
	t.Helper()
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.MakeRuns(); err != nil {
		t.Fatal(err)
	}
	id := swarm.NewRunID(time.Now())
	log, err := h.Store.Create(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	_, err = log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{
		swarm.NewEvent(swarm.RunStarted, swarm.RunStart{ID: id, Kind: swarm.PipelineRun, Time: time.Now()}), swarm.NewEvent(swarm.PlanAdded, swarm.Plan{}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return h, id
}

// TestSlowListenerReadsTheLog: a listener whose next frame is gone gets the events from the log,
// and a gap in place of the deltas in between.
func TestSlowListenerReadsTheLog(t *testing.T) {
	h, id := newRun(t)
	f := newFollower(id)
	reader, err := f.begin(h)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	c := &Cursor{}
	if p := f.Take(c); len(p.Frames) != 2 || !p.Past {
		t.Fatalf("first it is given %+v", p)
	}
	c.Sent = 2
	for i := range Kept + 10 {
		f.add(Frame{Seq: int64(i + 3), Kind: "notice", Wire: []byte("x")})
	}
	if p := f.Take(c); !p.Behind {
		t.Fatalf("it has lost frames, and is given %d", len(p.Frames))
	}
	c.Sent = f.floor // as the log has told it
	p := f.Take(c)
	if len(p.Frames) != 1 || !strings.Contains(string(p.Frames[0].Wire), `"kind":"gap"`) {
		t.Fatalf("it is not told that something is missing: %+v", p)
	}
	for want := f.floor + 1; want <= f.seq; {
		for _, one := range f.Take(c).Frames {
			if one.Seq != want {
				t.Fatalf("%d comes in the place of %d", one.Seq, want)
			}
			want++
		}
	}
}

// TestLastListenerStopsTheFollower: a run with several listeners has one follower, and a run
// without listeners has none.
func TestLastListenerStopsTheFollower(t *testing.T) {
	h, id := newRun(t)
	hub := New(h)
	defer hub.Close()
	var f *Follower
	for range 20 {
		one, err := hub.Join(id)
		if err != nil || f != nil && one != f {
			t.Fatalf("another follower, %v", err)
		}
		f = one
	}
	if n := hub.Listeners(id); n != 20 {
		t.Errorf("%d listeners", n)
	}
	for range 20 {
		hub.Leave(f)
	}
	<-f.ctx.Done()
	if n := hub.Listeners(id); n != 0 {
		t.Errorf("%d listeners are left", n)
	}
}

// A crowdedStore has runs of another folder, and counts those that were read.
type crowdedStore struct {
	swarm.Store
	read *int
}

func (s crowdedStore) Runs(context.Context, swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	return func(yield func(swarm.RunEntry, error) bool) {
		for i := range 10 * settled {
			*s.read++
			id := swarm.NewRunID(time.Unix(int64(1e9-i), 0))
			if !yield(swarm.RunEntry{RunSummary: swarm.RunSummary{ID: id, Dir: "/other", Status: swarm.Completed}, Saved: true}, nil) {
				return
			}
		}
	}
}

// TestRunsOfOtherFoldersAreSettled: most passes read the newest runs only, also if none of them is of
// this folder.
func TestRunsOfOtherFoldersAreSettled(t *testing.T) {
	h, _ := newRun(t)
	read := 0
	h.Store = crowdedStore{h.Store, &read}
	w := &summaryWatch{feed: NewSummaries(h, "/here", false), live: map[swarm.RunID]*liveRun{}}
	rows := map[swarm.RunID]*summaryRow{}
	if changed := w.pass(rows); len(changed) > 0 || read != 10*settled {
		t.Fatalf("the first pass has read %d runs, and has %d rows", read, len(changed))
	}
	read = 0
	if w.pass(rows); read != settled+1 {
		t.Errorf("the second pass has read %d runs, want %d", read, settled+1)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("notice", "a", `{"reason":"x"}`)
	f.Add("x\nid: 1", "a\r\nb", "{\n}")
	f.Add("", "\x00", "\"\xff")
	f.Fuzz(func(t *testing.T, kind, agent, data string) {
		one := EventFrame("run", &swarm.Event{Seq: 7, Kind: swarm.EventKind(kind), Agent: agent, Data: json.RawMessage(data)})
		checkFrame(t, one, "id: 7")
		checkFrame(t, deltaFrame(TurnDelta{Run: "run", Agent: agent, StreamRecord: StreamRecord{Kind: kind, Text: data}}), "event: delta")
	})
}

// checkFrame checks a frame against its exact form.
func checkFrame(t *testing.T, one Frame, first string) {
	t.Helper()
	text, ended := strings.CutSuffix(string(one.Wire), "\n\n")
	lines := strings.Split(text, "\n")
	if !ended || strings.ContainsAny(text, "\r\x00") || lines[0] != first || len(lines) > 3 {
		t.Fatalf("%q", one.Wire)
	}
	for i, line := range lines {
		data, isData := strings.CutPrefix(line, "data: ")
		if isData != (i == len(lines)-1) || isData && !json.Valid([]byte(data)) {
			t.Fatalf("%q", one.Wire)
		}
	}
}
