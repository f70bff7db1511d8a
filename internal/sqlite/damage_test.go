package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
)

// The tests in this file damage a log in every way that they can think of, and read all of it. Each
// read must return what was written, or an error. The figures are of one run; long is for
// `make torture`.

// A story is everything that can be read from a log.
type story struct {
	read []string // one line for each thing that was read
	last int64    // the number of the last event
}

// texts returns the n texts of the story.
func bodyOf(i int) []byte {
	return fmt.Appendf(nil, "pay %d to alice\n%s", 100*i, strings.Repeat("line of an output\n", i%7*90))
}

var readers = []string{"ctl", "@a", "@b", swarm.ToAgents, swarm.ToLoop("root")}

// writeStory writes a log like a pipeline's with mail: keys, receivers, texts, a fold, an owner.
func writeStory(t *testing.T, l *Log, batches int) {
	t.Helper()
	for i := range batches {
		b := swarm.Batch{Bodies: [][]byte{bodyOf(i)}}
		for j, to := range []string{swarm.ToLoop("root"), "@a", "", "ctl"} {
			b.Events = append(b.Events, swarm.Event{Kind: swarm.TurnEnded, Agent: "a", Task: fmt.Sprint("task", i%3), Turn: swarm.TurnID(fmt.Sprint("task/", i)),
				To: to, Key: keyOf(i, j), Data: fmt.Appendf(nil, `{"hash":%q,"amount":%d}`, swarm.HashOf(bodyOf(i)), 100*i)})
		}
		_, err := l.Append(context.Background(), b)
		must(t, err)
	}
	must(t, l.SaveFold("view", "1", 4, []byte(strings.Repeat("a view of the run\n", 300))))
}

func keyOf(i, j int) string {
	if j == 2 {
		return ""
	}
	return fmt.Sprintf("end:task/%d/%d", i, j)
}

// readStory reads a log in every way. The first error ends it, as it ends a command.
func readStory(l *Log, batches int) (s story, err error) {
	note := func(what string, es ...swarm.Event) {
		for _, e := range es {
			s.read = append(s.read, fmt.Sprintf("%s: %d %d %s %s %s %s %s %s %s", what, e.Seq, e.Time.UnixMicro(), e.Kind, e.Agent, e.Task, e.Turn, e.To, e.Key, e.Data))
		}
	}
	if err := l.Scan(0, func(e *swarm.Event) error { note("scan", *e); s.last = e.Seq; return nil }); err != nil {
		return s, err
	}
	for _, to := range readers {
		for from := int64(0); ; {
			es, err := l.Read(from, 7, to)
			if err != nil {
				return s, err
			}
			if note(to, es...); len(es) == 0 {
				break
			}
			from = es[len(es)-1].Seq
		}
	}
	for i := range batches {
		for j := range 4 {
			e, ok, err := l.Find(keyOf(i, j))
			if err != nil {
				return s, err
			}
			if note(fmt.Sprint("find ", i, j, ok), e); ok {
				note("after it", e)
			}
		}
		text, err := l.Body(swarm.HashOf(bodyOf(i)))
		if err != nil && !errors.Is(err, swarm.ErrNoBody) {
			return s, err
		}
		s.read = append(s.read, string(text))
	}
	h, err := l.readHolder()
	if err != nil {
		return s, err
	}
	s.read = append(s.read, fmt.Sprint("fence ", h.fence))
	if seq, data, ok := l.LoadFold("view", "1"); ok { // A missing fold is made again.
		s.read = append(s.read, fmt.Sprint("fold ", seq, string(data)))
	}
	return s, nil
}

// A damager changes some bytes of a file.
type damager struct {
	name string
	do   func(b []byte, r *rand.Rand) []byte
}

func flip(b []byte, r *rand.Rand) []byte {
	b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	return b
}

var fileDamagers = []damager{
	{"a flipped bit", flip},
	{"zeros", func(b []byte, r *rand.Rand) []byte {
		n := 512 << r.IntN(4)
		at := r.IntN(len(b)/n) * n
		clear(b[at : at+n])
		return b
	}},
	{"a page in another place", func(b []byte, r *rand.Rand) []byte {
		n := len(b) / pageSize
		copy(b[r.IntN(n)*pageSize:], b[r.IntN(n)*pageSize:][:pageSize])
		return b
	}},
	{"noise", func(b []byte, r *rand.Rand) []byte {
		at := r.IntN(len(b) - 64)
		for i := range 64 {
			b[at+i] = byte(r.Uint32())
		}
		return b
	}},
	{"a cut", func(b []byte, r *rand.Rand) []byte { return b[:r.IntN(len(b))] }},
}

func long() bool { return os.Getenv("SWARM_TEST_LONG") != "" }

// damageAll damages copies of a log's files, one at a time, and counts what reading them gives.
func damageAll(t *testing.T, path, side string, batches, times int, damagers []damager) {
	t.Helper()
	mark, err := readMark(path)
	must(t, err)
	good, err := os.ReadFile(path + side)
	must(t, err)
	copyTo := func() string {
		copied := filepath.Join(t.TempDir(), "run.db")
		for _, end := range []string{"", "-wal", ".lock"} {
			if err := copyFile(path+end, copied+end); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		return copied
	}
	l, err := OpenReadOnly(copyTo())
	must(t, err)
	want, err := readStory(l, batches)
	must(t, err)
	must(t, l.Close())
	for _, d := range damagers {
		count := map[string]int{}
		for i := range times {
			copied := copyTo()
			bad := d.do(slices.Clone(good), rand.New(rand.NewPCG(uint64(i), 1)))
			must(t, os.WriteFile(copied+side, bad, 0o600))
			open := []func(string) (*Log, error){Open, OpenReadOnly}[i%2]
			got, err := story{}, error(nil)
			if l, err = open(copied); err == nil {
				got, err = readStory(l, batches)
				l.Close()
			}
			how := "refused"
			var e *swarm.Error
			switch {
			case err == nil && (slices.Equal(got.read, want.read) || sameButFold(got.read, want.read)):
				how = "same"
			case err == nil && side == "-wal" && got.last >= mark && got.last < want.last:
				how = "shorter, after the mark" // These were never acknowledged.
			case err == nil:
				how = "SILENT"
				t.Errorf("%s, number %d: reading gives other things than were written, without an error (%d lines of %d)", d.name, i, len(got.read), len(want.read))
			case !errors.As(err, &e) || e.File != copied || e.Hint == "" && e.Kind == swarm.Storage || strings.Contains(err.Error(), "panic"):
				t.Errorf("%s, number %d: it says %v", d.name, i, err)
			}
			count[how]++
			if after, err := os.ReadFile(copied + side); how == "refused" && (err != nil || string(after) != string(bad)) {
				t.Errorf("%s, number %d: the damaged file was changed (%v) after %v", d.name, i, err, e)
			}
			must(t, os.RemoveAll(filepath.Dir(copied)))
		}
		t.Logf("%s, of %d bytes: %v", d.name, len(good), count)
	}
}

// A recovered log has all events before the damage, all intact texts, and can be continued.
func TestDamageIsRecovered(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	const batches = 40
	times := 8
	if long() {
		times = 200
	}
	for _, side := range []string{"", "-wal"} {
		s := newStore(t)
		l, err := Create(filepath.Join(s.dir, "r.db"))
		must(t, err)
		defer l.Close()
		writeStory(t, l, batches)
		must(t, l.settle())
		if side == "" {
			must(t, l.Close())
		}
		total, whole := int64(0), 0
		for i := range times {
			store := newStore(t)
			path := filepath.Join(store.dir, "r.db")
			for _, end := range []string{"", "-wal", ".lock"} {
				if err := copyFile(filepath.Join(s.dir, "r.db")+end, path+end); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(path + side)
			must(t, err)
			bad := flip(slices.Clone(b), rand.New(rand.NewPCG(uint64(i), 2)))
			must(t, os.WriteFile(path+side, bad, 0o600))
			check, err := store.Check(t.Context(), "r", nil)
			must(t, err)
			if !check.Damaged {
				l, err := OpenReadOnly(path) // The bit is of no use: room, or a page's free space in an old frame.
				must(t, err)
				_, err = readStory(l, batches)
				must(t, errors.Join(err, l.Close()))
				continue
			}
			got, err := store.Recover(t.Context(), "r")
			if errors.Is(err, swarm.ErrDamaged) && got.Events == 0 {
				t.Logf("%s %d: nothing can be saved: %v", side, i, err)
				continue
			}
			must(t, err)
			total += got.Events
			whole++
			if got.Events < check.Intact {
				t.Errorf("%s %d: %d events are saved, and %d were intact", side, i, got.Events, check.Intact)
			}
			if check, err := store.Check(t.Context(), "r", nil); err != nil || check.Damaged || check.Intact != got.Events {
				t.Errorf("%s %d: the recovered log: %+v, %v", side, i, check, err)
			}
			r, err := Open(path)
			must(t, err)
			n := int64(0)
			must(t, r.Scan(0, func(e *swarm.Event) error {
				if n++; e.Key != keyOf(int(n-1)/4, int(n-1)%4) {
					t.Errorf("%s %d: event %d has the key %s", side, i, n, e.Key)
				}
				return nil
			}))
			if seqs, err := r.Append(t.Context(), small(1000)); err != nil || seqs[0] != got.Events+1 || n != got.Events {
				t.Errorf("%s %d: the next event is %v, %v, after %d of %d", side, i, seqs, err, n, got.Events)
			}
			if _, err := r.Own(t.Context(), "1", 1e9); err != nil {
				t.Errorf("%s %d: it cannot be owned: %v", side, i, err)
			}
			must(t, r.Close())
			kept := 0
			for _, name := range got.Kept {
				if b, err := os.ReadFile(name); err == nil && string(b) == string(bad) {
					kept++
				}
			}
			if kept != 1 {
				t.Errorf("%s %d: the damaged file is not among %v", side, i, got.Kept)
			}
			if _, err := store.Recover(t.Context(), "r"); swarm.KindOf(err) != swarm.BadInput {
				t.Errorf("%s %d: a whole log is recovered: %v", side, i, err)
			}
		}
		all := int64(whole) * 4 * batches
		t.Logf("%q: %d recovered logs of %d have %d of %d events", side, whole, times, total, all)
		// One bit is in one page, and the bits are the same each time. SQLite alone reads half of the
		// events behind a damaged frame of the write-ahead log.
		if total < all*9/10 {
			t.Errorf("%q: only %d of %d events are saved", side, total, all)
		}
	}
}

// sameButFold reports whether only the fold is missing: then its reader makes it again.
func sameButFold(got, want []string) bool {
	return len(got) == len(want)-1 && slices.Equal(got, want[:len(got)])
}

func TestDamageOfTheFileIsNeverServed(t *testing.T) {
	times := 24
	switch {
	case long():
		times = 2000
	case testing.Short():
		times = 8
	}
	const batches = 40
	l, path := create(t)
	writeStory(t, l, batches)
	must(t, l.Close())
	damageAll(t, path, "", batches, times, fileDamagers)
}

// A disk that loses a write leaves the page as it was before, with a correct checksum.
func TestDamageByALostWriteIsFoundByTheChain(t *testing.T) {
	const batches = 40
	l, path := create(t)
	writeStory(t, l, batches/2)
	must(t, l.Close())
	old, err := os.ReadFile(path)
	must(t, err)
	l, err = Open(path)
	must(t, err)
	writeStory(t, l, batches)
	must(t, l.Close())
	now, err := os.ReadFile(path)
	must(t, err)
	read := func() (events []swarm.Event, err error) {
		l, err := OpenReadOnly(path)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		return l.Read(0, 1000)
	}
	want, err := read()
	must(t, err)
	found := 0
	for at := 0; at < len(old); at += pageSize {
		bad := slices.Clone(now)
		copy(bad[at:], old[at:at+pageSize])
		must(t, os.WriteFile(path, bad, 0o600))
		if got, err := read(); err == nil && len(got) != len(want) {
			t.Errorf("page %d is an old one: %d events are read, %d were written", at/pageSize+1, len(got), len(want))
		} else if err != nil {
			found++
		}
	}
	if found == 0 {
		t.Error("no page of the events was changed: this test shows nothing")
	}
}

// A process that has the log open does not check the write-ahead log again by itself.
func TestDamageOfTheWriteAheadLogIsFoundByAnOpenReader(t *testing.T) {
	l, path := create(t)
	writeStory(t, l, 40)
	r, err := OpenReadOnly(path)
	must(t, err)
	defer r.Close()
	wal, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	must(t, err)
	defer wal.Close()
	for at := int64(walHeader + frameHeader + 100); at < 1<<20; at += pageSize + frameHeader {
		_, err := wal.WriteAt([]byte{0xff, 0xfe}, at)
		must(t, err)
	}
	if got, err := readStory(r, 40); !errors.Is(err, swarm.ErrDamaged) || !strings.Contains(err.Error(), "frame") {
		t.Errorf("%d lines are read: %v", len(got.read), err)
	}
}

func TestDamageOfTheWriteAheadLogIsNeverServed(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	times := 8
	if long() {
		times = 500
	}
	const batches = 40
	l, open := create(t)
	writeStory(t, l, batches)
	must(t, l.settle())
	path := filepath.Join(t.TempDir(), "run.db")
	for _, end := range []string{"", "-wal", ".lock"} { // as a killed process leaves them
		must(t, copyFile(open+end, path+end))
	}
	damageAll(t, path, "-wal", batches, times, fileDamagers)
}
