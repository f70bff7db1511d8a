package run

import (
	"context"
	"strings"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/registry"
	"swarm/internal/view"
)

// How far people were told of a run is noted beside its log, before they are told: whoever goes on with the
// run tells nothing twice.
const (
	notifyFold    = "notify"
	notifyVersion = "1"
)

// notify tells a person, by the means that the plan names, when the run needs one: something is asked, a
// task is blocked, the run has paused by itself. It works beside the run, which never waits for it. What
// cannot be told is a notice, once. The function ends it.
func (d *driver) notify(ctx context.Context) (end func(), err error) {
	if d.means == nil || d.start.Replay {
		return func() {}, nil
	}
	teller, err := registry.Open(*d.means, provider.Options{Dir: d.start.Dir})
	if err != nil {
		return func() {}, d.notice(ctx, "a person cannot be told when the run needs one: "+err.Error(), "look at notify in the compose file")
	}
	after, _, ok := d.log.LoadFold(notifyFold, notifyVersion)
	if !ok { // what is there before the run is first driven needs nobody, or was told in the run that this one tries again
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
		for failed := false; ; {
			for e, err := range swarm.Events(d.log, after) {
				if err != nil {
					return // whoever needs the log says so
				}
				after = e.Seq
				if why := d.notifyNeed(ctx, teller, d.means.Name, e); why != "" && !failed {
					failed = true
					_ = d.notice(ctx, "a person could not be told that the run needs one: "+why, "look at notify in the compose file")
				}
			}
			select {
			case <-wake:
			case <-quit:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { close(quit); <-done }, nil
}

// notifyNeed tells a person what an event needs one for, if it does, and says why that could not be done.
func (d *driver) notifyNeed(ctx context.Context, teller provider.Provider, by string, e *swarm.Event) (why string) {
	need := view.Need(e)
	if need == "" {
		return ""
	}
	if a, err := swarm.Body[swarm.Approval](e); e.Kind == swarm.ApprovalAsked && err == nil {
		if _, answered, _ := d.log.Find(swarm.AnsweredKey(a.ID)); answered {
			return "" // by the file, or by somebody who was quicker
		}
	}
	if err := d.log.SaveFold(notifyFold, notifyVersion, e.Seq, nil); err != nil {
		return err.Error()
	}
	_, err := teller.Turn(ctx, provider.Request{Run: d.ID, Agent: by, Dir: d.start.Dir, Prompt: "swarm run " + string(d.ID) + ": " + need},
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
