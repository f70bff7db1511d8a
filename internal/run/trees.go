package run

import (
	"context"

	"swarm/internal/tree"
	"swarm/internal/turn"
)

// maxDiff is how much of what a turn changed is kept: of more only the list of files.
const maxDiff = 1 << 20

// trees tells what turns change, in the run's own store.
type trees struct {
	store  string
	hidden []string // our own state
	seen   *tree.Seen
}

func (t trees) folder(dir string, alone bool) tree.Folder {
	return tree.Folder{Dir: dir, Store: t.store, Hidden: t.hidden, Alone: alone, Seen: t.seen}
}

func (t trees) Record(ctx context.Context, dir string, alone bool) (string, error) {
	return t.folder(dir, alone).Record(ctx)
}

func (t trees) Compare(ctx context.Context, dir, from, to string) (turn.Changes, error) {
	c, err := t.folder(dir, true).Compare(ctx, from, to, maxDiff)
	return turn.Changes(c), err
}
