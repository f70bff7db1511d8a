package statedir

import (
	"context"
	"os"
	"syscall"
	"time"

	"swarm"
)

// Lock is a mutex between the processes that use this state folder. It waits until ctx ends. The
// kernel releases the lock of a killed process.
func (h *Home) Lock(ctx context.Context, what string) (unlock func(), err error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	path := h.in(what + ".lock")
	failed := func(err error) error {
		return storageError(path, "the lock cannot be taken", err)
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
		case !held: // the file was deleted
			return nil, failed(os.ErrNotExist)
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// LockStore is a mutex between all processes that use the store of runs, on whatever machine.
func (h *Home) LockStore(ctx context.Context, what string) (swarm.StoreLock, error) {
	if h.shared != nil {
		return h.shared.Lock(ctx, what)
	}
	unlock, err := h.Lock(ctx, what)
	if err != nil {
		return nil, err
	}
	return fileLock(unlock), nil
}

// A fileLock is a lock of this machine. Its holder cannot lose it.
type fileLock func()

func (fileLock) Held(context.Context) error { return nil }

func (unlock fileLock) Unlock() { unlock() }

// lockEvery is the polling interval for a lock that another process holds.
const lockEvery = 5 * time.Millisecond
