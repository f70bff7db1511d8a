package snapshot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
)

// folder returns the repo's folder as turns use it.
func (r *repo) folder() Folder { return Folder{Dir: r.dir, Store: r.store, Alone: true} }

func (r *repo) record(f Folder) string {
	r.t.Helper()
	hash, err := f.Record(r.t.Context())
	if err != nil || hash == "" {
		r.t.Fatalf("Record: %q, %v", hash, err)
	}
	return hash
}

func (r *repo) compare(f Folder, from, to string, most int) Changes {
	r.t.Helper()
	c, err := f.Compare(r.t.Context(), from, to, most)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// alone returns a folder that is in no repository.
func alone(t *testing.T) *repo {
	r := newRepo(t)
	if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatATurnChanged(t *testing.T) {
	for what, r := range map[string]*repo{"in a repository": newRepo(t).committed(), "alone": alone(t)} {
		t.Run(what, func(t *testing.T) {
			r.t = t
			f := r.folder()
			before := r.record(f)
			if after := r.record(f); after != before {
				t.Errorf("nothing was changed, and %s became %s", before, after)
			}
			r.write("sub/changed.txt", "after\n")
			r.write("picture.bin", "\x00\x01\x02 not a text")
			after := r.record(f)
			c := r.compare(f, before, after, 1<<20)
			if want := []string{"picture.bin", "sub/changed.txt"}; !slices.Equal(c.Files, want) || c.Top != r.dir || c.Long {
				t.Errorf("files %q in %s, long: %v", c.Files, c.Top, c.Long)
			}
			for _, part := range []string{"--- a/sub/changed.txt\n+++ b/sub/changed.txt\n", "\n-before\n+after\n", "Binary files /dev/null and b/picture.bin differ\n"} {
				if !strings.Contains(string(c.Text), part) {
					t.Errorf("no %q in\n%s", part, c.Text)
				}
			}
			if strings.Contains(string(c.Text), "not a text") {
				t.Errorf("a binary file was dumped:\n%s", c.Text)
			}
			if c = r.compare(f, before, before, 1<<20); len(c.Files) != 0 || len(c.Text) != 0 {
				t.Errorf("of the same: %+v", c)
			}
			r.write("long.txt", strings.Repeat("a line of many\n", 1000))
			c = r.compare(f, after, r.record(f), 10_000)
			if !c.Long || !strings.Contains(string(c.Text), "long.txt | 1000 +") || strings.Contains(string(c.Text), "a line of many") {
				t.Errorf("of a long one: %v\n%s", c.Long, c.Text)
			}
		})
	}
}

func TestOurOwnStateIsNoChange(t *testing.T) {
	for what, r := range map[string]*repo{"in a repository": newRepo(t).committed(), "alone": alone(t)} {
		t.Run(what, func(t *testing.T) {
			r.t = t
			f := r.folder()
			f.Hidden = []string{filepath.Join(r.dir, "state [of ours]#!")}
			before := r.record(f)
			r.write("state [of ours]#!/runs/1.db", "grows")
			if after := r.record(f); after != before {
				t.Errorf("it was recorded:\n%s", r.compare(f, before, after, 1<<20).Text)
			}
		})
	}
}

// A file that we print to is not a change, even if git tracks it, or if only the resumed run prints
// to it.
func TestWhatWePrintIsNoChange(t *testing.T) {
	for what, r := range map[string]*repo{"in a repository": newRepo(t).committed(), "alone": alone(t)} {
		t.Run(what, func(t *testing.T) {
			r.t = t
			f := r.folder()
			before := r.record(f)
			r.write("out.log", "turns\n")
			out, err := os.OpenFile(filepath.Join(r.dir, "out.log"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			if f.Hidden = Paths(out); len(f.Hidden) != 1 {
				t.Fatalf("its paths are %q", f.Hidden)
			}
			if after := r.record(f); after != before {
				t.Errorf("it was recorded:\n%s", r.compare(f, before, after, 1<<20).Text)
			}
			tracked := r.folder()
			before = r.record(tracked)
			r.write("kept.log", "was there\n")
			between := r.record(tracked)
			tracked.Hidden = []string{filepath.Join(r.dir, "kept.log")}
			r.write("kept.log", "was there\nand grows\n")
			r.write("work.txt", "of an agent\n")
			c := r.compare(tracked, between, r.record(tracked), 1<<20)
			if !slices.Equal(c.Files, []string{"work.txt"}) || strings.Contains(string(c.Text), "grows") {
				t.Errorf("%q changed:\n%s", c.Files, c.Text)
			}
			if c := r.compare(tracked, before, between, 1<<20); len(c.Files) != 0 || len(c.Text) != 0 {
				t.Errorf("nothing but our own: %q\n%s", c.Files, c.Text)
			}
		})
	}
}

func TestAFolderInNoRepository(t *testing.T) {
	r := alone(t)
	if hash, err := (Folder{Dir: r.dir, Store: r.store}).Record(t.Context()); hash != "" || err != nil {
		t.Errorf("it was recorded though nobody asked for it: %q, %v", hash, err)
	}
	empty := Folder{Dir: t.TempDir(), Store: r.store, Alone: true}
	before := r.record(empty)
	if err := os.WriteFile(filepath.Join(empty.Dir, "first.txt"), []byte("first\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c := r.compare(empty, before, r.record(empty), 1<<20); !slices.Equal(c.Files, []string{"first.txt"}) {
		t.Errorf("%q", c.Files)
	}
	if _, err := os.Stat(filepath.Join(empty.Dir, ".git")); err == nil {
		t.Error("there is a repository now")
	}
}

func TestAFolderThatHoldsTooMuch(t *testing.T) {
	r := alone(t)
	big := filepath.Join(r.dir, "big")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, maxAloneBytes+1); err != nil { // it takes no room
		t.Fatal(err)
	}
	_, err := r.folder().Record(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is in no git repository and holds more than") {
		t.Errorf("%v", err)
	}
}

// A broken index is replaced, and the snapshot is still complete.
func TestABrokenIndexIsDoneWithout(t *testing.T) {
	r := newRepo(t).committed()
	f := r.folder()
	before := r.record(f)
	if err := os.Truncate(filepath.Join(r.store, string(swarm.HashOf([]byte(r.dir))[:12]), "index"), 20); err != nil {
		t.Fatal(err)
	}
	if after := r.record(f); after != before {
		t.Errorf("%s became %s", before, after)
	}
}

func TestHashesOfTheOtherKind(t *testing.T) {
	r := newRepo(t)
	_ = os.RemoveAll(filepath.Join(r.dir, ".git"))
	r.git("init", "-q", "--object-format=sha256")
	r.git("config", "user.name", "n")
	r.git("config", "user.email", "e@x")
	r.committed()
	f := r.folder()
	before := r.record(f)
	r.write("kept.txt", "another\n")
	if c := r.compare(f, before, r.record(f), 1<<20); len(before) != 64 || !strings.Contains(string(c.Text), "-the same") {
		t.Errorf("%s\n%s", before, c.Text)
	}
}

// A filter that an agent writes into the repository's settings is never started, not even between
// two snapshots.
func TestAnAgentsFilterIsNotStarted(t *testing.T) {
	r := newRepo(t).committed()
	repository, ok, err := open(t.Context(), r.dir, r.store)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	trace := filepath.Join(filepath.Dir(r.dir), "started")
	r.git("config", "filter.evil.clean", "touch '"+trace+"'; cat")
	r.git("config", "core.fsmonitor", "touch '"+trace+"'")
	r.write(".gitattributes", "* filter=evil\n")
	r.write("kept.txt", "changed\n")
	if _, err := repository.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(trace); err == nil {
		t.Error("the agent's program was started")
	}
}
