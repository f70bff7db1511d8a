package acp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/provider/acp"
)

const (
	modelKey   = "sk-canary-model-0123456789"
	agentToken = "canary-token-0123456789"
)

// A program is a real agent, and how to start it so that it talks to a model of ours and leaves the
// user's files alone.
type program struct {
	name, spec, bin string
	kind            string // "" = acp
	args            []string
	key             string // the variable that holds the model's key
	env             func(d *desk) map[string]string
	model           string // one that it offers
	shell           modeltest.Call
	onNo            swarm.ErrorKind // how a turn ends in which a person has refused something
}

var programs = []program{
	{name: "claude", spec: npmtest.ClaudeACP, bin: "claude-agent-acp", key: "ANTHROPIC_API_KEY", env: claudeEnv,
		shell: modeltest.Call{Name: "Bash", Args: `{"command": "touch made.txt", "description": "make a file"}`}},
	// The newest codex-acp is in the ring of cmd/swarm: its models have other tools than these tests know.
	{name: "codex", spec: "@zed-industries/codex-acp@0.16.0", bin: "codex-acp", key: "OPENAI_API_KEY", env: codexEnv,
		shell: modeltest.Call{Name: "shell_command", Args: `{"command": "touch made.txt", "sandbox_permissions": "require_escalated", "justification": "make a file"}`},
		onNo:  swarm.Denied}, // it gives up
	{name: "gemini", spec: npmtest.Gemini, bin: "gemini", kind: "gemini", key: "GEMINI_API_KEY", env: geminiEnv, model: "gemini-2.5-flash",
		shell: modeltest.Call{Name: "run_shell_command", Args: `{"command": "touch made.txt", "description": "make a file"}`}},
	{name: "opencode", spec: npmtest.OpenCode, bin: "opencode", args: []string{"acp"}, key: "LOCAL_API_KEY", env: opencodeEnv, model: "local/m",
		shell: modeltest.Call{Name: "bash", Args: `{"command": "touch made.txt", "description": "make a file"}`}},
	{name: "qwen", spec: npmtest.Qwen, bin: "qwen", args: []string{"--acp"}, key: "OPENAI_API_KEY", env: qwenEnv,
		shell: modeltest.Call{Name: "run_shell_command", Args: `{"command": "touch made.txt", "description": "make a file", "is_background": false}`}},
}

func claudeEnv(d *desk) map[string]string {
	return map[string]string{"ANTHROPIC_BASE_URL": d.server.URL, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
		"CLAUDE_CODE_MAX_RETRIES": "1"}
}

func qwenEnv(d *desk) map[string]string {
	d.file(".qwen/settings.json", `{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
		"memory": {"enableManagedAutoMemory": false, "enableManagedAutoDream": false}}`) // these ask the model by themselves
	return map[string]string{"OPENAI_BASE_URL": d.server.URL + "/v1", "OPENAI_MODEL": "m"}
}

func codexEnv(d *desk) map[string]string {
	config := d.file(".codex/config.toml", fmt.Sprintf(`model = "gpt-5.4"
model_provider = "local"
approval_policy = "on-request"
[model_providers.local]
name = "local"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
base_url = "%s/v1"
request_max_retries = 1
stream_max_retries = 1
`, d.server.URL))
	return map[string]string{"CODEX_HOME": filepath.Dir(config)}
}

func geminiEnv(d *desk) map[string]string {
	d.file(".gemini/settings.json", `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false},
		"general": {"enableAutoUpdate": false, "maxAttempts": 2}}`)
	return map[string]string{"GEMINI_CLI_HOME": d.home, "GOOGLE_GEMINI_BASE_URL": d.server.URL}
}

func opencodeEnv(d *desk) map[string]string {
	return map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_CONFIG_CONTENT": fmt.Sprintf(`{"autoupdate": false, "share": "disabled", "model": "local/m",
		"permission": {"swarm_*": "ask", "bash": "ask"},
		"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "%s/v1", "apiKey": "{env:LOCAL_API_KEY}"},
			"models": {"m": {"tool_call": true, "limit": {"context": 100000, "output": 8000}, "cost": {"input": 1, "output": 10, "cache_read": 0.1}}}}}}`, d.server.URL)}
}

// A desk is where a program works: a folder, a home, a model and a server of tools.
type desk struct {
	*testing.T
	program program
	path    string
	server  *modeltest.Server
	door    swarm.ToolEndpoint
	home    string
	dir     string
	agent   provider.Provider

	mu     sync.Mutex
	calls  []string // of our tools
	deltas []swarm.Delta
	said   strings.Builder // all that was told, as text
}

type handoff struct {
	To      string `json:"to"`
	Message string `json:"message"`
}

func newDesk(t *testing.T, p program, script ...modeltest.Answer) *desk {
	t.Helper()
	path := npmtest.Path(t, p.spec, p.bin)
	d := &desk{T: t, program: p, home: t.TempDir(), dir: t.TempDir(), server: modeltest.Start(script...)}
	t.Cleanup(d.server.Close)
	tools := mcp.NewServer(&mcp.Implementation{Name: "swarm", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "send_handoff", Description: "Hands work to another agent."}, func(_ context.Context, _ *mcp.CallToolRequest, h handoff) (*mcp.CallToolResult, any, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.calls = append(d.calls, h.To+": "+h.Message)
		d.argumentsHoldNoSecret()
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{"id":"e1","seq":1}`}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+agentToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(served.Close)
	d.door = swarm.ToolEndpoint{URL: served.URL, Token: agentToken}
	d.path = path
	d.open()
	t.Cleanup(d.close)
	return d
}

// open makes the provider, as another start of swarm would.
func (d *desk) open() provider.Provider {
	d.Helper()
	p := d.program
	env := p.env(d)
	if p.kind == "" {
		env[p.key] = "" // taken from our environment
	}
	a, err := acp.Open(swarm.ProviderSpec{Name: p.name, Kind: cmp.Or(p.kind, "acp"), Command: append([]string{d.path}, p.args...), Env: env},
		provider.Options{Dir: d.dir, Environ: []string{"PATH=" + filepath.Dir(npmtest.Path(d, npmtest.Node, "node")) + ":" + os.Getenv("PATH"), "HOME=" + d.home, "TMPDIR=" + d.home, p.key + "=" + modelKey}})
	if err != nil {
		d.Fatal(err)
	}
	d.agent = a
	return a
}

// close ends the programs, and checks that none is left.
func (d *desk) close() {
	d.Helper()
	if err := d.agent.(provider.Closer).Close(); err != nil {
		d.Error(err)
	}
	if left := process.OfRun(d.run()); len(left) > 0 {
		d.Errorf("left behind: %v", left)
	}
}

func (d *desk) run() swarm.RunID { return swarm.RunID("run-" + d.Name()) }

// file writes a file into the program's home.
func (d *desk) file(name, text string) string {
	d.Helper()
	path := filepath.Join(d.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		d.Fatal(err)
	}
	return path
}

func (d *desk) request(turn swarm.TurnID, prompt string) provider.Request {
	return provider.Request{Run: d.run(), Turn: turn, Task: "plan", Agent: "planner", Iteration: 1, Attempt: 1, Prompt: prompt, Model: d.program.model, Dir: d.dir, Door: d.door}
}

func (d *desk) hears(x swarm.Delta) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deltas = append(d.deltas, x)
	fmt.Fprintf(&d.said, "%s %s %s", x.Kind, x.Text, x.File)
	if x.Tool != nil {
		fmt.Fprintf(&d.said, "%s %s %s", x.Tool.Name, x.Tool.Input, x.Tool.Output)
	}
	d.said.WriteString("\n")
}

func (d *desk) turn(r provider.Request) (provider.Reply, error) {
	return d.agent.Turn(d.Context(), r, d.hears)
}

// kinds counts the deltas by kind.
func (d *desk) kinds() map[swarm.DeltaKind]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := map[swarm.DeltaKind]int{}
	for _, x := range d.deltas {
		n[x.Kind]++
	}
	return n
}

// argumentsHoldNoSecret looks at the arguments of all running programs, as every user of the
// machine can.
func (d *desk) argumentsHoldNoSecret() {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		text, _ := os.ReadFile(line) // it may have ended
		for _, canary := range []string{modelKey, agentToken} {
			if strings.Contains(string(text), canary) {
				d.Errorf("%s stands in the arguments of a program: %q", canary, text)
			}
		}
	}
}

// keepsSecrets looks for canaries in all output.
func (d *desk) keepsSecrets(reply provider.Reply, err error) {
	d.Helper()
	all := fmt.Sprintf("%s %s %+v", d.said.String(), reply.Stderr, err)
	for _, canary := range []string{modelKey, agentToken} {
		if strings.Contains(all, canary) {
			d.Errorf("%s was told: %s", canary, all)
		}
	}
}

const (
	hello = "Say hello.\nYour SWARM_AGENT_ID is planner.\n"
	again = "Say it again.\n"
)

var (
	text    = modeltest.Answer{Text: "Hello, planner.", Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}
	calling = modeltest.Answer{Text: "I hand it over.", Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to": "coder", "message": "the plan"}`}},
		Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}
	handed = modeltest.Answer{Text: "It is handed over.", Usage: modeltest.Usage{Input: 1300, Output: 20, Cached: 1000}}
)

func eachProgram(t *testing.T, test func(t *testing.T, p program)) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) { t.Parallel(); test(t, p) })
	}
}

func TestRealAgentGoesOnWithItsSession(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, text)
		first, err := d.turn(d.request("plan/1/1", hello))
		// codex-acp warns in its first message that it does not know the model.
		if err != nil || !strings.HasSuffix(string(first.Output), "Hello, planner.") || first.Session == "" {
			t.Fatalf("%+v, %v: %s", first, err, d.said.String())
		}
		if u := first.Usage; p.name != "qwen" && p.name != "codex" && (u.InputTokens != 1200 || u.OutputTokens != 30) { // which does not tell
			t.Errorf("it has cost %+v", u)
		}

		r := d.request("plan/2/1", "the whole prompt")
		r.Session, r.Fresh = first.Session, again
		second, err := d.turn(r)
		if err != nil || second.Session != first.Session {
			t.Fatalf("%+v, %v: %s", second, err, d.said.String())
		}
		asked := d.server.Requests()
		if last := asked[len(asked)-1]; len(asked) != 2 || !slices.Equal(last.Said, []string{hello, again}) {
			t.Fatalf("the model was told %q", last.Said)
		}
		if p.name == "claude" {
			first.Usage.USD = second.Usage.USD // which has the cost of the session's title in the first turn
		}
		if second.Usage != first.Usage { // and not that of both
			t.Errorf("it has cost %+v, then %+v", first.Usage, second.Usage)
		}

		// Another process, as after a restart, continues it too.
		d.close()
		third, err := d.open().Turn(t.Context(), r, d.hears)
		if err != nil {
			t.Fatalf("%v: %s", err, d.said.String())
		}
		asked = d.server.Requests()
		switch last := asked[len(asked)-1]; {
		case third.Session != first.Session && p.name == "gemini" && slices.Equal(last.Said, []string{r.Prompt}):
			t.Log("Gemini CLI forgets a session that it loads in the minute in which it began: the whole prompt was said again")
		case third.Session != first.Session || !slices.Equal(last.Said, []string{hello, again, again}):
			t.Errorf("the model was told %q", last.Said)
		}
	})
}

func TestRealAgentCallsOurTool(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, calling, handed)
		reply, err := d.turn(d.request("plan/1/1", hello))
		if err != nil || string(reply.Output) != "It is handed over." || !slices.Equal(d.calls, []string{"coder: the plan"}) {
			t.Errorf("%q, %v; the tool was called with %q: %s", reply.Output, err, d.calls, d.said.String())
		}
		if n := d.kinds(); n[swarm.DeltaTool] != 1 || n[swarm.DeltaToolDone] != 1 || n[swarm.DeltaSession] != 1 {
			t.Errorf("%v: %s", n, d.said.String())
		}
		d.keepsSecrets(reply, err)
	})
}

func TestRealAgentAsksBeforeItRunsACommand(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		shell := modeltest.Answer{Calls: []modeltest.Call{p.shell}}
		for name, c := range map[string]struct {
			says bool
			kind swarm.ErrorKind
			ran  bool
		}{
			"no":  {kind: p.onNo},
			"yes": {says: true, ran: true},
		} {
			t.Run(name, func(t *testing.T) {
				d := newDesk(t, p, shell, handed)
				var asked []swarm.Approval
				r := d.request("plan/1/1", hello)
				r.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
					asked = append(asked, a)
					return c.says, "not today", nil
				}
				reply, err := d.turn(r)
				_, missing := os.Stat(filepath.Join(d.dir, "made.txt"))
				if swarm.KindOf(err) != c.kind || (missing == nil) != c.ran || len(asked) != 1 || !strings.Contains(asked[0].Tool+string(asked[0].Input), "touch made.txt") {
					t.Errorf("%q, %v, %v, %+v: %s", reply.Output, err, missing, asked, d.said.String())
				}
			})
		}
	})
}

func TestRealAgentInTrouble(t *testing.T) {
	for name, c := range map[string]struct {
		answer modeltest.Answer
		kind   swarm.ErrorKind
	}{
		"limited": {modeltest.Answer{Status: 429, After: "1", Message: "Number of requests has exceeded your limit"}, swarm.RateLimited},
		"refused": {modeltest.Answer{Status: 401, Message: "invalid API key"}, swarm.NotSignedIn},
	} {
		t.Run(name, func(t *testing.T) {
			eachProgram(t, func(t *testing.T, p program) {
				if p.name == "qwen" && name == "limited" {
					t.Skip("it asks again by itself for many minutes, whatever it is told")
				}
				d := newDesk(t, p, c.answer)
				reply, err := d.turn(d.request("plan/1/1", hello))
				if swarm.KindOf(err) != c.kind || hint(err) == "" {
					t.Errorf("%s: %v (%s), want %s: %s", swarm.KindOf(err), err, hint(err), c.kind, d.said.String())
				}
				d.keepsSecrets(reply, err)
			})
		})
	}
}

// TestRealAgentIsInterrupted: it stops calling its model, and reads the new message in the next
// turn of the same session.
func TestRealAgentIsInterrupted(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		hangs := modeltest.Answer{Text: "Hello, planner.", Trouble: modeltest.HangsLate}
		d := newDesk(t, p, hangs, text, hangs)
		cut := func(r provider.Request, why swarm.ErrorKind) provider.Reply {
			t.Helper()
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			next := len(d.server.Requests()) + 1
			go func() {
				d.server.Await(next)
				end(swarm.Errorf(why, "enough"))
			}()
			reply, err := d.agent.Turn(ctx, r, d.hears)
			if swarm.KindOf(err) != why {
				t.Fatalf("%v: %s", err, d.said.String())
			}
			return reply
		}
		first := cut(d.request("plan/1/1", hello), swarm.CutToSpeak)
		if p.name != "codex" { // it says that it has stopped, and may leave a question open whose answer had not begun
			d.server.AwaitGone(1)
		}
		r := d.request("plan/1/2", "the whole prompt")
		r.Session, r.Fresh = first.Session, again
		reply, err := d.turn(r)
		if err != nil || !strings.HasSuffix(string(reply.Output), "Hello, planner.") {
			t.Fatalf("%q, %v: %s", reply.Output, err, d.said.String())
		}
		cut(d.request("plan/1/3", hello), swarm.CutByCancel)
		if left := process.OfRun(d.run()); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

func TestRealCheck(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p)
		_, version, _ := strings.Cut(p.spec[1:], "@")
		if health := d.agent.(provider.Checker).Check(t.Context()); !health.Found || !strings.HasSuffix(health.Version, version) || health.Problem != "" || p.kind == "gemini" && health.With != "GEMINI_API_KEY" {
			t.Errorf("%+v", health)
		}
	})
}
