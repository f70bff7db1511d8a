package run

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// longRun makes the log of a run in which one task iterates until there are so many events.
func longRun(t testing.TB, events int) (*Reader, *statedir.Home) {
	t.Helper()
	h, err := statedir.At(filepath.Join(t.TempDir(), "home"), sqlite.NewStore)
	if err == nil {
		err = h.MakeRuns()
	}
	if err != nil {
		t.Fatal(err)
	}
	id := swarm.NewRunID(time.Now())
	log, err := h.Store.Create(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	iterations := events/4 + 2
	batch := swarm.Batch{Events: []swarm.Event{
		swarm.NewEvent(swarm.RunStarted, swarm.RunStart{ID: id, Kind: swarm.PipelineRun, Time: time.Now()}),
		swarm.NewEvent(swarm.PlanAdded, swarm.Plan{Kind: swarm.PipelineRun, Groups: []swarm.Group{{Iterations: iterations}},
			Agents: []swarm.Agent{{Name: "a", Provider: "sh"}}, Tasks: []swarm.Task{{Name: "a", Agent: "a"}}})}}
	flush := func() {
		if _, err := log.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		batch.Events = nil
	}
	flush()
	add := func(kind swarm.EventKind, turn swarm.TurnID, body any) {
		e := swarm.NewEvent(kind, body)
		e.Task, e.Agent, e.Turn = "a", "a", turn
		if batch.Events = append(batch.Events, e); len(batch.Events) >= 2000 {
			flush()
		}
	}
	for i, n := 1, 2; n < events; i, n = i+1, n+5 {
		turn := swarm.NewTurnID("a", i, 1)
		add(swarm.TaskStarted, "", struct{}{})
		add(swarm.TurnStarted, turn, swarm.TurnStart{Iteration: i, Attempt: 1, Start: 1, Provider: "sh"})
		add(swarm.TurnEnded, turn, swarm.CallEnd{Status: swarm.CallOK, Usage: swarm.Usage{Calls: 1, InputTokens: 7}})
		add(swarm.TaskCompleted, "", struct{}{})
		batch.Events = append(batch.Events, swarm.NewEvent(swarm.IterationStarted, swarm.Iteration{Group: 0, Iteration: i + 1}))
	}
	flush()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(h, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, h
}

// A past moment is the same picture whether it is folded from the beginning or from a stored fold.
func TestAPastMomentIsThePictureOfThen(t *testing.T) {
	const events = 25_000
	r, _ := longRun(t, events)
	for _, at := range []int64{1, 2, 3, 9_999, 10_000, 10_001, 19_999, 24_321} {
		want := view.New(r.ID)
		for e, err := range swarm.Events(r.log, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq > at {
				break
			}
			if err := want.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the first question about a late moment stores folds, and the second uses them
			got, err := r.FoldAt(at)
			if err != nil || got.Seq != at {
				t.Fatalf("%d: %v", at, err)
			}
			if a, b := encode(t, got.Picture()), encode(t, want.Picture()); !reflect.DeepEqual(a, b) {
				t.Errorf("%d: %s\nwant %s", at, a, b)
			}
		}
	}
	if _, _, ok := r.log.LoadFold(pastName(20_000), foldVersion); !ok {
		t.Error("no fold is stored")
	}
	for _, at := range []int64{1_000_000, math.MaxInt64} {
		if _, err := r.FoldAt(at); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("after the last event: %v", err)
		}
	}
}

func encode(t testing.TB, p view.Picture) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// BenchmarkPastMoment measures how long the picture of any moment takes, after the folds were stored.
func BenchmarkPastMoment(b *testing.B) {
	for _, events := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			r, _ := longRun(b, events)
			if _, err := r.FoldAt(int64(events)); err != nil {
				b.Fatal(err)
			}
			var slowest time.Duration
			for i := 0; b.Loop(); i++ {
				at := int64(i*99_991)%int64(events-1) + 1
				began := time.Now()
				if _, err := r.PictureAt(at); err != nil {
					b.Fatal(err)
				}
				slowest = max(slowest, time.Since(began))
			}
			b.ReportMetric(float64(slowest.Milliseconds()), "slowest-ms")
		})
	}
}
