package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A repository that an agent moves away, breaks or redirects gives an error, never an empty diff.
func TestARepositoryThatIsNotWhatItWas(t *testing.T) {
	atOnce(t)
	for what, change := range map[string]func(r *repo) error{
		"moved": func(r *repo) error { return os.Rename(filepath.Join(r.dir, ".git"), filepath.Join(r.dir, "docs", "g")) },
		"broken": func(r *repo) error {
			return os.WriteFile(filepath.Join(r.dir, ".git", "HEAD"), []byte("garbage"), 0o644)
		},
		"led elsewhere": func(r *repo) error {
			r.git("config", "core.worktree", filepath.Join(r.dir, "docs"))
			return nil
		},
		"bare": func(r *repo) error { r.git("config", "core.bare", "true"); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRepo(t)
			r.write("docs/plan.md", "x\n")
			r.committed()
			f := r.folder()
			f.Seen = &Seen{}
			r.record(f)
			if err := change(r); err != nil {
				t.Fatal(err)
			}
			if tree, err := f.Record(t.Context()); err == nil || !strings.Contains(err.Error(), "is not what it was") {
				t.Errorf("%q, %v", tree, err)
			}
		})
	}
}

// A repository that is made in the folder later is a nested one in the repository that was there.
func TestANearerRepository(t *testing.T) {
	r := newRepo(t).committed()
	f := r.folder()
	f.Dir = filepath.Join(r.dir, "sub")
	before := r.record(f)
	r.git("init", "-q", "sub")
	r.write("sub/new.txt", "x\n")
	r.write("new.txt", "x\n")
	if got := strings.Join(r.compare(f, before, r.record(f), 1<<20).Files, " "); got != "new.txt sub/new.txt" {
		t.Errorf("seen: %q", got)
	}
}

// The store holds copies of the user's files, so no other user may read it.
func TestTheStoreIsTheUsersAlone(t *testing.T) {
	r := newRepo(t).committed()
	f := r.folder()
	f.Firm = true
	r.snapshot()
	r.write(".env", "KEY=value\n")
	r.write("pkg/x.txt", "x\n")
	r.git("init", "-q", "pkg")
	r.record(f)
	r.snapshot()
	files := 0
	err := filepath.WalkDir(r.store, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("%d files: %v", files, err)
	}
}
