package a2a

import (
	"context"
	"errors"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
)

// invalid refuses what a client sent.
func invalid(what, hint string) error {
	return wire.NewError(wire.ErrInvalidParams, what+": "+hint).WithDetails(map[string]any{"error": what, "hint": hint})
}

// notFound refuses a task that is not there, or not this agent's.
func notFound(id wire.TaskID) error {
	return wire.NewError(wire.ErrTaskNotFound, "there is no task "+swarm.Quote(string(id))+" of this agent")
}

// protocolError is an error of ours in the protocol's own words.
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
	case swarm.Stopped, swarm.NotFound, swarm.NotSignedIn, swarm.RateLimited: // what the agents need is not there: that is no fault of the client
		kind = wire.ErrServerError
	}
	text, details := ours.Text(), map[string]any{"error": ours.Text(), "kind": string(ours.Kind)}
	if ours.Hint != "" {
		text, details["hint"] = text+": "+ours.Hint, ours.Hint
	}
	return wire.NewError(kind, text).WithDetails(details)
}

// kindOf is the kind of an error. What is wrong in a file of ours is no fault of the client.
func kindOf(e *swarm.Error) swarm.ErrorKind {
	if e.File != "" {
		return swarm.NotFound
	}
	return e.Kind
}
