package run

import (
	"context"
	"os"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/mail"
	"swarm/internal/secret"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A UserMailbox lets a person write to the agents of a run, whichever process drives it.
type UserMailbox struct {
	*agentapi.Service
	log swarm.RunLog
}

// OpenUserMailbox opens a run to write to its agents. Secrets of this process's environment and of
// the agents' are never stored.
func OpenUserMailbox(h *statedir.Home, id swarm.RunID) (*UserMailbox, error) {
	log, _, err := openToSteer(context.Background(), h, id, false)
	if err != nil {
		return nil, err
	}
	return &UserMailbox{serviceOf(id, log), log}, nil
}

// serviceOf returns the service through which a person acts on the run with this log.
func serviceOf(id swarm.RunID, log swarm.RunLog) *agentapi.Service {
	p, err := swarm.FindPlan(log, planKey)
	if err != nil {
		p = &swarm.Plan{} // the service reports it
	}
	return &agentapi.Service{Run: id, Log: log, Folds: log, Redact: Redactor(p)}
}

// Redactor returns a function that removes secrets from texts: those in the environment of this
// process, and those that a plan gives to its agents.
func Redactor(p *swarm.Plan) func([]byte) []byte {
	return secret.New(append(os.Environ(), secretsOf(p, os.LookupEnv)...), nil).Bytes
}

// OpenQuestions returns the mail that the person has read and that still requires a reply, oldest
// first. A run that has ended has none.
func (p *UserMailbox) OpenQuestions() (open []mail.Item, err error) {
	if _, ended, err := p.log.Find(string(swarm.RunEnded)); err != nil || ended {
		return nil, err
	}
	c := view.NewCollector()
	if err := p.log.Scan(0, c.Take); err != nil {
		return nil, err
	}
	for i := range c.Envelopes {
		if e := &c.Envelopes[i]; e.ToNodeID == swarm.User && e.Receipt.State != view.MailStored && e.Pending() {
			open = append(open, mail.Item{Seq: e.Receipt.Seq, Envelope: e.Envelope})
		}
	}
	return open, nil
}

// Close closes the run's log.
func (p *UserMailbox) Close() error {
	_ = p.SaveFold() // a cache for the next reader
	return p.log.Close()
}

// Envelope returns the stored envelope with this id.
func (r *Reader) Envelope(id string) (swarm.Envelope, error) {
	return (&agentapi.Service{Run: r.ID, Log: r.log}).Envelope(id)
}

// FollowMail calls fn with all envelopes, then with those that are new or have changed. It ends
// when the run does not go on or ctx ends.
func (r *Reader) FollowMail(ctx context.Context, fn func([]view.Envelope) error) error {
	p := r.newPoller()
	defer p.stop()
	c, after := view.NewCollector(), int64(0)
	for {
		goesOn := r.GoesOn() // first: the last events of a driver that leaves now are read below
		err := r.log.Scan(after, func(e *swarm.Event) error {
			after = e.Seq
			return c.Take(e)
		})
		if changed := c.Changed(); err == nil && len(changed) > 0 {
			err = fn(changed)
		}
		if err != nil || !goesOn {
			return err
		}
		if err := p.wait(ctx, false); err != nil {
			return err
		}
	}
}
