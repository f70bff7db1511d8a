package coding

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/provider"
)

// kinds are the kinds, with the folders of their recordings. Those of `codex app-server` are lines of
// a conversation, and cannot be played.
var kinds = map[string]string{"claude-code": "claude", "codex exec": "codex", "codex": ""}

// each runs a test with each kind.
func each(t *testing.T, test func(t *testing.T, kind string)) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// An ending is the expected end of a turn: an error of a kind whose text holds msg, or an output.
type ending struct {
	kind   swarm.ErrorKind
	msg    string
	output string
}

func (want ending) check(t *testing.T, reply provider.Reply, err error) {
	t.Helper()
	if want.kind != "" {
		if e := wantKind(t, err, want.kind); !strings.Contains(e.Msg, want.msg) {
			t.Errorf("it is said as %q, want %q", e.Msg, want.msg)
		}
	} else if err != nil || string(reply.Output) != want.output || reply.Exit != 0 {
		t.Fatalf("the output is %q (exit %d), %v; want %q", reply.Output, reply.Exit, err, want.output)
	}
}

// TestRecordings plays recordings of the real programs.
func TestRecordings(t *testing.T) {
	endings := map[string]map[string]ending{
		"claude-code": {"broken": {kind: swarm.NoResult, msg: "500"}, "cut": {kind: swarm.NoResult},
			"stopped": {kind: swarm.Exited, msg: "exit status 143"}},
		"codex exec": {"broken": {kind: swarm.RateLimited, msg: "high demand"}, "cut": {kind: swarm.NoResult, msg: "disconnected"},
			"stopped": {kind: swarm.Crashed, msg: "signal 15"}},
	}
	for name, want := range map[string]ending{
		"text":     {output: "Hello, planner."},
		"second":   {output: "Hello, planner."},
		"tool":     {output: "It is handed over."},
		"denied":   {kind: swarm.Denied, msg: "mcp__swarm__send_handoff"},
		"limited":  {kind: swarm.RateLimited, msg: "429"},
		"overload": {kind: swarm.RateLimited},
		"refused":  {kind: swarm.NotSignedIn, msg: "401"},
		"keyless":  {kind: swarm.NotSignedIn},
	} {
		for _, byName := range endings {
			byName[name] = want
		}
	}
	each(t, func(t *testing.T, kind string) {
		for name, want := range endings[kind] {
			t.Run(name, func(t *testing.T) {
				var seen recorder
				reply, err := stand(t, kind, "stream:"+streams(kinds[kind], name)).Turn(t.Context(), request(t, "x"), seen.live)
				want.check(t, reply, err)
				if reply.Session != "00000000-0000-4000-8000-000000000001" {
					t.Errorf("the session is %q", reply.Session)
				}
				if e := new(swarm.Error); errors.As(err, &e) && e.Hint == "" {
					t.Errorf("%v has no hint", e)
				}
				if want.output == "" {
					return
				}
				if u := reply.Usage; u.InputTokens < 1200 || u.OutputTokens == 0 || u.CachedTokens == 0 || (u.USD > 0) != (kind == "claude-code") {
					t.Errorf("the usage is %+v", u)
				}
				if shown := seen.said(swarm.DeltaText); !strings.HasSuffix(shown, want.output) || strings.Count(shown, want.output) != 1 {
					t.Errorf("%q was shown", shown)
				}
				if tools := seen.of(swarm.DeltaTool); (name == "tool") != (len(tools) == 1) {
					t.Errorf("the tools were told as %+v", tools)
				}
			})
		}
	})
}

func TestMisbehaviour(t *testing.T) {
	for name, want := range map[string]ending{
		"one line of 1 GB": {kind: swarm.Protocol, msg: "16 MB"},
		"is killed":        {kind: swarm.Crashed, msg: "signal 9 (killed): out of memory"},
		"exits 137":        {kind: swarm.Exited, msg: "exit status 137"},
		"exits 3":          {kind: swarm.Exited, msg: "exit status 3: the disk is full"},
		"says nothing":     {kind: swarm.NoResult},
		"half a line":      {kind: swarm.NoResult, msg: "in the middle of a line"},
		"a log line":       {output: "done"},
		"another tongue":   {kind: swarm.Protocol, msg: "swarm does not understand: its \""},
		"does not end":     {output: "done"},
	} {
		each(t, func(t *testing.T, kind string) {
			t.Run(name, func(t *testing.T) {
				a := stand(t, kind, name)
				a.settleTime, a.grace = 50*time.Millisecond, 50*time.Millisecond
				r := request(t, "x")
				reply, err := a.Turn(t.Context(), r, nil)
				want.check(t, reply, err)
				if e := new(swarm.Error); errors.As(err, &e) && (e.Hint == "" || strings.Contains(e.Msg, "json:")) {
					t.Errorf("%v has no hint, or is not in our words", e)
				}
				if want.kind != "" || kind != "claude-code" {
					wantNobody(t, r.Run)
				}
				if name == "a log line" && !strings.Contains(string(reply.Stderr), "something is slow\n{not JSON either\n") {
					t.Errorf("the log is %q", reply.Stderr)
				}
			})
		})
	}
}

// TestFailedTurnKeepsItsWords: the reply of a failed turn holds the text so far, and no secret.
func TestFailedTurnKeepsItsWords(t *testing.T) {
	const said = "I have read the plan.\nThe test fails in line [secret MY_SECRET]"
	for name, kind := range map[string]swarm.ErrorKind{"hangs": swarm.TimedOut, "is killed": swarm.Crashed, "exits 3": swarm.Exited, "says nothing": swarm.NoResult,
		"another tongue": swarm.Protocol} {
		each(t, func(t *testing.T, program string) {
			t.Run(name, func(t *testing.T) {
				ctx, cut := context.WithCancelCause(t.Context())
				var seen recorder
				seen.heard = func(swarm.Delta) {
					if name == "hangs" && strings.Contains(seen.said(swarm.DeltaText), "in line") {
						cut(swarm.Errorf(swarm.TimedOut, "timed out"))
					}
				}
				reply, err := stand(t, program, "speaks:"+name, "MY_SECRET=canary-canary").Turn(ctx, request(t, "x"), seen.live)
				wantKind(t, err, kind)
				if string(reply.Output) != said || reply.Bytes != int64(len(said)) {
					t.Errorf("%q is kept, want %q", reply.Output, said)
				}
			})
		})
	}
	each(t, func(t *testing.T, program string) {
		if kinds[program] == "" {
			t.Skip("there are no recordings of it")
		}
		reply, err := stand(t, program, "stream:"+streams(kinds[program], "denied")).Turn(t.Context(), request(t, "x"), nil)
		wantKind(t, err, swarm.Denied)
		if want := "It is handed over."; string(reply.Output) != want {
			t.Errorf("the last message of a turn in which something was denied is %q, want %q", reply.Output, want)
		}
	})
}

// TestFlood: a program that writes a lot needs little memory, and its text comes in large deltas,
// not line by line.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it reads hundreds of megabytes")
	}
	for name, least := range map[string]int{"100 MB of log": 100 << 20, "5 MB of words": 1_000_000} {
		each(t, func(t *testing.T, kind string) {
			t.Run(name, func(t *testing.T) {
				pieces, bytes, most := 0, 0, uint64(0)
				reply, err := stand(t, kind, name).Turn(t.Context(), request(t, "x"), func(d swarm.Delta) {
					if bytes += len(d.Text); pieces%100 == 0 {
						var m runtime.MemStats
						runtime.GC()
						runtime.ReadMemStats(&m)
						most = max(most, m.HeapAlloc)
					}
					pieces++
				})
				ending{output: "done"}.check(t, reply, err)
				if bytes < least || pieces > least/256 || most == 0 || most > 50<<20 {
					t.Errorf("%d MB were in use while %d bytes came in %d pieces", most>>20, bytes, pieces)
				}
			})
		})
	}
}

func TestLongAnswer(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		reply, err := stand(t, kind, "5 MB").Turn(t.Context(), request(t, "x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Bytes != 5<<20/3*3+3 || len(reply.Output) > swarm.MaxOutput || !strings.HasSuffix(string(reply.Output), "€end") || !strings.HasPrefix(string(reply.Output), "€") {
			t.Errorf("%d bytes are kept of %d", len(reply.Output), reply.Bytes)
		}
	})
}

func TestCut(t *testing.T) {
	for _, name := range []string{"hangs", "ignores TERM", "forks"} {
		each(t, func(t *testing.T, kind string) {
			t.Run(name, func(t *testing.T) {
				ctx, cut := context.WithCancelCause(t.Context())
				var seen recorder
				begun, ready := false, name == "hangs"
				seen.heard = func(d swarm.Delta) {
					begun, ready = begun || d.Kind == swarm.DeltaSession, ready || strings.Contains(d.Text, "ready")
					if begun && ready {
						cut(swarm.Errorf(swarm.CutByCancel, "cancelled"))
					}
				}
				a := stand(t, kind, name)
				a.grace = 50 * time.Millisecond
				r := request(t, "x")
				reply, err := a.Turn(ctx, r, seen.live)
				wantKind(t, err, swarm.CutByCancel)
				wantNobody(t, r.Run)
				if reply.Session != "s-1" {
					t.Errorf("the session is %q: nobody can continue it", reply.Session)
				}
			})
		})
	}
}

// TestKeptProgram: the same process does the agent's next turn, as long as nothing has changed.
func TestKeptProgram(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	a := stand(t, "claude-code", "tell:"+told)
	r := request(t, "one")
	do := func(change func()) (pid float64, output string) {
		t.Helper()
		change()
		reply, err := a.Turn(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Session = reply.Session
		return readTold(t, told)["pid"].(float64), string(reply.Output)
	}
	first, _ := do(func() {})
	same, output := do(func() { r.Fresh, r.Turn = "two", "code/3/1" })
	if same != first || output != "two" {
		t.Errorf("the second turn was done by %v and not %v, and answered %q", same, first, output)
	}
	if other, _ := do(func() { r.Model = "opus" }); other == first {
		t.Error("another model was asked of the same process")
	}
	if args := readTold(t, told)["args"].([]any); !slices.Contains(args, any("--resume=s-1")) || !slices.Contains(args, any("--model=opus")) {
		t.Errorf("the new process was not told to continue: %v", args)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantNobody(t, r.Run)
}

func TestKeptProgramEndsWhenIdle(t *testing.T) {
	a := stand(t, "claude-code", "echo")
	ended := make(chan struct{})
	a.For, a.End = 1, func(p *program) {
		p.end()
		close(ended)
	}
	r := request(t, "one")
	if _, err := a.Turn(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	<-ended
	if _, ok := a.Take(r); ok {
		t.Error("it is still waited for")
	}
}

// kept returns the program that waits for another turn.
func kept(t *testing.T, a *agent, r provider.Request) *program {
	t.Helper()
	p, ok := a.Take(r)
	if !ok {
		t.Fatal("no program was kept")
	}
	a.Keep(r, p)
	return p
}

// TestKeptProgramFoundDead: a program that died between turns is replaced by one that continues the
// session.
func TestKeptProgramFoundDead(t *testing.T) {
	a := stand(t, "claude-code", "echo")
	r := request(t, "one")
	reply, err := a.Turn(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := kept(t, a, r)
	p.proc.CloseInput()
	<-p.done
	r.Session, r.Fresh = reply.Session, "two"
	if reply, err = a.Turn(t.Context(), r, nil); err != nil || string(reply.Output) != "two" {
		t.Errorf("%q, %v", reply.Output, err)
	}
}

// TestSecondResult: output of a kept program after its turn does not belong to the next turn.
func TestSecondResult(t *testing.T) {
	a := stand(t, "claude-code", "echo")
	for _, later := range []bool{false, true} {
		turn := a.newTurn(request(t, "x"), func(swarm.Delta) {}, "x", launch{}, later)
		turn.hearLine([]byte(`{"type":"result","result":"stale","session_id":"s"}`))
		if turn.finished == later {
			t.Errorf("later %v: a result before the message was repeated: taken %v", later, turn.finished)
		}
		turn.hearLine([]byte(`{"type":"user","uuid":"` + turn.id + `","isReplay":true,"message":{"content":"x"}}`))
		turn.hearLine([]byte(`{"type":"result","result":"mine","session_id":"s"}`))
		if got := string(turn.output.Bytes()); got != "mine" {
			t.Errorf("later %v: the output is %q", later, got)
		}
	}
	reply, err := stand(t, "codex exec", "two results").Turn(t.Context(), request(t, "x"), nil)
	if err != nil || string(reply.Output) != "second" {
		t.Errorf("of two results of one process %q was taken, %v", reply.Output, err)
	}
}

// TestNewWords: unknown fields and lines of a newer program are no error.
func TestNewWords(t *testing.T) {
	for kind, lines := range map[string][]string{
		"claude-code": {`{"type":"weather","message":7}`, `{"type":"system","subtype":"permission_denied","message":"no"}`, `{"type":"assistant","message":{"content":[{"type":"text","text":{}},{"type":"text","text":"hi"}]}}`},
		"codex app-server": {`{"method":"weather/changed","params":[7]}`, `{"id":99,"result":{}}`, `{"method":"item/completed","params":{"item":{"id":"item_0","type":"weather","text":{"a":1},"changes":7}}}`,
			`{"method":"item/completed","params":{"threadId":"of a subagent","item":{"id":"item_0","type":"agentMessage","text":"x"}}}`, `{"method":"turn/completed","params":{"threadId":"of a subagent","turn":{"status":"failed"}}}`},
		"codex": {`{"type":"weather.changed"}`, `{"type":"item.completed","item":{"id":"item_0","type":"weather","text":{"a":1},"changes":7}}`},
	} {
		kind, server := strings.CutSuffix(kind, " app-server")
		turn := stand(t, kind, "echo").newTurn(request(t, "x"), func(swarm.Delta) {}, "x", launch{talks: server}, false)
		for _, line := range lines {
			if turn.hearLine([]byte(line)); turn.fatal != nil || turn.fault != nil || server && (turn.finished || turn.shown.Len() > 0) {
				t.Errorf("%s: %s: %v %v", kind, line, turn.fatal, turn.fault)
			}
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	a := stand(t, "codex", "hangs")
	a.patience = time.Millisecond
	turn := a.newTurn(request(t, "x"), func(swarm.Delta) {}, "x", launch{}, false)
	turn.hearLine([]byte(`{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}`))
	<-turn.modelWait.C
	turn.hearLine([]byte(`{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}`))
	if turn.modelWait.Stop() {
		t.Error("it is waited for, though nobody was told to come back later")
	}
}

// Between its attempts app-server says nothing of its model, but it may of other things: they do not
// lengthen the wait. An attempt that succeeds ends it.
func TestPatienceWithAppServerEnds(t *testing.T) {
	a := stand(t, "codex", "hangs")
	a.patience = time.Millisecond
	turn := a.newTurn(request(t, "x"), func(swarm.Delta) {}, "x", launch{talks: true}, false)
	limited := []byte(`{"method":"error","params":{"error":{"message":"Reconnecting... 1/5","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":429}},"additionalDetails":"exceeded retry limit, last status: 429 Too Many Requests"},"willRetry":true}}`)
	turn.hearLine(limited)
	turn.hearLine([]byte(`{"method":"mcpServer/startupStatus/updated","params":{"name":"github","status":"ready"}}`))
	turn.hearLine([]byte(`{"method":"thread/status/changed","params":{"status":{"type":"active"}}}`))
	<-turn.modelWait.C
	turn.patience = time.Hour
	for _, line := range []string{
		`{"method":"error","params":{"error":{"message":"Reconnecting... 2/5","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":null}},"additionalDetails":"stream disconnected"},"willRetry":true}}`,
		`{"method":"item/started","params":{"item":{"type":"reasoning","id":"r"}}}`,
		`{"method":"item/agentMessage/delta","params":{"itemId":"a","delta":"x"}}`,
	} {
		if turn.hearLine(limited); !turn.hearAndStop(line) {
			t.Errorf("it is waited for after %s", line)
		}
	}
}

// hearAndStop says whether a line ends the wait for the model.
func (t *turn) hearAndStop(line string) bool {
	t.hearLine([]byte(line))
	return !t.modelWait.Stop()
}

// The errors by which app-server ends a turn are those by which exec does.
func TestAppServerFails(t *testing.T) {
	for end, want := range map[string]ending{
		`{"message":"exceeded retry limit, last status: 429 Too Many Requests","codexErrorInfo":{"responseTooManyFailedAttempts":{"httpStatusCode":429}}}`:            {kind: swarm.RateLimited, msg: "429"},
		`{"message":"You've hit your usage limit. Try again in 3 hours.","codexErrorInfo":"usageLimitExceeded"}`:                                                      {kind: swarm.RateLimited, msg: "usage limit"},
		`{"message":"We’re currently experiencing high demand, which may cause temporary errors.","codexErrorInfo":"internalServerError"}`:                            {kind: swarm.RateLimited, msg: "high demand"},
		`{"message":"unexpected status 401 Unauthorized: no, url: http://127.0.0.1:1/v1/responses","codexErrorInfo":{"httpConnectionFailed":{"httpStatusCode":401}}}`: {kind: swarm.NotSignedIn, msg: "401"},
		`{"message":"unexpected status 401 Unauthorized: no","codexErrorInfo":"other"}`:                                                                               {kind: swarm.NotSignedIn, msg: "401"},
		`{"message":"stream disconnected before completion","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":null}}}`:                                 {kind: swarm.NoResult, msg: "disconnected"},
		`{"message":"It is too long.","codexErrorInfo":{"new":[1]}}`:                                                                                                  {kind: swarm.NoResult, msg: "too long"},
		`null`: {kind: swarm.NoResult, msg: "the status failed"},
	} {
		turn := stand(t, "codex", "echo").newTurn(request(t, "x"), func(swarm.Delta) {}, "x", launch{talks: true}, false)
		turn.hearLine([]byte(`{"method":"turn/completed","params":{"turn":{"status":"failed","error":` + end + `}}}`))
		if turn.fault == nil {
			t.Fatalf("%s: no error; %v", end, turn.fatal)
		}
		want.check(t, turn.reply(0), turn.fault)
		if want.msg == "usage limit" && time.Until(turn.fault.Until) < time.Hour {
			t.Errorf("%s: until %v", end, turn.fault.Until)
		}
	}
}

func readTold(t *testing.T, file string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(file)
	told := map[string]any{}
	if err != nil || json.Unmarshal(b, &told) != nil {
		t.Fatal(err, string(b))
	}
	return told
}

// TestStart checks the arguments and variables of each program.
// Observers print a tool call in a line of its own. Text before it has ended its line by then.
func TestTextEndsItsLineBeforeATool(t *testing.T) {
	var seen recorder
	turn := stand(t, "claude-code", "").newTurn(request(t, "x"), seen.live, "x", launch{}, false)
	turn.showText("I look at it.")
	turn.startTool("1", "Read", nil, "")
	turn.endTool("1", "found", false)
	turn.endLine() // before the next message
	turn.showText("It is right.")
	turn.flush()
	var shown []string
	for _, d := range seen.deltas {
		shown = append(shown, string(d.Kind)+" "+d.Text)
	}
	if want := []string{"text I look at it.\n", "tool ", "tool_done ", "text It is right."}; !slices.Equal(shown, want) {
		t.Errorf("shown: %q, not %q", shown, want)
	}
}

func TestStart(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		told := filepath.Join(t.TempDir(), "told")
		a := stand(t, kind, "tell:"+told, "ANTHROPIC_API_KEY=key-anthropic", "OPENAI_API_KEY=key-openai", "GEMINI_API_KEY=key-gemini", "CLAUDECODE=1", "SWARM_TOKEN=top-secret")
		r := request(t, "x")
		r.Model, r.Tools, r.Root, r.Door = "m-1", []string{"Bash(go test:*)", "mcp__github"}, "/srv/data", swarm.ToolEndpoint{URL: "http://127.0.0.1:1", Token: doorToken}
		r.Ask = waits(func() {})
		if _, err := a.Turn(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		started := readTold(t, told)
		env := started["env"].(map[string]any)
		var args []string
		for _, arg := range started["args"].([]any) {
			args = append(args, arg.(string))
		}
		line := strings.Join(args, " ")
		want := map[string][]string{
			"claude-code": {"--permission-mode=acceptEdits", "--model=m-1", "--allowedTools=mcp__swarm,Bash(go test:*),mcp__github", "--add-dir=/srv/data", "Bearer ${SWARM_AGENT_TOKEN}"},
			"codex": {"app-server", `approval_policy="on-request"`, `sandbox_mode="workspace-write"`, `writable_roots=["/srv/data"]`, `bearer_token_env_var="SWARM_AGENT_TOKEN"`,
				`mcp_servers.swarm.default_tools_approval_mode="approve"`, `mcp_servers.github.default_tools_approval_mode="approve"`},
			"codex exec": {"exec --json", `approval_policy="never"`, `sandbox_mode="workspace-write"`, `writable_roots=["/srv/data"]`, "--model=m-1", `bearer_token_env_var="SWARM_AGENT_TOKEN"`,
				`mcp_servers.swarm.default_tools_approval_mode="approve"`, `mcp_servers.github.default_tools_approval_mode="approve"`},
		}[kind]
		for _, part := range want {
			if !strings.Contains(line, part) {
				t.Errorf("%q is not in the arguments: %s", part, line)
			}
		}
		if strings.Contains(line, "dangerous") || strings.Contains(line, doorToken) {
			t.Errorf("the arguments are %s", line)
		}
		own, others := "ANTHROPIC_API_KEY", []string{"OPENAI_API_KEY", "GEMINI_API_KEY", "CLAUDECODE", "SWARM_TOKEN"}
		if kind != "claude-code" {
			own, others[0], others[2] = "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SWARM_TOKEN"
		}
		if env[own] == nil || env["SWARM_AGENT_TOKEN"] != doorToken || env["SWARM_URL"] != "http://127.0.0.1:1" || env["SWARM_TURN_ID"] != "code/2/1" {
			t.Errorf("it was not given its own key, or not our door: %v", env)
		}
		if (env["NO_COLOR"] == "1") != (kind != "claude-code") {
			t.Errorf("NO_COLOR is %v", env["NO_COLOR"])
		}
		for _, other := range others {
			if env[other] != nil {
				t.Errorf("it was given %s", other)
			}
		}
	})
}

func TestSecretsStayInside(t *testing.T) {
	each(t, func(t *testing.T, kind string) {
		a := stand(t, kind, "tells all", "ANTHROPIC_API_KEY="+modelKey, "OPENAI_API_KEY="+modelKey)
		d := &desk{T: t}
		r := request(t, "x")
		r.Env = map[string]string{"MY_SECRET": "canary-of-the-task-42"}
		r.Door = swarm.ToolEndpoint{URL: "http://127.0.0.1:1", Token: doorToken}
		reply, err := a.Turn(t.Context(), r, d.live)
		if err == nil || len(d.deltas) < 5 {
			t.Fatalf("%d deltas, %v", len(d.deltas), err)
		}
		d.wantNoSecret(reply, err)
	})
}

// TestFolder: a program's files are in a private folder, for as long as it runs.
func TestFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l := launch{args: []string{"--settings={folder}/s.json"}, env: map[string]string{"S": "{folder}"}, files: map[string]string{"s.json": "{}"}}
	var p program
	if err := p.writeFiles(&l); err != nil {
		t.Fatal(err)
	}
	file := strings.TrimPrefix(l.args[0], "--settings=")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(file) != l.env["S"] {
		t.Fatalf("%s: %v, %v", file, info, err)
	}
	if folder, _ := os.Stat(filepath.Dir(file)); folder.Mode().Perm() != 0o700 {
		t.Errorf("the folder is open to others: %v", folder.Mode())
	}
	p.removeFiles()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestNotThere(t *testing.T) {
	for _, c := range []struct {
		command []string
		kind    swarm.ErrorKind
		hint    string
	}{
		{nil, swarm.NotFound, "npm install -g @openai/codex"},
		{[]string{"/no/such/codex"}, swarm.NotFound, "correct its path"},
		{[]string{"codex", "{prompt}"}, swarm.BadInput, "standard input"},
		{[]string{"codex", "\x00"}, swarm.BadInput, "take it out"},
		{[]string{""}, swarm.BadInput, "command: [codex]"},
	} {
		t.Setenv("PATH", t.TempDir())
		a, err := open(swarm.ProviderSpec{Name: "codex", Kind: "codex", Command: c.command}, provider.Options{})
		if err == nil {
			if h := a.Check(t.Context()); h.Found || h.Hint == "" {
				t.Errorf("%q: Check says %+v", c.command, h)
			}
			_, err = a.Turn(t.Context(), request(t, "x"), nil)
		}
		if e := wantKind(t, err, c.kind); !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%q: %v with the hint %q, want %q", c.command, e, e.Hint, c.hint)
		}
	}
	_, err := Open(swarm.ProviderSpec{Name: "x", Kind: "claude"}, provider.Options{})
	if e := wantKind(t, err, swarm.BadInput); !strings.Contains(e.Hint, "claude-code") {
		t.Errorf("the hint is %q", e.Hint)
	}
}
