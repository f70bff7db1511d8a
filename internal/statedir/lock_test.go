package statedir

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"swarm/internal/sqlite"
)

// Two separately opened homes behave like two processes.
func TestALockIsOnesAtATime(t *testing.T) {
	h := newHome(t)
	other, err := At(h.Dir(), sqlite.NewStore)
	must(t, err)
	unlock, err := h.Lock(t.Context(), "x")
	must(t, err)
	free, err := other.Lock(t.Context(), "y")
	must(t, err)
	free()
	gone, leave := context.WithCancelCause(t.Context())
	why := errors.New("no time")
	leave(why)
	if _, err := other.Lock(gone, "x"); !errors.Is(err, why) {
		t.Errorf("who cannot wait is told %v", err)
	}
	var inside sync.WaitGroup
	var held atomic.Bool
	held.Store(true)
	inside.Go(func() {
		free, err := other.Lock(t.Context(), "x")
		must(t, err)
		if held.Load() {
			t.Error("two have the lock")
		}
		free()
	})
	held.Store(false)
	unlock()
	inside.Wait()
}
