package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/storetest"
)

// A loop that waits for a tick would wait for ever, had the disk been full for just that moment.
func TestALostLazyEventStopsItsDriver(t *testing.T) {
	defer func(lease time.Duration) { Lease = lease }(Lease)
	Lease = 300 * time.Millisecond
	s := newTimelineTest(t)
	r := &Run{ID: storyID, home: s.home, log: s.log}
	owner, err := s.log.Own(t.Context(), flow.Version, Lease)
	if err != nil {
		t.Fatal(err)
	}
	r.fence = owner.Fence
	for _, data := range []string{`"one"`, `"another"`} { // the second one is refused, and no caller learns of it
		if _, err := s.log.Append(t.Context(), swarm.Batch{Fence: owner.Fence, Lazy: true, Events: []swarm.Event{{Kind: swarm.Notice, Key: "same", Data: []byte(data)}}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go r.keepLease(ctx, stop)
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("the driver was stopped by %v", err)
	}
}

// The hint to resume a run when its store is back belongs to a store that is away, and to nothing else.
func TestTheHintOfALostStore(t *testing.T) {
	h, err := statedir.At(t.TempDir(), func(dir string) swarm.Store { return storetest.Shared{Store: sqlite.NewStore(dir)} })
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{ID: "r", home: h}
	const file = "postgres://host/db#r"
	away := &swarm.Error{Kind: swarm.Storage, File: file, Msg: "the store cannot be reached"}
	for _, c := range []struct {
		err  error
		hint string
	}{
		{away, "when postgres://host/db can be used again: swarm resume r"},
		{swarm.Errorf(swarm.Storage, "the end of a turn: %w", away), "when postgres://host/db can be used again: swarm resume r"},
		{&swarm.Error{Kind: swarm.Storage, File: file, Err: swarm.ErrDamaged, Hint: "restore the database"}, "restore the database"},
		{&swarm.Error{Kind: swarm.Storage, File: "/home/me/.swarm/x", Msg: "no space left", Hint: "make room"}, "make room"},
		{nil, ""},
	} {
		if got := swarm.HintOf(r.lost(c.err)); got != c.hint {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

func TestADeletedRunIsNotDriven(t *testing.T) {
	s := newTimelineTest(t)
	r, err := Open(s.home, storyID)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Remove(filepath.Join(s.home.Dir(), "runs", storyID+".db")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Drive(t.Context(), Options{}); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("a run that was deleted is driven: %v", err)
	}
}
