package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/httpd"
	"swarm/internal/npmtest"
)

// An echo is an agent with one tool.
type echo struct{}

func (echo) Tools() []swarm.ToolSpec {
	return []swarm.ToolSpec{{Name: "echo", Description: "Says it again.", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)}}
}

func (echo) Call(_ context.Context, _ string, args json.RawMessage) (json.RawMessage, error) {
	return args, nil
}

// mcpServer is the server of a run with one agent, and the environment of that agent's program.
func mcpServer(t *testing.T) (*httpd.Server, []string) {
	t.Helper()
	tokens := agenttoken.New("run")
	s, err := httpd.Start(httpd.Options{Listen: "127.0.0.1:0", Agent: func(token string) (httpd.Agent, error) {
		if name, ok := tokens.Agent(token); !ok || name != "coder" {
			return nil, errors.New("nobody")
		}
		return echo{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, []string{"SWARM_URL=" + s.URL(), "SWARM_AGENT_TOKEN=" + tokens.For("coder"), "GORACE=atexit_sleep_ms=0"}
}

// TestMCP: the real program, between a real client and a real server.
func TestMCP(t *testing.T) {
	server, env := mcpServer(t)
	for _, x := range []struct {
		name string
		end  func(*mcp.ClientSession)
		exit int
		says string
	}{
		{"the agent ends", func(s *mcp.ClientSession) { _ = s.Close() }, 0, ""},
		{"the server ends", func(*mcp.ClientSession) { _ = server.Close() }, 1, "has gone"},
	} {
		t.Run(x.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "swarm", "mcp")
			cmd.Env = append(os.Environ(), env...)
			var errs strings.Builder
			cmd.Stderr = &errs
			s, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]string{"text": "hello"}})
			if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != `{"text":"hello"}` {
				t.Errorf("the call was answered with %+v, %v", r, err)
			}
			x.end(s)
			_ = s.Wait()
			_ = s.Close()
			if got := cmd.ProcessState.ExitCode(); got != x.exit || !strings.Contains(errs.String(), x.says) {
				t.Errorf("exit code %d, want %d: %s", got, x.exit, errs.String())
			}
		})
	}
}

func TestRealInspectorOverPipes(t *testing.T) {
	program := npmtest.Path(t, "@modelcontextprotocol/inspector@0.15.0", "mcp-inspector")
	_, env := mcpServer(t)
	cmd := exec.CommandContext(t.Context(), program, "--cli", "swarm", "mcp", "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello")
	cmd.Env, cmd.Dir = append(npmtest.Env(t), env...), t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"text": "{\"text\":\"hello\"}"`) || !strings.Contains(string(out), `"structuredContent"`) {
		t.Errorf("%v\n%s", err, out)
	}
}
