package httpd

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm/internal/provider"
)

// A told is a clerk who has something to say beside each answer.
type told struct{ *clerk }

func (told) Aside(_ context.Context, tool string) string { return "beside " + tool }

// texts are the parts of an answer.
func texts(r *mcp.CallToolResult) (all []string) {
	for _, c := range r.Content {
		all = append(all, c.(*mcp.TextContent).Text)
	}
	return all
}

// What an agent is to be told stands in a text of its own, over HTTP and over pipes, beside answers and beside refusals. The answer is as
// it always was, without its structured form: programs that show nothing else would not show the rest.
func TestWhatStandsBesideAnAnswer(t *testing.T) {
	h := openFor(t, usual, func(name string) Agent { return told{newClerk(name)} })
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

// Whoever acts by a command of ours reads its answer and nothing else, so nothing is told to him.
func TestACommandIsToldNothingBeside(t *testing.T) {
	asked := 0
	h := openFor(t, usual, func(name string) Agent { return counted{newClerk(name), &asked} })
	agent, leave, err := Visit(t.Context(), provider.Door{URL: h.URL(), Token: h.tokens.For("coder")}, "1")
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
