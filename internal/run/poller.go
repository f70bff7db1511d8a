package run

import (
	"context"
	"time"
)

// How often a run is looked at that another process drives, beside the moments at which something is appended: nothing tells that
// the driver has left, or what a turn says.
const (
	pollEvery = 50 * time.Millisecond  // while a turn speaks, and for a second after the last event
	restEvery = 500 * time.Millisecond // at rest
	restAfter = time.Second
)

// A poller says when to look again.
type poller struct {
	wake  <-chan struct{}
	stop  func()
	moved time.Time // when something was appended
}

func (r *Reader) newPoller() *poller {
	p := &poller{moved: time.Now()}
	p.wake, p.stop = r.log.Watch()
	return p
}

// wait returns when it is time to look. busy says that a turn may be speaking.
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
