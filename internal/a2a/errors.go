package a2a

import (
	"context"
	"errors"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
)

// invalid makes the error for a request with a mistake.
func invalid(what, hint string) error {
	return wire.NewError(wire.ErrInvalidParams, what+": "+hint).WithDetails(map[string]any{"error": what, "hint": hint})
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
	case swarm.Stopped, swarm.NotFound, swarm.NotSignedIn, swarm.Unconfirmed, swarm.RateLimited: // the agents lack something: not the client's fault
		kind = wire.ErrServerError
	}
	text, details := ours.Text(), map[string]any{"error": ours.Text(), "kind": string(ours.Kind)}
	if ours.Hint != "" {
		text, details["hint"] = text+": "+ours.Hint, ours.Hint
	}
	return wire.NewError(kind, text).WithDetails(details)
}

// kindOf is the kind of an error. A mistake in one of our files is not the client's fault.
func kindOf(e *swarm.Error) swarm.ErrorKind {
	if e.File != "" {
		return swarm.NotFound
	}
	return e.Kind
}
