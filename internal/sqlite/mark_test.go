package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"swarm"
)

// A process that cuts the lock file under a driver costs it neither its life nor the mark.
func TestTheLockFileIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	l, err := Create(path)
	must(t, err)
	defer l.Close()
	for i := range 4 {
		_, err := l.Append(t.Context(), small(i))
		must(t, err)
		if seq, err := readMark(path); err != nil || seq != int64(i+1) {
			t.Fatalf("after %d events the mark is %d, %v", i+1, seq, err)
		}
		must(t, os.Truncate(path+".lock", 0))
		if l.writeLock.mark.covers(100) {
			t.Error("a mark that is gone covers an event")
		}
	}
}

// No reader gets an event before the mark covers it. Otherwise a crash in between leaves a mark that
// does not know an event that was told.
func TestTheMarkIsRaisedBeforeAnEventIsRead(t *testing.T) {
	l, path := create(t)
	_, err := l.Append(t.Context(), small(1))
	must(t, err)
	must(t, os.Truncate(path+".lock", 0))
	closed, err := os.Open(path)
	must(t, err)
	must(t, closed.Close())
	l.writeLock.mark.f = closed // so the lock file cannot get its length back
	if _, err := l.Append(t.Context(), small(2)); swarm.KindOf(err) != swarm.Storage {
		t.Fatalf("an append whose mark cannot be written: %v", err)
	}
	if es, _ := l.Read(1, 10); len(es) != 0 {
		t.Errorf("a reader gets %v, which the mark does not cover", es)
	}
}

func BenchmarkMark(b *testing.B) {
	l := benchLog(b)
	for seq := int64(1); b.Loop(); seq++ {
		must(b, l.writeLock.mark.raise(seq))
	}
}
