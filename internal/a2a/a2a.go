// Package a2a publishes the agents of this folder's compose file over the A2A protocol, for agents
// and programs of others. Each agent has a card and an address of its own.
//
// A message to an agent starts a run of the team, with the message as its goal. The run is the A2A
// task. The state of the task is a fold of the run's log, so two servers, or one that was
// restarted, agree about it. A further message in the same task becomes mail, as from a person. The
// package offers no action that package api does not have.
//
// Package httpd authenticates clients before their requests reach this package.
package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2asrv"
	a2alog "github.com/a2aproject/a2a-go/v2/log"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/feed"
	"swarm/internal/strictjson"
)

// An Agent is a published agent.
type Agent struct {
	Name        string
	Description string // its purpose, in a few sentences
	Lead        bool   // a request that names no agent is for this one
}

// Options configure a server.
type Options struct {
	Control *control.Control        // finds and controls runs
	Start   Start                   // starts runs
	Feed    *feed.Hub               // follows runs
	Agents  func() ([]Agent, error) // reads the agents of the compose file anew
	Version string                  // the version of this program in cards
	Fault   func(error)             // receives internal faults; nil = they are dropped
}

// Start starts a run. When it returns, the run is on disk.
type Start func(ctx context.Context, r control.Request) (run string, err error)

// A Server answers A2A clients.
type Server struct {
	Options
	routes *http.ServeMux

	memory    askedQuestions
	mu        sync.Mutex             // guards the fields below
	endpoints map[string]*endpoint   // by agent, made at the first request
	cards     map[string]cardVersion // by agent, as they were last read
}

// Paths lists the paths on which the server must be mounted.
var Paths = []string{root, root + "/", wellKnown}

const (
	root      = "/a2a"
	wellKnown = "/.well-known/agent-card.json"
)

// Heartbeats keep proxies from closing idle streams. A write to a client may block for patience.
const (
	heartbeat = 15 * time.Second
	patience  = 10 * time.Second
)

// New makes a server.
func New(o Options) *Server {
	s := &Server{Options: o, routes: http.NewServeMux(), endpoints: map[string]*endpoint{}, cards: map[string]cardVersion{}}
	s.routes.HandleFunc("GET "+root+"/{$}", s.list)
	s.routes.HandleFunc("GET "+root, s.list)
	s.routes.HandleFunc("GET "+wellKnown, s.card)
	s.routes.HandleFunc("GET "+root+"/{agent}"+wellKnown, s.card)
	s.routes.HandleFunc("POST "+root+"/{agent}", s.jsonrpc)
	s.routes.HandleFunc("POST "+root+"/{agent}/{$}", s.jsonrpc)
	s.routes.HandleFunc(root+"/{agent}/v1/", s.rest)
	return s
}

// ServeHTTP answers an authenticated request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.routes.Handler(r); pattern == "" {
		Refuse(w, r, http.StatusNotFound, nowhere(r))
		return
	}
	// Errors of a request go to its client. The library would also log them to the terminal.
	ctx := a2alog.AttachLogger(r.Context(), slog.New(slog.DiscardHandler))
	s.routes.ServeHTTP(&stream{ResponseWriter: w, request: r}, r.WithContext(context.WithValue(ctx, serverKey{}, serverOf(r))))
}

// nowhere is the error of a path or method that does not exist.
func nowhere(r *http.Request) error {
	return swarm.Errorf(swarm.NotFound, "there is nothing at %s %s", r.Method, swarm.Quote(r.URL.Path)).
		WithHint("GET %s lists the agents; each has a card, and takes JSON-RPC by POST %s/AGENT", root, root)
}

// An endpoint handles the calls to one agent, in each of the protocol's bindings.
type endpoint struct {
	jsonrpc, rest http.Handler
}

func (s *Server) jsonrpc(w http.ResponseWriter, r *http.Request) {
	if d := s.endpoint(w, r); d != nil {
		d.jsonrpc.ServeHTTP(w, strictly(r))
	}
}

func (s *Server) rest(w http.ResponseWriter, r *http.Request) {
	if d := s.endpoint(w, r); d != nil {
		http.StripPrefix(root+"/"+r.PathValue("agent")+"/v1", d.rest).ServeHTTP(w, strictly(r))
	}
}

// Fields of requests, as the protocol spells them. The library ignores their case. The values of the
// free ones are the client's own data.
var (
	requestFields = []string{
		"jsonrpc", "id", "method", "params", // JSON-RPC
		"message", "configuration", "metadata", "tenant", // SendMessage
		"messageId", "contextId", "taskId", "role", "parts", "extensions", "referenceTaskIds", // a message
		"text", "raw", "url", "data", "filename", "mediaType", // a part
		"acceptedOutputModes", "historyLength", "returnImmediately", "taskPushNotificationConfig", // a configuration
		"authentication", "credentials", "scheme", "token", // of push notifications
		"status", "statusTimestampAfter", "includeArtifacts", "pageSize", "pageToken", // ListTasks
	}
	freeFields = []string{"data", "metadata"}
)

// strictly checks a body as strictly as an envelope. The library accepts duplicate keys, keys in any
// case, any depth, and trailing bytes. A mistake becomes a read error of the body, so that the library reports it in
// the form of the binding.
func strictly(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	text, err := io.ReadAll(r.Body)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		text, err = strictjson.ReadMessage(text, requestFields, freeFields)
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), broken{err}))
	return r
}

// broken is the end of a body: a read error, or EOF.
type broken struct{ why error }

func (b broken) Read([]byte) (int, error) {
	if b.why == nil {
		return 0, io.EOF
	}
	return 0, b.why
}

// endpoint finds the endpoint of the agent in the path. It answers the request itself, and returns
// nil, if there is no such agent.
func (s *Server) endpoint(w http.ResponseWriter, r *http.Request) *endpoint {
	agent, err := s.find(r.PathValue("agent"))
	if err != nil {
		refuse(w, r, err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.endpoints[agent.Name]
	if d == nil {
		h, mend := &handler{Server: s, agent: agent.Name}, a2asrv.WithTransportPanicHandler(s.mend)
		beat := a2asrv.WithTransportKeepAlive(heartbeat)
		d = &endpoint{a2asrv.NewJSONRPCHandler(h, beat, mend), a2asrv.NewRESTHandler(h, beat, mend)}
		s.endpoints[agent.Name] = d
	}
	return d
}

// find finds an agent by its name; "" is the lead.
func (s *Server) find(name string) (Agent, error) {
	all, err := s.Agents()
	if err != nil {
		return Agent{}, err
	}
	var names []string
	for _, a := range all {
		if a.Name == name || name == "" && a.Lead {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Agent{}, swarm.Errorf(swarm.NotFound, "there is no agent %s here", swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, names))
}

// mend makes the answer of a call that panicked, and reports the panic.
func (s *Server) mend(why any) error {
	if s.Fault != nil {
		s.Fault(swarm.Errorf(swarm.Other, "a call over A2A panicked: %v\n%s", why, debug.Stack()))
	}
	return protocolError(context.Background(), swarm.Errorf(swarm.Other, "something here broke down").WithHint("it is not your fault; try once more"))
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // an error means that the client is gone
}

// A listed is one entry of the list of agents.
type listed struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Card string `json:"card"`
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.Agents()
	if err != nil {
		refuse(w, r, err)
		return
	}
	list := []listed{}
	for _, a := range all {
		url := Address(serverOf(r), a.Name)
		list = append(list, listed{a.Name, url, strings.TrimSuffix(url, "/") + wellKnown})
	}
	answer(w, map[string]any{"agents": list})
}

type serverKey struct{}

// serverOf is the URL of this server, with the host name that the client used. Package httpd
// refuses foreign host names, so the client cannot choose it freely.
func serverOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// Address is the URL of an agent on a server. It ends in a slash, because SDKs resolve the path of
// the card against it.
func Address(server, agent string) string {
	return strings.TrimSuffix(server, "/") + root + "/" + agent + "/"
}

// A stream is an answer that may be written in pieces. It adds a write deadline, which the library
// does not set, and the Flush method that the library needs. The library answers unknown paths in
// plain text; here they get an error of the protocol. Over HTTP+JSON it begins each stream with status
// 200; here a stream that is refused has the status of its error.
type stream struct {
	http.ResponseWriter
	request *http.Request
	until   time.Time
	refused bool // the answer is complete, and the library's text is dropped
	held    bool // the header waits for the first event
	first   []byte
}

// Unwrap lets http.ResponseController find the wrapped writer.
func (w *stream) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *stream) WriteHeader(status int) {
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = true
		Refuse(w.ResponseWriter, w.request, http.StatusNotFound, nowhere(w.request))
		return
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") && strings.Contains(w.request.URL.Path, "/v1/") {
		w.held = true
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *stream) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	if now := time.Now(); w.until.Sub(now) < patience/2 {
		w.until = now.Add(patience)
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.until) // the recorder of tests has no deadlines
	}
	if !w.held {
		return w.ResponseWriter.Write(b)
	}
	if w.first = append(w.first, b...); !bytes.HasSuffix(w.first, []byte("\n\n")) {
		return len(b), nil
	}
	w.held = false
	if status, body := refusedStream(w.first); status != 0 {
		w.refused = true
		w.Header().Set("Content-Type", "application/json")
		w.ResponseWriter.WriteHeader(status)
		w.first = body
	}
	if _, err := w.ResponseWriter.Write(w.first); err != nil {
		return 0, err
	}
	return len(b), nil
}

// refusedStream returns the status and the error if the first event of a stream is one.
func refusedStream(event []byte) (status int, body []byte) {
	_, body, _ = bytes.Cut(event, []byte("data: "))
	var got struct{ Error struct{ Code int } }
	if json.Unmarshal(body, &got) != nil || got.Error.Code < 400 || got.Error.Code > 599 {
		return 0, nil
	}
	return got.Error.Code, body
}

// Flush sends what was written, unless the header still waits.
func (w *stream) Flush() {
	if !w.held {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}
