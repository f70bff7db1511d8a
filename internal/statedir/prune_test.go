package statedir

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
	"swarm/internal/storetest"
)

// worked adds a run with all kinds of files to the home.
func worked(t testing.TB, h *Home, s swarm.RunSummary) {
	t.Helper()
	run(t, h, s)
	must(t, h.WriteOutput(s.ID, "code", []byte("output")))
	w := h.WriteStreams(s.ID).Turn("code/1/1", 1)
	w.Write("text", "said")
	must(t, w.Close())
	must(t, os.MkdirAll(filepath.Join(h.TreePath(s.ID), "objects"), 0o700))
	must(t, os.WriteFile(filepath.Join(h.TreePath(s.ID), "objects", "x"), []byte("object"), 0o400))
	must(t, os.MkdirAll(h.DesksPath(s.ID), 0o700))
}

// left returns the places that still have files of a run.
func left(h *Home, id string) (there []string) {
	for _, path := range h.pathsOf(id) {
		if _, err := os.Lstat(filepath.Join(h.Dir(), path)); err == nil {
			there = append(there, path)
		}
	}
	return there
}

func idsOf(all []Pruned) (ids []string) {
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	return ids
}

const week = 7 * 24 * time.Hour

func TestPrune(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	h := newHome(t)
	old, young := now.Add(-8*24*time.Hour), now.Add(-time.Hour)
	worked(t, h, swarm.RunSummary{ID: "old", Dir: "/a", Status: swarm.Completed, Ended: old})
	worked(t, h, swarm.RunSummary{ID: "old-elsewhere", Dir: "/b", Status: swarm.Failed, Ended: old})
	worked(t, h, swarm.RunSummary{ID: "young", Dir: "/a", Status: swarm.Completed, Ended: young})
	worked(t, h, swarm.RunSummary{ID: "old-driven", Dir: "/a", Status: swarm.Running})
	worked(t, h, swarm.RunSummary{ID: "old-left", Dir: "/a", Status: swarm.Running})
	drive(t, h, "old-driven")
	for _, id := range []string{"old-left", "old-driven"} { // nobody wrote when they ended: their files tell
		for _, path := range h.pathsOf(id) {
			_ = os.Chtimes(filepath.Join(h.Dir(), path), old, old)
		}
	}
	must(t, h.WriteOutput("leftover", "x", []byte("x")))
	must(t, os.Chtimes(h.OutputDir("leftover"), old, old))
	must(t, os.WriteFile(filepath.Join(h.Dir(), "outputs", "not a run's"), []byte("mine"), 0o600))

	opt := PruneOptions{Now: now, OlderThan: week}
	opt.DryRun = true
	would, err := h.Prune(opt)
	must(t, err)
	want := []string{"leftover", "old", "old-elsewhere", "old-left"}
	if !slices.Equal(idsOf(would), want) {
		t.Errorf("would delete %v", idsOf(would))
	}
	if len(left(h, "old")) < 6 {
		t.Errorf("a dry run left %v", left(h, "old"))
	}

	opt.DryRun, opt.OutputsOnly, opt.Dir = false, true, "/a"
	outputs, err := h.Prune(opt)
	must(t, err)
	if !slices.Equal(idsOf(outputs), []string{"old", "old-left"}) || outputs[0].Bytes != 6 || outputs[0].Files != 1 {
		t.Errorf("outputs: %+v", outputs)
	}
	if slices.Contains(left(h, "old"), "outputs/old") || !slices.Contains(left(h, "old"), "runs/old.db") {
		t.Errorf("without its outputs %v are left", left(h, "old"))
	}

	opt.OutputsOnly, opt.Dir = false, ""
	pruned, err := h.Prune(opt)
	must(t, err)
	if !slices.Equal(idsOf(pruned), want) {
		t.Errorf("deleted %v", idsOf(pruned))
	}
	for _, id := range want {
		if there := left(h, id); len(there) > 0 {
			t.Errorf("of %s %v are left", id, there)
		}
	}
	for _, id := range []string{"young", "old-driven"} {
		if there := left(h, id); len(there) < 6 {
			t.Errorf("of %s only %v are left", id, there)
		}
	}
	if pruned[3].Status != swarm.Interrupted || pruned[1].Status != swarm.Completed {
		t.Errorf("%+v", pruned)
	}
	if _, err := os.Stat(filepath.Join(h.Dir(), "outputs", "not a run's")); err != nil {
		t.Error("a file of somebody else was deleted")
	}
}

func TestPruneStaysInside(t *testing.T) {
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	must(t, os.WriteFile(precious, []byte("precious"), 0o600))
	now := time.Now()

	h := newHome(t)
	worked(t, h, swarm.RunSummary{ID: "r", Status: swarm.Completed, Ended: now.Add(-time.Hour)})
	must(t, os.Symlink(outside, filepath.Join(h.OutputDir("r"), "folder")))
	must(t, os.Symlink(precious, filepath.Join(h.OutputDir("r"), "file")))
	must(t, os.RemoveAll(h.TreePath("r")))
	must(t, os.Symlink(outside, h.TreePath("r")))
	if _, err := h.Prune(PruneOptions{Now: now}); err != nil {
		t.Error(err)
	}
	if there := left(h, "r"); len(there) > 0 {
		t.Errorf("%v are left", there)
	}

	worked(t, h, swarm.RunSummary{ID: "s", Status: swarm.Completed, Ended: now.Add(-time.Hour)})
	must(t, os.RemoveAll(filepath.Join(h.Dir(), "outputs")))
	must(t, os.MkdirAll(filepath.Join(outside, "s"), 0o700))
	must(t, os.Symlink(outside, filepath.Join(h.Dir(), "outputs")))
	if _, err := h.Prune(PruneOptions{Now: now, OutputsOnly: true}); swarm.KindOf(err) != swarm.Storage {
		t.Errorf("a folder that lies elsewhere: %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error("what lies outside was deleted")
	}
	if _, err := os.Stat(filepath.Join(outside, "s")); err != nil {
		t.Error("a folder outside was deleted")
	}
}

// The lower bound is reading the same files.
func BenchmarkList(b *testing.B) {
	h := newHome(b)
	must(b, h.MakeRuns())
	const runs = 5000
	for i := range runs {
		id := fmt.Sprintf("20261115-%06d-abcdefg", i)
		must(b, os.WriteFile(logPath(h, id), nil, 0o600)) // the log of an ended run is not opened
		must(b, h.Store.Save(b.Context(), swarm.RunSummary{ID: swarm.RunID(id), Kind: swarm.PipelineRun, Name: "main", Dir: "/home/user/project", Status: swarm.Completed,
			Started: time.Now(), Ended: time.Now(), Tasks: 12, Usage: swarm.Usage{Calls: 12, InputTokens: 12345, OutputTokens: 2345}}))
	}
	b.Run("floor=read", func(b *testing.B) {
		for b.Loop() {
			for i := range runs {
				if _, err := os.ReadFile(summaryPath(h, fmt.Sprintf("20261115-%06d-abcdefg", i))); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if all, err := h.List("", true); err != nil || len(all) != runs {
				b.Fatal(len(all), err)
			}
		}
	})
	b.Run("last", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.Find("@last", "/home/user/project", false); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The lower bound is os.WriteFile.
func BenchmarkWriteOutput(b *testing.B) {
	h := newHome(b)
	text := make([]byte, 1024)
	must(b, h.WriteOutput("r", "code", text))
	b.Run("floor=writefile", func(b *testing.B) {
		for b.Loop() {
			must(b, os.WriteFile(h.OutputPath("r", "floor"), text, 0o600))
		}
	})
	b.Run("output", func(b *testing.B) {
		for b.Loop() {
			must(b, h.WriteOutput("r", "code", text))
		}
	})
	b.Run("open", func(b *testing.B) {
		b.Setenv(Variable, h.Dir())
		for b.Loop() {
			_, err := Open(sqlite.NewStore)
			must(b, err)
		}
	})
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			must(b, h.Store.Save(b.Context(), swarm.RunSummary{ID: "r", Name: "main", Status: swarm.Running}))
		}
	})
}

// A run that is being created has a file and, for a moment, no owner.
func TestPruneSparesWhatIsBeingMade(t *testing.T) {
	h := newHome(t)
	must(t, h.MakeRuns())
	must(t, os.WriteFile(logPath(h, "new"), nil, 0o600))
	gone, err := h.Prune(PruneOptions{Now: time.Now()})
	must(t, err)
	if len(gone) != 0 || len(left(h, "new")) != 1 {
		t.Errorf("%v was pruned while it was being made", gone)
	}
	if gone, err = h.Prune(PruneOptions{Now: time.Now().Add(2 * beingMade)}); err != nil || len(gone) != 1 {
		t.Errorf("what was left half made stays for ever: %v, %v", gone, err)
	}
}

// The summary of a run stays known if its log cannot be opened: a later version may have written it.
func TestPruneDeletesARunWhoseLogCannotBeOpened(t *testing.T) {
	now := time.Now()
	h := newHome(t)
	worked(t, h, swarm.RunSummary{ID: "odd", Dir: "/a", Status: swarm.Completed, Started: now.Add(-2 * week), Ended: now.Add(-2 * week)})
	h.Store = closedStore{h.Store}
	for _, dir := range []string{"/b", "/a"} {
		pruned, err := h.Prune(PruneOptions{Now: now, OlderThan: week, Dir: dir})
		must(t, err)
		if deleted := len(pruned) == 1 && pruned[0].ID == "odd" && pruned[0].Status == swarm.Completed; deleted != (dir == "/a") {
			t.Errorf("pruned in %s: %v", dir, pruned)
		}
	}
}

// A closedStore opens no log.
type closedStore struct{ swarm.Store }

func (closedStore) Open(context.Context, swarm.RunID, swarm.Access) (swarm.RunLog, error) {
	return nil, swarm.Errorf(swarm.Storage, "this log has a later format")
}

// A copy of a database has the run too, and nobody drives it there.
func TestPruneByACopyOfTheStoreLeavesALiveRun(t *testing.T) {
	now := time.Now()
	store := &sharedStore{Shared: newShared(t)}
	h, err := At(t.TempDir(), func(string) swarm.Store { return store })
	must(t, err)
	log, err := store.Create(t.Context(), "live")
	must(t, err)
	must(t, log.Close())
	must(t, store.Save(t.Context(), swarm.RunSummary{ID: "live", Status: swarm.Interrupted, Started: now.Add(-time.Hour)}))
	must(t, h.WriteOutput("live", "code", []byte("output")))
	unmark, err := h.MarkLive("live", 1, 0, "")
	must(t, err)
	for _, want := range []int{0, 1} {
		pruned, err := h.Prune(PruneOptions{Now: now.Add(time.Hour)})
		if err != nil || len(pruned) != want {
			t.Errorf("pruned %v, %v, want %d", pruned, err, want)
		}
		if want == 0 {
			unmark()
		}
	}
}

// A sharedStore stands for a database: it has its logs elsewhere, and may not answer.
type sharedStore struct {
	storetest.Shared
	removed []swarm.RunID
	down    error
	after   int // answers before it is down
}

func newShared(t *testing.T) storetest.Shared {
	return storetest.Shared{Store: sqlite.NewStore(t.TempDir())}
}

func (s *sharedStore) answer() error {
	if s.after--; s.after >= 0 {
		return nil
	}
	return s.down
}

func (s *sharedStore) Removed(context.Context, []swarm.RunID) ([]swarm.RunID, error) {
	return s.removed, s.answer()
}

func (s *sharedStore) Open(ctx context.Context, run swarm.RunID, access swarm.Access) (swarm.RunLog, error) {
	if err := s.answer(); err != nil {
		return nil, err
	}
	log, err := s.Store.Open(ctx, run, access)
	return sharedLog{log, s}, err
}

func (s *sharedStore) Remove(ctx context.Context, run swarm.RunID, o swarm.RemoveOptions) (swarm.Removed, error) {
	if err := s.answer(); err != nil {
		return swarm.Removed{}, err
	}
	return s.Store.Remove(ctx, run, o)
}

type sharedLog struct {
	swarm.RunLog
	store *sharedStore
}

func (l sharedLog) Owner(ctx context.Context) (swarm.Owner, bool, error) {
	if err := l.store.answer(); err != nil {
		return swarm.Owner{}, false, err
	}
	return l.RunLog.Owner(ctx)
}

func (s *sharedStore) Runs(ctx context.Context, q swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	if err := s.answer(); err != nil {
		return func(yield func(swarm.RunEntry, error) bool) { yield(swarm.RunEntry{}, err) }
	}
	return s.Store.Runs(ctx, q)
}

// Two stores use one state folder, one after the other. Neither deletes files of the other's runs.
func TestPruneLeavesTheFilesOfAnotherStoresRuns(t *testing.T) {
	now := time.Now()
	local := newHome(t)
	store := &sharedStore{Shared: newShared(t)}
	shared, err := At(local.Dir(), func(string) swarm.Store { return store })
	must(t, err)
	ended := now.Add(-time.Hour)
	worked(t, local, swarm.RunSummary{ID: "mine", Status: swarm.Completed, Ended: now})
	log, err := store.Create(t.Context(), "ours")
	must(t, err)
	must(t, log.Close())
	for _, id := range []swarm.RunID{"ours", "unknown", "removed"} { // unknown is in another database
		must(t, shared.WriteOutput(id, "code", []byte("output")))
		must(t, os.Chtimes(shared.OutputDir(id), ended, ended))
	}
	must(t, store.Save(t.Context(), swarm.RunSummary{ID: "ours", Status: swarm.Completed, Started: ended, Ended: now}))
	files := func() (there []string) {
		for _, path := range []string{local.OutputDir("mine"), shared.OutputDir("ours"), shared.OutputDir("unknown"), shared.OutputDir("removed")} {
			if _, err := os.Stat(path); err == nil {
				there = append(there, filepath.Base(path))
			}
		}
		return there
	}
	check := func(what string, want ...string) {
		t.Helper()
		if there := files(); !slices.Equal(there, want) {
			t.Errorf("%s left %v, want %v", what, there, want)
		}
	}
	opt := PruneOptions{Now: now.Add(time.Hour), OlderThan: 90 * time.Minute}

	_, err = local.Prune(opt)
	must(t, err)
	_, err = shared.Prune(opt)
	must(t, err)
	check("pruning two stores", "mine", "ours", "unknown", "removed")

	store.removed = []swarm.RunID{"removed"}
	all := opt
	all.OlderThan = 0
	_, err = shared.Prune(opt)
	must(t, err)
	check("pruning what another machine removed", "mine", "ours", "unknown")
	_, err = shared.Prune(all)
	must(t, err)
	check("pruning a run", "mine", "unknown")

	must(t, os.Rename(local.in("runs"), local.in("runs.away"))) // a disk that is not mounted
	_, err = local.Prune(all)
	must(t, err)
	check("pruning without the folder of logs", "mine", "unknown")
	must(t, os.Mkdir(local.in("runs"), 0o700)) // the place where it is mounted
	_, err = local.Prune(all)
	must(t, err)
	check("pruning with an empty folder of logs", "mine", "unknown")
}

// The store goes away at each question of a prune. Files go only with their run, and after the first question
// without an answer there is no other.
func TestPruneWhileTheStoreGoesAway(t *testing.T) {
	now := time.Now()
	for asked := 0; ; asked++ {
		store := &sharedStore{Shared: newShared(t), removed: []swarm.RunID{"removed"}}
		h, err := At(t.TempDir(), func(string) swarm.Store { return store })
		must(t, err)
		all := []swarm.RunID{"one", "removed", "two", "unknown"}
		for _, id := range all {
			must(t, h.WriteOutput(id, "code", []byte("output")))
			if id == "removed" || id == "unknown" {
				continue
			}
			log, err := store.Create(t.Context(), id)
			must(t, err)
			must(t, log.Close())
			must(t, store.Save(t.Context(), swarm.RunSummary{ID: id, Status: swarm.Completed, Started: now, Ended: now}))
		}
		store.down, store.after = swarm.Errorf(swarm.Storage, "no answer"), asked
		_, err = h.Prune(PruneOptions{Now: now.Add(time.Hour)})
		if err != nil && store.after != -1 {
			t.Errorf("after question %d had no answer, %d others were asked", asked, -1-store.after)
		}
		there := map[swarm.RunID]bool{"unknown": true, "removed": true}
		for e, err := range store.Store.Runs(t.Context(), swarm.RunQuery{}) {
			must(t, err)
			there[e.ID] = true
		}
		for _, id := range all {
			_, gone := os.Stat(h.OutputDir(id))
			if there[id] && gone != nil && id != "removed" || !there[id] && gone == nil {
				t.Errorf("the store is away at question %d: %s is there: %v, and its files: %v", asked, id, there[id], gone == nil)
			}
		}
		if err == nil {
			if len(there) != 2 || asked < 8 {
				t.Errorf("after %d answers, %v are left", asked, there)
			}
			return
		}
	}
}

// A dry run changes nothing: it does not make the state folder.
func TestADryRunMakesNoFolder(t *testing.T) {
	now := time.Now()
	store := &sharedStore{Shared: newShared(t)}
	h, err := At(filepath.Join(t.TempDir(), "none"), func(string) swarm.Store { return store })
	must(t, err)
	log, err := store.Create(t.Context(), "old")
	must(t, err)
	must(t, log.Close())
	must(t, store.Save(t.Context(), swarm.RunSummary{ID: "old", Status: swarm.Completed, Started: now, Ended: now}))
	would, err := h.Prune(PruneOptions{Now: now.Add(time.Hour), DryRun: true})
	if err != nil || len(would) != 1 {
		t.Errorf("%+v, %v", would, err)
	}
	if _, err := os.Stat(h.Dir()); err == nil {
		t.Error("the folder was made")
	}
}

// A run that was abandoned on another machine has no files here. Its age is that of its log.
func TestTheAgeOfARunWithoutFilesIsThatOfItsLog(t *testing.T) {
	now := time.Now()
	store := &agedStore{&sharedStore{Shared: newShared(t)}, now.Add(-time.Hour)}
	h, err := At(t.TempDir(), func(string) swarm.Store { return store })
	must(t, err)
	log, err := store.Create(t.Context(), "abandoned")
	must(t, err)
	must(t, log.Close())
	must(t, store.Save(t.Context(), swarm.RunSummary{ID: "abandoned", Status: swarm.Interrupted, Started: now.Add(-2 * time.Hour)}))
	for _, test := range []struct {
		than time.Duration
		want int
	}{{2 * time.Hour, 0}, {30 * time.Minute, 1}} {
		pruned, err := h.Prune(PruneOptions{Now: now, OlderThan: test.than, DryRun: true})
		if err != nil || len(pruned) != test.want {
			t.Errorf("pruned what is older than %v: %v, %v", test.than, pruned, err)
		}
	}
}

// An agedStore knows when its runs were changed.
type agedStore struct {
	*sharedStore
	changed time.Time
}

func (s *agedStore) Runs(ctx context.Context, q swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	return func(yield func(swarm.RunEntry, error) bool) {
		for entry, err := range s.sharedStore.Runs(ctx, q) {
			if entry.Changed = s.changed; !yield(entry, err) {
				return
			}
		}
	}
}
