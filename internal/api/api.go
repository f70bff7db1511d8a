// Package api is the window for programs: what commands print and what they do, over HTTP, and a run's events as they happen, over
// SSE. It has no state of its own. Whatever it shows is a fold of a run's log, read by the same code that commands use, so that two
// servers, or a server and a command, say the same; whatever it does is a record in the log, or a driver in this process.
//
// Authentication is not done here: package httpd has checked the client before.
package api

import (
	"context"
	_ "embed" // for the document
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/httpd"
	"swarm/internal/run"
)

// Options say which runs are shown, and who drives new ones.
type Options struct {
	Home     *home.Home
	Dir      string // runs that were started in this folder
	Anywhere bool   // or in any
	Driver   Driver
}

// A Driver drives runs in this process.
type Driver interface {
	// Start begins a run, as `swarm up` or `swarm team` would. When it returns, the run is on disk.
	Start(ctx context.Context, w Wanted) (id string, err error)
	// Resume goes on with a run that nobody drives. When it returns, this process has it.
	Resume(ctx context.Context, id string) error
}

// Wanted is a run that is to begin. What is left out is as `swarm up`, or `swarm team`, has it.
type Wanted struct {
	Dir      string   `json:"dir"`      // where it is started
	File     string   `json:"file"`     // the compose file
	Pipeline string   `json:"pipeline"` // this one,
	Tasks    []string `json:"tasks"`    // or these tasks, with what they depend on
	Only     bool     `json:"only"`     // without it
	Set      []string `json:"set"`      // changes of the compose file, as in pipelines.main.iterations=5
	Provider string   `json:"provider"`
	Jobs     int      `json:"jobs"`  // turns at once
	Stdin    string   `json:"stdin"` // what {{STDIN}} stands for
	Goal     string   `json:"goal"`  // of a team,
	To       string   `json:"to"`    // which is given to this agent
	Done     []string `json:"done"`  // and reached when this holds
	Mode     string   `json:"mode"`
	Phase    string   `json:"phase"`
	// Structured is what comes with the goal beside its text, and Asked who gives it: another program, over a protocol of its own.
	Structured json.RawMessage `json:"-"`
	Asked      *swarm.Asked    `json:"-"`
}

// An API answers until it is closed.
type API struct {
	Options
	routes *http.ServeMux
	hub    *hub
	ending context.Context
	end    context.CancelFunc

	heartbeat time.Duration // of streams
	patience  time.Duration // with a client that does not read
}

// New makes an API.
func New(o Options) *API {
	a := &API{Options: o, routes: http.NewServeMux(), hub: newHub(o.Home), heartbeat: 15 * time.Second, patience: 10 * time.Second}
	a.ending, a.end = context.WithCancel(context.Background())
	for _, r := range a.table() {
		a.routes.Handle(r.method+" "+r.path, r.handler)
	}
	return a
}

// Close ends all streams.
func (a *API) Close() {
	a.end()
	a.hub.close()
}

// Heed has those who follow a run that this process drives told of everything at once, until stop is called. Logs that others write
// are only looked at every few moments.
func (a *API) Heed(id string, log swarm.Log) (stop func()) {
	wake, off := log.Watch()
	quit, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		for {
			select {
			case <-wake:
				a.hub.nudge(id)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-left
		off()
	}
}

// document is what can be asked here, as OpenAPI says it.
//
//go:embed openapi.json
var document []byte

// A route is one thing that can be asked.
type route struct {
	method, path string
	handler      http.Handler
}

func (a *API) table() []route {
	return []route{
		{"GET", "/openapi.json", http.HandlerFunc(describe)},
		{"GET", "/api/v1/runs", answer(a.listRuns)},
		{"POST", "/api/v1/runs", answer(a.startRun)},
		{"GET", "/api/v1/runs/{id}", a.looking(a.showRun)},
		{"GET", "/api/v1/runs/{id}/events", a.looking(a.listEvents)},
		{"GET", "/api/v1/runs/{id}/nodes", a.looking(a.listNodes)},
		{"GET", "/api/v1/runs/{id}/turns", a.looking(a.listTurns)},
		{"GET", "/api/v1/runs/{id}/turns/{turn...}", a.looking(a.showTurn)},
		{"GET", "/api/v1/runs/{id}/artifacts", a.looking(a.listArtifacts)},
		{"GET", "/api/v1/runs/{id}/artifacts/{kind}/{name}", http.HandlerFunc(a.giveArtifact)},
		{"GET", "/api/v1/runs/{id}/mail", a.looking(a.listMail)},
		{"GET", "/api/v1/runs/{id}/topics", a.looking(a.listTopics)},
		{"POST", "/api/v1/runs/{id}/messages", answer(a.sendMessage)},
		{"POST", "/api/v1/runs/{id}/pause", answer(a.pauseRun)},
		{"POST", "/api/v1/runs/{id}/resume", answer(a.resumeRun)},
		{"POST", "/api/v1/runs/{id}/cancel", answer(a.cancelRun)},
		{"POST", "/api/v1/runs/{id}/close", answer(a.closeRun)},
		{"POST", "/api/v1/runs/{id}/nodes/{agent}/{action}", answer(a.actOnNode)},
		{"GET", "/api/v1/approvals", answer(a.listApprovals)},
		{"POST", "/api/v1/approvals/{approval...}", answer(a.answerApproval)},
		{"GET", "/api/v1/stream/sse", http.HandlerFunc(a.stream)},
	}
}

// ServeHTTP answers who has been let in.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := a.routes.Handler(r); pattern == "" {
		a.nothingHere(w, r)
		return
	}
	a.routes.ServeHTTP(w, r)
}

// nothingHere says what is wrong with a request that no route fits: its path, or its method.
func (a *API) nothingHere(w http.ResponseWriter, r *http.Request) {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.routes.Handler(other); pattern != "" {
			methods = append(methods, method)
		}
	}
	if methods != nil {
		w.Header().Set("Allow", each(methods))
		httpd.Refuse(w, http.StatusMethodNotAllowed, swarm.Errorf(swarm.BadInput, "%s does nothing here", swarm.Quote(r.Method)).WithHint("use %s", strings.Join(methods, " or ")))
		return
	}
	httpd.Refuse(w, http.StatusNotFound, swarm.Errorf(swarm.NotFound, "there is nothing at %s", swarm.Quote(r.URL.Path)).WithHint("GET /openapi.json tells what there is"))
}

func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document)
}

// A reply is what is answered when all went well.
type reply struct {
	status int
	body   any
}

func ok(body any) (reply, error) { return reply{http.StatusOK, body}, nil }

// answer answers with JSON.
func answer(do func(*http.Request) (reply, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := do(r)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(got.status)
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(got.body) // who does not wait for the answer does not get it
	})
}

// looking is answer for what only looks at one run.
func (a *API) looking(do func(*http.Request, *run.Look) (reply, error)) http.Handler {
	return answer(func(r *http.Request) (reply, error) {
		l, err := a.look(r)
		if err != nil {
			return reply{}, err
		}
		defer l.Close()
		return do(r, l)
	})
}

func (a *API) look(r *http.Request) (*run.Look, error) {
	s, err := a.find(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return run.LookAt(a.Home, s.ID)
}

// find finds a run by its id, whole, for programs do not guess; or the newest by @last.
func (a *API) find(id string) (swarm.RunSummary, error) {
	nobody := swarm.Errorf(swarm.NotFound, "there is no run %s", swarm.Quote(id)).WithHint("GET /api/v1/runs lists them")
	entry, err := a.Home.Find(id, a.Dir, a.Anywhere)
	switch kind := swarm.KindOf(err); {
	case kind == swarm.BadInput, kind == swarm.NotFound: // no id of any run, or of several, or of one that is not ours to show
		return swarm.RunSummary{}, nobody
	case err != nil:
		return swarm.RunSummary{}, err
	case entry.ID != id && id != "@last":
		return swarm.RunSummary{}, nobody
	}
	return entry, nil
}

// A refusal is an error with a status of its own.
type refusal struct {
	status int
	error
}

func (r refusal) Unwrap() error { return r.error }

// conflict refuses what has no meaning as things stand.
func conflict(hint, format string, args ...any) error {
	return refusal{http.StatusConflict, swarm.Errorf(swarm.BadInput, format, args...).WithHint("%s", hint)}
}

func refuse(w http.ResponseWriter, err error) {
	var ours *swarm.Error
	if !errors.As(err, &ours) {
		err = &swarm.Error{Kind: swarm.KindOf(err), Msg: err.Error(), Hint: "it is not your fault; try once more"}
	}
	httpd.Refuse(w, statusOf(err), err)
}

func statusOf(err error) int {
	var own refusal
	if errors.As(err, &own) {
		return own.status
	}
	if errors.Is(err, swarm.ErrConflict) {
		return http.StatusConflict
	}
	switch swarm.KindOf(err) {
	case swarm.BadInput, swarm.NotSignedIn, swarm.BadPrompt:
		return http.StatusBadRequest
	case swarm.NotFound:
		return http.StatusNotFound
	case swarm.Denied:
		return http.StatusForbidden
	case swarm.Stopped, swarm.CutByCancel:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// each joins words for a hint.
func each[S ~string](words []S) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}
