package statedir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
)

func newHome(t testing.TB) *Home {
	t.Helper()
	h, err := At(filepath.Join(t.TempDir(), "state"), sqlite.NewStore)
	must(t, err)
	must(t, h.Make())
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheFolderIsMadeWhenItIsNeeded(t *testing.T) {
	user := t.TempDir()
	t.Setenv("HOME", user)
	t.Setenv(Variable, "")
	h, err := Open(sqlite.NewStore)
	must(t, err)
	if h.Dir() != filepath.Join(user, ".swarm") {
		t.Errorf("it is %s", h.Dir())
	}
	if _, err := os.Stat(h.Dir()); err == nil {
		t.Error("it was made before anything was done")
	}
	must(t, h.Make())
	info, err := os.Stat(h.Dir())
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if names, _ := os.ReadDir(h.Dir()); len(names) != 0 {
		t.Errorf("it has %v in it", names)
	}
	t.Chdir(user)
	t.Setenv(Variable, "elsewhere/state")
	if h, err = Open(sqlite.NewStore); err != nil || h.Dir() != filepath.Join(user, "elsewhere/state") {
		t.Errorf("%v, %v", h, err)
	}
}

// The copy of a large workspace can be stopped.
func TestCopyWork(t *testing.T) {
	h := newHome(t)
	from := h.WorkPath("old")
	must(t, os.MkdirAll(filepath.Join(from, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(from, "sub", "run.sh"), []byte("true"), 0o700))
	must(t, os.Symlink("/etc", filepath.Join(from, "link")))
	must(t, h.CopyWork(t.Context(), "old", "new"))
	if b, err := os.ReadFile(filepath.Join(h.WorkPath("new"), "sub", "run.sh")); err != nil || string(b) != "true" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Lstat(filepath.Join(h.WorkPath("new"), "link")); err == nil {
		t.Error("a link was copied")
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stopped"))
	if err := h.CopyWork(ctx, "old", "newer"); err == nil || err.Error() != "stopped" {
		t.Errorf("it goes on: %v", err)
	}
	root, err := os.OpenRoot(from)
	must(t, err)
	defer root.Close()
	target, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer target.Close()
	must(t, os.WriteFile(filepath.Join(from, "large"), []byte("x"), 0o600))
	if err := copyFile(ctx, root, target, "large"); err == nil || err.Error() != "stopped" {
		t.Errorf("a file is copied to its end: %v", err)
	}
}

func TestGitLeavesTheFolderAlone(t *testing.T) {
	h := newHome(t)
	for range 2 {
		must(t, h.MakeRuns())
		b, err := os.ReadFile(filepath.Join(h.Dir(), ".gitignore"))
		if err != nil || string(b) != "/*\n!/prompts/\n" {
			t.Errorf("%q, %v", b, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(h.Dir(), ".gitignore"), []byte("mine"), 0o600))
	must(t, os.Remove(filepath.Join(h.Dir(), "runs")))
	must(t, h.MakeRuns())
	if b, _ := os.ReadFile(filepath.Join(h.Dir(), ".gitignore")); string(b) != "mine" {
		t.Errorf("what was there became %q", b)
	}
	must(t, os.RemoveAll(h.Dir())) // the user cleaned up during the run
	must(t, h.MakeRuns())
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o700))
	must(t, os.Chmod(open, 0o777))
	for path, want := range map[string]string{
		file:                        "is a file",
		filepath.Join(file, "sub"):  "cannot be used: not a directory",
		open:                        "everybody may write",
		"/proc/nothing/can/be/made": "cannot be made",
	} {
		h, err := At(path, sqlite.NewStore)
		if err == nil {
			err = h.Make()
		}
		if swarm.KindOf(err) != swarm.BadInput || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// run adds a run to the home: a log without an owner, and a summary.
func run(t testing.TB, h *Home, s swarm.RunSummary) {
	t.Helper()
	must(t, h.MakeRuns())
	log, err := h.Store.Create(t.Context(), s.ID)
	must(t, err)
	_, err = log.Own(t.Context(), "1", time.Minute)
	must(t, err)
	must(t, log.Close())
	must(t, h.Store.Save(t.Context(), s))
}

// drive owns a run, like the process that drives it.
func drive(t *testing.T, h *Home, id swarm.RunID) (leave func()) {
	t.Helper()
	log, err := h.Store.Open(t.Context(), id, swarm.ReadWrite)
	must(t, err)
	_, err = log.Own(t.Context(), "1", time.Minute)
	must(t, err)
	t.Cleanup(func() { log.Close() })
	return func() { log.Close() }
}

func logPath(h *Home, id string) string     { return h.in("runs", id+".db") }
func summaryPath(h *Home, id string) string { return h.in("runs", id+".jsonl") }

func TestFind(t *testing.T) {
	h := newHome(t)
	if _, err := h.Find("@last", "/a", true); swarm.KindOf(err) != swarm.NotFound || !strings.Contains(err.Error(), "no run yet") {
		t.Errorf("without runs: %v", err)
	}
	for id, dir := range map[swarm.RunID]string{"20260101-000000-aa": "/a", "20260102-000000-ab": "/a", "20260102-000000-abc": "/a", "20260103-000000-ac": "/b"} {
		run(t, h, swarm.RunSummary{ID: id, Dir: dir, Status: swarm.Completed})
	}
	must(t, os.WriteFile(filepath.Join(h.Dir(), "runs", "..odd.db"), nil, 0o600))
	for _, c := range []struct {
		ref, dir string
		anywhere bool
		want     swarm.RunID // an id, or a part of the error
	}{
		{"@last", "/a", false, "20260102-000000-abc"},
		{"last", "/a", false, "20260102-000000-abc"},
		{"@last", "/a", true, "20260103-000000-ac"},
		{"@last", "/b", false, "20260103-000000-ac"},
		{"@last", "/c", false, "no run was started in this folder"},
		{"20260101", "/a", false, "20260101-000000-aa"},
		{"20260102-000000-ab", "/a", false, "20260102-000000-ab"}, // an id is not ambiguous, even if it begins another
		{"20260102", "/a", false, "2 runs begin with"},
		{"20260", "/a", true, "4 runs begin with"},
		{"2", "/b", false, "20260103-000000-ac"},
		{"20260101", "/b", false, "was started in another folder: /a"},
		{"20260101", "/b", true, "20260101-000000-aa"},
		{"2027", "/a", true, "there is no run"},
		{"../../etc/passwd", "/a", true, "is not a run's id"},
		{"", "/a", true, "is not a run's id"},
	} {
		e, err := h.Find(c.ref, c.dir, c.anywhere)
		if err == nil && e.ID != c.want || err != nil && !strings.Contains(err.Error(), string(c.want)) {
			t.Errorf("%+v: %v, %v", c, e, err)
		}
	}
	unbegun, err := h.Store.Create(t.Context(), "20260104-000000-ad")
	must(t, err)
	must(t, unbegun.Close())
	h.Summarize = func(_ swarm.RunLog, id swarm.RunID) (swarm.RunSummary, error) { return swarm.RunSummary{ID: id}, nil } // its log is empty
	for _, anywhere := range []bool{false, true} {
		if e, err := h.Find("20260104", "/a", anywhere); swarm.KindOf(err) != swarm.NotFound || !strings.Contains(err.Error(), "20260104-000000-ad has not begun") {
			t.Errorf("a run that was killed before it began: %v, %v", e, err)
		}
	}
	_, err = h.Find("20260102", "/a", false)
	if !strings.Contains(err.Error(), "20260102-000000-abc") {
		t.Errorf("the choices are not listed: %v", err)
	}
}

// A run that cannot be opened is not one that is not there, and an older one is not taken for it.
func TestFindWithoutFileDescriptors(t *testing.T) {
	h := newHome(t)
	run(t, h, swarm.RunSummary{ID: "1-old", Dir: "/a", Status: swarm.Completed})
	run(t, h, swarm.RunSummary{ID: "2-new", Dir: "/a", Status: swarm.Completed})
	h.Store = spentStore{h.Store}
	for _, ref := range []string{"2-new", "2", "@last"} {
		if s, err := h.Find(ref, "/a", false); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("%s: %+v, %v", ref, s, err)
		}
	}
}

// A spentStore lists runs when no file descriptor is left to read the newest of them.
type spentStore struct{ swarm.Store }

func (s spentStore) Runs(ctx context.Context, q swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	return func(yield func(swarm.RunEntry, error) bool) {
		for entry, err := range s.Store.Runs(ctx, q) {
			if entry.ID == "2-new" {
				entry = swarm.RunEntry{RunSummary: swarm.RunSummary{ID: entry.ID}}
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

func (s spentStore) Open(ctx context.Context, id swarm.RunID, access swarm.Access) (swarm.RunLog, error) {
	var limit, spent syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, err
	}
	spent.Max = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &spent); err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) }()
	return s.Store.Open(ctx, id, access)
}

func TestListTellsWhatIsTrueNow(t *testing.T) {
	h := newHome(t)
	asked := 0
	h.Summarize = func(_ swarm.RunLog, id swarm.RunID) (swarm.RunSummary, error) {
		asked++
		if strings.Contains(string(id), "newer") {
			return swarm.RunSummary{}, swarm.Errorf(swarm.BadInput, "the log is of a newer version")
		}
		s := swarm.RunSummary{Dir: "/d", Name: "from the log", Status: swarm.Running}
		if strings.Contains(string(id), "silent-end") {
			s.Status = swarm.Completed
		}
		return s, nil
	}
	for _, id := range []swarm.RunID{"1-done", "2-left", "3-driven", "4-silent-end", "5-resumed"} {
		run(t, h, swarm.RunSummary{ID: id, Dir: "/d", Status: swarm.Running, Name: "saved"})
	}
	must(t, h.Store.Save(t.Context(), swarm.RunSummary{ID: "1-done", Dir: "/d", Status: swarm.Failed, Name: "saved", Exit: 1}))
	must(t, h.Store.Save(t.Context(), swarm.RunSummary{ID: "5-resumed", Dir: "/d", Status: swarm.Interrupted, Name: "saved"}))
	for _, id := range []swarm.RunID{"6-missing", "7-broken", "8-newer"} {
		run(t, h, swarm.RunSummary{ID: id})
		must(t, os.Remove(summaryPath(h, string(id))))
	}
	must(t, os.WriteFile(summaryPath(h, "7-broken"), []byte(`{"id":"7-bro`), 0o600))
	run(t, h, swarm.RunSummary{ID: "9-elsewhere", Dir: "/e", Status: swarm.Completed})
	drive(t, h, "3-driven")
	drive(t, h, "5-resumed")

	want := []string{
		"7-broken interrupted from the log", "6-missing interrupted from the log", "5-resumed running from the log",
		"4-silent-end completed from the log", "3-driven running saved", "2-left interrupted from the log", "1-done failed saved",
	}
	for range 2 {
		all, err := h.List("/d", false)
		must(t, err)
		var got []string
		for _, s := range all {
			got = append(got, string(s.ID)+" "+string(s.Status)+" "+s.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	all, err := h.List("", true)
	must(t, err)
	if len(all) != 9 || all[0].ID != "9-elsewhere" || !strings.Contains(all[1].Problem, "newer version") {
		t.Errorf("anywhere: %+v", all)
	}
	asked = 0
	_, err = h.List("/d", false)
	must(t, err)
	if asked != 2 {
		t.Errorf("a later list read %d logs, not only those of the resumed and the newer run", asked)
	}
}

// A run whose process was killed is not running, though its damaged log does not say so. A log
// whose file was deleted is damaged too.
func TestListOfDamagedRuns(t *testing.T) {
	h := newHome(t)
	for id, status := range map[swarm.RunID]swarm.Status{"1-cut": swarm.Running, "2-gone": swarm.Running, "3-over": swarm.Completed} {
		run(t, h, swarm.RunSummary{ID: id, Dir: "/d", Status: status})
		log, err := h.Store.Open(t.Context(), id, swarm.ReadWrite)
		must(t, err)
		_, err = log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.Tick}}})
		must(t, err)
		must(t, log.Close())
	}
	must(t, os.WriteFile(logPath(h, "1-cut"), nil, 0o600))
	must(t, os.Remove(logPath(h, "2-gone")))
	must(t, os.Remove(logPath(h, "3-over")))
	all, err := h.List("/d", false)
	must(t, err)
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprint(s.ID, " ", s.Status, " ", s.Damaged))
	}
	if want := []string{"3-over completed true", "2-gone interrupted true", "1-cut interrupted true"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, not %q", got, want)
	}
}

func TestADeadOwnerDoesNotDrive(t *testing.T) {
	h := newHome(t)
	run(t, h, swarm.RunSummary{ID: "r", Status: swarm.Running})
	if h.Driven("r") || h.Driven("nosuch") {
		t.Error("nobody drives it")
	}
	leave := drive(t, h, "r")
	if !h.Driven("r") {
		t.Error("it is driven")
	}
	leave()
	if h.Driven("r") {
		t.Error("it was left")
	}
}

func TestOutputs(t *testing.T) {
	h := newHome(t)
	for _, text := range []string{"a long first output", "short", ""} {
		must(t, h.WriteOutput("r", "code.2", []byte(text)))
		b, err := os.ReadFile(h.OutputPath("r", "code.2"))
		if err != nil || string(b) != text {
			t.Errorf("%q, %v", b, err)
		}
	}
	if want := filepath.Join(h.Dir(), "outputs", "r", "code.2.txt"); h.OutputPath("r", "code.2") != want {
		t.Error(h.OutputPath("r", "code.2"))
	}
	for _, task := range []string{"", "../x", "a/b", "code.0", "code.x", "code.02", "code.2.3", ".2", "-rf", "all"} {
		if err := h.WriteOutput("r", task, nil); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v", task, err)
		}
	}
	must(t, os.Remove(h.OutputPath("r", "code.2")))
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.Symlink(outside, h.OutputPath("r", "code.2")))
	if err := h.WriteOutput("r", "code.2", []byte("x")); swarm.KindOf(err) != swarm.Storage {
		t.Errorf("through a link: %v", err)
	}
}

func TestHistory(t *testing.T) {
	h := newHome(t)
	if got := h.History(); got != nil {
		t.Errorf("before anything was entered: %q", got)
	}
	for _, text := range []string{"@pm Plan", "two\nlines", "<&>"} {
		h.Remember(text)
	}
	f, err := os.OpenFile(filepath.Join(h.Dir(), "history"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString(`"cut by a cra`)
	must(t, err)
	must(t, f.Close())
	if got := fmt.Sprintf("%q", h.History()); got != `["@pm Plan" "two\nlines" "<&>"]` {
		t.Errorf("got %s", got)
	}
	h.forget(filepath.Join(h.Dir(), "history"))
	if h.Remember("next"); len(h.History()) != 4 {
		t.Errorf("after the half line was cut off: %q", h.History())
	}
}
