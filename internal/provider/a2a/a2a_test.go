package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"swarm"
	"swarm/internal/provider"
)

func TestMain(m *testing.M) {
	firstWait, pollWait = time.Millisecond, time.Millisecond
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the server of the tests tells of every client that goes
	os.Exit(m.Run())
}

// A far is a remote agent: the library's own server, with an agent of the test behind it.
type far struct {
	*httptest.Server
	card  wire.AgentCard
	front http.HandlerFunc // goes before the server; it has answered when it has written something
	does  func(ctx context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool)

	mu        sync.Mutex
	cancelled []wire.TaskID
	heard     []*wire.Message
	tokens    []string
}

func publish(t *testing.T, does func(ctx context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool)) *far {
	t.Helper()
	f := &far{does: does}
	h := a2asrv.NewHandler(f)
	mux := http.NewServeMux()
	mux.Handle("POST /rpc", a2asrv.NewJSONRPCHandler(h))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(h)))
	mux.HandleFunc("GET /agent/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(&f.card) })
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.tokens = append(f.tokens, r.Header.Get("Authorization"))
		f.mu.Unlock()
		note := &noted{ResponseWriter: w}
		if f.front != nil {
			f.front(note, r)
		}
		if !note.said {
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(f.Close)
	f.card = wire.AgentCard{Name: "far", Version: "2.1", Capabilities: wire.AgentCapabilities{Streaming: true},
		SupportedInterfaces: []*wire.AgentInterface{wire.NewAgentInterface(f.URL+"/rpc", wire.TransportProtocolJSONRPC)}}
	return f
}

type noted struct {
	http.ResponseWriter
	said bool
}

func (n *noted) WriteHeader(status int) {
	n.said = true
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(b []byte) (int, error) {
	n.said = true
	return n.ResponseWriter.Write(b)
}

func (f *far) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		f.mu.Lock()
		f.heard = append(f.heard, x.Message)
		f.mu.Unlock()
		if x.StoredTask == nil && !yield(wire.NewSubmittedTask(x, x.Message), nil) {
			return
		}
		f.does(ctx, x, func(e wire.Event) bool { return yield(e, nil) })
	}
}

func (f *far) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		f.mu.Lock()
		f.cancelled = append(f.cancelled, x.TaskID)
		f.mu.Unlock()
		yield(wire.NewStatusUpdateEvent(x, wire.TaskStateCanceled, nil), nil)
	}
}

func (f *far) said() []*wire.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard
}

// chunk is a piece of an agent's text.
func chunk(x *a2asrv.ExecutorContext, text string, more bool) wire.Event {
	return &wire.TaskArtifactUpdateEvent{TaskID: x.TaskID, ContextID: x.ContextID, Append: more, Artifact: &wire.Artifact{ID: "out", Parts: wire.ContentParts{wire.NewTextPart(text)}}}
}

func state(x *a2asrv.ExecutorContext, s wire.TaskState, why string) wire.Event {
	var m *wire.Message
	if why != "" {
		m = wire.NewMessageForTask(wire.MessageRoleAgent, x, wire.NewTextPart(why))
	}
	return wire.NewStatusUpdateEvent(x, s, m)
}

// echo repeats its message in two pieces.
func echo(_ context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) {
	_ = say(state(x, wire.TaskStateWorking, "thinking")) && say(chunk(x, "You said: ", false)) && say(chunk(x, x.Message.Parts[0].Text(), true)) && say(state(x, wire.TaskStateCompleted, ""))
}

func ends(s wire.TaskState, why string) func(context.Context, *a2asrv.ExecutorContext, func(wire.Event) bool) {
	return func(_ context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) { say(state(x, s, why)) }
}

func (f *far) open(t *testing.T, headers map[string]string, environ ...string) provider.Provider {
	t.Helper()
	p, err := Open(swarm.ProviderSpec{Name: "far", Kind: "a2a", BaseURL: f.URL + "/agent", Headers: headers}, provider.Options{Environ: append(environ, "X=1")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.(provider.Closer).Close() })
	return p
}

// A told collects the deltas of a turn.
type told struct {
	mu      sync.Mutex
	text    string
	other   []swarm.Delta
	spoken  chan struct{}
	session string
}

func (l *told) live(d swarm.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch d.Kind {
	case swarm.DeltaText:
		if l.text += d.Text; l.spoken != nil {
			close(l.spoken)
			l.spoken = nil
		}
	case swarm.DeltaSession:
		l.session = d.Session
	default:
		l.other = append(l.other, d)
	}
}

func TestAPromptBecomesAMessageAndItsAnswerTheOutput(t *testing.T) {
	for name, change := range map[string]func(*far){
		"JSON-RPC": func(*far) {},
		"HTTP+JSON": func(f *far) {
			f.card.SupportedInterfaces = []*wire.AgentInterface{wire.NewAgentInterface(f.URL+"/rest", wire.TransportProtocolHTTPJSON)}
		},
		"without a stream": func(f *far) { f.card.Capabilities.Streaming = false },
	} {
		t.Run(name, func(t *testing.T) {
			f := publish(t, echo)
			change(f)
			p := f.open(t, nil)
			var l told
			got, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "hello"}, l.live)
			if err != nil || string(got.Output) != "You said: hello" || l.text != "You said: hello" || got.Session == "" || got.Free {
				t.Fatalf("%+v %q %v", got, l.text, err)
			}
			// A later turn continues the conversation, and sends only what is new.
			if _, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/2/1", Prompt: "hello and more", Fresh: "more", Session: got.Session}, l.live); err != nil {
				t.Fatal(err)
			}
			said := f.said()
			if len(said) != 2 || said[1].Parts[0].Text() != "more" || said[1].ContextID == "" || said[1].ContextID != said[0].ContextID && said[0].ContextID != "" {
				t.Errorf("the agent was told %+v", said)
			}
			if said[0].ID == said[1].ID {
				t.Error("two turns say the same message")
			}
			if h := p.(provider.Checker).Check(t.Context()); !h.Found || h.Version != "far 2.1" || h.Problem != "" {
				t.Errorf("the doctor says %+v", h)
			}
		})
	}
}

func TestASessionThatIsGoneIsBegunAnew(t *testing.T) {
	f := publish(t, echo)
	got, err := f.open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "everything", Fresh: "new", Session: "context=c&task=nosuch"}, new(told).live)
	if err != nil || string(got.Output) != "You said: everything" {
		t.Errorf("%q %v", got.Output, err)
	}
}

// TestACutTurnCancelsItsTask: the task is cancelled before the turn returns.
func TestACutTurnCancelsItsTask(t *testing.T) {
	f := publish(t, func(ctx context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) {
		if say(chunk(x, "working", false)) {
			<-ctx.Done()
		}
	})
	ctx, cut := context.WithCancelCause(t.Context())
	l := told{spoken: make(chan struct{})}
	spoken := l.spoken
	go func() {
		<-spoken
		cut(swarm.Errorf(swarm.CutByCancel, "enough"))
	}()
	p := f.open(t, nil)
	got, err := p.Turn(ctx, provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, l.live)
	if swarm.KindOf(err) != swarm.CutByCancel || string(got.Output) != "working" {
		t.Errorf("%q %v", got.Output, err)
	}
	p.(provider.Closer).Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.cancelled) != 1 {
		t.Errorf("%d tasks were cancelled", len(f.cancelled))
	}
}

// TestAQuestionIsPassedOn: to a person, where a next turn can bring the answer. That turn continues
// the same task.
func TestAQuestionIsPassedOn(t *testing.T) {
	f := publish(t, func(_ context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) {
		if x.StoredTask == nil {
			say(state(x, wire.TaskStateInputRequired, "Which colour?"))
			return
		}
		_ = say(chunk(x, "painted "+x.Message.Parts[0].Text(), false)) && say(state(x, wire.TaskStateCompleted, ""))
	})
	p := f.open(t, nil)
	_, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "paint"}, new(told).live)
	if swarm.KindOf(err) != swarm.NeedsInput || !strings.Contains(err.Error(), "Which colour?") {
		t.Errorf("where nobody can be asked: %v", err)
	}
	var asked []string
	ask := func(_ context.Context, tool string, args json.RawMessage) (string, error) {
		asked = append(asked, tool+" "+string(args))
		return `{"request":"m-1"}`, nil
	}
	got, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "b/1/1", Prompt: "paint", Call: ask}, new(told).live)
	if err != nil || string(got.Output) != "Which colour?" || len(asked) != 1 || asked[0] != `request_help {"help_description":"Which colour?"}` {
		t.Fatalf("%q %v, asked %q", got.Output, err, asked)
	}
	got, err = p.Turn(t.Context(), provider.Request{Run: "r", Turn: "b/2/1", Prompt: "paint … red", Fresh: "red", Session: got.Session, Call: ask}, new(told).live)
	if err != nil || string(got.Output) != "painted red" || strings.Contains(got.Session, "task=") {
		t.Errorf("%q %v, session %s", got.Output, err, got.Session)
	}
}

func TestEndsThatAreNoGoodHaveTheirKinds(t *testing.T) {
	for want, does := range map[string]func(context.Context, *a2asrv.ExecutorContext, func(wire.Event) bool){
		"no_result: the remote agent failed: out of paint":            ends(wire.TaskStateFailed, "out of paint"),
		"no_result: the remote agent refused it: not me":              ends(wire.TaskStateRejected, "not me"),
		"not_signed_in: the remote agent wants somebody to sign in":   ends(wire.TaskStateAuthRequired, ""),
		"no_result: the remote agent says that it was cancelled, but": ends(wire.TaskStateCanceled, ""),
		"no_result: the remote agent ended its task and said nothing": ends(wire.TaskStateCompleted, ""),
	} {
		_, err := publish(t, does).open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, new(told).live)
		if got := string(swarm.KindOf(err)) + ": " + err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// The text of the last state is output when there is no other.
	got, err := publish(t, ends(wire.TaskStateCompleted, "all done")).open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, new(told).live)
	if err != nil || string(got.Output) != "all done" {
		t.Errorf("%q %v", got.Output, err)
	}
}

func TestServersThatAreNoGoodHaveTheirKinds(t *testing.T) {
	for status, want := range map[int]swarm.ErrorKind{401: swarm.NotSignedIn, 403: swarm.NotSignedIn, 404: swarm.NotFound, 302: swarm.BadInput, 400: swarm.BadInput, 500: swarm.NoResult, 429: swarm.RateLimited} {
		for _, path := range []string{"/agent/", "/rpc"} {
			f := publish(t, echo)
			f.front = func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, path) {
					w.Header().Set("Location", "http://evil.example/")
					w.WriteHeader(status)
					_, _ = io.WriteString(w, `{"error":"sorry"}`)
				}
			}
			_, err := f.open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, new(told).live)
			var e *swarm.Error
			if !errors.As(err, &e) || e.Kind != want || e.Hint == "" || !strings.Contains(e.Msg, "sorry") {
				t.Errorf("%d at %s: %v", status, path, err)
			}
		}
	}
	f := publish(t, echo)
	f.Close()
	if _, err := f.open(t, nil).Turn(t.Context(), provider.Request{Prompt: "x"}, new(told).live); swarm.KindOf(err) != swarm.Unreachable {
		t.Errorf("where nobody is: %v", err)
	}
	if h := f.open(t, nil).(provider.Checker).Check(t.Context()); h.Found || !strings.Contains(h.Problem, "nobody answers") || h.Hint == "" {
		t.Errorf("the doctor says %+v", h)
	}
	f = publish(t, echo)
	f.card = wire.AgentCard{}
	if _, err := f.open(t, nil).Turn(t.Context(), provider.Request{Prompt: "x"}, new(told).live); swarm.KindOf(err) != swarm.Protocol {
		t.Errorf("what is no card: %v", err)
	}
	f.card = wire.AgentCard{Name: "old", SupportedInterfaces: []*wire.AgentInterface{{URL: f.URL, ProtocolBinding: "JSONRPC", ProtocolVersion: "0.2"}, nil}}
	if _, err := f.open(t, nil).Turn(t.Context(), provider.Request{Prompt: "x"}, new(told).live); swarm.KindOf(err) != swarm.Protocol || !strings.Contains(err.Error(), "JSONRPC 0.2") {
		t.Errorf("another version: %v", err)
	}
}

// TestABusyServerIsAskedAgain: the retry sends the same message.
func TestABusyServerIsAskedAgain(t *testing.T) {
	f := publish(t, echo)
	refused := 0
	f.front = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rpc" && refused < 3 {
			refused++
			w.WriteHeader([]int{429, 500, 503}[refused-1])
		}
	}
	var l told
	got, err := f.open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, l.live)
	if err != nil || string(got.Output) != "You said: x" || len(f.said()) != 1 || len(l.other) < 3 {
		t.Errorf("%q %v, told %v", got.Output, err, l.other)
	}
}

// TestAStreamThatBreaksIsComeBackTo: the task is still there.
func TestAStreamThatBreaksIsComeBackTo(t *testing.T) {
	goOn := make(chan struct{})
	f := publish(t, func(_ context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) {
		if say(chunk(x, "one ", false)) {
			<-goOn
			_ = say(chunk(x, "two", true)) && say(state(x, wire.TaskStateCompleted, ""))
		}
	})
	l := told{spoken: make(chan struct{})}
	spoken, down := l.spoken, false
	f.front = func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if down {
			down = false
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	go func() {
		<-spoken
		f.mu.Lock()
		down = true
		f.mu.Unlock()
		f.CloseClientConnections()
		close(goOn)
	}()
	got, err := f.open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, l.live)
	if err != nil || string(got.Output) != "one two" || l.text != "one two" || len(f.said()) != 1 {
		t.Errorf("%q, shown %q, %v", got.Output, l.text, err)
	}
}

// TestAServerThatIsRestartedIsAskedAgain: its first answer broke off before it named the task.
func TestAServerThatIsRestartedIsAskedAgain(t *testing.T) {
	f := publish(t, echo)
	p := f.open(t, nil).(*remote)
	next := p.client.Transport.(*transport).next
	asked := 0
	p.client.Transport.(*transport).next = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/rpc" {
			switch asked++; asked {
			case 1:
				return nil, io.ErrUnexpectedEOF
			case 2, 3:
				return nil, syscall.ECONNREFUSED
			}
		}
		return next.RoundTrip(r)
	})
	got, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, func(swarm.Delta) {})
	if err != nil || string(got.Output) != "You said: x" || asked != 4 {
		t.Errorf("%q %v, asked %d times", got.Output, err, asked)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestATaskThatEndsBeforeItsStreamIsAskedFor: a server refuses to stream a task that has ended. The
// task can end between the question for its state and the request for its stream.
func TestATaskThatEndsBeforeItsStreamIsAskedFor(t *testing.T) {
	goOn := make(chan struct{})
	f := publish(t, func(_ context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) {
		if say(chunk(x, "one ", false)) {
			<-goOn
			_ = say(chunk(x, "two", true)) && say(state(x, wire.TaskStateCompleted, ""))
		}
	})
	var end sync.Once
	f.front = func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(body, &call) != nil || call.Method != "SubscribeToTask" {
			return
		}
		end.Do(func() { close(goOn) })
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32004,"message":"the task has ended"}}`, call.ID)
	}
	l := told{spoken: make(chan struct{})}
	spoken := l.spoken
	go func() {
		<-spoken
		f.CloseClientConnections()
	}()
	got, err := f.open(t, nil).Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, l.live)
	if err != nil || string(got.Output) != "one two" || len(f.said()) != 1 {
		t.Errorf("%q, %v", got.Output, err)
	}
}

// TestAKeyGoesWhereItIsForAndNowhereElse: a key is in the header and in no text.
func TestAKeyGoesWhereItIsForAndNowhereElse(t *testing.T) {
	const key = "a-key-that-nobody-may-see"
	headers := map[string]string{"Authorization": "Bearer $FAR_TOKEN"}
	f := publish(t, func(_ context.Context, x *a2asrv.ExecutorContext, say func(wire.Event) bool) {
		_ = say(chunk(x, "it is "+key[:9], false)) && say(chunk(x, key[9:], true)) && say(state(x, wire.TaskStateCompleted, ""))
	})
	p := f.open(t, headers, "FAR_TOKEN="+key)
	var l told
	got, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, l.live)
	if err != nil || string(got.Output) != "it is [secret FAR_TOKEN]" || l.text != string(got.Output) {
		t.Errorf("%q, shown %q, %v", got.Output, l.text, err)
	}
	for _, token := range f.tokens {
		if token != "Bearer "+key {
			t.Errorf("the server was shown %q", token)
		}
	}
	f.front = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "wrong: "+key, http.StatusUnauthorized) }
	if _, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/2", Prompt: "x"}, new(told).live); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("an error is %v", err)
	}
	// Unset, or for another server than the one that is named.
	f.front = nil
	if _, err := f.open(t, headers).Turn(t.Context(), provider.Request{Prompt: "x"}, new(told).live); swarm.KindOf(err) != swarm.NotSignedIn {
		t.Errorf("without the variable: %v", err)
	}
	f.card.SupportedInterfaces[0].URL = strings.Replace(f.URL, "127.0.0.1", "localhost", 1) + "/rpc"
	if _, err := f.open(t, headers, "FAR_TOKEN="+key).Turn(t.Context(), provider.Request{Prompt: "x"}, new(told).live); swarm.KindOf(err) != swarm.Denied {
		t.Errorf("to another server: %v", err)
	}
}

// A fixed server gives the same answer to every request, but for its card.
type fixed struct{ kind, body, card string }

const (
	fixedCard    = `{"name":"x","capabilities":{"streaming":true},"supportedInterfaces":[{"url":"http://x/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`
	fixedOldCard = `{"name":"x","capabilities":{"streaming":true},"url":"http://x/rpc","protocolVersion":"0.3.0"}`
)

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, kind := f.body, f.kind
	if r.Method == http.MethodGet {
		body, kind = f.card, "application/json"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestAnAnswerHasABound: however much a server sends, little of it is kept, and less of it is
// logged.
func TestAnAnswerHasABound(t *testing.T) {
	usual := maxAnswer
	maxAnswer = 1 << 20
	defer func() { maxAnswer = usual }()
	long := strings.Repeat("x", 1<<20)
	say := func(n int, each func(i int, e *wire.TaskArtifactUpdateEvent)) string {
		var b strings.Builder
		for i := range n {
			e := pieceOf("x")
			each(i, e.Event.(*wire.TaskArtifactUpdateEvent))
			piece, _ := json.Marshal(e)
			b.WriteString(`data: {"jsonrpc":"2.0","id":"x","result":` + string(piece) + "}\n\n")
		}
		return b.String()
	}
	for name, c := range map[string]struct{ body, want string }{
		"texts": {say(3, func(_ int, e *wire.TaskArtifactUpdateEvent) { e.Artifact.Parts[0] = wire.NewTextPart(long[:600<<10]) }), "longer than 1 MB"},
		"artifacts that say nothing": {say(10_000, func(i int, e *wire.TaskArtifactUpdateEvent) {
			e.Artifact.ID, e.Artifact.Parts = wire.ArtifactID(strconv.Itoa(i)), nil
		}), "longer than 1 MB"},
		"a long id of an artifact":   {say(1, func(_ int, e *wire.TaskArtifactUpdateEvent) { e.Artifact.ID = wire.ArtifactID(long) }), "an id of 1048576 bytes"},
		"a long id of a task":        {say(1, func(_ int, e *wire.TaskArtifactUpdateEvent) { e.TaskID = wire.TaskID(long) }), "an id of 1048576 bytes"},
		"a long id of a context":     {say(1, func(_ int, e *wire.TaskArtifactUpdateEvent) { e.ContextID = long }), "an id of 1048576 bytes"},
		"another context every time": {say(100, func(i int, e *wire.TaskArtifactUpdateEvent) { e.ContextID = strconv.Itoa(i) }), "in another conversation"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(swarm.ProviderSpec{Name: "x", Kind: "a2a", BaseURL: "http://x"}, provider.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p.(*remote).client.Transport = &transport{p.(*remote), fixed{"text/event-stream", c.body, fixedCard}}
			noted := 0
			reply, err := p.Turn(t.Context(), provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, func(d swarm.Delta) { noted += len(d.Session) })
			if swarm.KindOf(err) != swarm.Protocol || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if noted += len(reply.Session); noted > 1000 {
				t.Errorf("%d bytes of sessions are noted", noted)
			}
		})
	}
}

func pieceOf(text string) wire.StreamResponse {
	return wire.StreamResponse{Event: chunk(&a2asrv.ExecutorContext{TaskID: "t", ContextID: "c"}, text, true)}
}

// FuzzAnswers: whatever a server sends, a turn ends with an output or an error of ours.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`data: {"jsonrpc":"2.0","id":"x","result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"hi"}]},null]}}}`,
		`data: {"jsonrpc":"2.0","id":"x","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"},null,{"raw":"AA=="},{"data":null}]}}}`,
		`data: {"jsonrpc":"2.0","id":"x","result":{"artifactUpdate":{"taskId":"t","contextId":"c"}}}`,
		`data: {"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"no"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}`, "data: \x00", "", "data: null",
	} {
		f.Add(seed, strings.HasPrefix(seed, "data"), false)
	}
	for _, seed := range []string{
		`data: {"jsonrpc":"2.0","id":"1","result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"hi"}]},null]}}`,
		`data: {"jsonrpc":"2.0","id":"1","result":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"hi"},null,{"kind":"file","file":{"bytes":"AA=="}}]}}`,
		`data: {"jsonrpc":"2.0","id":"1","result":{"kind":"status-update","taskId":"t","status":{"state":"odd"}}}`, `{"error":{"code":-32603}}`,
	} {
		f.Add(seed, strings.HasPrefix(seed, "data"), true)
	}
	tries = 1
	f.Fuzz(func(t *testing.T, body string, stream, old bool) {
		kind, card := "application/json", fixedCard
		if old {
			card = fixedOldCard
		}
		if stream {
			kind = "text/event-stream"
		}
		p, err := Open(swarm.ProviderSpec{Name: "x", Kind: "a2a", BaseURL: "http://x"}, provider.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.(*remote).client.Transport = &transport{p.(*remote), fixed{kind, body + "\n\n", card}}
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer stop()
		got, err := p.Turn(ctx, provider.Request{Run: "r", Turn: "a/1/1", Prompt: "x"}, func(swarm.Delta) {})
		var e *swarm.Error
		if err == nil && len(got.Output) == 0 || err != nil && !errors.As(err, &e) {
			t.Errorf("%q: %+v %v", body, got, err)
		}
	})
}
