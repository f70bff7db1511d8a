package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"swarm"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	return NewStore(t.TempDir()).(*Store)
}

func TestOnlyAWholeLastSummaryCounts(t *testing.T) {
	s := newStore(t)
	must(t, s.Save(t.Context(), swarm.RunSummary{ID: "r", Status: swarm.Running, Name: "first"}))
	must(t, s.Save(t.Context(), swarm.RunSummary{ID: "r", Status: swarm.Paused, Name: "second"}))
	f, err := os.OpenFile(filepath.Join(s.dir, "r.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"id":"r","status":"comp`)
	must(t, err)
	must(t, f.Close())
	if sum, ok := s.summary("r"); ok {
		t.Errorf("after a line that was cut: %+v", sum)
	}
	for range 2000 {
		must(t, s.Save(t.Context(), swarm.RunSummary{ID: "r", Status: swarm.Running, Name: "another"}))
	}
	if sum, ok := s.summary("r"); !ok || sum.Name != "another" {
		t.Errorf("after many: %+v", sum)
	}
	info, err := os.Stat(filepath.Join(s.dir, "r.jsonl"))
	must(t, err)
	if info.Size() > 2*maxSummary {
		t.Errorf("the file has %d bytes", info.Size())
	}
}

func TestRunsAreListedNewestFirst(t *testing.T) {
	s := newStore(t)
	for _, id := range []swarm.RunID{"20260101-a", "20260102-b", "20260102-c"} {
		log, err := s.Create(t.Context(), id)
		must(t, err)
		must(t, log.Close())
	}
	must(t, os.WriteFile(filepath.Join(s.dir, "..odd.db"), nil, 0o600))
	must(t, s.Save(t.Context(), swarm.RunSummary{ID: "20260102-b", Status: swarm.Running, Name: "saved"}))
	for _, c := range []struct {
		q    swarm.RunQuery
		want []string
	}{
		{swarm.RunQuery{}, []string{"20260102-c", "20260102-b saved", "20260101-a"}},
		{swarm.RunQuery{Before: "20260102-c"}, []string{"20260102-b saved", "20260101-a"}},
		{swarm.RunQuery{Prefix: "20260102"}, []string{"20260102-c", "20260102-b saved"}},
		{swarm.RunQuery{ID: "20260102-b"}, []string{"20260102-b saved"}},
		{swarm.RunQuery{ID: "20260102"}, nil},
		{swarm.RunQuery{ID: "../x"}, nil},
	} {
		var got []string
		for e, err := range s.Runs(t.Context(), c.q) {
			must(t, err)
			if got = append(got, string(e.ID)); e.Saved {
				got[len(got)-1] += " " + e.Name
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.q, got, c.want)
		}
	}
}

func TestARunThatIsDrivenIsNotRemoved(t *testing.T) {
	s := newStore(t)
	log, err := s.Create(t.Context(), "r")
	must(t, err)
	owner, err := log.Own(t.Context(), "1", time.Minute)
	must(t, err)
	var owned *swarm.OwnedError
	if _, err := s.Remove(t.Context(), "r", swarm.RemoveOptions{Fence: owner.Fence}); !errors.As(err, &owned) {
		t.Errorf("with an owner: %v", err)
	}
	must(t, log.Close())
	if _, err := s.Remove(t.Context(), "r", swarm.RemoveOptions{Fence: owner.Fence - 1}); !errors.Is(err, swarm.ErrFenced) {
		t.Errorf("driven since the caller looked: %v", err)
	}
	counted, err := s.Remove(t.Context(), "r", swarm.RemoveOptions{Fence: owner.Fence, DryRun: true})
	must(t, err)
	removed, err := s.Remove(t.Context(), "r", swarm.RemoveOptions{Fence: owner.Fence})
	must(t, err)
	if counted != removed || removed.Files == 0 {
		t.Errorf("counted %+v, removed %+v", counted, removed)
	}
	if names, _ := os.ReadDir(s.dir); len(names) != 0 {
		t.Errorf("left are %v", names)
	}
	if _, err := s.Open(context.Background(), "r", swarm.ReadOnly); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("it opens: %v", err)
	}
}

// An owner that took the run from a stopped process has a lease and no lock.
func TestAnOwnerWithoutTheLockKeepsItsRun(t *testing.T) {
	s := newStore(t)
	log, err := s.Create(t.Context(), "r")
	must(t, err)
	defer log.Close()
	owner, err := log.Own(t.Context(), "1", time.Minute)
	must(t, err)
	must(t, log.(*Log).change(t.Context(), func(tx *tx) error { return tx.w.exec("UPDATE run SET held=0") }))
	log.(*Log).unlockOwner()
	var owned *swarm.OwnedError
	if _, err := s.Remove(t.Context(), "r", swarm.RemoveOptions{Fence: owner.Fence}); !errors.As(err, &owned) {
		t.Errorf("removed: %v", err)
	}
}
