package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"swarm"
)

// ErrCrash is what a dead log says.
var ErrCrash = errors.New("the process died here")

// A CrashingLog is a log whose process dies at one of its appends, lazy or not. From then on nothing is written any more, and every
// call says ErrCrash; what was appended before is there. Closing it lets go of the run without a word, as death does. Dying at
// each append in turn gives every state that a crash can leave.
type CrashingLog struct {
	Store
	after bool

	mu   sync.Mutex
	left int
	dead chan struct{}
}

// Crash makes a log die at its k-th append, from 1: before the batch is written or just after, when nobody has been told. With k = 0
// it lives.
func Crash(s Store, k int, after bool) *CrashingLog {
	return &CrashingLog{Store: s, after: after, left: k, dead: make(chan struct{})}
}

// Dead is closed when the log dies.
func (c *CrashingLog) Dead() <-chan struct{} { return c.dead }

func (c *CrashingLog) alive() error {
	select {
	case <-c.dead:
		return ErrCrash
	default:
		return nil
	}
}

// Append appends, or dies.
func (c *CrashingLog) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	c.mu.Lock()
	if err := c.alive(); err != nil {
		c.mu.Unlock()
		return nil, err
	}
	if c.left != 1 {
		c.left = max(0, c.left-1)
		// The order of appends is the order of deaths: nothing may be written after the one that dies.
		defer c.mu.Unlock()
		return c.Store.Append(ctx, b)
	}
	defer c.mu.Unlock()
	defer close(c.dead)
	if c.after {
		b.Lazy = false // or it would be written later, by a dead process
		c.Store.Append(ctx, b)
	}
	return nil, ErrCrash
}

// Read reads, while the log lives.
func (c *CrashingLog) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.Store.Read(after, limit, to...)
}

// Find finds, while the log lives.
func (c *CrashingLog) Find(key string) (swarm.Event, bool, error) {
	if err := c.alive(); err != nil {
		return swarm.Event{}, false, err
	}
	return c.Store.Find(key)
}

// Body finds a text, while the log lives.
func (c *CrashingLog) Body(h swarm.Hash) ([]byte, error) {
	if err := c.alive(); err != nil {
		return nil, err
	}
	return c.Store.Body(h)
}

// Own owns, while the log lives.
func (c *CrashingLog) Own(ctx context.Context, loops string, lease time.Duration) (int64, error) {
	if err := c.alive(); err != nil {
		return 0, err
	}
	return c.Store.Own(ctx, loops, lease)
}

// Renew renews, while the log lives.
func (c *CrashingLog) Renew(ctx context.Context, fence int64, lease time.Duration) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.Store.Renew(ctx, fence, lease)
}

// Disown gives up, while the log lives: a dead process cannot.
func (c *CrashingLog) Disown(ctx context.Context, fence int64) error {
	if err := c.alive(); err != nil {
		return err
	}
	return c.Store.Disown(ctx, fence)
}
