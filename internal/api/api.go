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
	"swarm/internal/control"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/run"
)

// Options say which runs are shown, and what drives new ones.
type Options struct {
	Control *control.Control
	Start   func(ctx context.Context, r control.Request) (run string, err error) // begins a run, on disk when it returns
	Feed    *feed.Hub
}

// An API answers until its feed is closed.
type API struct {
	Options
	routes *http.ServeMux

	heartbeat time.Duration // of streams
	patience  time.Duration // with a client that does not read
}

// New makes an API.
func New(o Options) *API {
	a := &API{Options: o, routes: http.NewServeMux(), heartbeat: 15 * time.Second, patience: 10 * time.Second}
	for _, r := range a.table() {
		a.routes.Handle(r.method+" "+r.path, r.handler)
	}
	return a
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
		{"GET", "/api/v1/runs/{id}", a.withReader(a.showRun)},
		{"GET", "/api/v1/runs/{id}/events", a.withReader(a.listEvents)},
		{"GET", "/api/v1/runs/{id}/nodes", a.withReader(a.listNodes)},
		{"GET", "/api/v1/runs/{id}/turns", a.withReader(a.listTurns)},
		{"GET", "/api/v1/runs/{id}/turns/{turn...}", a.withReader(a.showTurn)},
		{"GET", "/api/v1/runs/{id}/artifacts", a.withReader(a.listArtifacts)},
		{"GET", "/api/v1/runs/{id}/artifacts/{kind}/{name}", http.HandlerFunc(a.giveArtifact)},
		{"GET", "/api/v1/runs/{id}/mail", a.withReader(a.listMail)},
		{"GET", "/api/v1/runs/{id}/topics", a.withReader(a.listTopics)},
		{"POST", "/api/v1/runs/{id}/messages", answer(a.sendMessage)},
		{"POST", "/api/v1/runs/{id}/pause", answer(a.steer(a.Control.Pause))},
		{"POST", "/api/v1/runs/{id}/resume", answer(a.steer(a.Control.Resume))},
		{"POST", "/api/v1/runs/{id}/cancel", answer(a.steer(a.cancelRun))},
		{"POST", "/api/v1/runs/{id}/close", answer(a.steer(a.Control.Close))},
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

// withReader is answer for what only looks at one run.
func (a *API) withReader(do func(*http.Request, *run.Reader) (reply, error)) http.Handler {
	return answer(func(r *http.Request) (reply, error) {
		l, err := a.openReader(r)
		if err != nil {
			return reply{}, err
		}
		defer l.Close()
		return do(r, l)
	})
}

func (a *API) openReader(r *http.Request) (*run.Reader, error) {
	s, err := a.Control.Lookup(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return a.Control.OpenReader(s.ID)
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
	if own, ok := errors.AsType[refusal](err); ok {
		return own.status
	}
	var state *control.StateError
	if errors.As(err, &state) || errors.Is(err, swarm.ErrConflict) || errors.Is(err, run.ErrAnswered) {
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
