package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"swarm"
)

// ErrCrash is the error of every call to a log whose process has crashed.
var ErrCrash = errors.New("the process died here")

// A CrashingLog simulates a process that crashes at one of its appends, lazy or not. After the
// crash nothing is written, and every call returns ErrCrash. Earlier appends are in the log. Close
// releases the run without giving it up, as the death of a process does. A test that crashes at
// each append in turn covers every state that a crash can leave behind.
type CrashingLog struct {
	Store
	after bool

	mu   sync.Mutex
	left int
	dead chan struct{}
}

// Crash makes a log crash at its k-th append, counted from 1: before the batch is written, or just
// after, before the caller is told. With k = 0 it never crashes.
func Crash(s Store, k int, after bool) *CrashingLog {
	return &CrashingLog{Store: s, after: after, left: k, dead: make(chan struct{})}
}

// Dead is closed when the log crashes.
func (c *CrashingLog) Dead() <-chan struct{} { return c.dead }

func (c *CrashingLog) alive() error {
	select {
	case <-c.dead:
		return ErrCrash
	default:
		return nil
	}
}

// Append appends, or crashes.
func (c *CrashingLog) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	c.mu.Lock()
	if err := c.alive(); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if c.left != 1 {
		c.left = max(0, c.left-1)
		// The mutex is held during the append, because nothing may be written after the append that
		// crashes.
		defer c.mu.Unlock()
		return c.Store.Append(ctx, b)
	}
	defer c.mu.Unlock()
	defer close(c.dead)
	if c.after {
		b.Lazy = false // A lazy batch could be written after the crash.
		c.Store.Append(ctx, b)
	}
	return nil, ErrCrash
}

// Read reads, until the crash.
func (c *CrashingLog) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.Store.Read(after, limit, to...)
}

// Find finds an event, until the crash.
func (c *CrashingLog) Find(key string) (swarm.Event, bool, error) {
	if err := c.alive(); err != nil {
		return swarm.Event{}, false, err
	}
	return c.Store.Find(key)
}

// Body finds a text, until the crash.
func (c *CrashingLog) Body(h swarm.Hash) ([]byte, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.Store.Body(h)
}

// Own takes the run, until the crash.
func (c *CrashingLog) Own(ctx context.Context, loops string, lease time.Duration) (swarm.Ownership, error) {
	if err := c.alive(); err != nil {
		return swarm.Ownership{}, err
	}
	return c.Store.Own(ctx, loops, lease)
}

// Renew renews the lease, until the crash.
func (c *CrashingLog) Renew(ctx context.Context, fence int64, lease time.Duration) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.Store.Renew(ctx, fence, lease)
}

// Disown gives up the run, until the crash: a dead process cannot.
func (c *CrashingLog) Disown(ctx context.Context, fence int64) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.Store.Disown(ctx, fence)
}
