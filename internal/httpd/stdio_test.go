package httpd

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/agenttoken"
)

// pipes runs Stdio for an agent, and returns the program's ends of the pipes and the result.
func (h *house) pipes(t *testing.T, token string) (in io.WriteCloser, out io.Reader, ended <-chan error) {
	t.Helper()
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	end := make(chan error, 1)
	go func() {
		err := Stdio(t.Context(), swarm.ToolEndpoint{URL: h.URL(), Token: token}, "test", theirs, ours)
		ours.Close()
		end <- err
	}()
	return in, out, end
}

func TestOverPipesItIsTheSame(t *testing.T) {
	h := open(t)
	in, out, ended := h.pipes(t, h.tokens.For("coder"))
	near, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(out), Writer: in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	remote := h.client(t, "coder")
	for _, s := range []*mcp.ClientSession{near, remote} {
		if s.InitializeResult().ServerInfo.Name != "swarm" {
			t.Errorf("the server says that it is %+v", s.InitializeResult().ServerInfo)
		}
	}
	one, err := near.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := remote.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(one.Tools)
	b, _ := json.Marshal(other.Tools)
	if string(a) != string(b) {
		t.Errorf("over pipes there are %s,\nover HTTP %s", a, b)
	}
	for _, x := range []struct{ tool, args string }{
		{"keep", `{"text":"<a> & ü","number":12345678901234567890.10}`},
		{"keep", `{"text":1}`},
		{"keep", `[]`},
		{"refuse", `{}`},
		{"panic", `{}`},
		{"nosuch", `{}`},
	} {
		one, err1 := call(t, near, x.tool, x.args)
		other, err2 := call(t, remote, x.tool, x.args)
		if err1 != nil || err2 != nil {
			if err1 == nil || err2 == nil || err1.Error() != err2.Error() {
				t.Errorf("%s %s: over pipes %v, over HTTP %v", x.tool, x.args, err1, err2)
			}
			continue
		}
		if said(t, one) != said(t, other) || one.IsError != other.IsError {
			t.Errorf("%s %s: over pipes %s, over HTTP %s", x.tool, x.args, said(t, one), said(t, other))
		}
	}
	if kept := h.agents["coder"].all(); len(kept) != 2 || kept[0] != kept[1] {
		t.Errorf("the agent kept %v", kept)
	}
	in.Close()
	if err := <-ended; err != nil {
		t.Errorf("the input ended, and it says %v", err)
	}
}

// Calls end when the client closes its input.
func TestCallsEndWithTheInput(t *testing.T) {
	h := open(t)
	in, out, ended := h.pipes(t, h.tokens.For("coder"))
	go io.Copy(io.Discard, out)
	for _, line := range []string{hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{}}}`} {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	<-h.agents["coder"].waiting
	in.Close()
	<-h.agents["coder"].left
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestItEndsWithTheServer(t *testing.T) {
	h := open(t)
	in, out, ended := h.pipes(t, h.tokens.For("coder"))
	defer in.Close()
	if _, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(out), Writer: in}, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "has gone") {
		t.Errorf("it ended with %v", err)
	}
}

func TestWithoutAServerThereIsNothingOverPipes(t *testing.T) {
	h := open(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + free.Addr().String()
	free.Close()
	for _, x := range []struct {
		endpoint swarm.ToolEndpoint
		want     string
	}{
		{swarm.ToolEndpoint{URL: h.URL(), Token: "swa_canary"}, "the token is nobody's"},
		{swarm.ToolEndpoint{URL: h.URL(), Token: agenttoken.New("run-1").For("coder")}, "the token is nobody's"},
		{swarm.ToolEndpoint{URL: nobody, Token: "swa_canary"}, "does not answer"},
		{swarm.ToolEndpoint{URL: "127.0.0.1:80", Token: "swa_canary"}, "is no address of a server"},
		{swarm.ToolEndpoint{URL: "file:///etc", Token: "swa_canary"}, "is no address of a server"},
	} {
		err := Stdio(t.Context(), x.endpoint, "test", strings.NewReader(""), io.Discard)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "canary") || swarm.ExitCode(err) != swarm.ExitBadInput {
			t.Errorf("%s: %v, want %s", x.endpoint.URL, err, x.want)
		}
		if e, ok := err.(*swarm.Error); !ok || e.Hint == "" {
			t.Errorf("%s: %v has no hint", x.endpoint.URL, err)
		}
	}
}
