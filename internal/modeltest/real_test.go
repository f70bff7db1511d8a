package modeltest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
)

const (
	modelKey   = "sk-canary-model-0123456789"
	agentToken = "canary-token-0123456789"
)

// A desk is where a program works: a folder, a home, a model and a server of tools.
type desk struct {
	*testing.T
	program program
	path    string
	server  *modeltest.Server
	tools   string // where the tools are
	home    string
	dir     string

	session string // to go on with
	denied  bool   // it may not use the tools
	keyless bool   // it has no key for its model
	stop    int    // it is told to end when it has asked its model so often; 0 = never

	mu    sync.Mutex
	calls []string // of tools
}

type handoff struct {
	To      string `json:"to"`
	Message string `json:"message"`
}

func newDesk(t *testing.T, p program, script ...modeltest.Answer) *desk {
	t.Helper()
	d := &desk{T: t, program: p, path: npmtest.Path(t, p.spec, p.bin), home: t.TempDir(), dir: t.TempDir(), server: modeltest.Start(script...)}
	t.Cleanup(d.server.Close)
	tools := mcp.NewServer(&mcp.Implementation{Name: "swarm", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "send_handoff", Description: "Hands work to another agent."}, func(_ context.Context, _ *mcp.CallToolRequest, h handoff) (*mcp.CallToolResult, any, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.calls = append(d.calls, h.To+": "+h.Message)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{"id":"e1","seq":1}`}}}, nil, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+agentToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(served.Close)
	d.tools = served.URL + "/mcp"
	return d
}

// file writes a file into the program's home.
func (d *desk) file(name, text string) string {
	d.Helper()
	path := filepath.Join(d.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		d.Fatal(err)
	}
	return path
}

// An outcome is what a program left.
type outcome struct {
	stdout, stderr string
	exit           string
}

func (d *desk) run(prompt string) outcome {
	d.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(d.Context(), d.path, d.program.args(d)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.dir, strings.NewReader(prompt), &stdout, &stderr
	cmd.Env = append(d.program.env(d), "PATH="+os.Getenv("PATH"), "HOME="+d.home, "TMPDIR="+d.home, "SWARM_AGENT_TOKEN="+agentToken)
	if !d.keyless {
		cmd.Env = append(cmd.Env, d.program.key+"="+modelKey)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second // for those of its children that hold its output
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	if d.stop > 0 {
		go func() { // who ends before is not waited for
			d.server.Await(d.stop)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		}()
	}
	_ = cmd.Wait() // its state says it
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.String()}
}

var sessions = regexp.MustCompile(`"(?:session_id|thread_id|sessionID)":"([^"]+)"`)

// begun returns the session that a stream names.
func (o outcome) begun(t *testing.T) string {
	t.Helper()
	m := sessions.FindStringSubmatch(o.stdout)
	if m == nil {
		t.Fatalf("no session in %+v", o)
	}
	return m[1]
}

func (o outcome) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("%q is not in the stream: %+v", text, o)
		}
	}
}

const (
	hello = "Say hello.\nYour SWARM_AGENT_ID is planner.\n"
	again = "Say it again.\n"
	half  = "Hello, planner." // half of which is said
)

var (
	text    = modeltest.Answer{Text: "Hello, planner.", Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}
	calling = modeltest.Answer{Text: "I hand it over.", Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to": "coder", "message": "the plan"}`}},
		Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}
	handed = modeltest.Answer{Text: "It is handed over.", Usage: modeltest.Usage{Input: 1300, Output: 20, Cached: 1000}}
)

func TestRealAgentSays(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, text)
		o := d.run(hello)
		d.keep("text", o)
		o.has(t, "30") // what it cost
		asked := d.server.Requests()
		if o.exit != "exit status 0" || !p.good.MatchString(o.stdout) || len(asked) != 1 || asked[0].Prompt != hello {
			t.Fatalf("%+v; the model was asked %+v", o, asked)
		}
		if len(d.server.Strays()) > 0 {
			t.Errorf("it asked for %v", d.server.Strays())
		}

		d.session = o.begun(t)
		o = d.run(again)
		d.keep("second", o)
		asked = d.server.Requests()
		if last := asked[len(asked)-1]; len(asked) != 2 || last.Prompt != again || !slices.Equal(last.Said, []string{hello, again}) || o.begun(t) != d.session {
			t.Fatalf("%+v; the model was asked %+v", o, asked)
		}
	})
}

func TestRealAgentCallsATool(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, calling, handed)
		o := d.run(hello)
		d.keep("tool", o)
		o.has(t, "send_handoff", "the plan")
		asked := d.server.Requests()
		if o.exit != "exit status 0" || len(asked) != 2 || len(asked[1].Results) != 1 || !strings.Contains(asked[1].Results[0], `{"id":"e1","seq":1}`) {
			t.Fatalf("%+v; the model was asked %+v", o, asked)
		}
		if !slices.Equal(d.calls, []string{"coder: the plan"}) {
			t.Errorf("the tool was called with %q", d.calls)
		}
	})
}

func TestRealAgentMayNotCallATool(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, calling, handed)
		d.denied = true
		o := d.run(hello)
		d.keep("denied", o)
		if len(d.calls) > 0 {
			t.Errorf("%+v: the tool was called with %q", o, d.calls)
		}
	})
}

// TestRealAgentForgot: a missing session is not silently replaced by a new one.
func TestRealAgentForgot(t *testing.T) {
	eachProgram(t, func(t *testing.T, p program) {
		d := newDesk(t, p, text)
		d.session = "01234567-89ab-4cde-8f01-23456789abcd"
		if p.name == "opencode" {
			d.session = "ses_0123456789abcdef0123456789"
		}
		o := d.run(again)
		d.keep("forgot", o)
		if asked := d.server.Requests(); len(asked) > 0 || o.exit == "exit status 0" {
			t.Errorf("%+v; the model was asked %+v", o, asked)
		}
	})
}

// TestRealAgentInTrouble: whatever goes wrong, a program reports no result that could pass for a
// good one, and prints no secret.
func TestRealAgentInTrouble(t *testing.T) {
	cases := map[string]struct {
		answer  modeltest.Answer
		keyless bool
		stop    map[string]int // when it is told to end
	}{
		"limited":  {answer: modeltest.Answer{Status: 429, After: "1", Message: "Number of requests has exceeded your limit"}},
		"broken":   {answer: modeltest.Answer{Status: 500, AfterMS: 1, Message: "Internal server error"}},
		"overload": {answer: modeltest.Answer{Text: half, Trouble: modeltest.Overload}, stop: map[string]int{"opencode": 2}}, // it would try for minutes
		"cut":      {answer: modeltest.Answer{Text: half, Trouble: modeltest.Cut}, stop: map[string]int{"opencode": 2}},
		"refused":  {answer: modeltest.Answer{Status: 401, Message: "invalid key"}},
		"keyless":  {answer: modeltest.Answer{Status: 401, Message: "no key"}, keyless: true},
		"stopped":  {answer: modeltest.Answer{Text: half, Trouble: modeltest.HangsLate}, stop: map[string]int{"claude": 1, "codex": 1, "gemini": 1, "opencode": 1}},
	}
	eachProgram(t, func(t *testing.T, p program) {
		if p.slow && os.Getenv("SWARM_TEST_AGENTS") == "" {
			t.Skip("skipped: it takes a minute; make test-agents runs it")
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t, p, c.answer)
				d.keyless, d.stop = c.keyless, c.stop[p.name]
				o := d.run(hello)
				d.keep(name, o)
				if good := p.good.FindString(o.stdout); good != "" {
					t.Errorf("it says %s: %+v", good, o)
				}
			})
		}
	})
}

// TestRealClaudeStays: one process does turn after turn, and streams its model's text.
func TestRealClaudeStays(t *testing.T) {
	p := programs[0]
	p.args = func(d *desk) []string {
		return append(claudeArgs(d), "--input-format", "stream-json", "--include-partial-messages")
	}
	d := newDesk(t, p, text)
	line := func(said string) string {
		return fmt.Sprintf(`{"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": %q}]}}`+"\n", said)
	}
	o := d.run(line(hello) + line(again))
	d.keep("stays", o)
	asked := d.server.Requests()
	if o.exit != "exit status 0" || len(asked) != 2 || !slices.Equal(asked[1].Said, []string{hello, again}) {
		t.Fatalf("%+v; the model was asked %+v", o, asked)
	}
	o.has(t, `"text_delta"`)
	if n := len(p.good.FindAllString(o.stdout, -1)); n != 2 {
		t.Errorf("%d results in %+v", n, o)
	}
}
