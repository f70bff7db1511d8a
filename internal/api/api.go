// Package api serves runs to programs over HTTP: what commands print and do, as JSON, and a run's
// events as they happen, as Server-Sent Events (SSE).
//
// The package has no state of its own. Each answer is a fold of a run's log, read by the code that
// commands use, so two servers, or a server and a command, agree. Each action is a record in the
// log, or starts a driver in this process.
//
// Package httpd authenticates clients before their requests reach this package.
package api

import (
	"context"
	_ "embed" // for the document
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/run"
)

// Options say which runs are served, and how new ones are started.
type Options struct {
	Control *control.Control
	// Start, StartLine and Begin start a run: of a request, of a request with a line, and of a plan.
	// They return when the run is on disk.
	Start     func(ctx context.Context, r control.Request) (run string, err error)
	StartLine func(ctx context.Context, r control.Request, line string) (run string, err error)
	Begin     func(ctx context.Context, b *control.Begin) (run string, err error)
	Feed      *feed.Hub
	Page      fs.FS // the web page, for exports; nil = there is none
}

// An API is the HTTP handler. Its streams end when its feed is closed.
type API struct {
	Options
	routes *http.ServeMux

	heartbeat time.Duration // the interval of comments in a stream, which keep proxies from closing it
	patience  time.Duration // how long a write to a client may block
	lookups   chan struct{} // a place for each stream that looks its run up
	summaries *feed.Summaries
}

// maxLookups limits how many streams look their runs up at the same time. Each opens the run's log.
// A thousand clients that connect at once would need as many more file descriptors, and a gigabyte.
const maxLookups = 16

// New makes an API.
func New(o Options) *API {
	a := &API{Options: o, routes: http.NewServeMux(), heartbeat: 15 * time.Second, patience: 10 * time.Second,
		lookups: make(chan struct{}, maxLookups), summaries: feed.NewSummaries(o.Control.Home, o.Control.Dir, o.Control.Anywhere)}
	for _, r := range a.table() {
		a.routes.Handle(r.method+" "+r.path, r.handler)
	}
	return a
}

// document is the OpenAPI description of the routes below. A test compares the two.
//
//go:embed openapi.json
var document []byte

// A route is one operation of the API.
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
		{"GET", "/api/v1/runs/{id}/diff", a.withReader(a.showDiff)},
		{"GET", "/api/v1/runs/{id}/export", http.HandlerFunc(a.exportRun)},
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
		{"POST", "/api/v1/runs/{id}/retry", answer(a.retryRun)},
		{"POST", "/api/v1/runs/{id}/fork", answer(a.forkRun)},
		{"POST", "/api/v1/runs/{id}/nodes/{agent}/{action}", answer(a.actOnNode)},
		{"GET", "/api/v1/project", answer(a.showProject)},
		{"GET", "/api/v1/approvals", answer(a.listApprovals)},
		{"POST", "/api/v1/approvals/{approval...}", answer(a.answerApproval)},
		{"GET", "/api/v1/stream/sse", http.HandlerFunc(a.stream)},
		{"GET", "/api/v1/tasks", answer(a.listTasks)},
		{"POST", "/api/v1/tasks", answer(a.startTask)},
		{"POST", "/api/v1/tasks/stream", http.HandlerFunc(a.streamTask)},
		{"GET", "/api/v1/tasks/{id}", answer(a.showTask)},
		{"GET", "/api/v1/tasks/{id}/events", http.HandlerFunc(a.followTask)},
		{"POST", "/api/v1/tasks/{id}/pause", answer(a.steerTask(a.Control.Pause))},
		{"POST", "/api/v1/tasks/{id}/resume", answer(a.steerTask(a.Control.Resume))},
		{"POST", "/api/v1/tasks/{id}/cancel", answer(a.steerTask(a.cancelRun))},
		{"POST", "/api/v1/swarm/{id}/message", answer(a.messageTask)},
	}
}

// ServeHTTP answers an authenticated request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := a.routes.Handler(r); pattern == "" {
		a.nothingHere(w, r)
		return
	}
	a.routes.ServeHTTP(w, r)
}

// nothingHere refuses a request that matches no route. It tells a wrong method from a wrong path by
// matching the path with the other methods.
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

// A reply is a successful answer.
type reply struct {
	status int
	body   any
}

func ok(body any) (reply, error) { return reply{http.StatusOK, body}, nil }

// answer makes a handler that writes the reply of do as JSON, or its error.
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
		_ = enc.Encode(got.body) // an error means that the client is gone
	})
}

// withReader is answer for operations that only read the run in the path.
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

// A refusal is an error with an HTTP status that its kind alone does not imply.
type refusal struct {
	status int
	error
}

func (r refusal) Unwrap() error { return r.error }

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
	var state *run.StateError
	if errors.As(err, &state) || errors.Is(err, swarm.ErrConflict) || errors.Is(err, run.ErrAnswered) {
		return http.StatusConflict
	}
	switch swarm.KindOf(err) {
	case swarm.BadInput, swarm.NotSignedIn, swarm.BadPrompt:
		return http.StatusBadRequest
	case swarm.NotFound:
		return http.StatusNotFound
	case swarm.Denied, swarm.Unconfirmed:
		return http.StatusForbidden
	case swarm.Stopped, swarm.CutByCancel:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// each joins words with commas, for a hint.
func each[S ~string](words []S) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}
