package statedir

import (
	"context"
	"os"
	"syscall"
	"time"

	"swarm"
)

// Lock has one thing be done by one process of this state folder at a time. It waits for its turn until ctx ends; a process that is
// killed gives its turn back.
func (h *Home) Lock(ctx context.Context, what string) (unlock func(), err error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	path := h.in(what + ".lock")
	failed := func(err error) error {
		return &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the lock cannot be taken", Err: swarm.WithoutPath(err)}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, failed(err)
	}
	if err := f.Close(); err != nil {
		return nil, failed(err)
	}
	for {
		lock, held, err := tryLock(path, syscall.LOCK_EX)
		switch {
		case err != nil:
			return nil, failed(err)
		case lock != nil:
			return func() { _ = lock.Close() }, nil
		case !held: // the file is gone
			return nil, failed(os.ErrNotExist)
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// lockEvery is how often a lock is tried that somebody else has.
const lockEvery = 5 * time.Millisecond
