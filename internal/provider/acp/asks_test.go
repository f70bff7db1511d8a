package acp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarm"
)

// Requests of agents while they work: permissions and files.

func TestPermission(t *testing.T) {
	yes := func(ctx context.Context, a swarm.Approval) (bool, string, error) { return true, "", nil }
	no := func(ctx context.Context, a swarm.Approval) (bool, string, error) { return false, "too dangerous", nil }
	never := func(ctx context.Context, a swarm.Approval) (bool, string, error) {
		return false, "", swarm.Errorf(swarm.Denied, "too dangerous")
	}
	for name, c := range map[string]struct {
		tool  string
		call  string // the whole call, instead of tool
		ask   string
		tools []string
		asks  func(context.Context, swarm.Approval) (bool, string, error)
		want  string // what the agent was answered, or why the turn is bad
	}{
		"by its name":                {tool: "other Deploy", tools: []string{"Deploy"}, want: "once"},
		"by its kind":                {tool: "edit Change a file", tools: []string{"edit"}, want: "once"},
		"another":                    {tool: "edit Change a file", tools: []string{"read"}, want: `it may not use "Change a file": nobody can be asked`},
		"ours":                       {tool: "other mcp__swarm__send_handoff", want: "once"},
		"ours, by Gemini":            {tool: "other send_handoff (swarm MCP Server)", want: "once"},
		"ours, by codex-acp":         {call: `{"toolCallId":"c1","kind":"execute","title":"mcp.swarm.send_handoff","rawInput":{"server":"swarm","tool":"send_handoff","arguments":{"to":"b"}}}`, want: "once"},
		"ours, by qwen":              {call: `{"toolCallId":"c1","kind":"other","title":"{\"to\":\"b\"}","_meta":{"toolName":"mcp__swarm__send_handoff"},"rawInput":{"to":"b"}}`, want: "once"},
		"ours, but which":            {call: `{"toolCallId":"c1","kind":"execute","title":"MCP tool call approval","rawInput":{"serverName":"swarm","description":"Allow?"}}`, want: "once"},
		"of another, by codex-acp":   {call: `{"toolCallId":"c1","kind":"execute","title":"mcp.github.push","rawInput":{"server":"github","tool":"push"}}`, want: `it may not use "mcp.github.push": nobody can be asked`},
		"a command like codex-acp's": {call: `{"toolCallId":"c1","kind":"execute","title":"mcp.swarm.send_handoff","rawInput":{"command":"mcp.swarm.send_handoff"}}`, want: `it may not use "mcp.swarm.send_handoff": nobody can be asked`},
		"like ours":                  {tool: "other mcp__swarm__send_handoff; rm -rf /", want: `it may not use "mcp__swarm__send_handoff; rm -rf /": nobody can be asked`},
		"a command like ours":        {tool: "execute swarm_send", want: `it may not use "swarm_send": nobody can be asked`},
		"a person says yes":          {tool: "execute rm -rf /", asks: yes, want: "once"},
		"a person says no":           {tool: "execute rm -rf /", asks: no, want: "no"},
		"the file says no":           {tool: "execute rm -rf /", asks: never, want: `it may not use "rm -rf /": too dangerous`},
		"only for good":              {tool: "execute rm -rf /", ask: "ask-for-good", asks: yes, want: `it may not use "rm -rf /": it can only be allowed for good`},
		"only for good, allowed":     {tool: "other Deploy", ask: "ask-for-good", tools: []string{"Deploy"}, want: `it may not use "Deploy": it can only be allowed for good`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTheatre(t, "good")
			if c.ask == "" {
				c.ask = "ask"
			}
			r := h.request("tool "+c.tool, c.ask)
			if c.call != "" {
				r.Prompt = "permission " + c.call
			}
			r.Tools, r.Ask = c.tools, c.asks
			reply, err := h.turn(r)
			got := string(reply.Output)
			if err != nil {
				got = err.Error()
			}
			if got != c.want || err != nil && (swarm.KindOf(err) != swarm.Denied || !strings.Contains(hint(err), "tools: [")) {
				t.Errorf("%s (%s), want %s", got, hint(err), c.want)
			}
		})
	}
}

// TestAgentGivesUp: an agent that ends its turn because a person said no has not done its task.
func TestAgentGivesUp(t *testing.T) {
	h := newTheatre(t, "good")
	r := h.request("tool execute rm -rf /", "ask", "stop cancelled")
	r.Ask = func(context.Context, swarm.Approval) (bool, string, error) { return false, "too dangerous", nil }
	if _, err := h.turn(r); swarm.KindOf(err) != swarm.Denied || err.Error() != `it may not use "rm -rf /": too dangerous` {
		t.Errorf("%v", err)
	}
}

// TestEditOfAGuardedFile: a list that allows all edits does not mean a file that programs obey.
func TestEditOfAGuardedFile(t *testing.T) {
	for _, c := range []struct {
		path, tools string
		asked       bool
	}{
		{"a.txt", "edit", false},
		{"CLAUDE.md", "edit", true},
		{"sub/.claude/settings.json", "edit", true},
		{"CLAUDE.md", "edit edit(CLAUDE.md)", false},
	} {
		h := newTheatre(t, "good")
		asked := false
		r := h.request("tool-at edit "+h.dir+"/"+c.path, "ask")
		r.Tools = strings.Fields(c.tools)
		r.Ask = func(context.Context, swarm.Approval) (bool, string, error) {
			asked = true
			return true, "", nil
		}
		if reply := h.good(r); string(reply.Output) != "once" || asked != c.asked {
			t.Errorf("%s with %s: %s, asked %v", c.path, c.tools, reply.Output, asked)
		}
	}
}

// TestApproval: the same request by another attempt of the same turn is the same approval.
func TestApproval(t *testing.T) {
	var asked []swarm.Approval
	for _, command := range []string{"go test", "go test", "go vet"} {
		h := newTheatre(t, "good")
		r := h.request("tool execute "+command, "ask")
		r.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
			asked = append(asked, a)
			return true, "", nil
		}
		h.good(r)
	}
	a, b, c := asked[0], asked[1], asked[2]
	if a.ID != b.ID || a.ID == c.ID || !strings.HasPrefix(a.ID, "plan/1/1/") || a.Tool != "go test" || a.What != "use go test" || string(a.Input) != `{"a":"go test"}` {
		t.Errorf("%+v", asked)
	}
}

// An approval covers one request. The id, a path and the content of a file are arguments like any
// other. Only what Codex adds about the call itself is left out.
func TestApprovalOfAnother(t *testing.T) {
	ask := func(call string) (id, shown string) {
		t.Helper()
		h := newTheatre(t, "good")
		r := h.request("permission " + call)
		r.Ask = func(_ context.Context, a swarm.Approval) (bool, string, error) {
			id, shown = a.ID, string(a.Input)+" "+strings.Join(a.Paths, " ")
			return true, "", nil
		}
		h.good(r)
		return id, shown
	}
	for _, c := range []struct {
		one, other string
		same       bool
		shown      string
	}{
		{one: `{"toolCallId":"c1","title":"delete_issue","rawInput":{"id":1}}`, other: `{"toolCallId":"c2","title":"delete_issue","rawInput":{"id":2}}`, shown: `{"id":1}`},
		{one: `{"toolCallId":"c1","title":"delete_issue","rawInput":{"call_id":"a"}}`, other: `{"toolCallId":"c2","title":"delete_issue","rawInput":{"call_id":"b"}}`},
		{one: `{"toolCallId":"c1","title":"Edit","kind":"edit","locations":[{"path":"/README.md"}]}`, other: `{"toolCallId":"c2","title":"Edit","kind":"edit","locations":[{"path":"/authorized_keys"}]}`, shown: " /README.md"},
		{one: `{"toolCallId":"c1","title":"Read","kind":"read","locations":[{"path":"/README.md"}]}`, other: `{"toolCallId":"c2","title":"Read","kind":"read","locations":[{"path":"/shadow"}]}`, shown: " /README.md"},
		{one: `{"toolCallId":"c1","title":"Edit","content":[{"type":"diff","path":"/a","newText":"1"}]}`, other: `{"toolCallId":"c1","title":"Edit","content":[{"type":"diff","path":"/a","newText":"2"}]}`, shown: " /a"},
		{one: `{"toolCallId":"c1","title":"Bash","rawInput":{"call_id":"c1","turn_id":"t1","started_at_ms":1,"cmd":"ls"}}`, other: `{"toolCallId":"c2","title":"Bash","rawInput":{"cmd":"ls","call_id":"c2","turn_id":"t2","started_at_ms":2}}`, same: true},
	} {
		one, shown := ask(c.one)
		other, _ := ask(c.other)
		if (one == other) != c.same || !strings.Contains(shown, c.shown) {
			t.Errorf("%s shows %q\n%s has the id %s\n%s has the id %s", c.one, shown, c.one, one, c.other, other)
		}
	}
}

// TestCutWhileAPersonIsAsked: the request gets no answer, and nothing waits for one.
func TestCutWhileAPersonIsAsked(t *testing.T) {
	h := newTheatre(t, "good")
	ctx, cut := context.WithCancelCause(t.Context())
	r := h.request("tool execute x", "ask", "wait")
	r.Ask = func(ctx context.Context, _ swarm.Approval) (bool, string, error) {
		cut(swarm.Errorf(swarm.CutToSpeak, "wait a moment"))
		<-ctx.Done()
		return false, "", context.Cause(ctx)
	}
	if _, err := h.agent.Turn(ctx, r, h.live); swarm.KindOf(err) != swarm.CutToSpeak {
		t.Errorf("%v", err)
	}
}

func TestFiles(t *testing.T) {
	h := newTheatre(t, "good")
	outside := t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(h.dir+"/a.txt", "one\ntwo\nthree\n")
	write(outside+"/secret.txt", "one\ntwo\nthree\n")
	write(h.dir+"/big.txt", strings.Repeat("a line\n", 1<<20))
	write(h.dir+"/image", "one\ntwo\x00\nthree")
	for link, to := range map[string]string{"link": outside + "/secret.txt", "folder": outside, "inner": "a.txt", "repository": ".git", "home": "state"} {
		if err := os.Symlink(to, filepath.Join(h.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{".git", "state"} {
		if err := os.Mkdir(filepath.Join(h.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(h.dir+"/state/token", "one\ntwo\nthree\n")
	if err := syscall.Mkfifo(h.dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ do, want string }{
		{"read DIR/a.txt", `read "two\n" false`},
		{"read DIR/inner", `read "two\n" false`},
		{"read DIR/nosuch", `read "" true`},
		{"read DIR/link", `read "" true`},
		{"read DIR/folder/secret.txt", `read "" true`},
		{"read DIR/state/token", `read "" true`},
		{"read DIR/home/token", `read "" true`},
		{"write DIR/state/token no", "written false"},
		{"read OUT/secret.txt", `read "" true`},
		{"read DIR/../" + filepath.Base(outside) + "/secret.txt", `read "" true`},
		{"read a.txt", `read "" true`},
		{"read /dev/zero", `read "" true`},
		{"read DIR/fifo", `read "" true`},
		{"read DIR/big.txt", `read "" true`},
		{"read DIR/image", `read "" true`},
		{"read DIR", `read "" true`},
		{"write DIR/new/b.txt hello", "written true"},
		{"write DIR/a.txt hi", "written true"},
		{"write DIR/link no", "written false"},
		{"write DIR/.git/hooks/pre-commit no", "written false"},
		{"write DIR/new/.GIT/config no", "written false"},
		{"write DIR/repository/config no", "written false"},
		{"write DIR/new/.claude/settings.json no", "written false"},
		{"write DIR/agents.MD no", "written false"},
		{"write DIR/folder/x.txt no", "written false"},
		{"write OUT/x.txt no", "written false"},
		{"write DIR/fifo no", "written false"},
		{"write DIR no", "written false"},
		{"terminal", "terminal true"},
	} {
		do := strings.NewReplacer("DIR", h.dir, "OUT", outside).Replace(c.do)
		if reply := h.good(h.request(do)); strings.TrimSpace(string(reply.Output)) != c.want {
			t.Errorf("%s: %s, want %s", c.do, reply.Output, c.want)
		}
	}
	for path, want := range map[string]string{h.dir + "/a.txt": "hi", h.dir + "/new/b.txt": "hello", outside + "/secret.txt": "one\ntwo\nthree\n"} {
		if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("outside: %v", left)
	}
	if told := h.told(); strings.Count(told, "file DIR/") != 2 || !strings.Contains(told, "file DIR/new/b.txt\n") {
		t.Errorf("%s", told)
	}
	// What programs obey is written only if the agent's tools name it.
	r := h.request("write " + h.dir + "/new/CLAUDE.md yes")
	r.Tools = []string{"edit(new/*.md)"}
	if reply := h.good(r); !strings.Contains(string(reply.Output), "written false") {
		t.Errorf("%s", reply.Output)
	}
	r.Tools = []string{"edit(new/CLAUDE.md)"}
	if reply := h.good(r); !strings.Contains(string(reply.Output), "written true") {
		t.Errorf("%s", reply.Output)
	}
	// An agent with a root of its own has only that.
	r = h.request("read " + h.dir + "/a.txt")
	r.Root = h.dir + "/new"
	if reply := h.good(r); !strings.Contains(string(reply.Output), "true") {
		t.Errorf("%s", reply.Output)
	}
}
