package coding

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
	"swarm/internal/provider"
)

// The tests in this file start the real programs, as npm installs them, against a model on this
// machine.

const (
	modelKey  = "sk-canary-model-0123456789"
	doorToken = "canary-door-0123456789"
)

// A real is a vendor's released program, and how it is told where its model is.
type real struct {
	kind, pack, program string
	key                 string
	point               func(url string) (args []string, env map[string]string)
}

var reals = []real{
	{"claude-code", "@anthropic-ai/claude-code@2.1.325", "claude", "ANTHROPIC_API_KEY", func(url string) ([]string, map[string]string) {
		return nil, map[string]string{"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
			"CLAUDE_CODE_MAX_RETRIES": "0"}
	}},
	{"codex", "@openai/codex@0.166.0", "codex", "OPENAI_API_KEY", func(url string) ([]string, map[string]string) {
		var args []string
		for _, set := range []string{`model_provider="local"`, `model_providers.local.name="local"`, `model_providers.local.base_url="` + url + `/v1"`,
			`model_providers.local.wire_api="responses"`, `model_providers.local.env_key="OPENAI_API_KEY"`, `model_providers.local.request_max_retries=0`,
			`model_providers.local.stream_max_retries=0`, `model="gpt-5.4"`} {
			args = append(args, "-c", set)
		}
		return args, nil
	}},
	{"opencode", "opencode-ai@1.18.33", "opencode", "OPENCODE_API_KEY", func(url string) ([]string, map[string]string) {
		return nil, map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_CONFIG_CONTENT": `{"share": "disabled", "model": "local/m", "permission": "ask",
			"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "` + url + `/v1", "apiKey": "{env:OPENCODE_API_KEY}"},
				"models": {"m": {"tool_call": true, "reasoning": true, "limit": {"context": 100000, "output": 8000}, "cost": {"input": 1, "output": 10, "cache_read": 0.1}}}}}}`}
	}},
}

// A desk is where a real program works: a home, a folder, a model, and our tools.
type desk struct {
	*testing.T
	real
	*agent
	recorder
	model   *modeltest.Server
	request provider.Request
	home    string
	calls   chan string
	beside  string // stands beside the answers of our tools, as urgent mail does
}

func newDesk(t *testing.T, r real, script ...modeltest.Answer) *desk {
	t.Helper()
	path := npmtest.Path(t, r.pack, r.program)
	d := &desk{T: t, real: r, model: modeltest.Start(script...), calls: make(chan string, 10)}
	t.Cleanup(d.model.Close)
	args, env := r.point(d.model.URL)
	home := t.TempDir()
	d.home = home
	// Where bubblewrap is installed, Codex's sandbox needs helpers that Codex puts into its home, but
	// only if that is outside of TMPDIR.
	temp := filepath.Join(home, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + temp, r.key + "=" + modelKey}
	for k, v := range env {
		environ = append(environ, k+"="+v)
	}
	if r.kind == "codex" {
		if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a, err := open(swarm.ProviderSpec{Name: r.kind, Kind: r.kind, Command: append([]string{path}, args...)}, provider.Options{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	d.agent = a
	d.request = request(t, "Say hello.")
	d.request.Model = ""
	d.request.Door = swarm.ToolEndpoint{URL: d.serveTools(), Token: doorToken}
	t.Cleanup(func() { _ = a.Close() }) // before the servers, which wait for who is connected
	return d
}

type handoff struct {
	To      string `json:"to"`
	Message string `json:"message"`
}

// serveTools serves a tool as our own server does.
func (d *desk) serveTools() string {
	tools := mcp.NewServer(&mcp.Implementation{Name: "swarm", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "send_handoff", Description: "Hands work to another agent."}, func(_ context.Context, _ *mcp.CallToolRequest, h handoff) (*mcp.CallToolResult, any, error) {
		d.calls <- h.To + ": " + h.Message
		answer := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{"id":"e1","seq":1}`}}}
		if d.beside != "" {
			answer.Content = append(answer.Content, &mcp.TextContent{Text: d.beside})
		}
		return answer, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" || r.Header.Get("Authorization") != "Bearer "+doorToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	d.Cleanup(served.Close)
	return served.URL
}

func (d *desk) turn(ctx context.Context) (provider.Reply, error) {
	d.deltas = nil
	reply, err := d.agent.Turn(ctx, d.request, d.live)
	d.wantNoSecret(reply, err)
	return reply, err
}

// eachReal runs a test with each program that is installed.
func eachReal(t *testing.T, script []modeltest.Answer, test func(d *desk)) {
	for _, r := range reals {
		t.Run(r.kind, func(t *testing.T) {
			t.Parallel()
			test(newDesk(t, r, script...))
		})
	}
}

func TestRealText(t *testing.T) {
	eachReal(t, []modeltest.Answer{{Text: "Hello, planner.", Thinking: "A greeting.", Signature: "s", Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}}, func(d *desk) {
		d.request.Prompt = strings.Repeat("Say hello. ", 20_000) // more than an argument can hold
		reply, err := d.turn(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		if string(reply.Output) != "Hello, planner." || reply.Bytes != 15 || reply.Session == "" {
			d.Errorf("the reply is %q (%d bytes) in the session %q", reply.Output, reply.Bytes, reply.Session)
		}
		u := reply.Usage
		if u.InputTokens != 1200 || u.OutputTokens != 30 || u.CachedTokens != 1000 || (u.USD > 0) != (d.kind != "codex") {
			d.Errorf("it has cost %+v", u)
		}
		if got := d.said(swarm.DeltaText); got != "Hello, planner." {
			d.Errorf("%q was shown", got)
		}
		if got := d.said(swarm.DeltaThinking); got != "A greeting." {
			d.Errorf("%q was thought", got)
		}
		if s := d.of(swarm.DeltaSession); len(s) != 1 || s[0].Session != reply.Session {
			d.Errorf("the session was told as %+v", s)
		}
		if asked := d.model.Requests(); len(asked) != 1 || strings.TrimSpace(asked[0].Prompt) != strings.TrimSpace(d.request.Prompt) {
			d.Errorf("the model was asked %d times", len(asked))
		}
	})
}

func TestRealTool(t *testing.T) {
	eachReal(t, []modeltest.Answer{{Text: "I hand it over.", Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to":"coder","message":"the plan"}`}}},
		{Text: "It is handed over."}}, func(d *desk) {
		reply, err := d.turn(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		if string(reply.Output) != "It is handed over." {
			d.Errorf("the output is %q, want the last message alone", reply.Output)
		}
		if got := <-d.calls; got != "coder: the plan" {
			d.Errorf("the tool was called with %q", got)
		}
		calls, done := d.of(swarm.DeltaTool), d.of(swarm.DeltaToolDone)
		if len(calls) != 1 || !strings.HasSuffix(calls[0].Tool.Name, "swarm__send_handoff") && calls[0].Tool.Name != "swarm_send_handoff" || !strings.Contains(string(calls[0].Tool.Input), "the plan") {
			d.Errorf("the call was told as %+v", calls)
		}
		if len(done) != 1 || done[0].Tool.ID != calls[0].Tool.ID || !strings.Contains(done[0].Tool.Output, `"seq":1`) || done[0].Tool.Failed {
			d.Errorf("its answer was told as %+v", done)
		}
	})
}

// A turn begins with our tools, also on a machine so busy that they are slow to be listed.
func TestRealSlowTools(t *testing.T) {
	eachReal(t, []modeltest.Answer{{Text: "Hello."}}, func(d *desk) {
		tools, err := url.Parse(d.request.Door.URL)
		if err != nil {
			d.Fatal(err)
		}
		var once sync.Once
		proxy := httputil.NewSingleHostReverseProxy(tools)
		slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { time.Sleep(5 * time.Second) }) // longer than any program waits for tools that it can do without
			proxy.ServeHTTP(w, r)
		}))
		d.Cleanup(func() {
			_ = d.agent.Close() // it may have a stream open
			slow.Close()
		})
		d.request.Door.URL = slow.URL
		if _, err := d.turn(d.Context()); err != nil {
			d.Fatal(err)
		}
		has := func(name string) bool { return strings.Contains(name, "send_handoff") }
		for _, asked := range d.model.Requests() {
			if slices.ContainsFunc(asked.Tools, has) {
				return
			}
		}
		d.Errorf("its model never had our tool: %q", d.model.Requests()[0].Tools)
	})
}

// TestRealWork: an agent may change files in its folder, and nothing elsewhere.
func TestRealWork(t *testing.T) {
	t.Run("claude-code", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, reals[0])
		file := filepath.Join(d.request.Dir, "a.txt")
		asked := 0
		d.model.Reply = func(modeltest.Request) modeltest.Answer {
			asked++
			return []modeltest.Answer{{Calls: []modeltest.Call{{Name: "Write", Args: `{"file_path":"` + file + `","content":"abc"}`}}}, {Text: "It is written."},
				{Calls: []modeltest.Call{{Name: "Bash", Args: `{"command":"rm -rf /etc/no-such-thing","description":"clean up"}`}}}, {Text: "I could not."}}[asked-1]
		}
		reply, err := d.turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if files := d.of(swarm.DeltaFile); len(files) != 1 || files[0].File != file {
			t.Errorf("the change was told as %+v", files)
		}
		if text, err := os.ReadFile(file); string(text) != "abc" {
			t.Errorf("the file holds %q, %v", text, err)
		}
		d.request.Session, d.request.Fresh = reply.Session, "Clean up."
		_, err = d.turn(t.Context())
		if e := wantKind(t, err, swarm.Denied); !strings.Contains(e.Msg, "Bash") || !strings.Contains(e.Hint, `agents: {coder: {tools: ["Bash(`) {
			t.Errorf("it is said as %q with the hint %q", e.Msg, e.Hint)
		}
	})
	t.Run("codex", func(t *testing.T) {
		t.Parallel()
		patch := "apply_patch <<'E'\n*** Begin Patch\n*** Add File: a.txt\n+abc\n*** End Patch\nE"
		d := newDesk(t, reals[1], modeltest.Answer{Calls: []modeltest.Call{{Name: "exec_command", Args: fmt.Sprintf(`{"cmd":%q}`, patch)}}}, modeltest.Answer{Text: "It is written."})
		if _, err := d.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if files := d.of(swarm.DeltaFile); len(files) != 1 || filepath.Base(files[0].File) != "a.txt" {
			t.Errorf("the change was told as %+v; the tools are %q; %+v", files, d.model.Requests()[0].Tools, d.of(swarm.DeltaToolDone))
		}
	})
}

// Claude Code asks a person before it uses a tool that is not allowed. A refused tool is told to its
// model, with the person's reason, and the turn goes on. Our own tools are never asked about.
func TestRealClaudeAsks(t *testing.T) {
	t.Parallel()
	command := func(file string) modeltest.Call {
		return modeltest.Call{Name: "Bash", Args: `{"command":"sh -c 'touch ` + file + `'","description":"make a file"}`}
	}
	d := newDesk(t, reals[0],
		modeltest.Answer{Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to":"coder","message":"the plan"}`}}},
		modeltest.Answer{Calls: []modeltest.Call{command("one"), command("two")}},
		modeltest.Answer{Text: "I made one of them."},
		modeltest.Answer{Calls: []modeltest.Call{command("three")}},
		modeltest.Answer{Text: "I made three."})
	var mu sync.Mutex
	var asked []string
	d.request.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, a.Tool+" "+string(a.Input))
		return !strings.Contains(string(a.Input), "two"), "one is enough", nil
	}
	reply, err := d.turn(t.Context())
	if err != nil || string(reply.Output) != "I made one of them." {
		t.Fatalf("%q, %v", reply.Output, err)
	}
	if len(asked) != 2 || !strings.HasPrefix(asked[0], "Bash {") {
		t.Errorf("a person was asked %q", asked)
	}
	for file, want := range map[string]bool{"one": true, "two": false} {
		if _, err := os.Stat(filepath.Join(d.request.Dir, file)); (err == nil) != want {
			t.Errorf("the file %s: %v", file, err)
		}
	}
	requests := d.model.Requests()
	if slices.ContainsFunc(requests[0].Tools, func(tool string) bool { return strings.Contains(dialogTools, tool) }) {
		t.Errorf("its model may use %q", requests[0].Tools)
	}
	if told := strings.Join(requests[len(requests)-1].Results, "|"); !strings.Contains(told, "one is enough") {
		t.Errorf("the model was told %q", told)
	}
	done := map[bool]int{}
	for _, x := range d.of(swarm.DeltaToolDone) {
		done[x.Tool.Failed]++
	}
	if done[true] != 1 || done[false] != 2 {
		t.Errorf("the tools were told as %+v", d.of(swarm.DeltaToolDone))
	}
	d.request.Session, d.request.Fresh = reply.Session, "Make three."
	if reply, err = d.turn(t.Context()); err != nil || string(reply.Output) != "I made three." || len(asked) != 3 {
		t.Errorf("the second turn: %q, %v; asked %q", reply.Output, err, asked)
	}
}

// Codex asks a person before it does what its sandbox forbids. A refused command is told to its
// model, and the turn goes on. Our own tools are never asked about. The session goes on in the next
// turn, with other answers.
func TestRealCodexAsks(t *testing.T) {
	for _, version := range []string{npmtest.Codex, npmtest.OldestCodexServer} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := reals[1]
			r.pack = version
			testCodexAsks(t, r)
		})
	}
}

func testCodexAsks(t *testing.T, r real) {
	outside := t.TempDir()
	command := func(name string) modeltest.Call {
		return modeltest.Call{Name: "exec_command", Args: fmt.Sprintf(`{"cmd":"touch %s/%s","sandbox_permissions":"require_escalated","justification":"May I make %[2]s?"}`, outside, name)}
	}
	d := newDesk(t, r,
		modeltest.Answer{Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to":"coder","message":"the plan"}`}}},
		modeltest.Answer{Calls: []modeltest.Call{command("one")}},
		modeltest.Answer{Calls: []modeltest.Call{command("two")}},
		modeltest.Answer{Calls: []modeltest.Call{{Name: "exec_command", Args: patch(filepath.Join(outside, "three"))}}},
		modeltest.Answer{Text: "I made two of them."},
		modeltest.Answer{Calls: []modeltest.Call{command("two")}},
		modeltest.Answer{Text: "Now I made it."})
	// Its sandbox would let it write to this test's folders, which are temporary ones.
	d.agent.argv = append(d.agent.argv, "-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true")
	refuse := true
	var asked []string
	d.request.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
		asked = append(asked, a.Tool+" "+string(a.Input)+" "+strings.Join(a.Paths, " ")) // one after the other
		return !refuse || !strings.Contains(string(a.Input), "/two"), "one is enough", nil
	}
	reply, err := d.turn(t.Context())
	if err != nil || string(reply.Output) != "I made two of them." {
		t.Fatalf("%q, %v", reply.Output, err)
	}
	if len(asked) != 3 || !strings.HasPrefix(asked[0], "shell {") || !strings.Contains(asked[0], "May I make one?") ||
		!strings.HasPrefix(asked[2], "file_change {") || !strings.HasSuffix(asked[2], " "+filepath.Join(outside, "three")) {
		t.Errorf("a person was asked %q", asked)
	}
	wantFiles := func(want map[string]bool) {
		t.Helper()
		for file, want := range want {
			if _, err := os.Stat(filepath.Join(outside, file)); (err == nil) != want {
				t.Errorf("the file %s: %v", file, err)
			}
		}
	}
	wantFiles(map[string]bool{"one": true, "two": false, "three": true})
	if told := strings.Join(d.model.Requests()[3].Results, "|"); !strings.Contains(told, "rejected by user") {
		t.Errorf("the model was told %q", told)
	}
	done := map[bool]int{}
	for _, x := range d.of(swarm.DeltaToolDone) {
		done[x.Tool.Failed]++
	}
	if done[true] != 1 || done[false] != 3 {
		t.Errorf("the tools were told as %+v", d.of(swarm.DeltaToolDone))
	}
	refuse = false
	d.request.Session, d.request.Fresh = reply.Session, "Make two after all."
	if reply, err = d.turn(t.Context()); err != nil || string(reply.Output) != "Now I made it." || len(asked) != 4 {
		t.Errorf("the second turn: %q, %v; asked %q", reply.Output, err, asked)
	}
	wantFiles(map[string]bool{"two": true})
	if _, err := os.Stat(filepath.Join(d.home, ".codex", "config.toml")); err == nil {
		t.Error("Codex has written into the user's settings")
	}
	wantNobody(t, d.request.Run)
}

// Codex asks before it uses a tool of one of the user's own MCP servers, unless the agent's `tools`
// list it.
func TestRealCodexAsksForATool(t *testing.T) {
	call := modeltest.Answer{Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to":"coder","message":"the plan"}`}}}
	done := modeltest.Answer{Text: "Done."}
	d := newDesk(t, reals[1], call, done, call, done, call, done)
	d.agent.argv = append(d.agent.argv, "-c", `mcp_servers.theirs.url="`+d.request.Door.URL+`/mcp"`, "-c", `mcp_servers.theirs.bearer_token_env_var="THEIR_TOKEN"`)
	d.request.Door, d.request.Env = swarm.ToolEndpoint{}, map[string]string{"THEIR_TOKEN": doorToken}
	allow := false
	var asked []string
	d.request.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
		asked = append(asked, a.Tool+" "+string(a.Input))
		return allow, "", nil
	}
	for n, want := range []int{0, 1, 2} { // calls of the tool so far
		if allow = n == 1; n == 2 {
			d.request.Tools = []string{"mcp__theirs"}
		}
		if reply, err := d.turn(t.Context()); err != nil || string(reply.Output) != "Done." {
			t.Fatalf("%q, %v", reply.Output, err)
		}
		if len(d.calls) != want {
			t.Errorf("after turn %d the tool was called %d times", n+1, len(d.calls))
		}
	}
	if len(asked) != 2 || !strings.HasPrefix(asked[0], "mcp__theirs__send_handoff {") || !strings.Contains(asked[0], "the plan") {
		t.Errorf("a person was asked %q", asked)
	}
}

// A session has a policy, and each turn overrides it: in PLANNING, Codex does not ask, even in a
// session in which it asked before.
func TestRealCodexAsksNothingInPlanning(t *testing.T) {
	outside := t.TempDir()
	command := modeltest.Call{Name: "exec_command", Args: `{"cmd":"touch ` + outside + `/x","sandbox_permissions":"require_escalated","justification":"May I?"}`}
	d := newDesk(t, reals[1], modeltest.Answer{Calls: []modeltest.Call{command}}, modeltest.Answer{Text: "One."},
		modeltest.Answer{Calls: []modeltest.Call{command}}, modeltest.Answer{Text: "Two."})
	asked := 0
	d.request.Ask = func(context.Context, swarm.Approval) (bool, string, error) { asked++; return false, "", nil }
	reply, err := d.turn(t.Context())
	if err != nil || asked != 1 {
		t.Fatalf("%q, %v; asked %d times", reply.Output, err, asked)
	}
	d.request.Session, d.request.Fresh, d.request.Phase = reply.Session, "Again.", swarm.PlanningPhase
	reply, err = d.turn(t.Context())
	requests := d.model.Requests()
	if told := strings.Join(requests[len(requests)-1].Results, "|"); asked != 1 || !strings.Contains(told, "approval policy is Never") {
		t.Errorf("a person was asked %d times, and the model was told %q", asked, told)
	}
	if _, missing := os.Stat(filepath.Join(outside, "x")); missing == nil || string(reply.Output) != "Two." {
		t.Errorf("%q, %v; the file: %v", reply.Output, err, missing)
	}
}

// A version that is too old for app-server runs as `codex exec`, and asks no person.
func TestRealOldCodex(t *testing.T) {
	old := reals[1]
	old.pack = npmtest.OldCodex
	d := newDesk(t, old, modeltest.Answer{Text: "One."}, modeltest.Answer{Text: "Two."})
	d.request.Ask = waits(func() {})
	var session string
	for n, want := range []string{"One.", "Two."} {
		d.request.Session, d.request.Fresh = session, "Again."
		reply, err := d.turn(t.Context())
		if err != nil || string(reply.Output) != want {
			t.Fatalf("%q, %v", reply.Output, err)
		}
		if said := d.said(swarm.DeltaStderr); strings.Contains(said, "cannot ask a person") != (n == 0) {
			t.Errorf("turn %d: %q", n+1, said)
		}
		session = reply.Session
	}
	if said := d.model.Requests()[1].Said; len(said) != 2 {
		t.Errorf("the model has heard %q", said)
	}
}

// A session of `codex exec` goes on there and in `codex app-server`, with the model of each turn.
func TestRealCodexSessionOfExec(t *testing.T) {
	d := newDesk(t, reals[1], modeltest.Answer{Text: "Hello.", Usage: modeltest.Usage{Input: 100, Output: 5}})
	for n, model := range []string{"gpt-a", "gpt-b", "gpt-c", "gpt-d"} {
		d.request.Env = map[string]string{"CODEX_API_KEY": modelKey} // which only exec reads
		if n >= 2 {
			d.request.Env = nil
		}
		d.request.Model = model
		reply, err := d.turn(t.Context())
		if err != nil || string(reply.Output) != "Hello." || n > 0 && reply.Session != d.request.Session || reply.Usage.InputTokens != 100 || reply.Usage.OutputTokens != 5 {
			t.Fatalf("turn %d: %q in %s for %+v, %v", n+1, reply.Output, reply.Session, reply.Usage, err)
		}
		if asked := d.model.Requests()[n]; asked.Model != model || len(asked.Said) != n+1 {
			t.Errorf("turn %d: the model %s has heard %q", n+1, asked.Model, asked.Said)
		}
		d.request.Session, d.request.Fresh, d.request.SessionTotal = reply.Session, "Again.", reply.SessionTotal
	}
}

func TestRealSecondTurn(t *testing.T) {
	eachReal(t, []modeltest.Answer{{Text: "One.", Usage: modeltest.Usage{Input: 100, Output: 5, Cached: 10}}, {Text: "Two.", Usage: modeltest.Usage{Input: 300, Output: 7, Cached: 40}},
		{Text: "Three.", Usage: modeltest.Usage{Input: 500, Output: 9, Cached: 50}}}, func(d *desk) {
		first, err := d.turn(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		d.request.Session, d.request.Prompt, d.request.Fresh, d.request.Turn = first.Session, "Say hello. And again.", "And again.", "code/2/2"
		d.request.SessionTotal = first.SessionTotal
		second, err := d.turn(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		if p, ok := d.agent.Take(d.request); ok {
			p.end() // the program that was kept is no more
		}
		d.request.Session, d.request.Fresh, d.request.SessionTotal = second.Session, "Once more.", second.SessionTotal
		third, err := d.turn(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		if string(second.Output) != "Two." || string(third.Output) != "Three." || third.Session != first.Session {
			d.Errorf("%q, then %q; the session is %s, then %s", second.Output, third.Output, first.Session, third.Session)
		}
		for i, u := range []swarm.Usage{first.Usage, second.Usage, third.Usage} {
			if want := []swarm.Usage{{InputTokens: 100, OutputTokens: 5, CachedTokens: 10}, {InputTokens: 300, OutputTokens: 7, CachedTokens: 40}, {InputTokens: 500, OutputTokens: 9, CachedTokens: 50}}[i]; u.InputTokens != want.InputTokens ||
				u.OutputTokens != want.OutputTokens || u.CachedTokens != want.CachedTokens {
				d.Errorf("turn %d has cost %+v, want %+v", i+1, u, want)
			}
		}
		asked := d.model.Requests()
		var said []string
		for _, text := range asked[len(asked)-1].Said {
			said = append(said, strings.TrimSpace(text))
		}
		if want := []string{"Say hello.", "And again.", "Once more."}; !slices.Equal(said, want) {
			d.Errorf("the model has heard %q in the end, want %q", said, want)
		}
	})
}

// An older Claude Code reports a running total of dollars. Each turn has its own part of it, in the
// same process and in one that resumes the session.
func TestRealOldDollars(t *testing.T) {
	old := reals[0]
	old.pack = "@anthropic-ai/claude-code@2.1.90"
	answer := modeltest.Answer{Text: "Hello.", Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}
	d := newDesk(t, old, answer, answer, answer)
	var first float64
	for n := range 3 {
		if n == 2 {
			kept(t, d.agent, d.request).end()
		}
		reply, err := d.turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u := reply.Usage
		if n == 0 {
			first = u.USD
		}
		if u.InputTokens != 1200 || u.OutputTokens != 30 || u.CachedTokens != 1000 || first == 0 || math.Abs(u.USD-first) > 1e-9 || u.Estimated {
			t.Errorf("turn %d has cost %+v, and the first one $%v", n+1, u, first)
		}
		d.request.Session, d.request.Fresh, d.request.SessionTotal = reply.Session, "Again.", reply.SessionTotal
	}
}

func TestRealForgottenSession(t *testing.T) {
	eachReal(t, []modeltest.Answer{{Text: "Hello."}}, func(d *desk) {
		d.request.Session, d.request.Fresh = "3ce6e46f-7316-48c3-861a-c0d5e8b549b7", "Again."
		reply, err := d.turn(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		if reply.Session == "" || reply.Session == d.request.Session || string(reply.Output) != "Hello." {
			d.Errorf("%q in the session %s", reply.Output, reply.Session)
		}
		if got := d.said(swarm.DeltaStderr); !strings.Contains(got, "is gone") {
			d.Errorf("nobody was told: %q", got)
		}
		if asked := d.model.Requests(); strings.TrimSpace(asked[0].Prompt) != "Say hello." {
			d.Errorf("the new session was told %q, want the whole prompt", asked[0].Prompt)
		}
	})
}

func TestRealCancel(t *testing.T) {
	eachReal(t, []modeltest.Answer{{Trouble: modeltest.Hangs}}, func(d *desk) {
		ctx, cut := context.WithCancelCause(d.Context())
		go func() {
			d.model.Await(1)
			cut(swarm.Errorf(swarm.CutToSpeak, "interrupted"))
		}()
		_, err := d.turn(ctx)
		wantKind(d, err, swarm.CutToSpeak)
		wantNobody(d, d.request.Run)
	})
}

func TestRealTrouble(t *testing.T) {
	for name, c := range map[string]struct {
		answer  modeltest.Answer
		keyless bool
		want    swarm.ErrorKind
	}{
		"rate limit":     {answer: modeltest.Answer{Status: 429, Message: "slow down", After: "3600"}, want: swarm.RateLimited},
		"not a good key": {answer: modeltest.Answer{Status: 401, Message: "invalid key " + modelKey}, want: swarm.NotSignedIn},
		"without a key":  {answer: modeltest.Answer{Status: 401, Message: "no key"}, keyless: true, want: swarm.NotSignedIn},
	} {
		t.Run(name, func(t *testing.T) {
			eachReal(t, []modeltest.Answer{c.answer}, func(d *desk) {
				d.agent.patience = time.Second
				if c.keyless {
					d.request.Env = map[string]string{d.key: "$NOT_SET_ANYWHERE"}
				}
				if c.answer.After != "" && d.kind == "codex" {
					d.agent.argv = append(d.agent.argv, "-c", "model_providers.local.stream_max_retries=1") // it waits until then
				}
				_, err := d.turn(d.Context())
				if e := wantKind(d, err, c.want); e.Hint == "" {
					d.Errorf("%v has no hint", e)
				}
				wantNobody(d, d.request.Run)
			})
		})
	}
}

func TestRealCheck(t *testing.T) {
	eachReal(t, nil, func(d *desk) {
		h := d.agent.Check(d.Context())
		_, version, _ := strings.Cut(d.pack[1:], "@")
		if !h.Found || h.Version != version || h.Path == "" {
			d.Errorf("it is found as %+v, want version %s", h, version)
		}
		if d.kind == "claude-code" && (h.Signed != "yes" || h.With != "ANTHROPIC_API_KEY") || d.kind == "codex" && (h.Signed != "no" || h.Hint == "") {
			d.Errorf("signed in: %+v", h)
		}
	})
}

// Codex writes its environment into no file, not even when it has no time to clean up.
func TestRealCodexWritesDownNoSecret(t *testing.T) {
	d := newDesk(t, reals[1], modeltest.Answer{Calls: []modeltest.Call{{Name: "exec_command", Args: `{"cmd":"sleep 60"}`}}})
	ctx, cut := context.WithCancel(t.Context())
	_, err := d.agent.Turn(ctx, d.request, func(x swarm.Delta) {
		if x.Kind == swarm.DeltaTool {
			cut()
		}
	})
	if err == nil || ctx.Err() == nil {
		t.Fatalf("it was not cut: %v", err)
	}
	files := 0
	err = filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for _, canary := range []string{modelKey, doorToken} {
			if strings.Contains(string(text), canary) {
				t.Errorf("%s stands in %s", canary, path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// Text beside the answer of one of our tools reaches the model of every program. If the answer had
// a structured form, Claude Code and Codex would give their model nothing else.
func TestRealAside(t *testing.T) {
	for _, r := range reals {
		t.Run(r.kind, func(t *testing.T) {
			d := newDesk(t, r, modeltest.Answer{Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to":"a","message":"m"}`}}}, modeltest.Answer{Text: "done"})
			d.beside = "While you worked, mail has come"
			if reply, err := d.Turn(t.Context(), d.request, nil); err != nil || string(reply.Output) != "done" {
				t.Fatalf("%q, %v", reply.Output, err)
			}
			asked := d.model.Requests()
			if told := strings.Join(asked[len(asked)-1].Results, "|"); !strings.Contains(told, d.beside) || !strings.Contains(told, "e1") {
				t.Errorf("the model was told %s", told)
			}
		})
	}
}
