package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarm"
)

// An Attempt is one attempt at a desk.
type Attempt struct {
	Watcher  *Watcher
	Manifest Manifest // of the inputs, as the worker finds them
	// Work has the worker's program do the work, and returns how it ended, in words. It returns soon
	// after ctx has ended. nil = an external worker.
	Work       func(ctx context.Context) string
	Tell       func(Reading)            // is called with each change of the status; nil = not at all
	Take       func(File, []byte) error // as in [CollectOptions]
	Violations []*swarm.Error           // that were found before
	// Notice tells people something unexpected; nil = nobody is told.
	Notice func(reason, hint string)
	// Resumed says that a later process goes on with an attempt that is stopped, so that its desk stays
	// as it is.
	Resumed bool
}

// Do has the worker do an attempt at a desk that is pending, or at which an external worker has begun. It
// collects what the worker delivers. The desk of an attempt that failed or was cut says so.
//
// The error is of the caller's side: its context, its Take, or the disk. [Collection.Failure] says
// whether the worker has failed.
func (d *Desk) Do(ctx context.Context, a Attempt) (*Collection, error) {
	reading, err := d.follow(ctx, a)
	if err != nil {
		return nil, errors.Join(err, d.cut(reading.Status, err, a))
	}
	collecting, stop := afterTimeout(ctx)
	defer stop()
	o := CollectOptions{Status: reading.Status, Manifest: &a.Manifest, Take: a.Take}
	c, err := d.Collect(collecting, o)
	if err != nil {
		if collecting.Err() != nil && swarm.KindOf(err) == swarm.TimedOut { // the turn has failed, though its worker had completed
			err = errors.Join(err, d.Fail(reading.Status, Failure{Type: TimedOut, Message: err.Error(), Recoverable: true,
				Details: fmt.Sprintf("The outbox was not read to its end within %v after the timeout.", lateTime)}))
		}
		return nil, err
	}
	c.Violations = append(c.Violations, a.Violations...)
	if reading.Violation != nil {
		c.Violations = append(c.Violations, reading.Violation)
	}
	if why := c.Failure(); why != nil {
		err = d.Fail(reading.Status, a.markUnfinished(*why, reading.Status))
	}
	return c, err
}

// lateTime is how long files may still be read after the timeout of an attempt that was completed in
// time. It is a variable so that tests need not wait.
var lateTime = 10 * time.Minute

// afterTimeout returns a context that a timeout ends only lateTime later: work that was finished in
// time counts, though it takes long to read. A stop or a cancel before the timeout ends it at once,
// because an outbox may be endless. One after the timeout does not reach it, hence lateTime.
func afterTimeout(ctx context.Context) (context.Context, func()) {
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		cut := swarm.CutError(ctx)
		if swarm.KindOf(cut) == swarm.TimedOut {
			late := time.NewTimer(lateTime)
			defer late.Stop()
			select {
			case <-lasting.Done():
				return
			case <-late.C:
			}
		}
		end(cut)
	})
	return lasting, func() {
		forget()
		end(nil)
	}
}

// follow follows the attempt to its end. No program of the worker is left then.
func (d *Desk) follow(ctx context.Context, a Attempt) (Reading, error) {
	pending := Status{State: Pending}
	if a.Work == nil {
		tell, failed := a.watch(d)
		reading, err := a.Watcher.Follow(ctx, d, pending, nil, tell)
		if err == nil {
			err = failed()
		}
		return reading, err
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	gone, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		gone <- a.Work(working)
	}()
	reading, err := a.Watcher.Follow(ctx, d, pending, gone, a.Tell)
	stop(swarm.Errorf(swarm.Protocol, "the worker broke the protocol of desks"))
	<-ended
	return reading, err
}

// cut ends an attempt that did not end by itself: its desk has failed, unless a later process goes on
// with it. An external worker goes on after a stop in any case.
func (d *Desk) cut(now Status, err error, a Attempt) error {
	why := Failure{Type: AgentExited, Message: err.Error(), Recoverable: true}
	switch kind := swarm.KindOf(err); {
	case kind == swarm.TimedOut:
		why.Type = TimedOut
	case kind == swarm.Stopped && a.Resumed:
		return nil
	}
	return d.Fail(now, a.markUnfinished(why, now))
}

// markUnfinished adds to a failure that an external worker was running: [Desk.Unfinished].
func (a Attempt) markUnfinished(why Failure, now Status) Failure {
	if a.Work == nil && now.State == Running {
		why.Details = strings.TrimSpace(why.Details + "\n" + stillRunning)
	}
	return why
}

// Restart prepares the desk for another start of the same attempt, after a crash: the outbox becomes
// outbox/partial, and the state is pending.
func (d *Desk) Restart() error {
	if err := d.setOutboxAside(); err != nil {
		return d.unusable(Outbox, err)
	}
	return d.write(StatusFile, Status{State: Pending}.render())
}
