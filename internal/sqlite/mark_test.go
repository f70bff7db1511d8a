package sqlite

import (
	"os"
	"path/filepath"
	"testing"
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

func BenchmarkMark(b *testing.B) {
	l := benchLog(b)
	for seq := int64(1); b.Loop(); seq++ {
		must(b, l.writeLock.mark.raise(seq))
	}
}
