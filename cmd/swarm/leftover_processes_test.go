//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"swarm"
)

// newStubbornPlace makes a place whose agents resist being stopped.
func newStubbornPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, dir: t.TempDir(), env: []string{"ANTHROPIC_API_KEY=nobodys-key"}}
	p.home = filepath.Join(p.dir, "home")
	p.check(os.CopyFS(p.dir, os.DirFS(filepath.Join("testdata", "stubborn"))))
	p.runs(0, "trust") // its program is not the vendor's, and gets the key
	t.Cleanup(func() {
		for pid := range p.inside() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return p
}

// inside lists the living processes whose working folder is in the place, whatever their
// environment.
func (p *place) inside() map[int]string {
	found := map[int]string{}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if dir, err := os.Readlink(link); err != nil || dir != p.dir {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		found[pid] = strings.ReplaceAll(string(name), "\x00", " ")
	}
	return found
}

// When `swarm up` has ended, by a cancel or by a timeout, no agent process is left, even if the
// agents resist.
func TestCancelledAndTimedOutRunsLeaveNobody(t *testing.T) {
	t.Parallel()
	runs, atOnce := times(4, 10, 200), times(4, 10, 10)
	for done := 0; done < runs && !t.Failed(); done += atOnce {
		var all []*driving
		for i := range atOnce {
			p, args := newStubbornPlace(t), []string{"up"}
			if i%2 == 1 {
				args = append(args, "--set", "tasks.hang.timeout=500ms")
			}
			all = append(all, p.drives(args...))
		}
		for i, d := range all {
			if i%2 == 0 {
				d.until(swarm.TurnTool)
				d.runs(0, "cancel", "@last")
			}
		}
		for i, d := range all {
			if code := d.ends(); code != 1 {
				t.Errorf("run %d exited with %d: %s", i, code, d.stderr.String())
			}
			if found := d.inside(); len(found) > 0 {
				t.Errorf("run %d has left %v", i, found)
			}
		}
	}
}

// A script that fails leaves the run that it has detached to the harness, which ends it with its
// agents.
func TestDetachedRunsOfScriptsAreEnded(t *testing.T) {
	p := newStubbornPlace(t)
	p.runs(0, "up", "-d")
	p.soon("an agent works", func() bool { return len(p.inside()) > 0 })
	endDriven(p.dir)
	p.soon("all have left", func() bool { return len(p.inside()) == 0 })
}

// A killed `swarm` leaves orphaned processes. The next command ends them.
func TestKilledRunsLeaveNobodyBehindTheNextCommand(t *testing.T) {
	t.Parallel()
	for range times(1, 2, 20) {
		p := newStubbornPlace(t)
		d := p.drives("up")
		d.until(swarm.TurnTool)
		d.kill()
		if found := p.inside(); len(found) < 6 {
			t.Errorf("two agents with two children each were to stay, and there are %v", found)
		}
		if status := p.list()[0].Status; status != swarm.Interrupted {
			t.Errorf("the run is %s", status)
		}
		if found := p.inside(); len(found) > 0 {
			t.Errorf("after the next command there are still %v", found)
		}
	}
}
