package tool

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is also an MCP server: asServer in its environment selects its behaviour.
const asServer = "SWARM_TEST_TOOL_SERVER"

func TestMain(m *testing.M) {
	if how := os.Getenv(asServer); how != "" {
		os.Exit(serve(how))
	}
	os.Exit(m.Run())
}

func serve(how string) int {
	time.AfterFunc(time.Minute, func() { os.Exit(1) }) // whatever becomes of the test
	switch how {
	case "broken":
		fmt.Fprintln(os.Stderr, "cannot find module 'left-pad'")
		return 7
	case "hangs":
		select {}
	case "deaf":
		return serveDeaf()
	case "endless":
		return serveEndless()
	case "future":
		return serveFuture()
	case "chatty":
		fmt.Println("Server listening on stdio!")
		fmt.Println()
	}
	if err := newServer(how, nil).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// serveDeaf initializes, lists one tool, and then stops reading.
func serveDeaf() int {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(in.Bytes(), &r)
		switch r.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"deaf","version":"1"}}}`+"\n", r.ID)
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"take","inputSchema":{"type":"object"}}]}}`+"\n", r.ID)
			select {}
		}
	}
	return 0
}

// serveFuture answers with a version of the protocol that does not exist.
func serveFuture() int {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(in.Bytes(), &r) == nil && r.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2031-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"future","version":"1"}}}`+"\n", r.ID)
		}
	}
	return 0
}

// serveEndless initializes, and then lists 100,000 tools in one message.
func serveEndless() int {
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	for in.Scan() {
		var r struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(in.Bytes(), &r)
		switch r.Method {
		case "initialize":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"endless","version":"1"}}}`+"\n", r.ID)
		case "tools/list":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[`, r.ID)
			for i := range 100_000 {
				fmt.Fprintf(out, `{"name":"tool-%d","description":"Does much.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},`, i)
			}
			fmt.Fprintln(out, `{"name":"last","inputSchema":{"type":"object"}}]}}`)
		}
		out.Flush()
	}
	return 0
}

type words struct {
	Text string `json:"text"`
}

// newServer returns a server with the tools of all tests.
func newServer(how string, over <-chan struct{}) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 2000})
	text := func(t string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
	}
	add := func(name string, do func(words) *mcp.CallToolResult) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Does " + name + "."}, func(_ context.Context, _ *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
			return do(in), nil, nil
		})
	}
	add("echo", func(in words) *mcp.CallToolResult { return text("you said " + in.Text) })
	add("env", func(in words) *mcp.CallToolResult { return text(os.Getenv(in.Text)) })
	add("pid", func(words) *mcp.CallToolResult { return text(fmt.Sprint(os.Getpid())) })
	add("fail", func(in words) *mcp.CallToolResult {
		r := text("no such " + in.Text)
		r.IsError = true
		return r
	})
	add("image", func(words) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "look:"}, &mcp.ImageContent{MIMEType: "image/png", Data: []byte("1234")}}}
	})
	add("structured", func(words) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{"a": 1}}
	})
	add("silent", func(words) *mcp.CallToolResult { return &mcp.CallToolResult{Content: []mcp.Content{}} })
	add("long", func(words) *mcp.CallToolResult { return text("begin " + strings.Repeat("x", 1<<20) + " end") })
	add("huge", func(words) *mcp.CallToolResult { // one message without end
		fmt.Print(`{"jsonrpc":"2.0","method":"`)
		for range 50 {
			fmt.Print(strings.Repeat("x", 1<<20))
		}
		return nil
	})
	add("die", func(words) *mcp.CallToolResult {
		fmt.Fprintln(os.Stderr, "segmentation fault, more or less")
		os.Exit(9)
		return nil
	})
	add("change", func(words) *mcp.CallToolResult {
		s.RemoveTools("silent")
		add("fresh", func(words) *mcp.CallToolResult { return text("new") })
		return text("changed")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait", Description: "Waits."}, func(ctx context.Context, _ *mcp.CallToolRequest, _ words) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-over:
		}
		return nil, nil, ctx.Err()
	})
	switch how {
	case "many":
		for i := range 9_000 {
			s.AddTool(&mcp.Tool{Name: fmt.Sprintf("tool-%d", i), InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return text(fmt.Sprint(i)), nil
				})
		}
	case "reader":
		mcp.AddTool(s, &mcp.Tool{Name: "look", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, words) (*mcp.CallToolResult, any, error) {
			return text("seen"), nil, nil
		})
	case "liar":
		for name, schema := range map[string]string{
			"endless": `{"type":"object","allOf":[{"$ref":"#"}]}`,
			"future":  `{"$schema":"https://json-schema.org/draft/2999-01/schema","type":"object"}`,
			"heavy":   `{"type":"object","description":"` + strings.Repeat("x", 100<<10) + `"}`,
			"name.of/other kinds/" + strings.Repeat("long", 8): `{"type":"object"}`,
			"name.of_other_kinds-" + strings.Repeat("long", 8): `{"type":"object"}`,
		} {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("lied"), nil })
		}
	}
	return s
}
