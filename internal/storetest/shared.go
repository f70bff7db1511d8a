package storetest

import (
	"context"
	"errors"

	"swarm"
)

// A Shared makes a store one that stands for the database of several machines.
type Shared struct{ swarm.Store }

// Name returns its address.
func (Shared) Name() string { return "postgres://host/db" }

// Removed knows of no run.
func (Shared) Removed(context.Context, []swarm.RunID) ([]swarm.RunID, error) { return nil, nil }

// Lock refuses.
func (Shared) Lock(context.Context, string) (swarm.StoreLock, error) {
	return nil, errors.ErrUnsupported
}

// Examine finds nothing.
func (Shared) Examine(context.Context) (h swarm.StoreHealth, err error) { return h, nil }

// An Away is a shared store that lists its runs and then does not answer.
type Away struct{ Shared }

// Open fails.
func (Away) Open(context.Context, swarm.RunID, swarm.Access) (swarm.RunLog, error) {
	return nil, swarm.Errorf(swarm.Storage, "the store cannot be reached")
}
