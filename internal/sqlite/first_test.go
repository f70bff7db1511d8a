package sqlite

import (
	"context"
	"testing"

	"swarm"
)

// The first commit of a log is made without SQLite's own syncs. SQLite must not be left in that
// mode. It would make checkpoints without a sync, when the log is large or is closed, and power
// loss would then damage acknowledged events.
func TestOnlyASmallFirstCommitIsMadeWithoutSQLitesSyncs(t *testing.T) {
	for _, size := range []int{10, maxFirst} {
		l, _ := create(t)
		if size >= maxFirst && l.mode(true, size) != syncNormal {
			t.Error("a large first commit may move events without a sync")
		}
		text := make([]byte, size)
		_, err := l.Append(context.Background(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice}}, Bodies: [][]byte{text}})
		must(t, err)
		if l.synchronous != syncNormal || l.mode(true, 1) != syncNormal {
			t.Errorf("after a commit of %d bytes SQLite has %q, and %q for the next", size, l.synchronous, l.mode(true, 1))
		}
	}
}

func TestALazyFirstCommitIsAFirstCommit(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), swarm.Batch{Lazy: true, Events: []swarm.Event{{Kind: swarm.Notice}}})
	must(t, err)
	l.Flush()
	must(t, l.settle())
	if l.mode(true, 1) != syncNormal {
		t.Error("what was written before is not counted")
	}
}
