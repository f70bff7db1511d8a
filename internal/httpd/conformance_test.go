package httpd

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm/internal/npmtest"
)

const (
	conformance = "@modelcontextprotocol/conformance@0.1.16"
	inspector   = "@modelcontextprotocol/inspector@0.15.0"
	// conformance2026 is the suite of MCP 2026-07-28.
	conformance2026 = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
)

// unmet are the checks of the suite that the server fails, and the reasons why that is right.
var unmet = map[string]string{
	"server-sse-priming-event": "a SHOULD, for clients that come back to a stream that broke: ours are on the same machine, where a connection breaks only together with the program at its end, so nothing is kept for them",
	"server-sse-retry-field":   "a SHOULD, of a server that breaks off a stream to be asked again later: ours stays until the answer is there",
}

// TestRealConformance runs the suite with its fixture behind our handler. The scenarios that need
// no particular tools also run with our own tools.
func TestRealConformance(t *testing.T) {
	t.Parallel()
	program := npmtest.Path(t, conformance, "conformance")
	h := open(t)
	ours := h.mcp.newServer
	var own atomic.Bool // clients of the suite may still be connected when it has ended
	h.mcp.newServer = func(s *session, a Agent) (*mcp.Server, error) {
		if own.Load() {
			return ours(s, a)
		}
		return fixture(s), nil
	}
	where := reception(t, h, "planner") + "/mcp"
	all := checks(t, program, "--url", where, "--suite", "all")
	if passed := judge(t, all, unmet); len(all) != 32 || passed != 44 {
		t.Errorf("%d scenarios with %d passed checks, of 32 with 44: %v", len(all), passed, all)
	}
	own.Store(true)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"} {
		if passed := judge(t, checks(t, program, "--url", where, "--scenario", scenario), nil); passed == 0 {
			t.Errorf("%s, with our tools: no check was passed", scenario)
		}
	}
}

// notOurs are the beginnings of the scenarios of MCP 2026-07-28 that test what we do not offer, and why.
var notOurs = map[string]string{
	"server-tasks-":                 "an extension that we do not offer",
	"server-input-required-result-": "our tools ask nothing of their client",
	"server-http-custom-header-":    "our tools take nothing from headers",
	"server-json-schema-2020-12-":   "it needs a tool whose schema has keywords that ours do not use",
}

// TestRealConformance2026 runs what MCP 2026-07-28 requires, with the fixture of the older suite behind
// our handler. A check that names a tool which the fixture lacks is not testable.
func TestRealConformance2026(t *testing.T) {
	t.Parallel()
	program := npmtest.Path(t, conformance2026, "conformance")
	h := open(t)
	h.mcp.newServer = func(s *session, _ Agent) (*mcp.Server, error) { return fixture(s), nil }
	all := checks(t, program, "--url", reception(t, h, "planner")+"/mcp", "--requirements", "2026-07-28")
	passed, left := 0, 0
	for scenario, some := range all {
		excused := false
		for begin := range notOurs {
			excused = excused || strings.HasPrefix(scenario, begin)
		}
		for _, c := range some {
			switch {
			case c.Status == "SUCCESS":
				passed++
			case c.Status == "INFO":
			case excused, c.Status == "WARNING", strings.HasPrefix(c.ErrorMessage, "Not testable"):
				left++
			default:
				t.Errorf("%s: %s: %s %s", scenario, c.ID, c.Status, c.ErrorMessage)
			}
		}
	}
	if t.Logf("%d checks passed, %d do not apply", passed, left); passed != 127 {
		t.Errorf("%d checks passed, of 127", passed)
	}
}

// A check is one result of the suite.
type check struct{ ID, Status, ErrorMessage string }

// checks runs the suite and reads its results by scenario. The suite's own summary counts a
// scenario without checks as passed.
func checks(t *testing.T, program string, args ...string) map[string][]check {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"server", "--output-dir", dir}, args...)...)
	cmd.Env, cmd.Dir = npmtest.Env(t), dir
	out, err := cmd.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	if len(files) == 0 {
		t.Fatalf("the suite found nothing: %v\n%s", err, out)
	}
	found := map[string][]check{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var some []check
		if err := json.Unmarshal(text, &some); err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(filepath.Dir(file))] = some
	}
	return found
}

// judge counts the passed checks. Each failed check needs an excuse, and each excuse must be used.
func judge(t *testing.T, found map[string][]check, excused map[string]string) (passed int) {
	t.Helper()
	used := map[string]bool{}
	for scenario, some := range found {
		for _, c := range some {
			switch {
			case c.Status == "SUCCESS":
				passed++
			case c.Status == "INFO":
			case excused[c.ID] != "" && c.Status != "FAILURE":
				used[c.ID] = true
			default:
				t.Errorf("%s: %s: %s %s", scenario, c.ID, c.Status, c.ErrorMessage)
			}
		}
	}
	for id := range excused {
		if !used[id] {
			t.Errorf("%s is excused and needs no excuse", id)
		}
	}
	return passed
}

// reception is a proxy for programs that cannot send a token. It adds the token and replaces the
// Host by ours.
func reception(t *testing.T, h *house, agent string) string {
	t.Helper()
	to, err := url.Parse(h.URL())
	if err != nil {
		t.Fatal(err)
	}
	var own string
	s := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		body, _ := io.ReadAll(r.In.Body) // else an answer that comes early can break off what is still looking for the end of the question
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
		r.Out.Host = strings.Replace(r.In.Host, own, to.Host, 1)
		if origin := r.In.Header.Get("Origin"); origin != "" {
			r.Out.Header.Set("Origin", strings.Replace(origin, own, to.Host, 1))
		}
		r.Out.Header.Set("Authorization", "Bearer "+h.tokens.For(agent))
	}})
	own = s.Listener.Addr().String()
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func TestRealInspector(t *testing.T) {
	t.Parallel()
	program := npmtest.Path(t, inspector, "mcp-inspector")
	h := open(t)
	where := reception(t, h, "coder") + "/mcp"
	inspect := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"--cli", where}, args...)...)
		cmd.Env, cmd.Dir = npmtest.Env(t), t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	if out := inspect("--method", "tools/list"); !strings.Contains(out, `"name": "keep"`) || !strings.Contains(out, `"Keeps a text."`) {
		t.Errorf("it lists %s", out)
	}
	var r struct {
		Content           []struct{ Text string }
		StructuredContent struct{ By string }
		IsError           bool
	}
	out := inspect("--method", "tools/call", "--tool-name", "keep", "--tool-arg", "text=from outside")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if r.StructuredContent.By != "coder" || r.IsError || len(r.Content) != 1 || !strings.Contains(r.Content[0].Text, "from outside") {
		t.Errorf("the call was answered with %s", out)
	}
	if got := h.agents["coder"].all(); len(got) != 1 || got[0] != `{"text":"from outside"}` {
		t.Errorf("the agent kept %v", got)
	}
	if out := inspect("--method", "tools/call", "--tool-name", "refuse"); !strings.Contains(out, `"isError": true`) || !strings.Contains(out, "Valid agents: a, b") {
		t.Errorf("the refusal came as %s", out)
	}
}
