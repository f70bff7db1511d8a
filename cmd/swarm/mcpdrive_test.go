package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm/internal/npmtest"
)

// A driver is an MCP client of `swarm mcp --drive`, in a project and a state folder of its own.
type driver struct {
	*testing.T
	dir, home string
	cmd       *exec.Cmd
	session   *mcp.ClientSession
	errors    strings.Builder
	mu        sync.Mutex
	progress  []string // guarded by mu: the client's own goroutine hears it
}

const drivenFile = `providers:
  sh: {kind: command, command: [sh, -c, "cat; echo; echo $SWARM_AGENT works"]}
  slow: {kind: command, command: [sh, -c, "echo waiting; while [ ! -e go ]; do sleep 0.02; done; cat"]}
  script: {kind: script, script: team.yaml}
provider: sh
agents:
  boss: {provider: script}
  hand: {provider: script}
  snail: {provider: slow}
edges: ["boss <-> hand"]
tasks:
  plan: {prompt-string: "Plan it: {{STDIN}}"}
  build: {prompt-string: "Build {{output:plan}}", depends_on: [plan]}
  slow: {agent: snail, prompt-string: "slowly"}
  fails: {prompt-string: "x", expect: {matches: "never said"}, retries: 0}
pipelines:
  main: {tasks: [plan, build]}
  long: {tasks: [slow]}
  bad: {tasks: [fails]}
`

const drivenTeam = `- {agent: boss, say: asked, call: [{tool: send_handoff, args: {to: hand, message: do it}}]}
- {agent: hand, say: did, call: [{tool: send_handoff, args: {to: boss, message: done}}]}
- {agent: boss, say: reported, call: [{tool: report_done, args: {response: all is done}}]}
`

func newDriver(t *testing.T, args ...string) *driver {
	t.Helper()
	d := &driver{T: t, dir: t.TempDir(), home: filepath.Join(t.TempDir(), "state")}
	d.write("swarm/swarm.yaml", drivenFile)
	d.write("swarm/team.yaml", drivenTeam)
	d.connect(args...)
	return d
}

func (d *driver) write(name, text string) {
	d.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

func (d *driver) env(more ...string) []string {
	return append(append(os.Environ(), "SWARM_HOME="+d.home, "HOME="+d.dir, "GORACE=atexit_sleep_ms=0"), more...)
}

// connect starts the server, in the place of an earlier one.
func (d *driver) connect(args ...string) {
	d.Helper()
	d.cmd = exec.CommandContext(d.Context(), "swarm", append([]string{"mcp", "--drive"}, args...)...)
	d.cmd.Dir, d.cmd.Env, d.cmd.Stderr = d.dir, d.env(), &d.errors
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.progress = append(d.progress, r.Params.Message)
		},
	})
	session, err := client.Connect(d.Context(), &mcp.CommandTransport{Command: d.cmd}, nil)
	if err != nil {
		d.Fatalf("%v: %s", err, d.errors.String())
	}
	d.session = session
	d.Cleanup(d.disconnect)
}

func (d *driver) disconnect() { _ = d.session.Close() }

// call calls a tool, and returns its answer.
func (d *driver) call(tool string, args map[string]any) (answer map[string]any, failed bool) {
	d.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("p")
	r, err := d.session.CallTool(d.Context(), params)
	if err != nil {
		d.Fatalf("%s: %v: %s", tool, err, d.errors.String())
	}
	if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &answer); err != nil {
		d.Fatal(err)
	}
	return answer, r.IsError
}

func (d *driver) must(tool string, args map[string]any) map[string]any {
	d.Helper()
	answer, failed := d.call(tool, args)
	if failed {
		d.Fatalf("%s: %v", tool, answer)
	}
	return answer
}

// refused expects an error that contains a text, and has a hint.
func (d *driver) refused(tool string, args map[string]any, want string) {
	d.Helper()
	answer, failed := d.call(tool, args)
	if text, _ := answer["error"].(string); !failed || !strings.Contains(text, want) || answer["hint"] == nil {
		d.Errorf("%s: %v, want %s", tool, answer, want)
	}
}

// end waits for the end of a run, by as many calls as it takes.
func (d *driver) end(run string) map[string]any {
	d.Helper()
	after := 0.0
	for {
		w := d.must("wait_run", map[string]any{"run": run, "after": after, "timeout": 5})
		if w["exit"] != nil {
			return w
		}
		after = w["seq"].(float64)
	}
}

// TestDrive: an MCP client starts runs of every kind with the real program, waits, and reads them.
func TestDrive(t *testing.T) {
	d := newDriver(t, "--key", "claude")
	if about := d.session.InitializeResult().Instructions; !strings.Contains(about, "Call project first") {
		t.Error(about)
	}
	p := d.must("project", nil)
	if got, _ := json.Marshal([]any{p["pipelines"], p["agents"], p["edges"]}); string(got) != `[["main","long","bad"],["boss","hand","snail"],["boss \u003c-\u003e hand"]]` {
		t.Errorf("%s", got)
	}
	run := d.must("run_pipeline", map[string]any{"stdin": "a bridge"})["run"].(string)
	if w := d.end(run); w["status"] != "completed" || w["exit"] != 0.0 || w["done"] != 2.0 {
		t.Error(w)
	}
	if r := d.must("read_run", map[string]any{"run": run, "task": "build"}); !strings.Contains(r["output"].(string), "Plan it: a bridge") {
		t.Error(r)
	}
	if r := d.must("read_run", map[string]any{"run": run, "task": "build", "max": 7}); r["output"] != "Build -" && len(r["output"].(string)) != 7 || r["offset"] != 7.0 {
		t.Error(r)
	}
	d.refused("read_run", map[string]any{"run": run, "task": "bild"}, `no task "bild"`)
	d.refused("run_team", map[string]any{"goal": "Do it well.", "done_command": "test -d ."}, "this client may not give a command")
	d.disconnect()
	d.connect("--key", "claude", "--may-approve")
	checked := d.must("run_team", map[string]any{"goal": "Do it well.", "done_command": "test -d ."})["run"].(string)
	if w := d.end(checked); w["status"] != "completed" || fmt.Sprint(w["goal"].(map[string]any)["state"]) != "passed" {
		t.Error(w)
	}
	d.disconnect()
	d.connect("--key", "claude")
	team := d.must("run_team", map[string]any{"goal": "Do it well.", "done": []string{"it is good"}})["run"].(string)
	if w := d.end(team); w["status"] != "completed" {
		t.Error(w)
	}
	if r := d.must("read_run", map[string]any{"run": team}); r["report"] != "all is done" || fmt.Sprint(r["goal"].(map[string]any)["unchecked"]) != "[it is good]" {
		t.Error(r)
	}
	if out, err := d.swarm("mail", "--run", team); err != nil || strings.Count(out, "@user (MCP client claude)") != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if m := d.must("read_messages", map[string]any{"run": team, "agent": "@hand"})["messages"].([]any); len(m) != 2 || m[0].(map[string]any)["message"] != "do it" {
		t.Error(m)
	}
	line := d.must("run_line", map[string]any{"line": "@hand Say it"})["run"].(string)
	if w := d.end(line); w["status"] != "completed" && w["status"] != "failed" {
		t.Error(w)
	}
	d.refused("run_line", map[string]any{"line": "/status"}, "is no line for an agent")
	d.refused("run_line", map[string]any{"line": "@nobody Say it"}, "nobody")
	bad := d.must("run_pipeline", map[string]any{"pipeline": "bad"})["run"].(string)
	if w := d.end(bad); w["status"] != "failed" || w["exit"] != 1.0 {
		t.Error(w)
	}
	if w := d.must("why", map[string]any{"run": bad, "name": "fails"}); !strings.Contains(fmt.Sprint(w), "never said") {
		t.Error(w)
	}
	d.refused("run_pipeline", map[string]any{"pipeline": "mian"}, "mian")
	runs := d.must("list_runs", nil)["runs"].([]any)
	if len(runs) != 5 || runs[0].(map[string]any)["mine"] != true {
		t.Error(runs)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.progress) == 0 || !slices.ContainsFunc(d.progress, func(s string) bool { return strings.Contains(s, "plan") }) {
		t.Errorf("the progress was %q", d.progress)
	}
	if out, err := d.swarm("ls", "--json"); err != nil || strings.Count(out, `"key":"claude"`) != 5 {
		t.Errorf("%v: %s", err, out)
	}
}

// swarm runs a command of a person in the same project.
func (d *driver) swarm(args ...string) (string, error) {
	cmd := exec.CommandContext(d.Context(), "swarm", args...)
	cmd.Dir, cmd.Env = d.dir, d.env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A client cancels its own runs, and a run that loses its client can be resumed. It steers no other.
func TestDriveSteers(t *testing.T) {
	d := newDriver(t, "--key", "claude")
	run := d.must("run_pipeline", map[string]any{"pipeline": "long"})["run"].(string)
	if w := d.must("wait_run", map[string]any{"run": run, "timeout": 0}); w["status"] != "running" || !strings.Contains(w["next"].(string), "wait_run again") {
		t.Error(w)
	}
	d.must("send", map[string]any{"run": run, "to": "snail", "text": "Take your time."})
	for _, c := range []struct{ command, want string }{
		{"show", ", begun by the MCP client claude\n"},
		{"show", " user (MCP client claude) "},
		{"mail", " @user (MCP client claude) "},
		{"logs", " pipeline long started by the MCP client claude\n"},
		{"logs", " @user (MCP client claude) → @snail: Take your time."},
	} {
		args := []string{c.command, run}
		if c.command == "mail" {
			args = []string{c.command, "--run", run}
		}
		if out, err := d.swarm(args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.command, err, c.want, out)
		}
	}
	d.disconnect()
	d.connect("--key", "claude")
	if w := d.must("wait_run", map[string]any{"run": run}); w["status"] != "interrupted" || !strings.Contains(w["next"].(string), "resume_run") {
		t.Error(w)
	}
	d.must("resume_run", map[string]any{"run": run})
	d.disconnect()
	d.connect("--key", "codex")
	for _, tool := range []string{"resume_run", "cancel_run"} {
		d.refused(tool, map[string]any{"run": run}, "was not begun with the key codex")
	}
	d.refused("send", map[string]any{"run": run, "to": "snail", "text": "faster"}, "was not begun with the key codex")
	d.must("read_run", map[string]any{"run": run})
	d.disconnect()
	d.connect("--key", "claude")
	d.must("resume_run", map[string]any{"run": run})
	d.must("cancel_run", map[string]any{"run": run})
	if w := d.end(run); w["status"] != "cancelled" {
		t.Error(w)
	}
	d.refused("cancel_run", map[string]any{"run": run}, "has ended")
	if out, err := d.swarm("show", run); err != nil || !strings.Contains(out, "the MCP client claude (mcp)") {
		t.Errorf("%v: %s", err, out)
	}
}

// The budget holds over all runs of a key, also in another process, and while several run.
func TestDriveBudget(t *testing.T) {
	d := newDriver(t, "--key", "claude", "--budget", "calls=3")
	first := d.must("run_pipeline", nil)["run"].(string)
	if w := d.end(first); w["status"] != "completed" {
		t.Error(w)
	}
	long := d.must("run_pipeline", map[string]any{"pipeline": "long"})["run"].(string)
	d.refused("run_pipeline", nil, "is taken by runs that go on ("+long+")")
	d.write("go", "")
	if w := d.end(long); w["status"] != "completed" {
		t.Error(w)
	}
	d.refused("run_pipeline", nil, "the budget of the key claude is spent: calls 3")
	d.disconnect()
	d.connect("--key", "claude", "--budget", "calls=4")
	last := d.must("run_pipeline", nil)["run"].(string)
	if w := d.end(last); w["exit"] != 3.0 || w["done"] != 1.0 {
		t.Errorf("a run with one call left: %v", w)
	}
	d.disconnect()
	d.connect("--key", "claude", "--budget", "calls=9")
	d.write("go", "")
	small := d.must("run_pipeline", map[string]any{"budget": map[string]any{"calls": 1}})["run"].(string)
	d.must("run_pipeline", map[string]any{"pipeline": "long"})
	if w := d.end(small); w["exit"] != 3.0 {
		t.Error(w)
	}
}

// Inside a turn the server is refused, also when the agent hides the signs of its turn.
func TestDriveIsRefusedInsideATurn(t *testing.T) {
	for _, hide := range []string{"", "env -i PATH=\"$PATH\" SWARM_HOME=\"$SWARM_HOME\" HOME=\"$HOME\" "} {
		d := newDriver(t)
		d.write("swarm/swarm.yaml", "providers:\n  sh: {kind: command, command: [sh, -c, '"+hide+"swarm mcp --drive </dev/null 2>&1; echo code $?']}\nprovider: sh\ntasks: {try: {prompt-string: x}}\n")
		run := d.must("run_pipeline", nil)["run"].(string)
		d.end(run)
		if r := d.must("read_run", map[string]any{"run": run}); !strings.Contains(r["output"].(string), "swarm mcp --drive is refused inside an agent's turn") {
			t.Errorf("%q: %v", hide, r)
		}
	}
}

// TestRealInspectorDrives: the official client lists and calls the tools.
func TestRealInspectorDrives(t *testing.T) {
	program := npmtest.Path(t, "@modelcontextprotocol/inspector@0.15.0", "mcp-inspector")
	d := newDriver(t)
	d.disconnect()
	for method, want := range map[string]string{"tools/list": `"name": "wait_run"`, "tools/call": `\"pipelines\":[\"main\"`} {
		args := []string{"--cli", "swarm", "mcp", "--drive", "--method", method}
		if method == "tools/call" {
			args = append(args, "--tool-name", "project")
		}
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env, cmd.Dir = append(npmtest.Env(t), d.env()...), d.dir
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", method, err, out)
		}
	}
}

// A key that is missing may be missing only here: the client decides which variables the server gets.
func TestDriveNamesAKeyThatTheClientKeeps(t *testing.T) {
	d := newDriver(t)
	d.write("swarm/swarm.yaml", "providers: {m: {kind: openai, base_url: \"http://127.0.0.1:1/v1\", models: {medium: m}, env: {OPENAI_API_KEY: $MYKEY}}}\nprovider: m\ntasks: {a: {prompt-string: hi}}\n")
	answer, failed := d.call("run_pipeline", nil)
	if hint, _ := answer["hint"].(string); !failed || !strings.Contains(fmt.Sprint(answer["error"]), "MYKEY is not set") || !strings.HasPrefix(hint, "the MCP client did not pass MYKEY on to swarm") {
		t.Errorf("%v", answer)
	}
}

// What a run had used when its server was killed counts for the budget of the key.
func TestDriveBudgetAfterAKill(t *testing.T) {
	d := newDriver(t, "--key", "k", "--budget", "calls=1")
	d.write("swarm/swarm.yaml", "providers: {sh: {kind: command, command: [sh, -c, \"touch begun; while [ ! -e go ]; do sleep 0.02; done\"]}}\nprovider: sh\ntasks: {a: {prompt-string: hi}}\n")
	t.Cleanup(func() { d.write("go", "") })
	run := d.must("run_pipeline", nil)["run"].(string)
	for d.Context().Err() == nil {
		if _, err := os.Stat(filepath.Join(d.dir, "begun")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond) // until the next look: a shell says that it has begun by a file
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.disconnect()
	d.connect("--key", "k", "--budget", "calls=1")
	d.refused("run_pipeline", nil, "the budget of the key k is spent: calls 1")
	// A client with a spent budget goes on with nothing, but it can end what it began.
	d.refused("resume_run", map[string]any{"run": run}, "the budget of the key k is spent: calls 1")
	d.must("cancel_run", map[string]any{"run": run})
	if w := d.end(run); w["status"] != "cancelled" {
		t.Error(w)
	}
}

// A run that only waits for a provider's limit says so, and in how long a client comes back.
func TestDriveNamesALimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	t.Setenv("OPENAI_API_KEY", "sk-x")
	d := newDriver(t)
	d.write("swarm/swarm.yaml", "providers: {m: {kind: openai, base_url: \""+server.URL+"/v1\", models: {medium: m}}}\nprovider: m\ntasks: {a: {prompt-string: hi}, b: {prompt-string: hi, depends_on: [a]}}\n")
	run := d.must("run_pipeline", nil)["run"].(string)
	w := d.must("wait_run", map[string]any{"run": run, "timeout": 60})
	if reason := fmt.Sprint(w["reason"]); w["status"] != "running" || !strings.HasPrefix(reason, "the run waits for m's limit until ") {
		t.Errorf("%v", w)
	}
	if next := fmt.Sprint(w["next"]); !strings.HasPrefix(next, "nothing happens for ") || !strings.Contains(next, "m") || !strings.Contains(next, "call wait_run with after = seq only after that time, or cancel_run") {
		t.Errorf("%v", next)
	}
	again := d.must("wait_run", map[string]any{"run": run, "after": w["seq"], "timeout": 0})
	if again["reason"] != w["reason"] {
		t.Errorf("%v, after %v", again, w)
	}
	d.must("cancel_run", map[string]any{"run": run})
	if w := d.end(run); w["status"] != "cancelled" {
		t.Error(w)
	}
}

// A client is given hints that it can follow: tools, or what to ask the person for.
func TestDriveHints(t *testing.T) {
	d := newDriver(t)
	hint := func(tool string, args map[string]any, want string) {
		t.Helper()
		answer, failed := d.call(tool, args)
		if got, _ := answer["hint"].(string); !failed || got != want {
			t.Errorf("%s %v: %v, want %q", tool, args, answer, want)
		}
	}
	const lists = "list_runs lists the runs of this folder, the only ones that you can name; @last is the newest"
	hint("read_run", map[string]any{"run": "@last"}, lists)
	run := d.must("run_pipeline", nil)["run"].(string)
	d.end(run)
	for _, ref := range []string{"-g", "", "20990101-000000-aaaaaaa", "../x"} {
		for _, tool := range []string{"read_run", "cancel_run", "wait_run"} {
			hint(tool, map[string]any{"run": ref}, lists)
		}
	}
	hint("cancel_run", map[string]any{"run": run}, "read_run reads it; to start another one: run_pipeline, run_team, run_line or solve")
	mine := d.dir
	d.dir = t.TempDir()
	d.connect("--key", "other")
	hint("read_run", map[string]any{"run": run}, lists) // it was started in another folder
	answer, _ := d.call("run_pipeline", nil)
	if got, _ := answer["hint"].(string); !strings.HasPrefix(got, "ask the person: ") {
		t.Errorf("a folder without a file: %v", answer)
	}
	d.dir = mine
	d.connect("--key", "other")
	hint("cancel_run", map[string]any{"run": run}, "a person can steer it; list_runs with mine = true lists yours")
}

// A client whose key may approve answers what an agent of its own run asks for, and is named. Any
// other client is told to ask the person.
func TestDriveAnswersApprovals(t *testing.T) {
	d := newDriver(t, "--key", "claude")
	d.write("swarm/swarm.yaml", "providers: {sh: {kind: command, command: [sh, -c, test -e ok]}}\nprovider: sh\ntasks: {code: {prompt-string: x, on_failure: escalate}}\n")
	run := d.must("run_pipeline", nil)["run"].(string)
	asked := func() map[string]any {
		t.Helper()
		w := d.must("wait_run", map[string]any{"run": run, "timeout": 60})
		for after := w["seq"]; w["approvals"] == nil && w["exit"] == nil; after = w["seq"] {
			w = d.must("wait_run", map[string]any{"run": run, "after": after, "timeout": 60})
		}
		return w
	}
	w := asked()
	if next := fmt.Sprint(w["next"]); !strings.HasPrefix(next, "tell the person to answer") || !strings.Contains(fmt.Sprint(w["approvals"]), "code/1/1/retry") {
		t.Fatal(w)
	}
	yes := map[string]any{"run": run, "id": "code/1/1/retry", "ok": true}
	d.refused("answer_approval", yes, "only a person answers what agents ask for: the key claude may not")
	d.disconnect()
	d.connect("--key", "codex", "--may-approve")
	d.refused("answer_approval", yes, "was not begun with the key codex")
	d.disconnect()
	d.connect("--key", "claude", "--may-approve")
	d.must("resume_run", map[string]any{"run": run})
	if next := fmt.Sprint(asked()["next"]); !strings.HasPrefix(next, "answer_approval, then wait_run") {
		t.Error(next)
	}
	d.refused("answer_approval", map[string]any{"run": run, "id": "code/9/9/retry", "ok": true}, `there is no request "code/9/9/retry"`)
	d.write("ok", "")
	d.must("answer_approval", yes)
	if w := d.end(run); w["status"] != "completed" {
		t.Error(w)
	}
	if out, err := d.swarm("logs", run); err != nil || !strings.Contains(out, "code/1/1/retry was approved by the MCP client claude (mcp)") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(d.dir, "ok")); err != nil {
		t.Fatal(err)
	}
	run = d.must("run_pipeline", nil)["run"].(string)
	asked()
	d.must("answer_approval", map[string]any{"run": run, "id": "code/1/1/retry", "ok": false, "reason": "leave it"})
	if w := d.end(run); w["status"] != "failed" {
		t.Error(w)
	}
	if out, err := d.swarm("logs", run); err != nil || !strings.Contains(out, "code/1/1/retry was denied by the MCP client claude (mcp): leave it") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A client has a swarm answer a query, and reads the answer.
func TestDriveSolves(t *testing.T) {
	d := newDriver(t, "--key", "claude")
	d.write("swarm/swarm.yaml", "provider: fake\nproviders: {fake: {kind: script, script: say.yaml}}\n")
	d.write("swarm/say.yaml", `- {agent: supervisor, iteration: 1, say: '{"subtasks": [{"id": "us", "description": "The US market"}, {"id": "jp", "description": "Japan"}]}'}
- {agent: supervisor, iteration: 2, say: "The US leads [us/1]."}
- {task: us, say: '{"action": "done", "response": "NVIDIA leads."}'}
- {task: jp, say: '{"action": "done", "response": "Edge AI."}'}
`)
	run := d.must("solve", map[string]any{"query": "Compare two markets", "agents": 2, "strategy": "team", "budget": map[string]any{"calls": 20}})["run"].(string)
	if w := d.end(run); w["status"] != "completed" || w["done"] != 3.0 {
		t.Error(w)
	}
	if r := d.must("read_run", map[string]any{"run": run}); r["kind"] != "swarm" || r["output"] != "The US leads [us/1]." {
		t.Error(r)
	}
	d.refused("solve", map[string]any{"query": ""}, "the query is empty")
	d.refused("solve", map[string]any{"query": "x", "strategy": "herd"}, "herd")
	d.refused("solve", map[string]any{"query": "Compare two markets", "budget": map[string]any{"calls": 1}}, "the smallest swarm may need 3")
}
