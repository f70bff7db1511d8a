package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/agenttoken"
)

// A clerk is an agent that records its calls, and misbehaves on request.
type clerk struct {
	name string

	mu      sync.Mutex
	kept    []string
	waiting chan struct{} // gets a word when a call of wait begins
	left    chan struct{} // and when it ends
}

func newClerk(name string) *clerk {
	return &clerk{name: name, waiting: make(chan struct{}, 100), left: make(chan struct{}, 100)}
}

func (c *clerk) Tools() []swarm.ToolSpec {
	return []swarm.ToolSpec{
		{Name: "keep", Description: "Keeps a text.", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"number":{}},"required":["text"],"additionalProperties":false}`)},
		{Name: "wait", Description: "Waits until it is told to end."},
		{Name: "panic", Description: "Breaks down."},
		{Name: "mumble", Description: "Answers with something that is no object."},
		{Name: "refuse", Description: "Says no."},
	}
}

func (c *clerk) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	switch tool {
	case "keep":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.kept = append(c.kept, string(args))
		return json.RawMessage(`{"by":"` + c.name + `","got":` + string(args) + `}`), nil
	case "wait":
		c.waiting <- struct{}{}
		<-ctx.Done()
		c.left <- struct{}{}
		return nil, ctx.Err()
	case "panic":
		panic("canary-secret")
	case "mumble":
		return json.RawMessage(`[1]`), nil
	}
	return nil, swarm.Errorf(swarm.BadInput, "Unknown agent: 'nosuch'. Valid agents: a, b").WithHint("write a or b")
}

func (c *clerk) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}

// A house is a server with two agents, as a run starts it.
type house struct {
	*Server
	tokens *agenttoken.Tokens
	agents map[string]*clerk

	mu     sync.Mutex
	faults []error
}

func open(t testing.TB) *house {
	t.Helper()
	return openWith(t, defaultTimeouts)
}

func openWith(t testing.TB, p timeouts) *house {
	t.Helper()
	agents := map[string]*clerk{"planner": newClerk("planner"), "coder": newClerk("coder")}
	h := openFor(t, p, func(name string) Agent { return agents[name] })
	h.agents = agents
	return h
}

func openFor(t testing.TB, p timeouts, agent func(name string) Agent) *house {
	t.Helper()
	h := &house{tokens: agenttoken.New("run-1")}
	s, err := start(Options{
		Listen:  "127.0.0.1:0",
		Version: "test",
		Agent: func(token string) (Agent, error) {
			name, ok := h.tokens.Agent(token)
			if !ok {
				return nil, errors.New("nobody")
			}
			return agent(name), nil
		},
		Fault: func(err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.faults = append(h.faults, err)
		},
	}, p)
	if err != nil {
		t.Fatal(err)
	}
	h.Server = s
	t.Cleanup(func() { s.Close() })
	return h
}

func (h *house) told() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults
}

// client returns a real MCP client of an agent.
func (h *house) client(t testing.TB, agent string) *mcp.ClientSession {
	t.Helper()
	return h.clientOf(t, agent, "2025-11-25")
}

// clientOf is a client that speaks a version of the protocol.
func (h *house) clientOf(t testing.TB, agent, version string) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   h.URL() + "/mcp",
		HTTPClient: &http.Client{Transport: &bearer{token: h.tokens.For(agent), base: http.DefaultTransport}},
		MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func call(t *testing.T, s *mcp.ClientSession, tool, args string) (*mcp.CallToolResult, error) {
	t.Helper()
	return s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
}

// said returns the text of a result, and checks that its two forms agree.
func said(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	text := r.Content[0].(*mcp.TextContent).Text
	var one any
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		t.Fatalf("%q is not JSON: %v", text, err)
	}
	a, _ := json.Marshal(one)
	b, _ := json.Marshal(r.StructuredContent)
	if string(a) != string(b) {
		t.Errorf("the text says %s, the structured form %s", a, b)
	}
	return text
}

func TestAnAgentFindsItsTools(t *testing.T) {
	h := open(t)
	s := h.client(t, "planner")
	if info := s.InitializeResult().ServerInfo; info.Name != "swarm" || info.Version != "test" {
		t.Errorf("the server says that it is %+v", info)
	}
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Name == "keep" {
			if got, _ := json.Marshal(tool.InputSchema); !strings.Contains(string(got), `"additionalProperties":false`) {
				t.Errorf("the schema of keep came as %s", got)
			}
		}
	}
	if got := strings.Join(names, " "); got != "keep mumble panic refuse wait" {
		t.Errorf("tools: %s", got)
	}
}

func TestACallIsDoneAsTheAgentWhoseTokenItIs(t *testing.T) {
	h := open(t)
	for _, name := range []string{"planner", "coder"} {
		r, err := call(t, h.client(t, name), "keep", `{"text":"<a> & ü","number":12345678901234567890.10}`)
		if err != nil || r.IsError {
			t.Fatal(r, err)
		}
		if want := `{"by":"` + name + `","got":{"text":"<a> & ü","number":12345678901234567890.10}}`; said(t, r) != want {
			t.Errorf("answer %s, want %s", said(t, r), want)
		}
		if got := h.agents[name].all(); len(got) != 1 {
			t.Errorf("%s was called with %v", name, got)
		}
	}
}

func TestAnErrorIsAnAnswerThatSaysWhatToWrite(t *testing.T) {
	h := open(t)
	s := h.client(t, "planner")
	for _, x := range []struct{ tool, args, want string }{
		{"refuse", `{}`, `{"error":"Unknown agent: 'nosuch'. Valid agents: a, b","hint":"write a or b"}`},
		{"keep", `{}`, `missing properties: [\"text\"]","hint":"keep takes an object with text; it may also have number"}`},
		{"keep", `{"text":1}`, `has type \"integer\", want \"string\"`},
		{"keep", `{"text":"a","txet":1}`, `unexpected additional properties [\"txet\"]`},
		{"mumble", `{}`, `{"error":"the tool mumble broke down","hint":"it is not your fault; try once more, or go on without it"}`},
	} {
		r, err := call(t, s, x.tool, x.args)
		if err != nil {
			t.Errorf("%s %s: %v", x.tool, x.args, err)
			continue
		}
		if got := said(t, r); !r.IsError || !strings.Contains(got, x.want) {
			t.Errorf("%s %s: %s, want %s", x.tool, x.args, got, x.want)
		}
	}
	long := strings.Repeat("ü", 100_000)
	if r, err := call(t, s, "keep", `{"text":"a","`+long+`":1}`); err != nil || !r.IsError || len(said(t, r)) > 1000 {
		t.Errorf("what was sent comes back whole: %v %.100v", err, r)
	}
	for _, x := range []struct{ tool, args, want string }{
		{"kepe", `{}`, `there is no tool "kepe": did you mean "keep"`},
		{"keep", `[1]`, `the arguments of keep are not one JSON object: keep takes an object with text`},
		{"keep", `"x"`, `the arguments of keep are not one JSON object`},
	} {
		if _, err := call(t, s, x.tool, x.args); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s: %v, want %s", x.tool, x.args, err, x.want)
		}
	}
	if got := h.agents["planner"].all(); len(got) != 0 {
		t.Errorf("a call that was refused was done: %v", got)
	}
}

func TestAToolThatPanicsEndsNothing(t *testing.T) {
	h := open(t)
	s := h.client(t, "planner")
	r, err := call(t, s, "panic", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := said(t, r); !r.IsError || !strings.Contains(got, "the tool panic broke down") || strings.Contains(got, "canary") {
		t.Errorf("the agent is told %s", got)
	}
	if got := h.told(); len(got) != 1 || !strings.Contains(got[0].Error(), "canary-secret") || !strings.Contains(got[0].Error(), "httpd_test.go") {
		t.Errorf("we are told %v", got)
	}
	if r, err := call(t, s, "keep", `{"text":"still here"}`); err != nil || r.IsError {
		t.Errorf("after the panic: %v %v", r, err)
	}
}
