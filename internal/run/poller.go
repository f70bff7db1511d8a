package run

import (
	"context"
	"time"
)

// The intervals for looking at a run that another process drives, besides the moments when an event
// is appended. Neither the end of its driver nor the deltas of a turn are events.
const (
	pollEvery = 50 * time.Millisecond  // while a turn runs, and for a second after the last event
	restEvery = 500 * time.Millisecond // at rest
	restAfter = time.Second
)

// A poller says when to look at a run again.
type poller struct {
	wake  <-chan struct{}
	stop  func()
	moved time.Time // when the last event was appended
}

func (r *Reader) newPoller() *poller {
	p := &poller{moved: time.Now()}
	p.wake, p.stop = r.log.Watch()
	return p
}

// wait returns when it is time to look. busy says that a turn may be producing output.
func (p *poller) wait(ctx context.Context, busy bool) error {
	pause := restEvery
	if busy || time.Since(p.moved) < restAfter {
		pause = pollEvery
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-p.wake:
		p.moved = time.Now()
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
