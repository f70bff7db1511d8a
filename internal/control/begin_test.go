package control

import (
	"context"
	"os"
	"testing"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/storetest"
)

// A lostLock is a lock whose connection broke. It notes whether the run was in the store by then.
type lostLock struct {
	home *statedir.Home
	runs int
}

func (l *lostLock) Held(context.Context) error {
	all, err := l.home.List("", true)
	if l.runs = len(all); err != nil {
		return err
	}
	return swarm.Errorf(swarm.Storage, "the lock is lost")
}

func (*lostLock) Unlock() {}

// Another process may have begun the same run if the lock was lost. So this one does not begin.
func TestARunDoesNotBeginWithoutItsLock(t *testing.T) {
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	lock := &lostLock{home: h}
	b := &Begin{Bundle: &compose.Bundle{Plan: swarm.Plan{Kind: swarm.PipelineRun, Name: "main"}}, Dir: t.TempDir(), id: "lost", lock: lock}
	if r, err := b.Start(t.Context(), h, "test"); err == nil || err.Error() != "the lock is lost" {
		t.Fatalf("it began: %+v, %v", r, err)
	}
	if lock.runs != 1 {
		t.Errorf("the lock was asked when the store had %d runs: it could be lost afterwards", lock.runs)
	}
	if h.Exists("lost") {
		t.Error("the run is still there")
	}
	if _, err := os.Stat(h.WorkPath("lost")); err == nil {
		t.Error("its files are still there")
	}
	b.lock = nil
	r, err := b.Start(t.Context(), h, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A run whose log cannot be read at the moment may still use its budget, so nothing is given to another.
func TestTheBudgetOfAKeyIsNotGuessed(t *testing.T) {
	h, err := statedir.At(t.TempDir(), func(string) swarm.Store {
		return storetest.Away{Shared: storetest.Shared{Store: sqlite.NewStore(t.TempDir())}}
	})
	if err != nil {
		t.Fatal(err)
	}
	log, err := h.Store.Create(t.Context(), "used")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := h.Store.Save(t.Context(), swarm.RunSummary{ID: "used", Key: "k", Status: swarm.Running, Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	c := &Control{Home: h, Caller: Caller{Key: &ClientKey{Name: "k", Budget: swarm.Budget{Calls: 10}}}}
	if left, err := c.left(""); swarm.KindOf(err) != swarm.Storage {
		t.Errorf("%+v is left, %v", left, err)
	}
}
