package snapshot

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// atOnce lets folders count as steady, however recent their last change.
func atOnce(t *testing.T) {
	before := steady
	steady = 0
	t.Cleanup(func() { steady = before })
}

// A small folder with an unchanged fingerprint is not recorded again, and no program is started.
func TestAFolderThatLooksAsItDid(t *testing.T) {
	atOnce(t)
	for what, r := range map[string]*repo{"in a repository": newRepo(t).committed(), "alone": alone(t)} {
		t.Run(what, func(t *testing.T) {
			r.t = t
			f := r.folder()
			f.Seen, f.Hidden = &Seen{}, []string{filepath.Join(r.dir, "state")}
			before := r.record(f)
			r.write("state/runs/1.db", "ours")
			t.Run("without git", func(t *testing.T) {
				t.Setenv("PATH", t.TempDir())
				if tree, err := f.Record(t.Context()); tree != before || err != nil {
					t.Errorf("%q, %v", tree, err)
				}
			})
			for n, change := range []func(){
				func() { r.write("new.txt", "new\n") },
				func() { _ = os.Remove(filepath.Join(r.dir, "new.txt")) },
				func() { _ = os.Chmod(filepath.Join(r.dir, "kept.txt"), 0o755) },
			} {
				change()
				after := r.record(f)
				if after == before {
					t.Errorf("change %d was not seen", n)
				}
				before = after
			}
			look := f.fingerprint()
			r.disguised("kept.txt", "THE SAME\n")
			if f.fingerprint() == look {
				t.Error("a file that was written to and given back its time looks as before")
			}
		})
	}
}

// disguised writes to a file and then restores its size and modification time.
func (r *repo) disguised(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	was, err := os.Stat(path)
	if err != nil {
		r.t.Fatal(err)
	}
	_, first := changeOf(was)
	for { // until the clock of files has moved on
		r.write(name, text)
		if err := os.Chtimes(path, was.ModTime(), was.ModTime()); err != nil {
			r.t.Fatal(err)
		}
		if now, err := os.Stat(path); err != nil {
			r.t.Fatal(err)
		} else if _, changed := changeOf(now); changed.After(first) {
			return
		}
	}
}

func TestWhatAGlanceCannotTell(t *testing.T) {
	r := newRepo(t).committed()
	atOnce(t)
	steady = time.Hour
	if r.folder().fingerprint() != "" {
		t.Error("files that were just written may be written again in the same instant")
	}
	steady = 0
	if r.folder().fingerprint() == "" {
		t.Error("nothing is wrong with this one")
	}
	r.git("init", "-q", "inner")
	if r.folder().fingerprint() != "" {
		t.Error("a repository in it is told by its commit")
	}
}
