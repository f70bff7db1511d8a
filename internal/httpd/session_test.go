package httpd

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// begin opens a session and never closes it, like a killed program.
func (h *house) begin(t testing.TB, agent string) string {
	t.Helper()
	status, head, text := h.ask(t, "POST", agent, "", strings.NewReader(hello))
	id := head.Get(sessionHeader)
	if status != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %s", status, text)
	}
	if status, _, text := h.ask(t, "POST", agent, id, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", status, text)
	}
	return id
}

// alive reports whether an agent can use a session.
func (h *house) alive(t *testing.T, agent, id string) bool {
	t.Helper()
	status, _, text := h.ask(t, "POST", agent, id, strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"ping"}`))
	if status != http.StatusOK && status != http.StatusNotFound {
		t.Fatalf("ping: %d %s", status, text)
	}
	return status == http.StatusOK
}

func TestASessionIsOnlyItsAgents(t *testing.T) {
	h := open(t)
	id := h.begin(t, "planner")
	steal := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"keep","arguments":{"text":"stolen"}}}`
	for _, method := range []string{"POST", "GET", "DELETE", "PUT"} {
		status, _, text := h.ask(t, method, "coder", id, strings.NewReader(steal))
		if status != http.StatusNotFound || !strings.Contains(text, "you have no session") {
			t.Errorf("%s with another's session: %d %s", method, status, text)
		}
	}
	if kept := append(h.agents["planner"].all(), h.agents["coder"].all()...); len(kept) != 0 {
		t.Errorf("something was done: %v", kept)
	}
	if !h.alive(t, "planner", id) {
		t.Error("the session of planner has ended")
	}
}

func TestASessionEndsWhenItsClientSaysSo(t *testing.T) {
	h := open(t)
	id := h.begin(t, "planner")
	if status, _, text := h.ask(t, "DELETE", "planner", id, nil); status != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", status, text)
	}
	if h.alive(t, "planner", id) {
		t.Error("it goes on")
	}
	for method, want := range map[string]int{"GET": http.StatusBadRequest, "DELETE": http.StatusBadRequest, "PUT": http.StatusMethodNotAllowed} {
		if status, _, text := h.ask(t, method, "planner", "", nil); status != want || !strings.Contains(text, `{"error":`) {
			t.Errorf("%s without a session: %d %s", method, status, text)
		}
	}
}

// The number of sessions is limited, because killed or hostile programs never close theirs.
func TestSessionsThatNobodyEndsAreFew(t *testing.T) {
	h := open(t)
	others := h.begin(t, "coder")
	var all []string
	for range maxSessions {
		all = append(all, h.begin(t, "planner"))
	}
	if !h.alive(t, "planner", all[0]) { // which makes the second the one that was silent for longest
		t.Error("the first ended too early")
	}
	all = append(all, h.begin(t, "planner"))
	for i, id := range all {
		if got, want := h.alive(t, "planner", id), i != 1; got != want {
			t.Errorf("session %d: alive %v, want %v", i, got, want)
		}
	}
	if !h.alive(t, "coder", others) {
		t.Error("the session of another agent made room")
	}
	for range 3 * maxSessions { // no initialize, no session
		h.ask(t, "POST", "coder", "", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		h.ask(t, "POST", "coder", "", strings.NewReader(`nonsense`))
	}
	if !h.alive(t, "coder", others) {
		t.Error("a session made room for what was none")
	}
	h.mcp.mu.Lock()
	defer h.mcp.mu.Unlock()
	if n := len(h.mcp.sessions["planner"]) + len(h.mcp.sessions[h.tokens.For("planner")]); n != maxSessions {
		t.Errorf("planner has %d sessions", n)
	}
}

func TestACallThatIsTakenBackEnds(t *testing.T) {
	h := open(t)
	s := h.client(t, "planner")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		ended <- err
	}()
	<-h.agents["planner"].waiting
	cancel()
	<-h.agents["planner"].left
	if err := <-ended; err == nil {
		t.Error("a call that was taken back has a result")
	}
	if r, err := call(t, s, "keep", `{"text":"the session goes on"}`); err != nil || r.IsError {
		t.Error(r, err)
	}
}

func TestCallsEndWithTheirSessionAndWithTheServer(t *testing.T) {
	h := open(t)
	first, second := h.begin(t, "planner"), h.begin(t, "planner")
	wait := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{}}}`
	var asked sync.WaitGroup
	for _, id := range []string{first, second} {
		asked.Go(func() { h.ask(t, "POST", "planner", id, strings.NewReader(wait)) })
		<-h.agents["planner"].waiting
	}
	if status, _, text := h.ask(t, "DELETE", "planner", first, nil); status != http.StatusNoContent {
		t.Errorf("DELETE: %d %s", status, text)
	}
	<-h.agents["planner"].left
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-h.agents["planner"].left:
	default:
		t.Error("Close returned while a call ran")
	}
	asked.Wait()
	if got := h.told(); len(got) != 0 {
		t.Errorf("faults: %v", got)
	}
	if err := h.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

// Concurrent agents and calls do not interfere.
func TestManyAtOnce(t *testing.T) {
	h := open(t)
	var all sync.WaitGroup
	for _, name := range []string{"planner", "coder", "planner", "coder"} {
		s := h.client(t, name)
		for range 25 {
			all.Go(func() {
				r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "keep", Arguments: json.RawMessage(`{"text":"` + name + `"}`)})
				if err != nil || r.IsError {
					t.Error(r, err)
				}
			})
		}
	}
	all.Wait()
	for name, a := range h.agents {
		kept := a.all()
		if len(kept) != 50 {
			t.Errorf("%s kept %d of 50", name, len(kept))
		}
		for _, text := range kept {
			if text != `{"text":"`+name+`"}` {
				t.Errorf("%s kept %s", name, text)
			}
		}
	}
}

// A client of MCP 2026-07-28 has no session. It lists and calls tools, and cancels a call by hanging up.
func TestClientsWithoutSessions(t *testing.T) {
	h := open(t)
	s := h.clientOf(t, "planner", firstStateless)
	if got := s.InitializeResult().ProtocolVersion; got != firstStateless {
		t.Errorf("the client speaks %s", got)
	}
	if r, err := call(t, s, "keep", `{"text":"kept"}`); err != nil || r.IsError || len(h.agents["planner"].all()) != 1 {
		t.Error(r, err, h.agents["planner"].all())
	}
	others := h.begin(t, "planner")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		ended <- err
	}()
	<-h.agents["planner"].waiting
	cancel()
	<-h.agents["planner"].left
	if err := <-ended; err == nil {
		t.Error("a call that was taken back has a result")
	}
	count := func() int {
		h.mcp.mu.Lock()
		defer h.mcp.mu.Unlock()
		return len(h.mcp.sessions[h.tokens.For("planner")])
	}
	for { // the handler of the call may end after its client has
		if !h.alive(t, "planner", others) {
			t.Fatal("the session of an older client has ended")
		}
		if count() == 1 {
			break
		}
	}
}
