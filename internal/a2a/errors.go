package a2a

import (
	"context"
	"errors"
	"net/http"
	"strings"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/errordetails"

	"swarm"
)

// A refusal is how the protocol calls the error of an HTTP status: the library's error, the code of
// JSON-RPC, and the status of HTTP+JSON.
type refusal struct {
	kind   error
	code   int
	status string
}

var refusals = map[int]refusal{
	http.StatusUnauthorized:         {wire.ErrUnauthenticated, -31401, "UNAUTHENTICATED"},
	http.StatusForbidden:            {wire.ErrUnauthorized, -31403, "PERMISSION_DENIED"},
	http.StatusNotFound:             {wire.ErrMethodNotFound, -32601, "NOT_FOUND"},
	http.StatusUnsupportedMediaType: {wire.ErrUnsupportedContentType, -32005, "INVALID_ARGUMENT"},
	http.StatusInternalServerError:  {wire.ErrInternalError, -32603, "INTERNAL"},
	http.StatusServiceUnavailable:   {wire.ErrServerError, -32000, "UNAVAILABLE"},
}

// Refuse answers a request that reaches no call of the protocol, in the format of its binding. It
// returns false for paths that are not the protocol's.
func Refuse(w http.ResponseWriter, r *http.Request, status int, err error) bool {
	if path := r.URL.Path; path != root && path != wellKnown && !strings.HasPrefix(path, root+"/") {
		return false
	}
	as, ok := refusals[status]
	if !ok {
		as = refusal{wire.ErrInvalidRequest, -32600, "INVALID_ARGUMENT"}
	}
	text, about := explain(err.Error(), swarm.HintOf(err))
	details := []*errordetails.Typed{
		errordetails.NewFromStruct(about),
		errordetails.NewErrorInfo(wire.ErrorReason(as.kind), wire.ProtocolDomain, nil),
	}
	answer := map[string]any{"error": map[string]any{"code": status, "status": as.status, "message": text, "details": details}}
	if _, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, root+"/"), "/"); r.Method == http.MethodPost && rest == "" {
		answer = map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": as.code, "message": text, "data": details}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(swarm.Encode(answer), '\n')) // an error means that the client is gone
	return true
}

// refuse answers a failed request for an agent, its card or the list of agents.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	if swarm.KindOf(err) == swarm.NotFound {
		status = http.StatusNotFound
	}
	Refuse(w, r, status, err)
}

// explain joins the text of an error and its hint, and returns them apart too.
func explain(text, hint string) (string, map[string]any) {
	if hint == "" {
		return text, map[string]any{"error": text}
	}
	return text + ": " + hint, map[string]any{"error": text, "hint": hint}
}

// invalid makes the error for a request with a mistake.
func invalid(what, hint string) error {
	text, details := explain(what, hint)
	return wire.NewError(wire.ErrInvalidParams, text).WithDetails(details)
}

// notFound makes the error for a task that does not exist or belongs to another agent. Both look
// the same to a client.
func notFound(id wire.TaskID) error {
	return wire.NewError(wire.ErrTaskNotFound, "there is no task "+swarm.Quote(string(id))+" of this agent")
}

// protocolError translates a swarm error into an error of the protocol.
func protocolError(ctx context.Context, err error) error {
	var theirs *wire.Error
	var ours *swarm.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &theirs), ctx.Err() != nil:
		return err
	case !errors.As(err, &ours):
		return wire.NewError(wire.ErrInternalError, err.Error())
	}
	kind := wire.ErrInternalError
	switch kindOf(ours) {
	case swarm.BadInput, swarm.BadPrompt:
		kind = wire.ErrInvalidParams
	case swarm.Denied:
		kind = wire.ErrUnauthorized
	case swarm.Stopped, swarm.NotFound, swarm.NotSignedIn, swarm.Unconfirmed, swarm.RateLimited, swarm.Unreachable: // the agents lack something: not the client's fault
		kind = wire.ErrServerError
	}
	text, details := explain(ours.Text(), ours.Hint)
	details["kind"] = string(ours.Kind)
	return wire.NewError(kind, text).WithDetails(details)
}

// kindOf is the kind of an error. A mistake in one of our files is not the client's fault.
func kindOf(e *swarm.Error) swarm.ErrorKind {
	if e.File != "" {
		return swarm.NotFound
	}
	return e.Kind
}
