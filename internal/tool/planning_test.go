package tool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
)

var everything = []string{"file_read", "file_write", "file_list", "command(touch)"}

// In PLANNING files are written only below docs/, and no command runs.
func TestPlanning(t *testing.T) {
	d := sit(t)
	d.file("main.go", "package main\n")
	d.open(Options{Allow: everything, Phase: swarm.PlanningPhase})
	if names := d.offered(); !slices.Equal(names, []string{"file_read", "file_write", "file_list"}) {
		t.Errorf("offered are %v", names)
	}
	for _, path := range []string{"docs/plan.md", "./docs/deep/plan.md", filepath.Join(d.root, "docs", "whole.md")} {
		d.must("file_write", "path", path, "content", "planned")
	}
	if text, err := os.ReadFile(filepath.Join(d.root, "docs", "deep", "plan.md")); err != nil || string(text) != "planned" {
		t.Errorf("%q, %v", text, err)
	}
	d.must("file_read", "path", "main.go")
	for _, path := range []string{"main.go", "new.go", "docs", "docs/../main.go", "src/docs/x.md", filepath.Join(d.root, "main.go")} {
		if said := d.refused(swarm.Denied, "file_write", "path", path, "content", "x"); !strings.Contains(said, "PLANNING") {
			t.Errorf("%s: %q", path, said)
		}
	}
	if said := d.refused(swarm.Denied, "command", "argv", []string{"touch", "made"}); !strings.Contains(said, "the phase PLANNING forbids command") {
		t.Error(said)
	}
	d.untouched("main.go", "made", "new.go")
}

// untouched checks that main.go is unchanged and that the other files do not exist.
func (d *desk) untouched(first string, others ...string) {
	d.Helper()
	if text, err := os.ReadFile(filepath.Join(d.root, first)); err != nil || string(text) != "package main\n" {
		d.Errorf("%s: %q, %v", first, text, err)
	}
	for _, name := range others {
		if _, err := os.Lstat(filepath.Join(d.root, name)); err == nil {
			d.Errorf("%s was made", name)
		}
	}
}

// No link leads out of docs/, not even docs itself.
func TestPlanningAndLinks(t *testing.T) {
	d := sit(t)
	d.file("src/main.go", "package main\n")
	d.file("docs/plan.md", "x")
	for link, to := range map[string]string{"docs/file.md": "../src/main.go", "docs/folder": "../src", "docs/out": d.outside} {
		if err := os.Symlink(to, filepath.Join(d.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	d.open(Options{Allow: everything, Phase: swarm.PlanningPhase})
	for _, path := range []string{"docs/file.md", "docs/folder/main.go", "docs/folder/new.go", "docs/out/secret.txt"} {
		d.refused(swarm.Denied, "file_write", "path", path, "content", "x")
	}
	d.untouched("src/main.go", "src/new.go")

	if err := os.Rename(filepath.Join(d.root, "docs"), filepath.Join(d.root, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("src", filepath.Join(d.root, "docs")); err != nil {
		t.Fatal(err)
	}
	d.refused(swarm.Denied, "file_write", "path", "docs/main.go", "content", "x")
	d.untouched("src/main.go")
}

// In PLANNING only tools of servers that declare themselves read-only remain.
func TestPlanningAndServers(t *testing.T) {
	d := withServer(t, "reader", "s")
	d.open(Options{Allow: []string{"s"}, Servers: d.box.o.Servers, Phase: swarm.PlanningPhase})
	if names := d.offered(); !slices.Equal(names, []string{"s__look"}) {
		t.Errorf("offered are %v", names)
	}
	if got := d.must("s__look", "text", "x"); got != "seen" {
		t.Error(got)
	}
	if said := d.refused(swarm.Denied, "s__echo", "text", "hi"); !strings.Contains(said, "PLANNING") {
		t.Error(said)
	}
}

// The phase is checked before the capability.
func TestPhaseGoesBeforeCapability(t *testing.T) {
	for _, c := range []struct {
		phase swarm.Phase
		may   bool
		says  string
	}{
		{swarm.PlanningPhase, true, "the phase PLANNING forbids"},
		{swarm.PlanningPhase, false, "the phase PLANNING forbids"},
		{swarm.ImplementationPhase, false, `"coder" may not use a tool`},
		{"", false, `"coder" may not use a tool`},
		{swarm.ImplementationPhase, true, ""},
		{"", true, ""},
	} {
		d := sit(t)
		o := Options{Allow: []string{"file_read"}, Phase: c.phase}
		if c.may {
			o.Allow = everything
		}
		d.open(o)
		for tool, args := range map[string][]any{"command": {"argv", []string{"touch", "x"}}, "file_write": {"path", "x", "content", "y"}} {
			if c.says == "" {
				d.must(tool, args...)
			} else if said := d.refused(swarm.Denied, tool, args...); !strings.Contains(said, c.says) {
				t.Errorf("%s in %q, allowed: %v: %q", tool, c.phase, c.may, said)
			}
		}
	}
}
