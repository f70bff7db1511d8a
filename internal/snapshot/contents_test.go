package snapshot

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A look sees new and changed files, whatever their time says, and nothing that has the same content.
func TestContents(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	write("swarm/swarm.yaml", "one")
	write("swarm/prompts/a.md", "one")
	write("agent.sh", "one")
	write("data/x.yaml", "one")
	if err := os.Symlink("agent.sh", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	c := NewContents(dir, []string{filepath.Join(dir, "swarm"), filepath.Join(dir, "agent.sh"), filepath.Join(dir, "link"), filepath.Join(dir, "later.sh")})
	for _, step := range []struct{ write, text, want string }{
		{"swarm/swarm.yaml", "two", "swarm/swarm.yaml"},
		{"swarm/swarm.yaml", "two", ""},
		{"swarm/prompts/b.md", "new", "swarm/prompts/b.md"},
		{"agent.sh", "six", "agent.sh"},
		{"later.sh", "new", "later.sh"},
		{"team.yaml", "new", "team.yaml"},
		{"data/x.yaml", "two", ""},
		{"main.go", "new", ""},
	} {
		before := c.Look()
		write(step.write, step.text)
		got := slices.Sorted(maps.Keys(Changed(before, c.Look())))
		for i := range got {
			got[i], _ = filepath.Rel(resolved(dir), got[i])
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("after %s: %v", step.write, got)
		}
	}
}

// A file is read again if its metadata has changed, or if it might have changed without its metadata:
// two writes within one step of the file system's clock have the same time.
func TestContentsAreReadAgain(t *testing.T) {
	path := filepath.Join(resolved(t.TempDir()), "a.sh")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := NewContents(t.TempDir(), []string{path})
	write("one")
	if c.Look(); len(c.known) != 1 {
		t.Fatalf("it knows %v", c.known)
	}
	was := c.known[path]
	for _, step := range []struct {
		name   string
		change func(*content)
		read   bool
	}{
		{"the same and settled", func(*content) {}, false},
		{"perhaps written since", func(f *content) { f.settled = false }, true},
		{"of another time", func(f *content) { f.changed = f.changed.Add(time.Nanosecond) }, true},
		{"of another size", func(f *content) { f.size++ }, true},
		{"another file", func(f *content) { f.inode++ }, true},
	} {
		known := was
		known.settled, known.hash = true, "known"
		step.change(&known)
		c.known[path] = known
		if read := c.Look()[path] == was.hash; read != step.read {
			t.Errorf("a file that is %s is read: %v", step.name, read)
		}
	}
	for try := 0; ; try++ { // a busy machine may take long between both lines
		write("two")
		if c.Look(); !c.known[path].settled {
			break
		}
		if try == 1000 {
			t.Fatal("a file that was just written is taken for settled")
		}
	}
	old := NewContents(t.TempDir(), []string{"contents.go"})
	for path := range old.Look() {
		if !old.known[path].settled {
			t.Errorf("%s is read each time", path)
		}
	}
}

// A recent look counts as the one before a turn. An old one does not, and neither does a recent one
// after the turn. A change since the recent look is never missed.
func TestLookBefore(t *testing.T) {
	path := filepath.Join(resolved(t.TempDir()), "a.sh")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := NewContents(t.TempDir(), []string{path})
	write("one")
	if len(c.LookBefore()) != 1 {
		t.Fatal("the first look sees nothing")
	}
	for _, step := range []struct {
		name   string
		looked time.Time
		want   int // files that have changed
	}{
		{"recent", time.Now().Add(time.Hour), 1},
		{"old", time.Now().Add(-recent), 0},
	} {
		write("before " + step.name)
		c.looked = step.looked
		before := c.LookBefore()
		if changed := Changed(before, c.Look()); len(changed) != step.want {
			t.Errorf("a change after a look that is %s: %v", step.name, changed)
		}
	}
}

func BenchmarkContents(b *testing.B) {
	dir := b.TempDir()
	for _, name := range strings.Fields("swarm.yaml prompts/a.md prompts/b.md prompts/c.md prompts/d.md prompts/e.md") {
		path := filepath.Join(dir, "swarm", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 2000), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	c := NewContents(dir, []string{filepath.Join(dir, "swarm")})
	for b.Loop() {
		c.Look()
	}
}
