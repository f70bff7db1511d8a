package httpd

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"swarm"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A told is a clerk with an aside for each answer.
type told struct{ *clerk }

func (told) Aside(_ context.Context, tool string) string { return "beside " + tool }

// texts returns the text parts of an answer.
func texts(r *mcp.CallToolResult) (all []string) {
	for _, c := range r.Content {
		all = append(all, c.(*mcp.TextContent).Text)
	}
	return all
}

// An aside is a separate text, over HTTP and over pipes, with answers and with refusals. The answer
// then has no structured form, because programs that show only that would hide the aside.
func TestWhatStandsBesideAnAnswer(t *testing.T) {
	h := openFor(t, defaultTimeouts, func(name string) Agent { return told{newClerk(name)} })
	in, out, ended := h.pipes(t, h.tokens.For("coder"))
	near, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(out), Writer: in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*mcp.ClientSession{"over HTTP": h.client(t, "coder"), "over pipes": near} {
		for tool, args := range map[string]string{"keep": `{"text":"a"}`, "refuse": `{}`} {
			r, err := call(t, s, tool, args)
			if err != nil {
				t.Fatal(err)
			}
			parts := texts(r)
			if len(parts) != 2 || !json.Valid([]byte(parts[0])) || parts[1] != "beside "+tool || r.StructuredContent != nil || r.IsError != (tool == "refuse") {
				t.Errorf("%s, %s: %q, structured %v", name, tool, parts, r.StructuredContent)
			}
		}
	}
	in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A quiet client gets answers without asides.
func TestACommandIsToldNothingBeside(t *testing.T) {
	asked := 0
	h := openFor(t, defaultTimeouts, func(name string) Agent { return counted{newClerk(name), &asked} })
	agent, leave, err := Connect(t.Context(), swarm.ToolEndpoint{URL: h.URL(), Token: h.tokens.For("coder")}, "1")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := agent.Call(t.Context(), "keep", json.RawMessage(`{"text":"a"}`))
	if err != nil || !json.Valid(answer) || asked != 0 {
		t.Errorf("%s, %v; it was asked %d times what stands beside it", answer, err, asked)
	}
	if err := leave(); err != nil {
		t.Error(err)
	}
}

type counted struct {
	*clerk
	asked *int
}

func (c counted) Aside(context.Context, string) string {
	*c.asked++
	return "lost"
}

// A late agent answers when the test lets it, and learns whether its answers went out.
type late struct {
	*clerk
	began, let chan struct{}
	arrived    chan bool
	asked      *int
}

func (l late) Call(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	swarm.OnDelivery(ctx, func(arrived bool) { l.arrived <- arrived })
	l.began <- struct{}{}
	<-l.let
	swarm.OnDelivery(ctx, func(arrived bool) { l.arrived <- arrived })
	return json.RawMessage(`{}`), nil
}

func (l late) Aside(context.Context, string) string {
	*l.asked++
	return "beside it"
}

// A client that hung up gets no aside. Mail in an answer counts as seen only if the answer went
// out.
func TestAnAnswerThatNobodyTakes(t *testing.T) {
	asked := 0
	l := late{newClerk("coder"), make(chan struct{}, 1), make(chan struct{}, 1), make(chan bool, 2), &asked}
	h := openFor(t, defaultTimeouts, func(string) Agent { return l })
	s := h.begin(t, "coder")
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", h.URL()+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"keep","arguments":{"text":"a"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.tokens.For("coder"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(sessionHeader, s)
	go func() {
		<-l.began
		hangUp()
	}()
	if answer, err := http.DefaultClient.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	first := <-l.arrived
	l.let <- struct{}{}
	if second := <-l.arrived; first || second || asked != 0 {
		t.Errorf("an answer went out to nobody: %v, %v; told beside it: %d", first, second, asked)
	}
	l.let <- struct{}{}
	if answer, err := call(t, h.client(t, "coder"), "keep", `{"text":"b"}`); err != nil || len(texts(answer)) != 2 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if first, second := <-l.arrived, <-l.arrived; !first || !second || asked != 1 {
		t.Errorf("an answer that was taken: %v, %v; told beside it: %d", first, second, asked)
	}
}
