package coding

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
)

// The real programs' model tries three things in PLANNING: a file in docs/, a file elsewhere, a
// command.
var tries = map[string][]modeltest.Call{
	"claude-code": {{Name: "Write", Args: `{"file_path":"DIR/docs/plan.md","content":"abc"}`}, {Name: "Write", Args: `{"file_path":"DIR/main.go","content":"abc"}`},
		{Name: "Write", Args: `{"file_path":"DIR/docs/../main.go","content":"abc"}`}, {Name: "Bash", Args: `{"command":"touch DIR/made","description":"x"}`}},
	"codex": {{Name: "exec_command", Args: patch("docs/plan.md")}, {Name: "exec_command", Args: patch("main.go")}, {Name: "exec_command", Args: `{"cmd":"touch DIR/made"}`}},
	"opencode": {{Name: "write", Args: `{"filePath":"DIR/docs/plan.md","content":"abc"}`}, {Name: "write", Args: `{"filePath":"DIR/main.go","content":"abc"}`},
		{Name: "bash", Args: `{"command":"touch DIR/made","description":"x"}`}},
}

func patch(file string) string {
	return fmt.Sprintf(`{"cmd":%q}`, "apply_patch <<'E'\n*** Begin Patch\n*** Add File: "+file+"\n+abc\n*** End Patch\nE")
}

// Each program's own permissions or sandbox confine it to docs/, whatever the agent's `tools` and
// the user's settings allow.
func TestRealPlanning(t *testing.T) {
	for _, r := range reals {
		t.Run(r.kind, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, r)
			d.request.Phase, d.request.Tools = swarm.PlanningPhase, []string{"Bash", "Edit", "Write", "bash", "edit"}
			if r.kind == "codex" {
				d.request.Tools = nil
				if err := os.WriteFile(filepath.Join(d.home, ".codex", "config.toml"), []byte("sandbox_mode = \"danger-full-access\"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(d.request.Dir, "docs"), 0o755); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32 // by the server's goroutine
			d.model.Reply = func(modeltest.Request) modeltest.Answer {
				n := int(asked.Add(1))
				if n > len(tries[r.kind]) {
					return modeltest.Answer{Text: "That is all."}
				}
				try := tries[r.kind][n-1]
				try.Args = strings.ReplaceAll(try.Args, "DIR", d.request.Dir)
				return modeltest.Answer{Calls: []modeltest.Call{try}}
			}
			_, err := d.turn(t.Context())
			if n := int(asked.Load()); n <= len(tries[r.kind]) {
				t.Fatalf("it gave up after %d tries: %v", n, err)
			}
			if r.kind != "codex" { // whose sandbox only says no
				if e := wantKind(t, err, swarm.Denied); !strings.Contains(e.Hint, "PLANNING") {
					t.Errorf("%v (%s)", e, e.Hint)
				}
			} else if err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(d.request.Dir, "docs", "plan.md")); strings.TrimSpace(string(text)) != "abc" {
				t.Errorf("docs/plan.md holds %q, %v", text, err)
			}
			for _, name := range []string{"main.go", "made"} {
				if _, err := os.Stat(filepath.Join(d.request.Dir, name)); err == nil {
					t.Errorf("%s was made", name)
				}
			}
		})
	}
}

// Versions that cannot be held to docs/ only read in PLANNING, whatever the user's settings allow.
func TestRealOldPlanning(t *testing.T) {
	for _, version := range []string{npmtest.OldestCodexServer, npmtest.OldCodex} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			old := reals[1]
			old.pack = version
			write := modeltest.Call{Name: "shell", Args: `{"command":["sh","-c","echo abc > main.go; echo abc > docs/plan.md"]}`}
			if version == npmtest.OldestCodexServer {
				write = modeltest.Call{Name: "exec_command", Args: `{"cmd":"echo abc > main.go; echo abc > docs/plan.md"}`}
			}
			d := newDesk(t, old, modeltest.Answer{Calls: []modeltest.Call{write}}, modeltest.Answer{Text: "The plan."})
			d.request.Phase = swarm.PlanningPhase
			if err := os.WriteFile(filepath.Join(d.home, ".codex", "config.toml"), []byte("sandbox_mode = \"danger-full-access\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(d.request.Dir, "docs"), 0o755); err != nil {
				t.Fatal(err)
			}
			reply, err := d.turn(t.Context())
			if err != nil || string(reply.Output) != "The plan." {
				t.Errorf("%q, %v; it said %s", reply.Output, err, d.said(swarm.DeltaStderr))
			}
			if n := len(d.model.Requests()); n != 2 {
				t.Errorf("the model was asked %d times", n)
			}
			for _, name := range []string{"main.go", "docs/plan.md"} {
				if _, err := os.Stat(filepath.Join(d.request.Dir, name)); err == nil {
					t.Errorf("%s was made", name)
				}
			}
		})
	}
}

// noVariable is an environment without variables.
func noVariable(string) string { return "" }

// An agent with a root of its own writes to that root's docs/. A name with special characters is
// not a pattern.
func TestPlanningNamesTheFolder(t *testing.T) {
	r := request(t, "x")
	r.Phase = swarm.PlanningPhase
	if args := (&claude{}).launch(r, "", noVariable).args; !slices.Contains(args, "--allowedTools=Edit(./docs/**)") || !slices.Contains(args, "--permission-mode=default") {
		t.Errorf("Claude Code: %q", args)
	}
	r.Root = "/elsewhere/a[1]*"
	if args := (&claude{}).launch(r, "", noVariable).args; !slices.Contains(args, `--allowedTools=Edit(//elsewhere/a\[1]\*/docs/**)`) {
		t.Errorf("Claude Code: %q", args)
	}
	r.Root = "/elsewhere"
	if args := (&codex{}).launch(r, "", noVariable).args; !slices.Contains(args, `permissions.planning.filesystem={":root"="read","/elsewhere/docs"="write"}`) || slices.Contains(args, `sandbox_mode="workspace-write"`) {
		t.Errorf("Codex: %q", args)
	}
	r.Root = "/elsewhere/a[1]"
	if args := (&codex{confined: true}).launch(r, "", noVariable).args; !slices.Contains(args, `sandbox_mode="danger-full-access"`) || slices.Contains(args, `default_permissions="planning"`) {
		t.Errorf("in our own sandbox: %q", args)
	}
	if args := (&codex{}).launch(r, "", noVariable).args; !slices.Contains(args, `sandbox_mode="read-only"`) {
		t.Errorf("Codex: %q", args)
	}
}
