package run

import (
	"context"
	"strings"
	"time"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/registry"
	"swarm/internal/view"
)

// The sequence number of the last event with a notification is stored beside the log, before the
// notification is sent. So a process that resumes the run sends none twice. A crash in between loses
// at most one.
const (
	notifyFold    = "notify"
	notifyVersion = "1"
)

// notify tells a person when the run needs them, by the provider that the plan names: an approval
// is asked, a task is blocked, the run has paused itself, a provider's limit is reached, the run has
// ended. It works in a goroutine of its own, and the loop never waits for it. The first failure becomes
// a notice. The function ends it, once a person was told of the run's end.
func (d *driver) notify(ctx context.Context) (end func(), err error) {
	if d.notifier == nil || d.start.Replay {
		return func() {}, nil
	}
	notifier, err := registry.Open(*d.notifier, provider.Options{Dir: d.start.Dir})
	if err != nil {
		return func() {}, d.notice(ctx, "a person cannot be told when the run needs one: "+err.Error(), "look at notify in the compose file")
	}
	after, _, ok := d.log.LoadFold(notifyFold, notifyVersion)
	if !ok { // earlier events need no person, or were notified in the run that this one retries
		for e, err := range swarm.Events(d.log, 0) {
			if err != nil {
				return func() {}, err
			}
			after = e.Seq
		}
		if err := d.log.SaveFold(notifyFold, notifyVersion, after, nil); err != nil {
			return func() {}, err
		}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		wake, off := d.log.Watch()
		defer off()
		for failed, last := false, false; ; {
			for e, err := range swarm.Events(d.log, after) {
				if err != nil {
					return // the loop reads the same log, and reports the error
				}
				after = e.Seq
				if ctx.Err() != nil || last && e.Kind != swarm.RunEnded { // of what was left, only the end matters now
					continue
				}
				if why := d.notifyNeed(ctx, notifier, d.notifier.Name, e); why != "" && !failed {
					failed = true
					_ = d.notice(ctx, "a person could not be told that the run needs one: "+why, "look at notify in the compose file")
				}
			}
			if last {
				return
			}
			select {
			case <-wake:
			case <-quit:
				last = true
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { close(quit); <-done }, nil
}

// notifyNeed notifies a person if an event needs one. It returns why that failed.
func (d *driver) notifyNeed(ctx context.Context, notifier provider.Provider, by string, e *swarm.Event) (why string) {
	need := view.Need(e)
	if need == "" || e.Kind == swarm.RunEnded && !d.endMatters || e.Kind == swarm.LimitReached && !d.isNewLimit(e) {
		return ""
	}
	if a, err := swarm.Body[swarm.Approval](e); e.Kind == swarm.ApprovalAsked && err == nil {
		if _, answered, _ := d.log.Find(swarm.AnsweredKey(a.ID)); answered {
			return "" // the file or a person has answered already
		}
	}
	if err := d.log.SaveFold(notifyFold, notifyVersion, e.Seq, nil); err != nil {
		return err.Error()
	}
	_, err := notifier.Turn(ctx, provider.Request{Run: d.ID, Agent: by, Dir: d.start.Dir, Prompt: "swarm run " + string(d.ID) + ": " + need},
		func(said swarm.Delta) {
			if said.Kind == swarm.DeltaStderr {
				why = strings.TrimSpace(said.Text)
			}
		})
	if err != nil && ctx.Err() == nil {
		return err.Error()
	}
	return why
}

// isNewLimit reports whether a person was not yet told that a provider's limit is reached. Each turn
// that waits for the limit reports it.
func (d *driver) isNewLimit(e *swarm.Event) bool {
	l, err := swarm.Body[swarm.Limit](e)
	if err != nil || d.limits[l.Provider].Equal(l.Until) {
		return false
	}
	if d.limits == nil {
		d.limits = map[string]time.Time{}
	}
	d.limits[l.Provider] = l.Until
	return true
}
