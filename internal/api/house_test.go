package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/engine/local"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

const token = "a-token-of-the-tests"

// A house is a server over a state folder of its own, with a project beside it.
type house struct {
	t       testing.TB
	home    *statedir.Home
	dir     string
	api     *API
	server  *httpd.Server
	drivers *control.Drivers
	stop    context.CancelCauseFunc
}

func open(t testing.TB, set ...func(*API)) *house {
	t.Helper()
	h, err := statedir.At(filepath.Join(t.TempDir(), "home"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	h.Summarize = run.Summarize
	if err := h.MakeRuns(); err != nil {
		t.Fatal(err)
	}
	x := &house{t: t, home: h, dir: t.TempDir()}
	c := &control.Control{Home: h, Dir: x.dir}
	x.api = New(Options{Control: c, Feed: feed.New(h)})
	for _, s := range set {
		s(x.api)
	}
	x.drive()
	key, err := httpd.NewKey(token)
	if err != nil {
		t.Fatal(err)
	}
	x.server, err = httpd.Start(httpd.Options{Listen: "127.0.0.1:0", Routes: x.api, Key: key, Page: fstest.MapFS{}, Fault: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	x.drivers.Options.Server = x.server
	t.Cleanup(func() {
		x.stop(swarm.Errorf(swarm.Stopped, "the test is over"))
		x.drivers.Wait()
		x.api.Feed.Close()
		if err := x.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// drive drives runs from here on, as the program does.
func (h *house) drive() {
	c := h.api.Control
	h.drivers = &control.Drivers{Control: c, Follow: h.api.Feed.Watch, Ended: func(view.Picture, error) {}} // its log says how a run ended
	h.drivers.Options.Engine, h.drivers.Options.Server = local.Run, h.server
	h.drivers.Context, h.stop = newContext()
	c.GoOn, h.api.Start, h.api.Begin = h.drivers.Resume, h.drivers.Start, h.drivers.Begin
	h.api.StartLine = func(context.Context, control.Request, string) (string, error) { return "line", nil } // cmd/swarm has it
}

// project writes a compose file in which sh is the provider, and agent.sh what it runs.
func (h *house) project(tasks, agent string) {
	h.t.Helper()
	h.write("swarm/swarm.yaml", "provider: sh\nproviders:\n  sh: {kind: command, command: [sh, agent.sh]}\n"+tasks)
	h.write("agent.sh", agent)
}

func (h *house) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// request makes an authenticated request.
func (h *house) request(method, path, body string) *http.Request {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL()+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (h *house) ask(method, path, body string) (int, string) {
	h.t.Helper()
	answer, err := http.DefaultClient.Do(h.request(method, path, body))
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// get asks for something that must be there.
func get[T any](h *house, path string) (got T) {
	h.t.Helper()
	status, text := h.ask("GET", path, "")
	if status != http.StatusOK {
		h.t.Fatalf("%s: %d %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		h.t.Fatalf("%s: %v in %s", path, err, text)
	}
	return got
}

// post does something that must be possible.
func (h *house) post(path, body string, want int) string {
	h.t.Helper()
	status, text := h.ask("POST", path, body)
	if status != want {
		h.t.Fatalf("POST %s %s: %d %s, want %d", path, body, status, text, want)
	}
	return text
}

// start starts the project's run.
func (h *house) start() string {
	h.t.Helper()
	var b begun
	if err := json.Unmarshal([]byte(h.post("/api/v1/runs", `{}`, http.StatusCreated)), &b); err != nil {
		h.t.Fatal(err)
	}
	return b.Run
}

// bare makes a run that has only a log, and returns a writer for it, as another process would have.
func (h *house) bare() (id string, write func(...swarm.Event)) {
	h.t.Helper()
	id, _, write = h.log(h.dir)
	return id, write
}

func (h *house) log(dir string) (id string, log swarm.RunLog, write func(...swarm.Event)) {
	h.t.Helper()
	return h.logOf(swarm.RunStart{Kind: swarm.PipelineRun, Dir: dir})
}

func (h *house) logOf(began swarm.RunStart) (id string, log swarm.RunLog, write func(...swarm.Event)) {
	h.t.Helper()
	id = string(swarm.NewRunID(time.Now()))
	log, err := h.home.Store.Create(h.t.Context(), swarm.RunID(id))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { log.Close() })
	write = func(events ...swarm.Event) {
		h.t.Helper()
		if _, err := log.Append(context.Background(), swarm.Batch{Events: events}); err != nil {
			h.t.Fatal(err)
		}
	}
	kind := began.Kind
	began.ID, began.Time = swarm.RunID(id), time.Now()
	start, _ := json.Marshal(began)
	plan, _ := json.Marshal(swarm.Plan{Kind: kind, Groups: []swarm.Group{{Iterations: 1}}, Agents: []swarm.Agent{{Name: "a", Provider: "sh"}}, Tasks: []swarm.Task{{Name: "a", Agent: "a"}}})
	write(swarm.Event{Kind: swarm.RunStarted, Data: start}, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: plan})
	return id, log, write
}

func note(text string) swarm.Event {
	body, _ := json.Marshal(swarm.Reason{Reason: text})
	return swarm.Event{Kind: swarm.Notice, Data: body}
}

// A told is one event of a stream, as the rules of Server-Sent Events read it.
type told struct{ id, event, data, comment string }

// A listener reads a stream.
type listener struct {
	t      testing.TB
	status int
	body   io.ReadCloser
	lines  *bufio.Reader
}

func (h *house) listen(query, lastID string) *listener {
	h.t.Helper()
	r := h.request("GET", "/api/v1/stream/sse?"+query, "")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode == http.StatusOK && kind != "text/event-stream" {
		h.t.Fatalf("the stream is %q", kind)
	}
	return &listener{h.t, answer.StatusCode, answer.Body, bufio.NewReader(answer.Body)}
}

// next is the next event; ok is false at the end. A line ends with LF, CR or both, as browsers have
// it.
func (l *listener) next() (got told, ok bool) {
	l.t.Helper()
	for {
		line, err := l.lines.ReadString('\n')
		if err != nil {
			return got, false
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			return got, true
		}
		if strings.ContainsAny(line, "\r\x00") {
			l.t.Fatalf("a line of the stream is %q", line)
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			got.id = value
		case "event":
			got.event = value
		case "data":
			if got.data != "" {
				l.t.Fatalf("data of two lines: %s", value)
			}
			got.data = value
		case "":
			got.comment = value
		default:
			l.t.Fatalf("a line of the stream is %q", line)
		}
	}
}

// until reads up to the first event of a kind, and gives all of them.
func (l *listener) until(kind string) (all []told) {
	l.t.Helper()
	for {
		got, ok := l.next()
		if !ok {
			l.t.Fatalf("the stream ended before %s, after %v", kind, all)
		}
		all = append(all, got)
		if got.event == kind {
			return all
		}
	}
}

// append writes into the log of a run, as another process would.
func (h *house) append(id swarm.RunID, events ...swarm.Event) {
	h.t.Helper()
	log, err := h.home.Store.Open(h.t.Context(), id, swarm.ReadWrite)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(context.Background(), swarm.Batch{Events: events}); err != nil {
		h.t.Fatal(err)
	}
}

// settle waits until the run's driver has left it.
func (h *house) settle(id string) {
	h.t.Helper()
	l, err := run.OpenReader(h.home, swarm.RunID(id))
	if err != nil {
		h.t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Wait(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
}

func newContext() (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.Background())
}
