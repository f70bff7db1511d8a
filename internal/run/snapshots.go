package run

import (
	"context"
	"os"
	"sync"

	"swarm/internal/snapshot"
	"swarm/internal/turn"
)

// maxDiff bounds the stored diff of a turn, in bytes. Of a larger one only the list of files is
// stored.
const maxDiff = 1 << 20

// A snapshotter finds what turns change in folders. Its snapshots are in the run's own object
// store.
type snapshotter struct {
	store  string
	hidden []string // our own state, and the files that we print to
	seen   *snapshot.Seen
	firm   bool // ignore rules that agents write, because they could hide changes
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

// printed are the files that this process prints to. `swarm team … > out.log` changes such a file
// all the time, and no agent does. They are looked up when the process starts, because a detached
// process closes its output.
var printed = struct {
	sync.Mutex
	paths []string
}{paths: snapshot.Paths(os.Stdout, os.Stderr)}

// PrintsTo adds a file that another process prints to on our behalf: the one that started this
// process and waits until its run is on disk.
func PrintsTo(f *os.File) {
	printed.Lock()
	defer printed.Unlock()
	printed.paths = append(printed.paths, snapshot.Paths(f)...)
}

// hidden returns the paths in a folder that are never an agent's work.
func (d *driver) hidden() []string {
	printed.Lock()
	defer printed.Unlock()
	return append([]string{d.home.Dir()}, printed.paths...)
}
