package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
)

// withServer returns an agent with one server `s`, which is this test binary with the given
// behaviour.
func withServer(t *testing.T, how string, allow ...string) *desk {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return withSpec(t, swarm.ToolServer{Name: "s", Command: []string{self}, Env: map[string]string{asServer: how, "GIVEN": "$HELD"}}, allow...)
}

func withSpec(t *testing.T, spec swarm.ToolServer, allow ...string) *desk {
	t.Helper()
	d := sit(t)
	servers := NewServers([]swarm.ToolServer{spec}, ServerOptions{Run: "run-of-servers", Dir: d.root, Grace: 200 * time.Millisecond,
		Environ: append(os.Environ(), "HELD=held", "OPENAI_API_KEY=k1", "SWARM_TOKEN=k2")})
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
		d.T = t
		d.noneLeft()
	})
	d.open(Options{Allow: allow, Servers: servers})
	return d
}

// overHTTP serves the same tools over HTTP.
func overHTTP(t *testing.T, how string, wrap func(http.Handler) http.Handler) swarm.ToolServer {
	t.Helper()
	over := make(chan struct{})
	server := newServer(how, over)
	var h http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: how == "json"})
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		close(over) // a call that came after its own cancelling waits for ever
		s.Close()
	})
	return swarm.ToolServer{Name: "s", URL: s.URL + "/mcp?key=" + canary}
}

func (d *desk) offered() []string {
	d.Helper()
	specs, err := d.box.Specs(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

// notOffered expects an error from Specs.
func (d *desk) notOffered(kind swarm.ErrorKind, want string) {
	d.Helper()
	_, err := d.box.Specs(d.Context())
	if swarm.KindOf(err) != kind || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary) {
		d.Errorf("%v (%v), want %s", err, swarm.KindOf(err), want)
	}
}

// Tools work the same over pipes and over HTTP.
func TestServers(t *testing.T) {
	for how, open := range map[string]func(*testing.T) *desk{
		"stdio":  func(t *testing.T) *desk { return withServer(t, "good", "s") },
		"chatty": func(t *testing.T) *desk { return withServer(t, "chatty", "s") },
		"http":   func(t *testing.T) *desk { return withSpec(t, overHTTP(t, "good", nil), "s") },
		"json":   func(t *testing.T) *desk { return withSpec(t, overHTTP(t, "json", nil), "s") },
	} {
		t.Run(how, func(t *testing.T) {
			d := open(t)
			if names := d.offered(); len(names) != 12 || !slices.Contains(names, "s__echo") {
				t.Errorf("offered are %v", names)
			}
			for tool, want := range map[string]string{
				"echo": "you said hi", "image": "look:\n[an image, image/png, 4 bytes]", "structured": `{"a":1}`, "silent": "(it said nothing)",
			} {
				if got := d.must("s__"+tool, "text", "hi"); got != want {
					t.Errorf("%s: %q", tool, got)
				}
			}
			var passed []swarm.ToolImage
			seeing := swarm.WithToolImages(t.Context(), func(i swarm.ToolImage) string { passed = append(passed, i); return ", shown" })
			got, err := d.box.Call(seeing, "s__image", json.RawMessage(`{"text":""}`))
			if err != nil || got != "look:\n[an image, image/png, 4 bytes, shown]" || len(passed) != 1 || string(passed[0].Data) != "1234" || passed[0].MIMEType != "image/png" {
				t.Errorf("%q, %v, %v", got, err, passed)
			}
			if got := d.must("s__long", "text", ""); len(got) > maxResult+100 || !strings.HasPrefix(got, "begin x") || !strings.HasSuffix(got, "x end") || !strings.Contains(got, "left out") {
				t.Errorf("%d bytes", len(got))
			}
			if got := d.refused(swarm.Other, "s__fail", "text", "luck"); !strings.HasPrefix(got, "no such luck") {
				t.Error(got)
			}
			if got := d.refused(swarm.Other, "s__echo", "text", 7); !strings.Contains(got, "text") {
				t.Error(got)
			}
			d.refused(swarm.Denied, "s__nothing")
			d.refused(swarm.Denied, "echo")
			if _, err := d.box.Call(t.Context(), "s__echo", json.RawMessage("[]")); swarm.KindOf(err) != swarm.BadInput {
				t.Error(err)
			}
		})
	}
}

// Only tools on the agent's list are offered, and only those can be called.
func TestServerToolsAreAllowedOneByOne(t *testing.T) {
	d := withServer(t, "good", "s.echo", "s__pid")
	if got := strings.Join(d.offered(), " "); got != "s__echo s__pid" {
		t.Error(got)
	}
	d.refused(swarm.Denied, "s__env", "text", "PATH")
	d = withServer(t, "good", "s.ecko", "s.pid")
	specs, err := d.box.Specs(t.Context())
	if e, ok := err.(*swarm.Error); !ok || e.Kind != swarm.NotFound || e.Hint != `did you mean "echo"?` || len(specs) != 1 {
		t.Errorf("%v, %v", specs, err)
	}
}

func TestServerEnvironment(t *testing.T) {
	d := withServer(t, "good", "s")
	for name, want := range map[string]string{"GIVEN": "held", "HELD": "held", "SWARM_RUN_ID": "run-of-servers", "OPENAI_API_KEY": "(it said nothing)", "SWARM_TOKEN": "(it said nothing)"} {
		if got := d.must("s__env", "text", name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// All agents of a run share one server, which is started once.
func TestServerIsShared(t *testing.T) {
	d := withServer(t, "good", "s")
	var all sync.WaitGroup
	pids := make([]string, 20)
	for i := range pids {
		all.Go(func() {
			box, err := Open(Options{Root: d.root, Allow: []string{"s.pid"}, Servers: d.box.o.Servers})
			if err != nil {
				t.Error(err)
				return
			}
			if pids[i], err = box.Call(t.Context(), "s__pid", json.RawMessage(`{"text":""}`)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if slices.Sort(pids); pids[0] != pids[len(pids)-1] || pids[0] == "" {
		t.Errorf("processes %v", pids)
	}
	if err := d.box.o.Servers.Close(); err != nil {
		t.Error(err)
	}
	d.refused(swarm.Stopped, "s__pid", "text", "")
}

func TestServerThatDoesNotStart(t *testing.T) {
	d := withServer(t, "broken", "s")
	for range maxFailures + 2 {
		d.notOffered(swarm.NotFound, `the tool server "s" did not start: exit status 7: cannot find module 'left-pad'`)
	}
	if got := d.box.o.Servers.byName["s"].starts; got != maxFailures {
		t.Errorf("started %d times", got)
	}
	withServer(t, "future", "s").notOffered(swarm.NotFound, `the tool server "s" answers with the MCP version "2031-01-01", which swarm does not speak`)
	withSpec(t, swarm.ToolServer{Name: "s", Command: []string{"no-such-server"}}, "s").notOffered(swarm.NotFound, `there is no program "no-such-server"`)
	gone := httptest.NewServer(http.NotFoundHandler())
	spec := swarm.ToolServer{Name: "s", URL: gone.URL + "/?key=" + canary}
	withSpec(t, spec, "s").notOffered(swarm.NotFound, `the tool server "s" cannot be reached`)
	gone.Close()
	withSpec(t, spec, "s").notOffered(swarm.NotFound, "connection refused")
	away := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/mcp", http.StatusTemporaryRedirect))
	defer away.Close()
	withSpec(t, swarm.ToolServer{Name: "s", URL: away.URL}, "s").notOffered(swarm.NotFound, "leads to another server")
}

// A failing server does not affect the others.
func TestOneServerOfTwo(t *testing.T) {
	d := sit(t)
	self, _ := os.Executable()
	servers := NewServers([]swarm.ToolServer{
		{Name: "bad", Command: []string{self}, Env: map[string]string{asServer: "broken"}},
		{Name: "good", Command: []string{self}, Env: map[string]string{asServer: "good"}},
	}, ServerOptions{Run: "r", Dir: d.root, Grace: 200 * time.Millisecond})
	defer servers.Close()
	d.open(Options{Allow: []string{"file_list", "bad", "good.echo"}, Servers: servers})
	specs, err := d.box.Specs(t.Context())
	if len(specs) != 2 || err == nil || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("%v, %v", specs, err)
	}
	if got := d.must("good__echo", "text", "x"); got != "you said x" {
		t.Error(got)
	}
}

func TestServerThatHangs(t *testing.T) {
	t.Run("from the beginning", func(t *testing.T) {
		d := withServer(t, "hangs", "s")
		ctx, stop := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, swarm.Errorf(swarm.TimedOut, "the turn's time is over"))
		defer stop()
		if _, err := d.box.Specs(ctx); swarm.KindOf(err) != swarm.TimedOut || !strings.Contains(err.Error(), "the turn's time") {
			t.Error(err)
		}
		if got := d.box.o.Servers.byName["s"].failures; got != 0 {
			t.Errorf("%d failures of a server that nobody waited for", got)
		}
		defer func(d time.Duration) { startTime = d }(startTime)
		startTime = 200 * time.Millisecond
		d.notOffered(swarm.TimedOut, `the tool server "s" did not answer within 200ms`)
	})
	t.Run("in a call", func(t *testing.T) {
		for how, d := range map[string]*desk{"stdio": withServer(t, "good", "s"), "http": withSpec(t, overHTTP(t, "good", nil), "s")} {
			ctx, cut := context.WithCancelCause(t.Context())
			d.offered()
			time.AfterFunc(100*time.Millisecond, func() { cut(swarm.Errorf(swarm.CutByCancel, "enough")) })
			if _, err := d.box.Call(ctx, "s__wait", json.RawMessage(`{"text":""}`)); swarm.KindOf(err) != swarm.CutByCancel {
				t.Errorf("%s: %v", how, err)
			}
			if got := d.must("s__echo", "text", "after"); got != "you said after" { // it is still there
				t.Errorf("%s: %v", how, got)
			}
		}
	})
	t.Run("without reading", func(t *testing.T) {
		d := withServer(t, "deaf", "s")
		d.offered()
		gone := d.box.o.Servers.byName["s"].link.gone
		args, _ := json.Marshal(words{strings.Repeat("x", 200<<10)})
		for ended := false; !ended; { // it is ended, as it is of no use
			ctx, cut := context.WithTimeout(t.Context(), 200*time.Millisecond)
			if _, err := d.box.Call(ctx, "s__take", args); swarm.KindOf(err) != swarm.TimedOut && swarm.KindOf(err) != swarm.Crashed {
				t.Error(err)
			}
			cut()
			select {
			case <-gone:
				ended = true
			default:
			}
		}
	})
}

func TestServerThatDies(t *testing.T) {
	d := withServer(t, "good", "s")
	before := d.must("s__pid", "text", "")
	if got := d.refused(swarm.Crashed, "s__die", "text", ""); !strings.Contains(got, "exit status 9: segmentation fault, more or less") {
		t.Error(got)
	}
	after := d.must("s__pid", "text", "")
	if before == after {
		t.Error("it is the same process")
	}
	var pid int
	if err := json.Unmarshal([]byte(after), &pid); err != nil {
		t.Fatal(err)
	}
	link := d.box.o.Servers.byName["s"].link
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-link.gone
	if got := d.must("s__echo", "text", "again"); got != "you said again" {
		t.Error(got)
	}
}

// A restarted HTTP server has lost the session. The session is opened again, and the call succeeds.
func TestServerThatForgets(t *testing.T) {
	var mu sync.Mutex
	var now http.Handler
	restart := func() {
		mu.Lock()
		defer mu.Unlock()
		s := newServer("good", nil)
		now = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	restart()
	d := withSpec(t, overHTTP(t, "good", func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			h := now
			mu.Unlock()
			h.ServeHTTP(w, r)
		})
	}), "s.echo")
	d.must("s__echo", "text", "one")
	restart()
	if got := d.must("s__echo", "text", "two"); got != "you said two" {
		t.Error(got)
	}
}

// Many servers answer 400 for a session that they forgot, or 404 with an error of JSON-RPC. In the
// middle of a turn, a tool is called again in a new session. A refusal for another reason is not one.
func TestServerThatForgetsInATurn(t *testing.T) {
	var forgotten, answer, last atomic.Value
	forgotten.Store("")
	var status atomic.Int64
	d := withSpec(t, overHTTP(t, "good", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("Mcp-Session-Id")
			if id != "" && id == forgotten.Load() {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Load()))
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":%q},"id":null}`, answer.Load())
				return
			}
			if id != "" {
				last.Store(id)
			}
			next.ServeHTTP(w, r)
		})
	}), "s.echo")
	if _, err := d.box.Specs(t.Context()); err != nil { // the turn begins
		t.Fatal(err)
	}
	for _, says := range []struct {
		status int64
		text   string
		fails  bool
	}{
		{400, "Bad Request: No valid session ID provided", false},
		{404, "Session not found", false},
		{400, "Bad Request: no such colour", true},
	} {
		d.must("s__echo", "text", "one")
		status.Store(says.status)
		answer.Store(says.text)
		forgotten.Store(last.Load())
		got, err := d.call("s__echo", "text", "two")
		if says.fails != (err != nil) || err == nil && got != "you said two" || err != nil && !strings.HasSuffix(err.Error(), "refuses echo: Bad Request: no such colour") {
			t.Errorf("%d, %s: %q, %v", says.status, says.text, got, err)
		}
	}
	was := forgotten.Swap("")
	if d.must("s__echo", "text", "three"); last.Load() != was {
		t.Error("a refusal has ended the session")
	}
}

// Many servers answer 400 for a session that they forgot. The tools are listed in a new session, in
// the turn that finds out. A server that refuses the new one too is reported in its own words.
func TestServerThatForgetsBadly(t *testing.T) {
	var forgotten, last atomic.Value // sessions
	forgotten.Store("")
	var refuses atomic.Bool
	d := withSpec(t, overHTTP(t, "good", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			id := r.Header.Get("Mcp-Session-Id")
			if id != "" && id == forgotten.Load() || refuses.Load() && bytes.Contains(body, []byte("tools/list")) {
				http.Error(w, "no", http.StatusBadRequest)
				return
			}
			if id != "" {
				last.Store(id)
			}
			next.ServeHTTP(w, r)
		})
	}), "s")
	if _, err := d.box.Specs(t.Context()); err != nil {
		t.Fatal(err)
	}
	forgotten.Store(last.Load())
	if specs, err := d.box.Specs(t.Context()); err != nil || len(specs) == 0 {
		t.Fatalf("after the restart: %d tools, %v", len(specs), err)
	}
	if got := d.must("s__echo", "text", "two"); got != "you said two" {
		t.Error(got)
	}
	refuses.Store(true)
	if _, err := d.box.Specs(t.Context()); err == nil || !strings.HasPrefix(err.Error(), `the tool server "s" did not do tools/list: Bad Request`) {
		t.Error(err)
	}
}

func TestServerThatSaysTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	d := withServer(t, "good", "s")
	if got := d.refused(swarm.Crashed, "s__huge", "text", ""); !strings.Contains(got, "more than 16 MB at once") {
		t.Error(got)
	}
	d.must("s__echo", "text", "x")
	for how, kind := range map[string]string{"good": "text/event-stream", "json": "application/json"} {
		d = withSpec(t, overHTTP(t, how, func(h http.Handler) http.Handler { return sayingMuch(h, kind) }), "s")
		if got := d.refused(swarm.Crashed, "s__huge", "text", ""); !strings.Contains(got, "more than 16 MB at once") {
			t.Error(got)
		}
		d.must("s__echo", "text", "x")
	}
}

// TestServerThatListsTooMuch: a list of 100,000 tools is not decoded, which would take 700 MB.
func TestServerThatListsTooMuch(t *testing.T) {
	d := withServer(t, "endless", "s")
	if _, _, err := d.box.remotes(t.Context()); err == nil || !strings.Contains(err.Error(), "it said more than 2 MB at once") {
		t.Error(err)
	}
}

// sayingMuch answers calls of the tool huge with 50 MB.
func sayingMuch(h http.Handler, kind string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"name":"huge"`)) {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		if kind == "text/event-stream" {
			fmt.Fprint(w, "event: message\ndata: ")
		}
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":`, regexp.MustCompile(`"id":(\d+)`).FindStringSubmatch(string(body))[1], `,"result":{"content":[{"type":"text","text":"`)
		for range 50 {
			fmt.Fprint(w, strings.Repeat("x", 1<<20))
		}
		fmt.Fprint(w, `"}]}}`, "\n\n")
	})
}

func TestServerWithManyTools(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	d := withServer(t, "many", "s")
	d.notOffered(swarm.BadInput, `has 9012 tools, and an agent can be offered 128`)
	d.open(Options{Allow: []string{"s.tool-7", "s__tool-8999"}, Servers: d.box.o.Servers})
	if got := strings.Join(d.offered(), " "); got != "s__tool-7 s__tool-8999" {
		t.Error(got)
	}
	if got := d.must("s__tool-8999", "text", ""); got != "8999" {
		t.Error(got)
	}
}

// Servers' descriptions of tools are not trusted. Names are made valid and unique for models' APIs,
// and a schema that never ends is not used.
func TestServerThatLies(t *testing.T) {
	d := withServer(t, "liar", "s")
	specs, err := d.box.Specs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range specs {
		if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(s.Name) || seen[s.Name] {
			t.Errorf("a tool is called %q", s.Name)
		}
		seen[s.Name] = true
		if s.Name == "s__endless" && (string(s.Schema) != `{"type":"object"}` || !strings.Contains(s.Description, `"$ref":"#"`)) {
			t.Errorf("%s %s", s.Schema, s.Description)
		}
		if len(s.Schema) > maxSchema || len(s.Description) > 3*maxDescription {
			t.Errorf("%s has %d bytes of schema and %d of description", s.Name, len(s.Schema), len(s.Description))
		}
		if strings.HasPrefix(s.Name, "s__name") || s.Name == "s__endless" {
			if got := d.must(s.Name); got != "lied" {
				t.Errorf("%s: %s", s.Name, got)
			}
		}
	}
	if len(specs) != 12+5 {
		t.Errorf("%d tools", len(specs))
	}
}

func TestServerThatChanges(t *testing.T) {
	for how, d := range map[string]*desk{"stdio": withServer(t, "good", "s"), "http": withSpec(t, overHTTP(t, "good", nil), "s")} {
		if names := d.offered(); !slices.Contains(names, "s__silent") {
			t.Errorf("%s: %v", how, names)
		}
		d.must("s__change", "text", "")
		d.refused(swarm.Other, "s__silent", "text", "") // it is no longer there
		for deadline := time.Now().Add(10 * time.Second); ; {
			if names := d.offered(); slices.Contains(names, "s__fresh") && !slices.Contains(names, "s__silent") {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%s: %v", how, names)
			}
		}
		if got := d.must("s__fresh", "text", ""); got != "new" {
			t.Error(got)
		}
	}
}

func TestServerHeaders(t *testing.T) {
	spec := overHTTP(t, "good", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer held" || r.Header.Get("X-Team") != "ours" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	spec.Headers = map[string]string{"Authorization": "Bearer $HELD", "x-team": "ours"}
	if got := withSpec(t, spec, "s").must("s__echo", "text", "x"); got != "you said x" {
		t.Error(got)
	}
	spec.Headers = map[string]string{"Authorization": "Bearer $NOT_SET_ANYWHERE"}
	withSpec(t, spec, "s").notOffered(swarm.NotSignedIn, "NOT_SET_ANYWHERE, which is not set")
	spec.Headers = nil
	withSpec(t, spec, "s").notOffered(swarm.NotFound, "Unauthorized")
}

func TestOfferedName(t *testing.T) {
	taken := map[string]bool{}
	for _, tool := range []string{"a", "a.b", "a/b", "a b", "ä", strings.Repeat("x", 100), strings.Repeat("x", 101), strings.Repeat("x", 61)} {
		name := offeredName("srv", tool, func(n string) bool { return taken[n] })
		if taken[name] || len(name) > maxName || !strings.HasPrefix(name, "srv__") {
			t.Errorf("%q is offered as %q", tool, name)
		}
		taken[name] = true
	}
}

// A server over HTTP is not given up: its people may start it again at any time.
func TestServerThatComesBack(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	d := withSpec(t, overHTTP(t, "good", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "not yet", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	}), "s")
	for range maxFailures + 1 {
		d.notOffered(swarm.NotFound, `the tool server "s" cannot be reached`)
	}
	down.Store(false)
	if names := d.offered(); !slices.Contains(names, "s__echo") {
		t.Errorf("offered are %v", names)
	}
}

// A list that is refused does not end the calls of other turns in the same session.
func TestServerThatListsBesideACall(t *testing.T) {
	var refuses atomic.Bool
	called, release := make(chan struct{}), make(chan struct{})
	d := withSpec(t, overHTTP(t, "good", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			switch {
			case refuses.Load() && bytes.Contains(body, []byte("tools/list")):
				var call struct{ ID json.RawMessage }
				_ = json.Unmarshal(body, &call)
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"busy"}}`, call.ID)
				return
			case bytes.Contains(body, []byte("tools/call")):
				close(called)
				<-release
			}
			next.ServeHTTP(w, r)
		})
	}), "s")
	d.offered()
	refuses.Store(true)
	said := make(chan string)
	go func() {
		text, err := d.box.Call(t.Context(), "s__echo", json.RawMessage(`{"text":"hi"}`))
		said <- fmt.Sprint(text, " ", err)
	}()
	<-called
	if _, err := d.box.Specs(t.Context()); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("the list: %v", err)
	}
	close(release)
	if got := <-said; got != "you said hi <nil>" {
		t.Errorf("the call of the other turn: %s", got)
	}
}
