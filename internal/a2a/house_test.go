package a2a

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

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/api"
	"swarm/internal/control"
	"swarm/internal/engine/local"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/pipetest"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

const token = "a-token-of-the-tests"

// A house is a server over a state folder of its own, with a project beside it.
type house struct {
	t      testing.TB
	home   *statedir.Home
	dir    string
	hub    *feed.Hub
	server *httpd.Server
	pipes  map[string]*pipetest.Pipe

	drivers *control.Drivers
	stop    context.CancelCauseFunc
	quick   bool // a run ends before Start returns
}

func open(t testing.TB) *house {
	t.Helper()
	h, err := statedir.At(filepath.Join(t.TempDir(), "home"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	h.Summarize = run.Summarize
	if err := h.MakeRuns(); err != nil {
		t.Fatal(err)
	}
	return serve(t, h, t.TempDir())
}

// serve starts a server over a folder; another one may be there already.
func serve(t testing.TB, h *statedir.Home, dir string) *house {
	t.Helper()
	x := &house{t: t, home: h, dir: dir, hub: feed.New(h), pipes: map[string]*pipetest.Pipe{}}
	c := &control.Control{Home: h, Dir: dir, Caller: control.Caller{How: swarm.HowA2A}}
	x.drivers = &control.Drivers{Control: c, Follow: x.hub.Watch, Ended: func(view.Picture, error) {}} // its log says how a run ended
	x.drivers.Options.Engine = local.Run
	x.drivers.Context, x.stop = context.WithCancelCause(context.Background())
	c.GoOn = x.drivers.Resume
	agents := New(Options{Control: c, Start: x.start, Feed: x.hub, Agents: x.agents, Version: "1.2.3", Fault: func(err error) { t.Error(err) }})
	routes := http.NewServeMux()
	for _, path := range Paths {
		routes.Handle(path, agents)
	}
	routes.Handle("/", api.New(api.Options{Control: c, Start: x.drivers.Start, Feed: x.hub}))
	key, err := httpd.NewKey(token)
	if err != nil {
		t.Fatal(err)
	}
	x.server, err = httpd.Start(httpd.Options{Listen: "127.0.0.1:0", Routes: routes, Key: key, Refuse: Refuse, Fault: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	x.drivers.Options.Server = x.server
	t.Cleanup(x.leave)
	return x
}

// leave ends the server. Its runs are interrupted, and can be resumed.
func (h *house) leave() {
	h.stop(swarm.Errorf(swarm.Stopped, "the test is over"))
	h.drivers.Wait()
	h.hub.Close()
	if err := h.server.Close(); err != nil {
		h.t.Error(err)
	}
}

func (h *house) agents() (all []Agent, err error) {
	b, _, err := h.drivers.Control.Team(control.Request{Alone: true})
	if err != nil {
		return nil, err
	}
	for i, a := range b.Plan.Agents {
		all = append(all, Agent{Name: a.Name, Description: "It is " + a.Name + ".", Lead: i == 0})
	}
	return all, nil
}

func (h *house) start(ctx context.Context, r control.Request) (string, error) {
	id, err := h.drivers.Start(ctx, r)
	if h.quick && err == nil {
		h.finish(id)
	}
	return id, err
}

// finish waits until a run is over and was left.
func (h *house) finish(id string) {
	reader, err := run.OpenReader(h.home, swarm.RunID(id))
	if err == nil {
		_, err = reader.Wait(context.Background())
		reader.Close()
	}
	if err != nil {
		h.t.Error(err)
	}
}

// project writes a compose file whose agents are scripted, but for sh, which runs agent.sh.
func (h *house) project(script string) {
	h.t.Helper()
	h.write("swarm/swarm.yaml", "provider: script\nproviders:\n  script: {kind: script, script: team.yaml}\n  sh: {kind: command, command: [sh, agent.sh]}\n"+
		"agents: {chief: {}, coder: {}, sh: {provider: sh}}\nedges: [\"chief <-> coder\", \"chief <-> sh\"]\n")
	if script == "" {
		script = "- {agent: chief, say: nothing}\n"
	}
	h.write("swarm/team.yaml", script)
	h.write("agent.sh", "echo > out; read line < one; echo one; read line < two; echo two\n")
	for _, name := range []string{"out", "one", "two"} {
		h.pipes[name] = pipetest.Make(h.t, filepath.Join(h.dir, name))
	}
}

func (h *house) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// began waits until the agent sh has its prompt.
func (h *house) began() {
	h.t.Helper()
	h.pipes["out"].Line()
}

// say has the agent sh say a word, one or two.
func (h *house) say(word string) { h.pipes[word].Say("") }

// request makes an authenticated request.
func (h *house) request(method, path, body string) *http.Request {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL()+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// text is what a request is answered with.
func (h *house) text(r *http.Request) (status int, text string) {
	h.t.Helper()
	status, _, text = h.get(r)
	return status, text
}

func (h *house) get(r *http.Request) (status int, header http.Header, text string) {
	h.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(all)
}

// A called is what a call is answered with.
type called struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

// call does a call of JSON-RPC.
func (h *house) call(agent, method, params string) (got called) {
	h.t.Helper()
	_, text := h.text(h.request("POST", "/a2a/"+agent, `{"jsonrpc":"2.0","id":"x","method":"`+method+`","params":`+params+`}`))
	if _, data, stream := strings.Cut(text, "data: "); stream {
		text = data
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Result == nil && got.Error == nil {
		h.t.Fatalf("%s %s: %v in %s", method, params, err, text)
	}
	return got
}

// good is the task that a call must give, whether it is wrapped or not.
func (h *house) good(agent, method, params string) *wire.Task {
	h.t.Helper()
	got := h.call(agent, method, params)
	if got.Error != nil {
		h.t.Fatalf("%s %s: %+v", method, params, *got.Error)
	}
	var wrapped struct{ Task *wire.Task }
	if err := json.Unmarshal(got.Result, &wrapped); err != nil {
		h.t.Fatal(err)
	}
	if wrapped.Task != nil {
		return wrapped.Task
	}
	var plain wire.Task
	if err := json.Unmarshal(got.Result, &plain); err != nil || plain.ID == "" {
		h.t.Fatalf("%s: %v in %s", method, err, got.Result)
	}
	return &plain
}

// bad is the code that a call must be refused with.
func (h *house) bad(agent, method, params string, want int) string {
	h.t.Helper()
	got := h.call(agent, method, params)
	if got.Error == nil || got.Error.Code != want {
		h.t.Fatalf("%s %s: %s %+v, want %d", method, params, got.Result, got.Error, want)
	}
	return got.Error.Message
}

// message is the parameters of a message.
func message(id, text string, more ...string) string {
	b, _ := json.Marshal(text)
	return `{"message":{"messageId":"` + id + `","role":"ROLE_USER","parts":[{"text":` + string(b) + `}]` + strings.Join(more, "") + `}}`
}

func inTask(id wire.TaskID) string { return `,"taskId":"` + string(id) + `"` }
func inContext(id string) string   { return `,"contextId":"` + id + `"` }
func named(id wire.TaskID) string  { return `{"id":"` + string(id) + `"}` }

// An ear hears a stream.
type ear struct {
	t     testing.TB
	lines *bufio.Scanner
}

func (h *house) listen(agent, method, params string) *ear {
	h.t.Helper()
	answer, err := http.DefaultClient.Do(h.request("POST", "/a2a/"+agent, `{"jsonrpc":"2.0","id":"x","method":"`+method+`","params":`+params+`}`))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { answer.Body.Close() })
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		h.t.Fatalf("the stream is %q", kind)
	}
	return &ear{h.t, bufio.NewScanner(answer.Body)}
}

// next is what is told next; nil at the end.
func (e *ear) next() wire.Event {
	e.t.Helper()
	for e.lines.Scan() {
		data, ok := strings.CutPrefix(e.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var got called
		var event wire.StreamResponse
		err := json.Unmarshal([]byte(data), &got)
		if err == nil && got.Error == nil {
			err = json.Unmarshal(got.Result, &event)
		}
		if err != nil || got.Error != nil {
			e.t.Fatalf("%s: %v", data, err)
		}
		return event.Event
	}
	return nil
}

// until listens until something is told.
func (e *ear) until(want string) {
	e.t.Helper()
	var all []string
	for {
		event := e.next()
		if event == nil {
			e.t.Fatalf("the stream ended before %q, after %q: %v", want, all, e.lines.Err())
		}
		if all = append(all, short(event)); all[len(all)-1] == want {
			return
		}
	}
}

// rest is what is told until the end, in short: states, and what artifacts say, with + for what is
// added to them.
func (e *ear) rest() string {
	e.t.Helper()
	var all []string
	for event := e.next(); event != nil; event = e.next() {
		all = append(all, short(event))
	}
	return strings.Join(all, " ")
}

func short(event wire.Event) string {
	switch m := event.(type) {
	case *wire.Task:
		return strings.ToLower(strings.TrimPrefix(m.Status.State.String(), "TASK_STATE_"))
	case *wire.TaskStatusUpdateEvent:
		return strings.ToLower(strings.TrimPrefix(m.Status.State.String(), "TASK_STATE_"))
	case *wire.TaskArtifactUpdateEvent:
		text := strings.ReplaceAll(m.Artifact.Parts[0].Text(), "\n", "|")
		if m.Append {
			text = "+" + text
		}
		return string(m.Artifact.ID) + ":" + text
	}
	return "?"
}

// append writes into the log of a run, as another process would.
func (h *house) append(id wire.TaskID, events ...swarm.Event) {
	h.t.Helper()
	log, err := h.home.Store.Open(h.t.Context(), swarm.RunID(id), swarm.ReadWrite)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.Append(context.Background(), swarm.Batch{Events: events}); err != nil {
		h.t.Fatal(err)
	}
}

// events are those of a kind in the log of a run, or all.
func (h *house) events(id wire.TaskID, kind swarm.EventKind) (all []swarm.Event) {
	h.t.Helper()
	reader, err := run.OpenReader(h.home, swarm.RunID(id))
	if err != nil {
		h.t.Fatal(err)
	}
	defer reader.Close()
	events, err := reader.Read(0, 10_000)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range events {
		if kind == "" || e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}
