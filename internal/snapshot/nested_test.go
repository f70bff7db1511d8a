package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A trap is a nested repository whose settings start a program whenever git runs there.
type trap struct {
	*repo
	trace string
}

func (r *repo) trap(folder string) *trap {
	r.t.Helper()
	inner := &trap{&repo{r.t, filepath.Join(r.dir, folder), r.store}, filepath.Join(filepath.Dir(r.dir), "started")}
	inner.write("f.txt", "one\n")
	inner.git("init", "-q", "-b", "main")
	inner.git("config", "user.name", "n")
	inner.git("config", "user.email", "e@x")
	inner.committed()
	return inner
}

// arm changes a file of the trap, so that a snapshot has to look into it.
func (tr *trap) arm() {
	tr.t.Helper()
	bite := "touch '" + tr.trace + "'; cat"
	tr.write(".gitattributes", "* filter=evil diff=evil\n")
	for _, name := range []string{"filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "diff.external", "core.fsmonitor", "core.pager", "core.sshCommand"} {
		tr.git("config", name, bite)
	}
	hooks := filepath.Join(filepath.Dir(tr.trace), "hooks")
	tr.git("config", "core.hooksPath", hooks)
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"} {
		path := filepath.Join(hooks, hook)
		_ = os.MkdirAll(hooks, 0o755)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+bite+"\n"), 0o755); err != nil {
			tr.t.Fatal(err)
		}
	}
	tr.write("f.txt", "two\n")
	_ = os.Remove(tr.trace)
}

// A nested repository starts no program, and its files are recorded like all others.
func TestARepositoryInsideStartsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	for what, set := range map[string]func(*repo) *trap{
		"made during the run":    func(r *repo) *trap { return r.trap("pkg") },
		"in the index as a link": func(r *repo) *trap { tr := r.trap("pkg"); r.committed(); return tr },
		"a .git that points elsewhere": func(r *repo) *trap {
			tr := r.trap("pkg")
			tr.git("init", "-q", "--separate-git-dir", filepath.Join(filepath.Dir(r.dir), "elsewhere.git"))
			r.git("add", "pkg")
			return tr
		},
		"a worktree": func(r *repo) *trap {
			tr := r.trap("first")
			tr.git("worktree", "add", "-q", "-b", "side", "../pkg")
			tr.dir = filepath.Join(r.dir, "pkg")
			r.git("add", "pkg")
			return tr
		},
		"settings that are included": func(r *repo) *trap {
			tr := r.trap("pkg")
			r.git("add", "pkg")
			tr.arm()
			config := filepath.Join(tr.dir, ".git", "config")
			if err := os.Rename(config, filepath.Join(tr.dir, ".git", "more")); err != nil {
				t.Fatal(err)
			}
			tr.write(".git/config", "[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = more\n")
			return tr
		},
		"a bare one": func(r *repo) *trap {
			tr := r.trap("pkg")
			tr.git("clone", "-q", "--bare", tr.dir, filepath.Join(r.dir, "bare.git"))
			r.git("add", "pkg")
			return tr
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRepo(t).committed()
			early := strings.Contains(what, "link")
			var tr *trap
			if early {
				tr = set(r)
			}
			before := r.record(r.folder())
			if !early {
				tr = set(r)
			}
			tr.arm()
			for range 2 { // the second time its files are known
				after := r.record(r.folder())
				c := r.compare(r.folder(), before, after, 1<<20)
				if files := strings.Join(c.Files, " "); !strings.Contains(files, "pkg/f.txt") || !strings.Contains(string(c.Text), "+two") {
					t.Errorf("seen: %s\n%s", files, c.Text)
				}
				if _, err := os.Stat(tr.trace); err == nil {
					t.Fatal("the program was started")
				}
			}
			r.diff(before, "")
			r.snapshot()
			if _, err := os.Stat(tr.trace); err == nil {
				t.Error("the program was started by what looks at the whole run")
			}
		})
	}
}

// Git gets none of the user's keys, so no program that it might start can take them.
func TestGitIsGivenNoKeys(t *testing.T) {
	r := newRepo(t).committed()
	bin, trace := t.TempDir(), filepath.Join(t.TempDir(), "env")
	shim := "#!/bin/sh\nenv >> '" + trace + "'\nPATH='" + os.Getenv("PATH") + "' exec git \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(shim), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("ANTHROPIC_API_KEY", "s3cret-canary")
	t.Setenv("SSH_AUTH_SOCK", "s3cret-canary")
	t.Setenv("GIT_ASKPASS", "s3cret-canary")
	before := r.snapshot()
	r.write("new.txt", "new\n")
	r.diff(before.Hash, r.record(r.folder()))
	env, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(env), "GIT_WORK_TREE=") {
		t.Fatalf("git was not watched: %v\n%s", err, env)
	}
	if strings.Contains(string(env), "s3cret-canary") {
		t.Error("git was given a key")
	}
}

// The user's global ignore file counts as it was at the first snapshot. A later rule hides nothing.
func TestTheUsersOwnIgnoreFile(t *testing.T) {
	for what, place := range map[string]func(r *repo) string{
		"named in the settings": func(r *repo) string {
			path := filepath.Join(filepath.Dir(r.dir), "ignore")
			r.git("config", "core.excludesFile", path)
			return path
		},
		"where git looks for it": func(r *repo) string {
			r.t.Setenv("XDG_CONFIG_HOME", filepath.Join(filepath.Dir(r.dir), "config"))
			return filepath.Join(filepath.Dir(r.dir), "config", "git", "ignore")
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRepo(t).committed()
			path := place(r)
			_ = os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte("*.swp"), 0o644); err != nil {
				t.Fatal(err)
			}
			before := r.snapshot()
			if err := os.WriteFile(path, []byte("*.swp\n*.go\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			r.write("main.go", "package main\n")
			r.write("x.swp", "noise")
			if got := r.names(before.Hash, ""); got != "A main.go" {
				t.Errorf("seen: %q", got)
			}
		})
	}
}

// Names that git reserves, and pipes in place of files, are recorded too.
func TestWhatGitCannotRecord(t *testing.T) {
	r := newRepo(t).committed()
	before := r.snapshot()
	r.write(".GIT/config", "x\n")
	if err := os.Remove(filepath.Join(r.dir, "kept.txt")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(r.dir, "kept.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := r.names(before.Hash, ""); got != "A (.GIT)/config M kept.txt" {
		t.Errorf("seen: %q", got)
	}
	if again := r.snapshot(); again.Hash != r.snapshot().Hash {
		t.Error("they look another way though nothing was changed")
	}
}

// An unreadable file counts as changed when its metadata changes.
func TestWhatCannotBeRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	r := newRepo(t).committed()
	r.write("shut.txt", "x\n")
	r.write("shut/x.txt", "x\n")
	closeUp := func(name string) {
		t.Helper()
		path := filepath.Join(r.dir, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
	}
	closeUp("shut.txt")
	closeUp("shut")
	before := r.snapshot()
	if again := r.snapshot(); again.Hash != before.Hash {
		t.Errorf("nothing was touched: %s", r.names(before.Hash, again.Hash))
	}
	r.write("new.txt", "x\n")
	r.write("new/x.txt", "x\n")
	r.write("kept.txt", "another\n")
	for _, name := range []string{"new.txt", "new", "kept.txt", "sub"} {
		closeUp(name)
	}
	if got := r.names(before.Hash, ""); got != "M kept.txt A new A new.txt A sub D sub/changed.txt" {
		t.Errorf("seen: %q", got)
	}
}
