package coding

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/permission"
)

// bash is a request of Claude Code for a command.
const bash = `{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make","timeout":5},"tool_use_id":"t"}`

func allowed(input string) string { return `{"behavior":"allow","updatedInput":` + input + `}` }
func denied(why string) string {
	return `{"behavior":"deny","message":"Not allowed: ` + why + `"}`
}

// What a person refuses is told to the agent, and the turn goes on. What nobody is asked about fails
// the turn.
func TestClaudeAsks(t *testing.T) {
	yes := func(context.Context, swarm.Approval) (bool, string, error) { return true, "", nil }
	no := func(context.Context, swarm.Approval) (bool, string, error) { return false, "use go build", nil }
	never := func(context.Context, swarm.Approval) (bool, string, error) {
		return false, "", swarm.Errorf(swarm.Denied, "the file says no")
	}
	write := func(path string) string {
		return `{"subtype":"can_use_tool","tool_name":"Write","input":{"content":"x","file_path":"` + path + `"},"blocked_path":"/b"}`
	}
	planning := swarm.HintOf(permission.Acting(swarm.PlanningPhase, ""))
	for name, c := range map[string]struct {
		asks  string
		ask   func(context.Context, swarm.Approval) (bool, string, error)
		phase swarm.Phase
		want  string // what the agent was told
		asked string // tool, input and paths of the approvals
		hint  string // of a turn that fails
	}{
		"yes": {asks: bash, ask: yes, want: allowed(`{"command":"make","timeout":5}`), asked: `use Bash {"command":"make","timeout":5} []`},
		"no":  {asks: bash, ask: no, want: denied("use go build"), asked: `use Bash {"command":"make","timeout":5} []`},
		"no, and yes": {asks: bash + "\n" + write("/a"), ask: func(_ context.Context, a swarm.Approval) (bool, string, error) {
			return a.Tool == "Write", "no make", nil
		},
			want: denied("no make") + "\n" + allowed(`{"content":"x","file_path":"/a"}`), asked: `use Bash {"command":"make","timeout":5} []; use Write {"content":"x","file_path":"/a"} [/a /b]`},
		"by the file": {asks: bash, ask: never, want: denied("the file says no"), asked: `use Bash {"command":"make","timeout":5} []`, hint: `tools: ["Bash(make:*)"]}}`},
		"no, and by the file": {asks: bash + "\n" + write("/a"), ask: func(ctx context.Context, a swarm.Approval) (bool, string, error) {
			if a.Tool == "Bash" {
				return no(ctx, a)
			}
			return never(ctx, a)
		}, want: denied("use go build") + "\n" + denied("the file says no"), asked: `use Bash {"command":"make","timeout":5} []; use Write {"content":"x","file_path":"/a"} [/a /b]`, hint: `tools: [Write]}}`},
		"ours":                  {asks: `{"subtype":"can_use_tool","tool_name":"mcp__swarm__send_handoff","input":{}}`, ask: no, want: allowed("{}")},
		"another":               {asks: `{"subtype":"mcp_message"}` + "\n" + bash, ask: yes, want: "swarm does not know mcp_message\n" + allowed(`{"command":"make","timeout":5}`), asked: `use Bash {"command":"make","timeout":5} []`},
		"a command in PLANNING": {asks: bash, ask: yes, phase: swarm.PlanningPhase, want: denied("the phase PLANNING forbids Bash, which may change files; " + planning), hint: "PLANNING"},
		"a file in PLANNING":    {asks: write("DIR/main.go"), ask: yes, phase: swarm.PlanningPhase, want: denied(`the phase PLANNING forbids to write \"main.go\"; ` + planning), hint: "PLANNING"},
		"docs in PLANNING":      {asks: write("DIR/docs/a.md"), ask: yes, phase: swarm.PlanningPhase, want: allowed(`{"content":"x","file_path":"DIR/docs/a.md"}`), asked: `use Write {"content":"x","file_path":"DIR/docs/a.md"} [DIR/docs/a.md /b]`},
		"a page in PLANNING": {asks: `{"subtype":"can_use_tool","tool_name":"WebFetch","input":{"url":"u"}}`, ask: yes, phase: swarm.PlanningPhase, want: allowed(`{"url":"u"}`),
			asked: `use WebFetch {"url":"u"} []`},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, "")
			r.Prompt, r.Phase, r.Door = strings.ReplaceAll(c.asks, "DIR", r.Dir), c.phase, swarm.ToolEndpoint{URL: "http://127.0.0.1:1", Token: doorToken}
			var asked []string
			r.Ask = func(ctx context.Context, a swarm.Approval) (bool, string, error) {
				asked = append(asked, a.What+" "+string(a.Input)+" ["+strings.Join(a.Paths, " ")+"]") // the requests come one after the other
				return c.ask(ctx, a)
			}
			reply, err := stand(t, "claude-code", "asks").Turn(t.Context(), r, nil)
			in := func(text string) string { return strings.ReplaceAll(text, r.Dir, "DIR") }
			if got := in(string(reply.Output)); got != c.want {
				t.Errorf("it was told\n%s, want\n%s", got, c.want)
			}
			if got := in(strings.Join(asked, "; ")); got != c.asked {
				t.Errorf("a person was asked %s, want %s", got, c.asked)
			}
			if c.hint == "" {
				if err != nil {
					t.Errorf("the turn has failed: %v", err)
				}
			} else if e := wantKind(t, err, swarm.Denied); !strings.Contains(e.Hint, c.hint) {
				t.Errorf("the hint is %q, want %q", e.Hint, c.hint)
			}
		})
	}
}

// The same request of the same turn is the same approval, so that an answer is found after a crash.
func TestClaudeAsksTheSame(t *testing.T) {
	var ids []string
	for _, text := range []string{bash, `{"subtype":"can_use_tool","tool_name":"Bash","input":{"timeout":5,"command":"make"},"tool_use_id":"u"}`, strings.Replace(bash, "make", "make all", 1)} {
		r := request(t, text)
		r.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
			ids = append(ids, a.ID)
			return true, "", nil
		}
		if _, err := stand(t, "claude-code", "asks").Turn(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || !strings.HasPrefix(ids[0], "code/2/1/") {
		t.Errorf("the approvals are %q", ids)
	}
}

// waits is a person who does not answer before the question is over.
func waits(begun func()) func(context.Context, swarm.Approval) (bool, string, error) {
	return func(ctx context.Context, _ swarm.Approval) (bool, string, error) {
		begun()
		<-ctx.Done()
		return false, "", context.Cause(ctx)
	}
}

// A turn that is cut while a person is asked leaves nothing behind.
func TestClaudeIsCutWhileAPersonIsAsked(t *testing.T) {
	ctx, cut := context.WithCancelCause(t.Context())
	r := request(t, bash)
	r.Ask = waits(func() { cut(swarm.Errorf(swarm.CutToSpeak, "wait a moment")) })
	_, err := stand(t, "claude-code", "asks").Turn(ctx, r, nil)
	wantKind(t, err, swarm.CutToSpeak)
	wantNobody(t, r.Run)
}

// A request that Claude Code takes back waits for nobody, and is not answered.
func TestClaudeWithdraws(t *testing.T) {
	r := request(t, strings.Replace(bash, "{", `{"withdraw":true,`, 1)+"\n"+`{"subtype":"can_use_tool","tool_name":"Write","input":{}}`)
	r.Ask = func(ctx context.Context, a swarm.Approval) (bool, string, error) {
		if a.Tool == "Bash" {
			<-ctx.Done()
		}
		return true, "", nil
	}
	reply, err := stand(t, "claude-code", "asks").Turn(t.Context(), r, nil)
	ending{output: allowed("{}")}.check(t, reply, err)
}

// A version that cannot ask is started in the way that it knows. The next turn starts it so at once.
func TestCannotAsk(t *testing.T) {
	for _, kind := range []string{"claude-code", "codex"} {
		t.Run(kind, func(t *testing.T) {
			starts := filepath.Join(t.TempDir(), "starts")
			a := stand(t, kind, "cannot ask:"+starts)
			r := request(t, "hello")
			r.Ask = waits(func() {})
			var seen recorder
			for n, want := range []int{2, 3} {
				reply, err := a.Turn(t.Context(), r, seen.live)
				ending{output: "hello"}.check(t, reply, err)
				if p, ok := a.Take(r); ok {
					p.end()
				}
				if text, err := os.ReadFile(starts); err != nil || strings.Count(string(text), "started") != want {
					t.Errorf("after turn %d it was started %d times: %v", n+1, strings.Count(string(text), "started"), err)
				}
			}
			if said := seen.said(swarm.DeltaStderr); strings.Count(said, "cannot ask a person") != 1 {
				t.Errorf("it is said as %q", said)
			}
		})
	}
}

// A program that refuses to run as app-server runs as `codex exec`. A program that fails for
// another reason does not: exec would fail too, and later turns could no longer ask.
func TestCodexRefusesAppServer(t *testing.T) {
	for words, want := range map[string]bool{
		"Error: --profile only applies to runtime commands":       true,
		"error: unrecognized subcommand 'app-server'":             true,
		"Error: stdin is not a terminal":                          true,
		"Error: No such device or address (os error 6)":           true,
		"Error loading config.toml: invalid type: string \"x\"":   false,
		"Error: failed to open the state: the database is locked": false,
	} {
		c := &codex{}
		turn := &turn{}
		turn.stderr.Max = 1 << 10
		_, _ = turn.stderr.Write([]byte(words + "\n"))
		if got := c.downgrade(launch{talks: true}, turn) != ""; got != want || c.execOnly.Load() != want {
			t.Errorf("%s: %v, want %v", words, got, want)
		}
	}
}

// Requests of `codex app-server`.
const (
	codexCommand = `{"method":"item/commandExecution/requestApproval","params":{"itemId":"c","command":"make","cwd":"DIR","reason":"May I?"},"item":{"id":"c","type":"commandExecution","command":"make"}}`
	codexElse    = `{"method":"item/commandExecution/requestApproval","params":{"itemId":"c","kind":"command","command":"curl x","cwd":"/else","networkApprovalContext":{"host":"x"}}}`
	codexFile    = `{"method":"item/fileChange/requestApproval","params":{"itemId":"f","reason":null},"item":{"id":"f","type":"fileChange","changes":[{"path":"/a","kind":{"type":"add"},"diff":"x"}]}}`
	codexTool    = `{"method":"mcpServer/elicitation/request","params":{"serverName":"github","_meta":{"codex_approval_kind":"mcp_tool_call","tool_params":{"n":1}}},"item":{"id":"m","type":"mcpToolCall","server":"github","tool":"list","arguments":{"n": 1}}}`
	codexForm    = `{"method":"mcpServer/elicitation/request","params":{"serverName":"github","_meta":null,"mode":"form"}}`
	codexMore    = `{"method":"item/permissions/requestApproval","params":{"itemId":"p","permissions":{"network":{"enabled":true}}}}`
)

// If a person refuses, the agent is told and the turn goes on. A refusal without asking a person
// fails the turn.
func TestCodexAsks(t *testing.T) {
	yes := func(context.Context, swarm.Approval) (bool, string, error) { return true, "", nil }
	no := func(context.Context, swarm.Approval) (bool, string, error) { return false, "use go build", nil }
	never := func(context.Context, swarm.Approval) (bool, string, error) {
		return false, "", swarm.Errorf(swarm.Denied, "the file says no")
	}
	const accept, decline = `{"decision":"accept"}`, `{"decision":"decline"}`
	const command = `use shell {"command":"make","reason":"May I?"} []`
	for name, c := range map[string]struct {
		asks  string
		ask   func(context.Context, swarm.Approval) (bool, string, error)
		phase swarm.Phase
		want  string // what the agent was told
		asked string // tool, input and paths of the approvals
		hint  string // of a turn that fails
	}{
		"yes":                 {asks: codexCommand, ask: yes, want: accept, asked: command},
		"no":                  {asks: codexCommand, ask: no, want: decline, asked: command},
		"elsewhere":           {asks: codexElse, ask: yes, want: accept, asked: `use shell {"command":"curl x","cwd":"/else","network":{"host":"x"}} []`},
		"a file":              {asks: codexFile, ask: yes, want: accept, asked: `use file_change {"changes":[{"path":"/a","kind":"add","diff":"x"}]} [/a]`},
		"no file":             {asks: codexFile, ask: no, want: decline, asked: `use file_change {"changes":[{"path":"/a","kind":"add","diff":"x"}]} [/a]`},
		"a tool":              {asks: codexTool, ask: yes, want: `{"action":"accept","content":{}}`, asked: `use mcp__github__list {"n":1} []`},
		"no tool":             {asks: codexTool, ask: no, want: `{"action":"decline"}`, asked: `use mcp__github__list {"n":1} []`},
		"one of ours":         {asks: strings.ReplaceAll(codexTool, "github", "swarm"), ask: no, want: `{"action":"accept","content":{}}`},
		"more permissions":    {asks: codexMore, ask: yes, want: `{"permissions":{"network":{"enabled":true}},"scope":"turn"}`, asked: `use request_permissions {"permissions":{"network":{"enabled":true}}} []`},
		"no permissions":      {asks: codexMore, ask: no, want: `{"permissions":{},"scope":"turn"}`, asked: `use request_permissions {"permissions":{"network":{"enabled":true}}} []`},
		"a form":              {asks: codexForm + "\n" + codexCommand, ask: yes, want: "swarm does not know mcpServer/elicitation/request\n" + accept, asked: command},
		"another":             {asks: `{"method":"item/tool/requestUserInput","params":{"questions":[]}}` + "\n" + codexCommand, ask: yes, want: "swarm does not know item/tool/requestUserInput\n" + accept, asked: command},
		"by the file":         {asks: codexCommand, ask: never, want: decline, asked: command, hint: "approvals: {tools: ask}"},
		"a tool, by the file": {asks: codexTool, ask: never, want: `{"action":"decline"}`, asked: `use mcp__github__list {"n":1} []`, hint: `tools: [mcp__github]}}`},
		"in PLANNING":         {asks: codexCommand, ask: yes, phase: swarm.PlanningPhase, want: decline, hint: "PLANNING"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, "")
			r.Prompt, r.Phase, r.Door = strings.ReplaceAll(c.asks, "DIR", r.Dir), c.phase, swarm.ToolEndpoint{URL: "http://127.0.0.1:1", Token: doorToken}
			var asked []string
			r.Ask = func(ctx context.Context, a swarm.Approval) (bool, string, error) {
				asked = append(asked, a.What+" "+string(a.Input)+" ["+strings.Join(a.Paths, " ")+"]") // the requests come one after the other
				return c.ask(ctx, a)
			}
			reply, err := stand(t, "codex", "asks").Turn(t.Context(), r, nil)
			if got := string(reply.Output); got != c.want {
				t.Errorf("it was told\n%s, want\n%s", got, c.want)
			}
			if got := strings.Join(asked, "; "); got != c.asked {
				t.Errorf("a person was asked %s, want %s", got, c.asked)
			}
			if c.hint == "" {
				if err != nil {
					t.Errorf("the turn has failed: %v", err)
				}
			} else if e := wantKind(t, err, swarm.Denied); !strings.Contains(e.Hint, c.hint) {
				t.Errorf("the hint is %q, want %q", e.Hint, c.hint)
			}
		})
	}
}

// Two tools of a server are called with the same arguments: a person is never asked about the wrong one.
func TestCodexAsksAboutTheToolThatItNames(t *testing.T) {
	call := func(tool string) codexItem {
		return codexItem{Type: "mcpToolCall", Server: "github", Tool: tool, Arguments: json.RawMessage(`{"n": 1}`)}
	}
	both := map[string]codexItem{"l": call("list"), "d": call("delete"), "other": {Type: "mcpToolCall", Server: "jira", Tool: "list", Arguments: json.RawMessage(`{"n": 1}`)}}
	for range 20 { // the order of a map is random
		for message, want := range map[string]string{
			`Allow the github MCP server to run tool "list"?`:   "mcp__github__list",
			`Allow the github MCP server to run tool "delete"?`: "mcp__github__delete",
			"May I?": "mcp__github",
		} {
			r := &codexRequest{ServerName: "github", Message: message}
			r.Meta.Params = json.RawMessage(`{"n":1}`)
			items, tool := (&codexServer{started: both}).mcpCall(r)
			if slices.Sort(items); tool != want || !slices.Equal(items, []string{"d", "l"}) {
				t.Fatalf("%s: %q of %q, want %q", message, tool, items, want)
			}
		}
	}
}

// The same request of the same turn is the same approval, whatever reason the model gives.
func TestCodexAsksTheSame(t *testing.T) {
	var ids []string
	for _, text := range []string{codexCommand, strings.NewReplacer("May I?", "I have to.", `"c"`, `"d"`).Replace(codexCommand), strings.Replace(codexCommand, `"make"`, `"make all"`, 1)} {
		r := request(t, "")
		r.Prompt = strings.ReplaceAll(text, "DIR", r.Dir)
		r.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
			ids = append(ids, a.ID)
			return true, "", nil
		}
		if _, err := stand(t, "codex", "asks").Turn(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if ids[0] != ids[1] || ids[0] == ids[2] || !strings.HasPrefix(ids[0], "code/2/1/") {
		t.Errorf("the approvals are %q", ids)
	}
}

// A turn that is cut while a person is asked leaves nothing behind.
func TestCodexIsCutWhileAPersonIsAsked(t *testing.T) {
	ctx, cut := context.WithCancelCause(t.Context())
	r := request(t, codexCommand)
	r.Ask = waits(func() { cut(swarm.Errorf(swarm.CutToSpeak, "wait a moment")) })
	_, err := stand(t, "codex", "asks").Turn(ctx, r, nil)
	wantKind(t, err, swarm.CutToSpeak)
	wantNobody(t, r.Run)
}

// If Codex withdraws a request, nothing waits for its answer and nothing answers it.
func TestCodexWithdraws(t *testing.T) {
	r := request(t, strings.Replace(codexFile, "{", `{"withdraw":true,`, 1)+"\n"+codexCommand)
	r.Ask = func(ctx context.Context, a swarm.Approval) (bool, string, error) {
		if a.Tool == "file_change" {
			<-ctx.Done()
		}
		return true, "", nil
	}
	reply, err := stand(t, "codex", "asks").Turn(t.Context(), r, nil)
	ending{output: `{"decision":"accept"}`}.check(t, reply, err)
}
