package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	lib "modernc.org/sqlite/lib"

	"swarm"
)

// openers are the two ways to open a log that exists.
var openers = map[string]func(string) (*Log, error){"Open": Open, "OpenReadOnly": OpenReadOnly}

func TestWhatIsNoLogIsRefusedAndLeftAlone(t *testing.T) {
	full := contents(t, 300)
	newer := bytes.Clone(full)
	binary.BigEndian.PutUint32(newer[60:], format+1) // user_version
	sumFirstPage(newer)
	foreign := bytes.Clone(full)
	binary.BigEndian.PutUint32(foreign[68:], 7) // application_id
	sumFirstPage(foreign)
	for _, c := range []struct {
		name string
		file []byte
		kind swarm.ErrorKind
		says string
	}{
		{"an empty file", nil, swarm.BadInput, "no log of a run"},
		{"a text", []byte("version: \"1\"\ntasks:\n" + strings.Repeat("  a: {}\n", 1000)), swarm.BadInput, "no log of a run"},
		{"another program's database", foreign, swarm.BadInput, "no log of a run"},
		{"a newer format", newer, swarm.BadInput, fmt.Sprintf("format %d", format+1)},
		{"half a header", full[:50], swarm.BadInput, "no log of a run"},
		{"a log cut at a page", full[:8192], swarm.Storage, "damaged"},
		{"a log cut in a page", full[:len(full)-1000], swarm.Storage, "damaged"},
	} {
		for how, open := range openers {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "run.db")
				must(t, os.WriteFile(path, c.file, 0o600))
				l, err := open(path)
				if err == nil {
					l.Close()
				}
				var e *swarm.Error
				if !errors.As(err, &e) || e.Kind != c.kind || e.File != path || !strings.Contains(e.Error(), c.says) {
					t.Errorf("it says %v, kind %s", err, swarm.KindOf(err))
				}
				if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, c.file) {
					t.Errorf("the file was changed (%v)", err)
				}
				if names := list(t, dir); names != "[run.db]" {
					t.Errorf("the folder holds %s", names)
				}
			})
		}
	}
}

func sumFirstPage(file []byte) {
	binary.BigEndian.PutUint32(file[pageSize-reserved:], pageSum(1, file[:pageSize]))
}

// contents returns the bytes of a closed log with this many events.
func contents(t *testing.T, n int) []byte {
	t.Helper()
	l, path := create(t)
	for i := range n {
		_, err := l.Append(context.Background(), small(i))
		must(t, err)
	}
	must(t, l.Close())
	file, err := os.ReadFile(path)
	must(t, err)
	return file
}

func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return fmt.Sprint(names)
}

func TestWhatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	for how, open := range openers {
		for _, path := range []string{filepath.Join(dir, "run.db"), filepath.Join(dir, "no", "run.db")} {
			if _, err := open(path); swarm.KindOf(err) != swarm.NotFound {
				t.Errorf("%s(%s): %v", how, path, err)
			}
		}
		if _, err := open(dir); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%s of a folder: %v", how, err)
		}
	}
	if names := list(t, dir); names != "[]" {
		t.Errorf("the folder holds %s", names)
	}
	if _, err := Create(filepath.Join(dir, "no", "run.db")); swarm.KindOf(err) != swarm.Storage {
		t.Errorf("Create in no folder: %v", err)
	}
}

func TestCreateTakesNoNameTwice(t *testing.T) {
	l, path := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	if _, err := Create(path); swarm.KindOf(err) != swarm.BadInput {
		t.Errorf("a second Create: %v", err)
	}
	if es, err := l.Read(0, 9); err != nil || len(es) != 1 {
		t.Errorf("the first log has %v, %v", es, err)
	}
}

func TestFilesAreTheirOwnersOnly(t *testing.T) {
	l, path := create(t)
	_, err := l.Own(context.Background(), "1", 1)
	must(t, err)
	files, err := filepath.Glob(path + "*")
	must(t, err)
	if len(files) != 5 {
		t.Errorf("a run in use has the files %v", files)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v (%v)", f, st.Mode(), err)
		}
	}
	must(t, l.Close())
	must(t, Remove(path))
	if names := list(t, filepath.Dir(path)); names != "[]" {
		t.Errorf("after Remove: %s", names)
	}
	if err := Remove(path); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("a second Remove: %v", err)
	}
}

// FuzzDamage changes a log's bytes. Reading it must not panic or hang.
func FuzzDamage(f *testing.F) {
	var good []byte
	f.Add(uint32(0), []byte("x"))
	f.Add(uint32(100), []byte{0xff, 0xff, 0xff, 0xff})
	f.Add(uint32(4096), []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(uint32(8195), []byte{0x7f, 0xff, 0x01})
	f.Add(uint32(20000), []byte("zzzzzzzzzzzzzzzzzzzzzzzzzzz"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, at uint32, damage []byte) {
		if good == nil {
			good = contents(t, 100)
		}
		file := bytes.Clone(good)
		copy(file[int(at)%len(file):], damage)
		path := filepath.Join(dir, fmt.Sprintf("%d.db", os.Getpid()))
		must(t, os.WriteFile(path, file, 0o600))
		defer Remove(path)
		l, err := Open(path)
		if err != nil {
			return
		}
		defer l.Close()
		l.Scan(0, func(*swarm.Event) error { return nil })
		l.Read(0, 1000, "loop:main")
		l.Find("end:code/7/1")
		l.Body(swarm.HashOf([]byte("none")))
		l.Owner(context.Background())
		l.Append(context.Background(), small(1000))
	})
}

func TestAReaderBesideALivingOwner(t *testing.T) {
	l, path := create(t)
	owner, err := l.Own(context.Background(), "1", 1e9)
	must(t, err)
	r, err := OpenReadOnly(path)
	must(t, err)
	woken, stop := r.Watch("loop:main")
	defer stop()
	for i := range 10 {
		b := small(i)
		b.Fence = owner.Fence
		_, err := l.Append(context.Background(), b)
		must(t, err)
		<-woken
		if es, err := r.Read(int64(i), 9, "loop:main"); err != nil || len(es) != 1 {
			t.Fatalf("the reader has %v, %v", es, err)
		}
	}
	if _, err := r.Append(context.Background(), small(99)); swarm.KindOf(err) != swarm.BadInput {
		t.Errorf("a reader appends: %v", err)
	}
	for what, err := range map[string]error{
		"Renew":    r.Renew(context.Background(), owner.Fence, 1e9),
		"Disown":   r.Disown(context.Background(), owner.Fence),
		"SaveFold": r.SaveFold("a", "1", 1, nil),
	} {
		if swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("a reader's %s: %v", what, err)
		}
	}
	// A reader in the middle of a page blocks no writer.
	s, err := r.r.prepare(r.r.query(queryAfter))
	must(t, err)
	must(t, s.bind(int64(0)))
	_, err = s.next()
	must(t, err)
	_, err = l.Append(context.Background(), small(10))
	must(t, err)
	s.done()
	must(t, r.Close())
	_, err = l.Append(context.Background(), small(11))
	must(t, err)
}

func TestAReaderOfADeadOwnersLog(t *testing.T) {
	dir := t.TempDir()
	path := abandoned(t, dir)
	r, err := OpenReadOnly(path)
	must(t, err)
	if es, err := r.Read(0, 99); err != nil || len(es) != 20 {
		t.Errorf("it has %d events, %v", len(es), err)
	}
	must(t, r.Close())
}

// abandoned leaves a log as a killed process does: with a write-ahead log.
func abandoned(t *testing.T, dir string) string {
	t.Helper()
	l, path := create(t)
	for i := range 20 {
		_, err := l.Append(context.Background(), small(i))
		must(t, err)
	}
	for _, side := range []string{"", "-wal"} {
		must(t, copyFile(path+side, filepath.Join(dir, "run.db")+side))
	}
	return filepath.Join(dir, "run.db")
}

func TestANewerFormatWithAWriteAheadLogIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := abandoned(t, dir)
	file, err := os.ReadFile(path)
	must(t, err)
	binary.BigEndian.PutUint32(file[60:], format+1) // user_version
	sumFirstPage(file)
	must(t, os.WriteFile(path, file, 0o600))
	wal, err := os.ReadFile(path + "-wal")
	must(t, err)
	for how, open := range openers {
		if _, err := open(path); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%s: %v", how, err)
		}
		for name, was := range map[string][]byte{path: file, path + "-wal": wal} {
			if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, was) {
				t.Errorf("%s changed %s (%v)", how, name, err)
			}
		}
	}
}

func TestOpeningWhileAnotherWrites(t *testing.T) {
	l, path := create(t)
	must(t, l.Close())
	c := start(t, "write", path)
	defer c.signal(syscall.SIGKILL)
	times := 300
	if testing.Short() {
		times = 60
	}
	for range times { // long enough for events to be moved from the write-ahead log to the file and back to its beginning
		for range 10 {
			c.says()
		}
		for how, open := range openers {
			l, err := open(path)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			if es, err := l.Read(0, 1); err != nil || len(es) != 1 {
				t.Fatalf("%s reads %v, %v", how, es, err)
			}
			must(t, l.Close())
		}
	}
}

func TestAReaderLeavesTheFolderAsItWas(t *testing.T) {
	l, path := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	must(t, l.Close())
	before := list(t, filepath.Dir(path))
	r, err := OpenReadOnly(path)
	must(t, err)
	_, err = r.Read(0, 9)
	must(t, err)
	must(t, r.Close())
	if after := list(t, filepath.Dir(path)); after != before {
		t.Errorf("the folder held %s, and then %s", before, after)
	}
}

func TestAFolderThatCannotBeWritten(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, dir string) string{
		"whose process ended well": func(t *testing.T, dir string) string {
			path := filepath.Join(dir, "run.db")
			must(t, os.WriteFile(path, contents(t, 20), 0o600))
			return path
		},
		"whose process was killed": abandoned,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := make(t, dir)
			seal(t, dir)
			l, err := OpenReadOnly(path)
			must(t, err)
			if es, err := l.Read(0, 99); err != nil || len(es) != 20 {
				t.Errorf("a reader has %d events, %v", len(es), err)
			}
			scrap := l.scrap
			must(t, l.Close())
			if scrap != "" {
				if _, err := os.Stat(scrap); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the copy is left: %v", err)
				}
			}
			if l, err := Open(path); swarm.KindOf(err) != swarm.Storage {
				t.Errorf("Open: %v, %v", l, err)
			}
			if l, err := Create(filepath.Join(dir, "new.db")); swarm.KindOf(err) != swarm.Storage {
				t.Errorf("Create: %v, %v", l, err)
			}
		})
	}
}

func TestAFailedSyncEndsTheLog(t *testing.T) {
	l, path := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	if err := l.judge(l.w.fail(lib.SQLITE_FULL)); swarm.KindOf(err) != swarm.Storage {
		t.Errorf("a full disk: %v", err)
	}
	_, err = l.Append(context.Background(), small(2)) // no harm
	must(t, err)
	l.judge(l.w.fail(lib.SQLITE_IOERR_FSYNC))
	if _, err := l.Append(context.Background(), small(3)); swarm.KindOf(err) != swarm.Storage || !strings.Contains(err.Error(), "nothing more is written") {
		t.Errorf("an append after a failed sync: %v", err)
	}
	l.Close()
	l, err = Open(path)
	must(t, err)
	defer l.Close()
	if es, err := l.Read(0, 9); err != nil || len(es) != 2 {
		t.Errorf("reopened: %v, %v", es, err)
	}
}

func TestLazyEventsAloneAreSyncedBesideTheQueue(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	b := small(2)
	b.Lazy = true
	_, err = l.Append(context.Background(), b)
	must(t, err)
	l.Flush()
	l.queue.Settle()
	if l.owed.Load() {
		t.Error("they are not synced")
	}
	_, err = l.Append(context.Background(), small(3))
	must(t, err)
	if l.owed.Load() || l.durable.Load() != 3 {
		t.Errorf("the next one was not synced: %d events are", l.durable.Load())
	}
}

func TestFolds(t *testing.T) {
	l, path := create(t)
	if _, _, ok := l.LoadFold("view", "1"); ok {
		t.Error("a new log has a fold")
	}
	must(t, l.SaveFold("view", "1", 7, []byte("old")))
	must(t, l.SaveFold("view", "1", 9, []byte("new")))
	must(t, l.SaveFold("state", "1", 3, nil))
	must(t, l.Close())
	r, err := OpenReadOnly(path)
	must(t, err)
	defer r.Close()
	if seq, data, ok := r.LoadFold("view", "1"); !ok || seq != 9 || string(data) != "new" {
		t.Errorf("the view's fold is %d, %q, %v", seq, data, ok)
	}
	if seq, data, ok := r.LoadFold("state", "1"); !ok || seq != 3 || len(data) != 0 {
		t.Errorf("the state's fold is %d, %q, %v", seq, data, ok)
	}
	for _, other := range [][2]string{{"view", "2"}, {"View", "1"}, {"", ""}} {
		if _, _, ok := r.LoadFold(other[0], other[1]); ok {
			t.Errorf("there is a fold %q of version %q", other[0], other[1])
		}
	}
}

func TestScan(t *testing.T) {
	l, _ := create(t)
	var b swarm.Batch
	const n = 3*page + 7
	for i := range n {
		b.Events = append(b.Events, small(i).Events[0])
	}
	_, err := l.Append(context.Background(), b)
	must(t, err)
	for _, after := range []int64{0, 1, page, n - 1, n, n + 1} {
		next := after
		must(t, l.Scan(after, func(e *swarm.Event) error {
			next++
			want := b.Events[e.Seq-1]
			if e.Seq != next || e.Key != want.Key || string(e.Data) != string(want.Data) {
				return fmt.Errorf("after %d comes %+v", next-1, e)
			}
			_, err := l.Body(swarm.HashOf([]byte("none"))) // the log may be used meanwhile
			if !errors.Is(err, swarm.ErrNoBody) {
				return err
			}
			return nil
		}))
		if next != max(n, after) {
			t.Errorf("Scan(%d) ended at %d", after, next)
		}
	}
	enough := errors.New("enough")
	if err := l.Scan(0, func(*swarm.Event) error { return enough }); err != enough {
		t.Errorf("Scan with an error: %v", err)
	}
}
