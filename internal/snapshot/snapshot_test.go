package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarm"
)

// A repo is a real repository in its own folder, with a store for its snapshots.
type repo struct {
	t     *testing.T
	dir   string
	store string
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git program here")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "none"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &repo{t, filepath.Join(base, "user's work"), filepath.Join(base, "store")}
	r.write("kept.txt", "the same\n")
	r.write("sub/changed.txt", "before\n")
	r.git("init", "-q", "-b", "main")
	r.git("config", "user.name", "n")
	r.git("config", "user.email", "e@x")
	return r
}

func (r *repo) committed() *repo {
	r.git("add", ".")
	r.git("commit", "-q", "-m", "first")
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) snapshot() swarm.Snapshot {
	r.t.Helper()
	t, ok, err := Snapshot(context.Background(), r.dir, r.store)
	if err != nil || !ok {
		r.t.Fatalf("Snapshot: ok %v, error %v", ok, err)
	}
	return t
}

func (r *repo) diff(from, to string, args ...string) string {
	r.t.Helper()
	var b bytes.Buffer
	if err := Diff(context.Background(), r.dir, r.store, from, to, &b, args...); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

// names returns the changed files, one per line.
func (r *repo) names(from, to string) string {
	return strings.Join(strings.Fields(r.diff(from, to, "--name-status", "--no-renames")), " ")
}

func TestWhatChanged(t *testing.T) {
	r := newRepo(t).committed()
	r.write(".gitignore", "*.log\n")
	r.write("untracked.txt", "was here before\n")
	before := r.snapshot()
	if before.Commit != r.git("rev-parse", "HEAD") {
		t.Errorf("the commit is %q", before.Commit)
	}

	r.write("sub/changed.txt", "after\n")
	r.write("new/deep/file.txt", "new\n")
	r.write("noise.log", "ignored\n")
	if err := os.Remove(filepath.Join(r.dir, "untracked.txt")); err != nil {
		t.Fatal(err)
	}
	const want = "A new/deep/file.txt M sub/changed.txt D untracked.txt"
	if got := r.names(before.Hash, ""); got != want {
		t.Errorf("up to now: %s", got)
	}
	after := r.snapshot()
	r.write("later.txt", "not part of it\n")
	if got := r.names(before.Hash, after.Hash); got != want {
		t.Errorf("between the two: %s", got)
	}
	text := r.diff(before.Hash, after.Hash)
	for _, line := range []string{"-before", "+after", "+new", "-was here before"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if got := r.diff(before.Hash, after.Hash, "--name-only", "--", "new"); got != "new/deep/file.txt\n" {
		t.Errorf("only new: %q", got)
	}
}

// Staging and committing during the run make no difference. Only the files count.
func TestCommitsDuringTheRun(t *testing.T) {
	r := newRepo(t).committed()
	before := r.snapshot()
	r.write("sub/changed.txt", "after\n")
	r.committed()
	r.write("staged.txt", "staged\n")
	r.git("add", ".")
	after := r.snapshot()
	if got := r.names(before.Hash, after.Hash); got != "A staged.txt M sub/changed.txt" {
		t.Error(got)
	}
	if before.Commit == after.Commit || after.Commit == "" {
		t.Errorf("the commits are %q and %q", before.Commit, after.Commit)
	}
}

func TestAFileChangedWithoutANewSizeOrTime(t *testing.T) {
	r := newRepo(t)
	r.git("config", "core.trustCtime", "false") // as on file systems where only size and time can tell
	r.git("config", "core.checkStat", "minimal")
	path := filepath.Join(r.dir, "kept.txt")
	instant := time.Now().Add(-time.Hour) // in which all of this happens
	stamp := func(path string) {
		t.Helper()
		if err := os.Chtimes(path, instant, instant); err != nil {
			t.Fatal(err)
		}
	}
	stamp(path)
	r.committed()
	before := r.snapshot()
	stamp(filepath.Join(r.store, string(swarm.HashOf([]byte(r.dir))[:12]), "index"))
	r.write("kept.txt", "THE SAME\n")
	stamp(path)
	if got := r.names(before.Hash, ""); got != "M kept.txt" {
		t.Errorf("seen: %q", got)
	}
}

func TestNothingCommittedYet(t *testing.T) {
	r := newRepo(t)
	before := r.snapshot()
	if before.Commit != "" {
		t.Errorf("the commit is %q", before.Commit)
	}
	r.write("new.txt", "new\n")
	if got := r.names(before.Hash, ""); got != "A new.txt" {
		t.Error(got)
	}
}

func TestStartedInASubfolder(t *testing.T) {
	r := newRepo(t).committed()
	whole := r.snapshot()
	tree, ok, err := Snapshot(context.Background(), filepath.Join(r.dir, "sub"), r.store)
	if err != nil || !ok || tree != whole {
		t.Errorf("%v, %v, %v; the whole is %v", tree, ok, err, whole)
	}
	r.write("kept.txt", "changed\n")
	var b bytes.Buffer
	if err := Diff(context.Background(), filepath.Join(r.dir, "sub"), r.store, tree.Hash, "", &b, "--name-only"); err != nil || b.String() != "kept.txt\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestWorktree(t *testing.T) {
	r := newRepo(t).committed()
	other := filepath.Join(filepath.Dir(r.dir), "other")
	r.git("worktree", "add", "-q", "-b", "side", other)
	side := &repo{t, other, r.store + "-side"}
	before := side.snapshot()
	side.write("kept.txt", "changed on the side\n")
	if got := side.names(before.Hash, ""); got != "M kept.txt" {
		t.Error(got)
	}
}

func TestSubmodule(t *testing.T) {
	r := newRepo(t).committed()
	lib := &repo{t, filepath.Join(filepath.Dir(r.dir), "lib"), ""}
	lib.write("lib.txt", "one\n")
	lib.git("init", "-q")
	lib.git("config", "user.name", "n")
	lib.git("config", "user.email", "e@x")
	lib.committed()
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib.dir, "lib")
	r.committed()
	before := r.snapshot()
	inner := &repo{t, filepath.Join(r.dir, "lib"), r.store + "-lib"}
	inner.git("config", "user.name", "n")
	inner.git("config", "user.email", "e@x")
	beforeLib := inner.snapshot()
	inner.write("lib.txt", "two\n")
	if got := inner.names(beforeLib.Hash, ""); got != "M lib.txt" {
		t.Errorf("in the submodule: %q", got)
	}
	inner.committed()
	if got := r.names(before.Hash, ""); got != "M lib/lib.txt" {
		t.Errorf("in the repository: %q", got)
	}
}

func TestARepositoryWithoutCommitInside(t *testing.T) {
	r := newRepo(t).committed()
	before := r.snapshot()
	inner := &repo{t, filepath.Join(r.dir, "it's", "inner"), ""}
	inner.write("x.txt", "x\n")
	inner.git("init", "-q")
	r.write("beside.txt", "y\n")
	if got := r.names(before.Hash, ""); got != "A beside.txt A it's/inner/x.txt" {
		t.Error(got)
	}
}

func TestWithoutRepository(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", "") // no program is needed to find out
	store := filepath.Join(dir, "store")
	if tree, ok, err := Snapshot(context.Background(), dir, store); ok || err != nil {
		t.Errorf("%v, %v, %v", tree, ok, err)
	}
	if _, err := os.Stat(store); err == nil {
		t.Error("a store was made for nothing")
	}
	err := Diff(context.Background(), dir, store, strings.Repeat("a", 40), "", &bytes.Buffer{})
	if swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("Diff: %v", err)
	}
}

func TestWithoutGit(t *testing.T) {
	r := newRepo(t).committed()
	t.Setenv("PATH", t.TempDir())
	_, ok, err := Snapshot(context.Background(), r.dir, r.store)
	if ok || swarm.KindOf(err) != swarm.NotFound || !strings.Contains(err.Error(), "no git program") {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestBareAndBrokenRepositories(t *testing.T) {
	r := newRepo(t).committed()
	for what, dir := range map[string]string{
		"bare":                filepath.Join(filepath.Dir(r.dir), "bare.git"),
		"inside of .git":      filepath.Join(r.dir, ".git"),
		"an empty .git":       filepath.Join(filepath.Dir(r.dir), "empty"),
		"a .git to nowhere":   filepath.Join(filepath.Dir(r.dir), "nowhere"),
		"a bare one as .git/": filepath.Join(filepath.Dir(r.dir), "odd"),
	} {
		t.Run(what, func(t *testing.T) {
			switch what {
			case "bare":
				r.git("clone", "-q", "--bare", r.dir, dir)
			case "an empty .git":
				_ = os.MkdirAll(filepath.Join(dir, ".git"), 0o755)
			case "a .git to nowhere":
				_ = os.MkdirAll(dir, 0o755)
				_ = os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nowhere\n"), 0o644)
			case "a bare one as .git/":
				_ = os.MkdirAll(dir, 0o755)
				r.git("clone", "-q", "--bare", r.dir, filepath.Join(dir, ".git"))
			}
			if _, ok, _ := Snapshot(context.Background(), dir, r.store); ok {
				t.Error("a tree was recorded")
			}
		})
	}
}

// With any configuration, the user's repository stays the same byte by byte, and none of its
// programs is started.
func TestTheRepositoryIsOnlyRead(t *testing.T) {
	r := newRepo(t).committed()
	trace := filepath.Join(filepath.Dir(r.dir), "started")
	started := "touch '" + trace + "'; cat"
	for _, hook := range []string{"pre-commit", "post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"} {
		path := filepath.Join(r.dir, ".git", "hooks", hook)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+started+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.write(".gitattributes", "*.big filter=own\n*.txt diff=own\n")
	r.git("update-index", "--split-index")
	r.git("config", "core.fsmonitor", ".git/hooks/fsmonitor-watchman")
	r.git("config", "core.splitIndex", "true")
	r.git("config", "core.untrackedCache", "true")
	r.git("config", "filter.own.clean", started)
	r.git("config", "filter.own.process", started)
	r.git("config", "filter.own.required", "true")
	r.git("config", "diff.own.command", started)
	r.git("config", "diff.own.textconv", started)
	r.git("config", "diff.external", started)
	r.git("config", "core.pager", started)
	t.Setenv("GIT_DIR", "/nowhere") // as if a hook had started us
	t.Setenv("GIT_INDEX_FILE", filepath.Join(r.dir, ".git", "index"))
	t.Setenv("GIT_EXTERNAL_DIFF", started)
	r.write("file.big", "big\n")
	r.write("kept.txt", "changed\n")
	_ = os.Remove(trace)

	untouched := contents(t, r.dir)
	before := r.snapshot()
	r.write("file.big", "bigger\n")
	changed := contents(t, r.dir)
	text := r.diff(before.Hash, "")
	after := r.snapshot()
	if got := r.names(before.Hash, after.Hash); got != "M file.big" {
		t.Errorf("seen: %q", got)
	}
	if !strings.Contains(text, "+bigger") {
		t.Errorf("the difference is\n%s", text)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("something of the user's was started")
	}
	delete(untouched, "file.big")
	delete(changed, "file.big")
	now := contents(t, r.dir)
	delete(now, "file.big")
	for name, sum := range now {
		if untouched[name] != sum {
			t.Errorf("%s was written", name)
		}
	}
	if len(now) != len(untouched) {
		t.Errorf("%d files have become %d", len(untouched), len(now))
	}
}

// contents returns the hashes of all files in a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[rel] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFoldersWithOddNames(t *testing.T) {
	r := newRepo(t).committed()
	odd := filepath.Join(filepath.Dir(r.dir), `a:b "c"`)
	if err := os.Rename(r.dir, odd); err != nil {
		t.Fatal(err)
	}
	r.dir = odd
	r.write("-rf", "a name like an option\n")
	before := r.snapshot()
	r.write("ümläut \t.txt", "x\n")
	if got := r.diff(before.Hash, "", "--name-only", "-z"); got != "ümläut \t.txt\x00" {
		t.Errorf("%q", got)
	}
	r.write("kept.txt", "changed\n") // its old content is only in the user's objects
	if got := r.diff(before.Hash, "", "--", "kept.txt"); !strings.Contains(got, "-the same") {
		t.Error(got)
	}
}

func TestDiffTakesOnlyTrees(t *testing.T) {
	r := newRepo(t).committed()
	tree := r.snapshot()
	for _, bad := range []string{"HEAD", "--output=/tmp/x", "", "abc"} {
		err := Diff(context.Background(), r.dir, r.store, bad, tree.Hash, &bytes.Buffer{})
		if swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
	err := Diff(context.Background(), r.dir, r.store, strings.Repeat("0", 39)+"1", tree.Hash, &bytes.Buffer{})
	if err == nil {
		t.Error("a tree that is not there has no difference")
	}
}

func TestCancelled(t *testing.T) {
	r := newRepo(t).committed()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, ok, err := Snapshot(ctx, r.dir, r.store); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// forest returns a repository with many files, all committed.
func forest(b *testing.B, files int) (dir string, run func(args ...string)) {
	dir = b.TempDir()
	run = func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	for i := range files {
		path := filepath.Join(dir, fmt.Sprint(i%50), fmt.Sprint(i, ".txt"))
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		_ = os.WriteFile(path, []byte(strings.Repeat(fmt.Sprint(i, "\n"), 100)), 0o644)
	}
	run("init", "-q")
	run("add", ".")
	run("commit", "-q", "-m", "first")
	return dir, run
}

// The lower bound is one `git status` of the same repository.
func BenchmarkSnapshot(b *testing.B) {
	dir, run := forest(b, 2000)
	b.Run("floor=status", func(b *testing.B) {
		for b.Loop() {
			run("status", "--porcelain")
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		store := b.TempDir()
		for b.Loop() {
			if _, ok, err := Snapshot(context.Background(), dir, store); !ok {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTurn measures what snapshots add to a turn in a repository of 5,000 files: one before
// and one after it. The lower bound is two calls of `git status`.
func BenchmarkTurn(b *testing.B) {
	dir, run := forest(b, 5000)
	f := Folder{Dir: dir, Store: b.TempDir()}
	changed := 0
	turn := func(b *testing.B, change bool) {
		before, err := f.Record(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if change {
			changed++
			_ = os.WriteFile(filepath.Join(dir, "0", "0.txt"), fmt.Append(nil, changed, "\n"), 0o644)
		}
		after, err := f.Record(b.Context())
		if err == nil && after != before {
			_, err = f.Compare(b.Context(), before, after, 1<<20)
		}
		if err != nil || (after != before) != change {
			b.Fatal(before, after, err)
		}
	}
	turn(b, true) // the first one makes the store
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			run("status", "--porcelain")
			run("status", "--porcelain")
		}
	})
	for name, change := range map[string]bool{"unchanged": false, "changed": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				turn(b, change)
			}
		})
	}
}

// An empty .git is not a repository.
func TestEmptyGitFolderIsNoRepository(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := Snapshot(t.Context(), dir, t.TempDir()); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}
