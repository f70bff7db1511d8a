package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"swarm"
)

func walSize(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path + "-wal")
	must(t, err)
	return st.Size()
}

func TestCommitsFillRoomThatIsThere(t *testing.T) {
	l, path := create(t)
	grown := 0
	for i := range 200 { // fewer pages than SQLite moves into the file at once
		before := walSize(t, path)
		_, err := l.Append(context.Background(), small(i))
		must(t, err)
		if walSize(t, path) != before {
			grown++
		}
	}
	if grown > 20 {
		t.Errorf("the write-ahead log grew with %d of 200 commits", grown)
	}
	must(t, l.Close())
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the closed log leaves its write-ahead log behind (%v)", err)
	}
}

// Two writers share the room. A copy of the files at any moment, as a crash would leave them, has
// every event.
func TestRoomOfTwoWriters(t *testing.T) {
	first, path := create(t)
	second, err := Open(path)
	must(t, err)
	defer second.Close()
	dir := t.TempDir()
	crashed := filepath.Join(dir, "run.db")
	for i := range 120 {
		b := small(i)
		b.Bodies = [][]byte{make([]byte, i*100)}
		_, err := []*Log{first, second}[i%2].Append(context.Background(), b)
		must(t, err)
		if i%7 != 0 {
			continue
		}
		for _, side := range []string{"", "-wal"} {
			must(t, copyFile(path+side, crashed+side))
		}
		l, err := Open(crashed)
		must(t, err)
		if es, err := l.Read(0, 999); err != nil || len(es) != i+1 {
			t.Fatalf("after %d commits a crash leaves %d events (%v)", i+1, len(es), err)
		}
		must(t, l.Close())
		must(t, Remove(crashed))
	}
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	used := len(wal)
	for used > 0 && wal[used-1] == 0 {
		used--
	}
	if room := len(wal) - used; room > roomMaxStep+pageSize {
		t.Errorf("behind %d bytes of the write-ahead log there are %d of room", used, room)
	}
}

// A log whose creator died before the first event has a write-ahead log of zeros.
func TestALogOfRoomAloneIsEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.db")
	must(t, writeEmpty(path))
	for how, open := range openers {
		l, err := open(path)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		if es, err := l.Read(0, 9); err != nil || len(es) != 0 {
			t.Errorf("%s reads %v, %v", how, es, err)
		}
		must(t, l.Close())
	}
	l, err := Open(path)
	must(t, err)
	defer l.Close()
	if _, err := l.Append(context.Background(), swarm.Batch{Events: small(1).Events}); err != nil {
		t.Error(err)
	}
}
