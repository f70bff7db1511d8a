package desk

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publishedTraversals lists ways out of a folder as they are published for testing (OWASP, DotDotPwn):
// each spelling of "../", in several depths, in front of each target. Some are harmless names on this
// system. So a test does not ask whether a path is refused, but whether something was read or written.
func publishedTraversals(targets []string) (all []string) {
	ups := []string{
		"../", "./../", ".././", "..//", "...//", "....//", "..../", ".../", "..;/", "..%00/", "..\x00/", "..\x01/", ".. /", "..\t/",
		`..\`, `..\/`, `..\\`, `....\\`, "%2e%2e/", "%2e%2e%2f", "..%2f", "%2e./", "..%5c", "%2e%2e%5c", "%252e%252e%252f", "..%252f",
		"%c0%ae%c0%ae/", "..%c0%af", "..%c1%9c", "%uff0e%uff0e%u2215", "..%u2215", "\uff0e\uff0e/", "..\u2215", "..\u2044", "\u2025/",
		"\u002e\u002e\uff0f", "0x2e0x2e/", "..0x2f", "/../", "//../", `\..\`, "/..;/", "../\\", "..//\\", "..\xc0\xaf", "\xc0\xae\xc0\xae/",
		"..\u200b/", "\u200b../", "..\r\n/",
	}
	for _, target := range targets {
		all = append(all, target, "/"+target, "//"+target, "file://"+target, "file:"+target, "~/"+target, "$HOME/"+target, "./"+target)
		for _, up := range ups {
			for depth := 1; depth <= 6; depth++ {
				way := strings.Repeat(up, depth) + strings.TrimPrefix(target, "/")
				all = append(all, way, "outbox/"+way, "inbox/"+way, "outbox/good/"+way, "inbox/a/"+way, way+"\x00.md")
			}
		}
	}
	return append(all, traversals...)
}

// snapshot lists everything in a folder with its content, but what is below the given names.
func snapshot(t *testing.T, dir string, without ...string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if slices.Contains(without, rel) {
			return filepath.SkipDir
		}
		text := ""
		if entry.Type().IsRegular() {
			b, _ := os.ReadFile(path)
			text = string(b)
		}
		all = append(all, rel+" "+entry.Type().String()+" "+text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTraversals gives every published way out to everything that takes a path of others. No byte from
// outside of the two desks may come in, and nothing outside may change.
func TestTraversals(t *testing.T) {
	const secret = "the secret outside"
	parent := t.TempDir()
	outside := []string{"x", "etc/passwd", "from.md", "deep/a/b/c/d/x"}
	for _, name := range outside {
		os.MkdirAll(filepath.Dir(filepath.Join(parent, name)), 0o755)
		os.WriteFile(filepath.Join(parent, name), []byte(secret), 0o644)
	}
	create := func(name string) *Desk {
		d, _, err := Create(filepath.Join(parent, "deep/a/b", name), Setup{Instructions: whole})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	from, to := create("from"), create("to")
	put(t, from, "outbox/good/a", "good")
	put(t, from, SummaryFile, "s")
	messages := openMessages(t, filepath.Join(to.Path(), "workspace/messages"))
	targets := []string{"x", "etc/passwd", filepath.Join(parent, "x"), filepath.Join(parent, "deep/a/b/c/d/x"), "/etc/passwd", "etc/hostname"}
	all := publishedTraversals(targets)
	every := times(211, 53, 1) // no divisor of the list's pattern
	before := snapshot(t, parent, "deep/a/b/from", "deep/a/b/to")
	link := filepath.Join(from.Path(), "outbox/link")
	for i, way := range all {
		if i%every != 0 {
			continue
		}
		dep := Dependency{Agent: "from", Outputs: []string{way}, CopyTo: "inbox/got"}
		_, _ = to.Receive(dep, from)
		_, _ = to.Receive(Dependency{Agent: "from", Outputs: []string{"outbox/good/a"}, CopyTo: way}, from)
		_, _ = to.Receive(Dependency{Agent: way, Outputs: []string{"outbox/good"}, CopyTo: "inbox"}, from)
		_, _ = to.put(Input{Name: way, Source: "outbox/good/a", From: from})
		_, _ = to.put(Input{Name: "got", Source: way, From: from})
		if deps, err := ReadDependencies(renderJSON(Dependencies{DependsOn: []Dependency{dep}, WaitFor: []string{way}})); err == nil {
			t.Errorf("wait_for takes %q: %+v", way, deps)
		}
		if name, ok := ReadMessageName(way); ok {
			t.Errorf("%q is the name of a message: %v", way, name)
		}
		_, _ = messages.Send(Message{From: way, To: "b", Timestamp: clock, Type: "update"})
		_, _ = messages.Send(Message{From: "a", To: way, Timestamp: clock, Type: "update"})
		_ = messages.refuse(way, os.ErrInvalid)
		_ = messages.Take(MessageName{From: way, To: way, Number: 1})
		if strings.Contains(way, "/") || way == ".." { // any other name is good
			_, _ = to.Archive(way)
		}

		// The same as a link, and as a name that a worker gave a file.
		os.Remove(link)
		if os.Symlink(way, link) == nil {
			for _, name := range []string{"outbox/link", "outbox/link/x", "outbox/link/passwd"} {
				_, _ = to.Receive(Dependency{Agent: "from", Outputs: []string{name}, CopyTo: "inbox/got"}, from)
				if _, content, err := from.readOnce(t.Context(), name); err == nil {
					t.Errorf("the link to %q gives %q", way, content)
				}
			}
		}
		os.Remove(link)
		name := filepath.Join(from.Path(), Outbox, strings.ReplaceAll(way, "/", "\u2215"))
		if os.WriteFile(name, []byte("mine"), 0o644) == nil {
			c, err := from.Collect(t.Context(), CollectOptions{Status: Status{State: Completed}})
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(to.Path(), "workspace", fmt.Sprint(i))
			if err := from.Export(c, out); err != nil {
				t.Errorf("%q: %v", way, err)
			}
			os.RemoveAll(out)
			os.Remove(name)
		}
	}
	if after := snapshot(t, parent, "deep/a/b/from", "deep/a/b/to"); !slices.Equal(before, after) {
		t.Errorf("outside was\n%v\nand is\n%v", before, after)
	}
	for _, d := range []*Desk{from, to} {
		for _, line := range snapshot(t, d.Path()) {
			if strings.Contains(line, secret) || strings.Contains(line, "root:") {
				t.Errorf("from outside came in: %.100s", line)
			}
		}
	}
	t.Logf("%d ways out", len(all)/every)
}
