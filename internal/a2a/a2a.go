// Package a2a is the door for other people's agents: the agents of this folder's compose file, as A2A agents. Each has a card and an
// address of its own. A message to one begins a run of the team with the message as its goal; the run is the task, and where the
// task stands is a fold of the run's log, so that two servers, and one that was started again, say the same. A further message in
// the same task is mail, as a person's would be. Nothing can be done here that package api could not do.
//
// Authentication is not done here: package httpd has checked the client before.
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
	"swarm/internal/httpd"
	"swarm/internal/strictjson"
)

// An Agent is one that is published.
type Agent struct {
	Name        string
	Description string // what it is for, in a few sentences
	Lead        bool   // whoever names no agent means this one
}

// Options say what is published.
type Options struct {
	Control *control.Control        // by which runs are found and steered
	Start   Start                   // by which they are begun
	Feed    *feed.Hub               // by which they are followed
	Agents  func() ([]Agent, error) // those of the compose file as it is now
	Version string                  // of this program, as cards say it
	Fault   func(error)             // is told of faults of our own; nil = nobody
}

// Start begins a run. When it returns, the run is on disk.
type Start func(ctx context.Context, r control.Request) (run string, err error)

// A Server answers A2A clients.
type Server struct {
	Options
	routes *http.ServeMux

	memory askedQuestions
	mu     sync.Mutex
	doors  map[string]*door // by agent: they are made when somebody comes
}

// Paths are where the server is mounted.
var Paths = []string{root, root + "/", wellKnown}

const (
	root      = "/a2a"
	wellKnown = "/.well-known/agent-card.json"
)

// heartbeat keeps streams from looking dead, and patience is how long a client may take to read what it is given.
const (
	heartbeat = 15 * time.Second
	patience  = 10 * time.Second
)

// New makes a server.
func New(o Options) *Server {
	s := &Server{Options: o, routes: http.NewServeMux(), doors: map[string]*door{}}
	s.routes.HandleFunc("GET "+root+"/{$}", s.list)
	s.routes.HandleFunc("GET "+root, s.list)
	s.routes.HandleFunc("GET "+wellKnown, s.card)
	s.routes.HandleFunc("GET "+root+"/{agent}"+wellKnown, s.card)
	s.routes.HandleFunc("POST "+root+"/{agent}", s.jsonrpc)
	s.routes.HandleFunc(root+"/{agent}/v1/", s.rest)
	return s
}

// ServeHTTP answers who has been let in.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.routes.Handler(r); pattern == "" {
		httpd.Refuse(w, http.StatusNotFound, swarm.Errorf(swarm.NotFound, "there is nothing at %s %s", r.Method, swarm.Quote(r.URL.Path)).
			WithHint("GET %s lists the agents; each has a card, and takes JSON-RPC by POST %s/AGENT", root, root))
		return
	}
	// What goes wrong with a client is told to the client; the library would write it to the terminal.
	ctx := a2alog.AttachLogger(r.Context(), slog.New(slog.DiscardHandler))
	s.routes.ServeHTTP(&stream{ResponseWriter: w}, r.WithContext(context.WithValue(ctx, serverKey{}, serverOf(r))))
}

// A door is where one agent is spoken to, in each of the protocol's bindings.
type door struct {
	jsonrpc, rest http.Handler
}

func (s *Server) jsonrpc(w http.ResponseWriter, r *http.Request) {
	if d := s.door(w, r); d != nil {
		d.jsonrpc.ServeHTTP(w, strictly(r))
	}
}

func (s *Server) rest(w http.ResponseWriter, r *http.Request) {
	if d := s.door(w, r); d != nil {
		http.StripPrefix(root+"/"+r.PathValue("agent")+"/v1", d.rest).ServeHTTP(w, strictly(r))
	}
}

// strictly has a body be read as an envelope is: the library takes a key twice, any depth, and leaves alone what follows. What is wrong
// with it comes out of the body itself, so that the library says it in the words of the binding that is spoken.
func strictly(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	text, err := io.ReadAll(r.Body)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		text, err = strictjson.ReadValue(text)
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), broken{err}))
	return r
}

// broken is the end of a body: what is wrong with it, or nothing.
type broken struct{ why error }

func (b broken) Read([]byte) (int, error) {
	if b.why == nil {
		return 0, io.EOF
	}
	return 0, b.why
}

// door finds the door of the agent that is meant, or says that there is no such agent.
func (s *Server) door(w http.ResponseWriter, r *http.Request) *door {
	agent, err := s.find(r.PathValue("agent"))
	if err != nil {
		refuse(w, err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.doors[agent.Name]
	if d == nil {
		h, mend := &handler{Server: s, agent: agent.Name}, a2asrv.WithTransportPanicHandler(s.mend)
		beat := a2asrv.WithTransportKeepAlive(heartbeat)
		d = &door{a2asrv.NewJSONRPCHandler(h, beat, mend), a2asrv.NewRESTHandler(h, beat, mend)}
		s.doors[agent.Name] = d
	}
	return d
}

// find is the agent with this name; "" is the one that leads.
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

// mend answers in the place of a handler that broke down.
func (s *Server) mend(why any) error {
	if s.Fault != nil {
		s.Fault(swarm.Errorf(swarm.Other, "a call over A2A panicked: %v\n%s", why, debug.Stack()))
	}
	return protocolError(context.Background(), swarm.Errorf(swarm.Other, "something here broke down").WithHint("it is not your fault; try once more"))
}

// refuse answers what is asked outside of the protocol's own calls.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if swarm.KindOf(err) == swarm.NotFound {
		status = http.StatusNotFound
	}
	httpd.Refuse(w, status, err)
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(body) // who does not wait for the answer does not get it
}

// A listed is one line of the list of agents.
type listed struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Card string `json:"card"`
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.Agents()
	if err != nil {
		refuse(w, err)
		return
	}
	list := []listed{}
	for _, a := range all {
		url := addressOf(r, a.Name)
		list = append(list, listed{a.Name, url, url + wellKnown})
	}
	answer(w, map[string]any{"agents": list})
}

type serverKey struct{}

// serverOf is where we are, under the name by which the visitor calls us. It is one of ours: who calls us by another is not let in.
func serverOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

func addressOf(r *http.Request, agent string) string { return Address(serverOf(r), agent) }

// Address is where an agent is at a server.
func Address(server, agent string) string {
	return strings.TrimSuffix(server, "/") + root + "/" + agent
}

// A stream is an answer that may come in pieces. The library wants to flush it, and never asks how long a client takes.
type stream struct {
	http.ResponseWriter
	until time.Time
}

// Unwrap is how http.ResponseController finds what is behind.
func (w *stream) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *stream) Write(b []byte) (int, error) {
	if now := time.Now(); w.until.Sub(now) < patience/2 {
		w.until = now.Add(patience)
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(w.until) // a recorder of tests has none
	}
	return w.ResponseWriter.Write(b)
}

func (w *stream) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }
