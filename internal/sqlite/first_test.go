package sqlite

import (
	"context"
	"testing"

	"swarm"
)

// The first commit of a log is synced by us, once. SQLite must not be left in that mode: it would move events from the write-ahead
// log into the file without a sync, when the log is large or is closed, and power loss would then damage what was acknowledged.
func TestOnlyASmallFirstCommitIsSyncedByUs(t *testing.T) {
	for _, size := range []int{10, maxFirst} {
		l, _ := create(t)
		if size >= maxFirst && l.mode(true, size) != syncFull {
			t.Error("a large first commit is not synced by SQLite")
		}
		text := make([]byte, size)
		_, err := l.Append(context.Background(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice}}, Bodies: [][]byte{text}})
		must(t, err)
		if l.synchronous != syncFull || l.mode(true, 1) != syncFull {
			t.Errorf("after a commit of %d bytes SQLite has %q, and %q for the next", size, l.synchronous, l.mode(true, 1))
		}
	}
}

func TestALazyFirstCommitIsAFirstCommit(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), swarm.Batch{Lazy: true, Events: []swarm.Event{{Kind: swarm.Notice}}})
	must(t, err)
	l.flush()
	if l.mode(true, 1) != syncFull {
		t.Error("what was written before is not counted")
	}
}
