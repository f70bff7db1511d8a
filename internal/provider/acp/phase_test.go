package acp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
)

// Requests are checked in one order: the phase, then whether it can be allowed at all, then the
// list or a person. What the phase forbids is never asked, and no approval lifts it.
func TestOrderOfTheGates(t *testing.T) {
	planning, work := swarm.PlanningPhase, swarm.ImplementationPhase
	for _, c := range []struct {
		phase swarm.Phase
		do    string
		tools string // the file allows it
		says  bool   // what a person says
		ok    bool
		asked int
	}{
		{planning, "tool execute go test", "", true, false, 0},
		{planning, "tool execute go test", "execute", true, false, 0},
		{planning, "tool other Deploy", "Deploy", true, false, 0},
		{planning, "tool-at edit DIR/main.go", "edit", true, false, 0},
		{planning, "tool-at edit DIR/docs/../main.go", "edit", true, false, 0},
		{planning, "tool-at delete DIR/main.go", "", true, false, 0},
		{planning, "tool edit Change a file", "edit", true, false, 0}, // which one, it does not say
		{planning, "tool-at edit DIR/docs/plan.md", "edit", false, true, 0},
		{planning, "tool-at edit DIR/docs/plan.md", "", true, true, 1},
		{planning, "tool-at edit DIR/docs/plan.md", "", false, false, 1},
		{planning, "tool read Read a file", "read", false, true, 0},
		{planning, "tool fetch Fetch a page", "", true, true, 1},
		{planning, "tool fetch Fetch a page", "", false, false, 1},
		{planning, "tool other mcp__swarm__send_handoff", "", false, true, 0},
		{planning, "tool execute swarm_send", "", true, false, 0},
		{work, "tool execute go test", "execute", false, true, 0},
		{work, "tool execute go test", "", true, true, 1},
		{work, "tool execute go test", "", false, false, 1},
		{"", "tool-at edit DIR/main.go", "edit", false, true, 0},
	} {
		t.Run(string(c.phase)+" "+c.do, func(t *testing.T) {
			h := newTheatre(t, "good")
			r := h.request(strings.ReplaceAll(c.do, "DIR", h.dir), "ask")
			r.Phase = c.phase
			if c.tools != "" {
				r.Tools = []string{c.tools}
			}
			asked := 0
			r.Ask = func(context.Context, swarm.Approval) (bool, string, error) {
				asked++
				return c.says, "no", nil
			}
			reply, err := h.turn(r)
			if ok := string(reply.Output) == "once"; ok != c.ok || asked != c.asked {
				t.Errorf("it was answered %q; %d questions", reply.Output, asked)
			}
			if fails := !c.ok && c.asked == 0; fails != (err != nil) || fails && swarm.KindOf(err) != swarm.Denied { // a person's no does not fail it
				t.Errorf("the turn has ended with %v", err)
			}
			if c.phase == planning && !c.ok && c.asked == 0 && !strings.Contains(err.Error()+hint(err), "PLANNING") {
				t.Errorf("it does not name the phase: %v (%s)", err, hint(err))
			}
		})
	}
}

// Files are written through us below docs/ only, wherever links lead.
func TestPlanningWritesThroughUs(t *testing.T) {
	h := newTheatre(t, "good")
	for _, folder := range []string{"docs", "src"} {
		if err := os.Mkdir(filepath.Join(h.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../src", filepath.Join(h.dir, "docs", "link")); err != nil {
		t.Fatal(err)
	}
	write := func(name string) (string, error) {
		r := h.request("write " + filepath.Join(h.dir, name) + " planned")
		r.Phase = swarm.PlanningPhase
		reply, err := h.turn(r)
		return strings.TrimSpace(string(reply.Output)), err
	}
	if said, err := write("docs/deep/plan.md"); said != "written true" || err != nil {
		t.Errorf("%s, %v", said, err)
	}
	if said, err := write("main.go"); said != "written false" || swarm.KindOf(err) != swarm.Denied || !strings.Contains(err.Error(), "PLANNING") {
		t.Errorf("%s, %v", said, err)
	}
	if said, _ := write("docs/link/main.go"); said != "written false" {
		t.Error(said)
	}
	for _, name := range []string{"main.go", "src/main.go"} {
		if _, err := os.Stat(filepath.Join(h.dir, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// The real programs ask before they run a command. In PLANNING the phase refuses, and no person is
// asked.
func TestRealAgentMayRunNothingInPlanning(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, modeltest.Answer{Calls: []modeltest.Call{p.shell}}, handed)
		r := d.request("plan/1/1", hello)
		r.Phase = swarm.PlanningPhase
		r.Ask = func(context.Context, swarm.Approval) (bool, string, error) {
			t.Error("a person was asked")
			return true, "", nil
		}
		_, err := d.turn(r)
		if swarm.KindOf(err) != swarm.Denied || !strings.Contains(err.Error(), "PLANNING") {
			t.Errorf("%v: %s", err, d.said.String())
		}
		if _, err := os.Stat(filepath.Join(d.dir, "made.txt")); err == nil {
			t.Error("the command was run")
		}
	})
}

// Programs that ask before they write are confined to docs/, and no person is asked about files
// there.
func TestRealAgentWritesDocsInPlanning(t *testing.T) {
	write := map[string]string{"claude": "Write", "gemini": "write_file"}
	eachProgram(t, func(t *testing.T, p program) {
		tool := write[p.name]
		if tool == "" {
			t.Skip("it writes without asking")
		}
		for _, name := range []string{"docs/plan.md", "main.go"} {
			t.Run(name, func(t *testing.T) {
				d := newDesk(t, p)
				if err := os.Mkdir(filepath.Join(d.dir, "docs"), 0o755); err != nil {
					t.Fatal(err)
				}
				call := modeltest.Call{Name: tool, Args: fmt.Sprintf(`{"file_path":%q,"content":"abc"}`, filepath.Join(d.dir, name))}
				asked := 0
				d.server.Reply = func(modeltest.Request) modeltest.Answer {
					if asked++; asked == 1 {
						return modeltest.Answer{Calls: []modeltest.Call{call}}
					}
					return handed
				}
				r := d.request("plan/1/1", hello)
				r.Phase, r.Tools = swarm.PlanningPhase, []string{"edit"}
				_, err := d.turn(r)
				text, _ := os.ReadFile(filepath.Join(d.dir, name))
				if allowed := name != "main.go"; (err == nil) != allowed || (string(text) == "abc") != allowed || err != nil && swarm.KindOf(err) != swarm.Denied {
					t.Errorf("it holds %q, %v: %s", text, err, d.said.String())
				}
			})
		}
	})
}
