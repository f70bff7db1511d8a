package run

import (
	"context"
	"os"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/secret"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A UserMailbox is where a person writes to the agents of a run, whichever process drives it.
type UserMailbox struct {
	*agentapi.Service
	log swarm.RunLog
}

// OpenUserMailbox opens a run to write to its agents. What is in this process's environment and in the agents' as a key is stored nowhere.
func OpenUserMailbox(h *statedir.Home, id swarm.RunID) (*UserMailbox, error) {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadWrite)
	if err != nil {
		return nil, err
	}
	return &UserMailbox{serviceOf(id, log), log}, nil
}

// serviceOf is where a person acts on the run with this log.
func serviceOf(id swarm.RunID, log swarm.RunLog) *agentapi.Service {
	p, _, _ := swarm.FindBody[swarm.Plan](log, planKey)
	return &agentapi.Service{Run: id, Log: log, Folds: log, Redact: Redactor(&p)}
}

// Redactor takes out of texts what this process's environment, or that of a plan's agents, has as a key.
func Redactor(p *swarm.Plan) func([]byte) []byte {
	return secret.New(append(os.Environ(), secretsOf(p, os.LookupEnv)...), nil).Bytes
}

// Close gives the run's log back.
func (p *UserMailbox) Close() error {
	_ = p.SaveFold() // it only saves the next one from reading
	return p.log.Close()
}

// Envelope is the stored envelope with this id.
func (r *Reader) Envelope(id string) (swarm.Envelope, error) {
	return (&agentapi.Service{Run: r.ID, Log: r.log}).Envelope(id)
}

// FollowMail calls fn with all envelopes, and then with those that are new or that something became of, until the run is through or
// nobody drives it any more, or ctx ends.
func (r *Reader) FollowMail(ctx context.Context, fn func([]view.Envelope) error) error {
	p := r.newPoller()
	defer p.stop()
	c, after := view.NewCollector(), int64(0)
	for {
		driven := r.Driven() // asked first: what its driver wrote before it left is told below
		err := r.log.Scan(after, func(e *swarm.Event) error {
			after = e.Seq
			return c.Take(e)
		})
		if changed := c.Changed(); err == nil && len(changed) > 0 {
			err = fn(changed)
		}
		if err != nil || !driven {
			return err
		}
		if err := p.wait(ctx, false); err != nil {
			return err
		}
	}
}
