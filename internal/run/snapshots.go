package run

import (
	"context"
	"os"
	"sync"

	"swarm/internal/snapshot"
	"swarm/internal/turn"
)

// maxDiff is how much of what a turn changed is kept: of more only the list of files.
const maxDiff = 1 << 20

// A snapshotter tells what turns change, in the run's own store.
type snapshotter struct {
	store  string
	hidden []string // our own state, and what we print to
	seen   *snapshot.Seen
	firm   bool // nobody may bring rules along that hide what he wrote
}

func (t snapshotter) folder(dir string, alone bool) snapshot.Folder {
	return snapshot.Folder{Dir: dir, Store: t.store, Hidden: t.hidden, Alone: alone, Firm: t.firm, Seen: t.seen}
}

func (t snapshotter) Record(ctx context.Context, dir string, alone bool) (string, error) {
	return t.folder(dir, alone).Record(ctx)
}

func (t snapshotter) Compare(ctx context.Context, dir, from, to string) (turn.Changes, error) {
	c, err := t.folder(dir, true).Compare(ctx, from, to, maxDiff)
	return turn.Changes(c), err
}

// printed is where this process prints to, where that is a file: `swarm team … > out.log` changes it all the time, and no agent does. It is
// looked up when the process begins; a detached one lets go of its output.
var printed = struct {
	sync.Mutex
	paths []string
}{paths: snapshot.Paths(os.Stdout, os.Stderr)}

// PrintsTo notes that somebody else prints on our behalf: who has started this process, and waits until its run is on disk.
func PrintsTo(f *os.File) {
	printed.Lock()
	defer printed.Unlock()
	printed.paths = append(printed.paths, snapshot.Paths(f)...)
}

// hidden is what is in a folder and no work of an agent's.
func (d *driver) hidden() []string {
	printed.Lock()
	defer printed.Unlock()
	return append([]string{d.home.Dir()}, printed.paths...)
}
