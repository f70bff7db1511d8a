package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarm"
)

// closedStory writes a log with a mark, closes it, and returns what can be read from it.
func closedStory(t *testing.T, batches int) (s *Store, path string, want story) {
	t.Helper()
	s = newStore(t)
	path = filepath.Join(s.dir, "r.db")
	l, err := Create(path)
	must(t, err)
	writeStory(t, l, batches)
	must(t, l.settle())
	want, err = readStory(l, batches)
	must(t, errors.Join(err, l.Close()))
	return s, path, want
}

// A program without our checksums, such as sqlite3, moves the write-ahead log into the file when it
// closes a log. The log is then refused, and a recovery saves all of it.
func TestPagesOfAnotherProgramAreRecovered(t *testing.T) {
	const batches = 40
	s, path, want := closedStory(t, batches)
	b, err := os.ReadFile(path)
	must(t, err)
	for end := pageSize; end <= len(b); end += pageSize {
		clear(b[end-reserved : end])
	}
	must(t, os.WriteFile(path, b, 0o600))
	if _, err := OpenReadOnly(path); !errors.Is(err, swarm.ErrDamaged) {
		t.Fatalf("pages without checksums are served: %v", err)
	}
	got, err := s.Recover(t.Context(), "r")
	if err != nil || got.Events != want.last || got.LostEvents != 0 || got.LostTexts != 0 {
		t.Fatalf("of %d events it saves %+v, %v", want.last, got, err)
	}
	l, err := OpenReadOnly(path)
	must(t, err)
	defer l.Close()
	if again, err := readStory(l, batches); err != nil || !slices.Equal(again.read, want.read) && !sameButFold(again.read, want.read) {
		t.Errorf("the recovered log has %d lines of %d, %v", len(again.read), len(want.read), err)
	}
	if names := list(t, s.dir); strings.Contains(names, "resealed") || strings.Contains(names, "merged") {
		t.Errorf("copies stay behind: %s", names)
	}
}

// An event or a text that is wrong on a page with a wrong checksum is not saved.
func TestARecoveryTakesNothingWrong(t *testing.T) {
	const batches = 40
	s, path, want := closedStory(t, batches)
	b, err := os.ReadFile(path)
	must(t, err)
	if n := strings.Count(string(b), `"amount":1700`); n == 0 {
		t.Fatal("the event is not in the file")
	}
	b = []byte(strings.ReplaceAll(string(b), `"amount":1700`, `"amount":9900`))
	b = []byte(strings.ReplaceAll(string(b), "pay 300 to alice", "pay 300 to mallo"))
	must(t, os.WriteFile(path, b, 0o600))
	got, err := s.Recover(t.Context(), "r")
	if err != nil || got.Events >= want.last || got.Events < 17*4 || got.LostTexts == 0 {
		t.Fatalf("it saves %+v, %v", got, err)
	}
	l, err := OpenReadOnly(path)
	must(t, err)
	defer l.Close()
	must(t, l.Scan(0, func(e *swarm.Event) error {
		if strings.Contains(string(e.Data), "9900") {
			t.Errorf("a wrong event is saved: %s", e.Data)
		}
		return nil
	}))
	if text, err := l.Body(swarm.HashOf(bodyOf(3))); !errors.Is(err, swarm.ErrNoBody) {
		t.Errorf("a wrong text is saved: %.40q, %v", text, err)
	}
}

func TestWhatIsLeftOfACutLogIsRecovered(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	s, path, want := closedStory(t, 200)
	st, err := os.Stat(path)
	must(t, err)
	must(t, os.Truncate(path, st.Size()/2+100))
	got, err := s.Recover(t.Context(), "r")
	if err != nil || got.Events == 0 || got.Events+got.LostEvents != want.last || got.Texts == 0 {
		t.Errorf("of %d events it saves %+v, %v", want.last, got, err)
	}
}

// A log that is emptied or overwritten is damaged, and no run that never was.
func TestALogThatIsNoLogAnyMoreIsDamaged(t *testing.T) {
	for what, damage := range map[string]func(path string) error{
		"emptied":     func(path string) error { return os.Truncate(path, 0) },
		"overwritten": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("no log ", 1000)), 0o600) },
		"a FIFO":      func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
	} {
		s, path, _ := closedStory(t, 3)
		must(t, damage(path))
		for _, access := range []swarm.Access{swarm.ReadOnly, swarm.ReadWrite} {
			if _, err := s.Open(t.Context(), "r", access); !errors.Is(err, swarm.ErrDamaged) || !strings.Contains(err.Error(), "12 events") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// A FIFO in the place of a file beside the log blocks nobody.
func TestFIFOsBlockNobody(t *testing.T) {
	for _, side := range []string{".lock", ".owner", "-wal"} {
		s, path, want := closedStory(t, 3)
		_ = os.Remove(path + side)
		must(t, syscall.Mkfifo(path+side, 0o600))
		if _, err := s.Check(t.Context(), "r", nil); (err != nil) != (side == "-wal") {
			t.Errorf("%s: the check says %v", side, err)
		}
		if side == "-wal" {
			continue
		}
		l, err := OpenReadOnly(path)
		must(t, err)
		if _, _, err := l.Owner(t.Context()); err != nil {
			t.Errorf("%s: %v", side, err)
		}
		if got, err := readStory(l, 3); err != nil || got.last != want.last {
			t.Errorf("%s: %d of %d events, %v", side, got.last, want.last, err)
		}
		must(t, l.Close())
	}
}

func TestACheckSaysThatTheEndIsNotKnown(t *testing.T) {
	s, path, _ := closedStory(t, 3)
	must(t, os.Remove(path+".lock"))
	check, err := s.Check(t.Context(), "r", nil)
	must(t, err)
	if end := check.Parts[len(check.Parts)-1]; check.Damaged || end.Part != "end" || !strings.Contains(end.Note, "lock file") {
		t.Errorf("%+v", check)
	}
}
