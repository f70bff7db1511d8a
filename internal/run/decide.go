package run

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/statedir"
)

// A Decision is what a person says to what an agent asks for.
type Decision = agentapi.Decision

// ErrAnswered refuses a second answer to the same question.
var ErrAnswered = agentapi.ErrAnswered

// Decide answers what an agent of a run asks for, whichever process drives it. When it returns, the answer is on disk. The first one
// counts; a second is told whose that was.
func Decide(ctx context.Context, h *statedir.Home, id swarm.RunID, approval string, d Decision) error {
	p, err := OpenUserMailbox(h, id)
	if err != nil {
		return err
	}
	return errors.Join(p.Decide(ctx, approval, d), p.Close())
}

// Decide answers what an agent of a run asks for that this process drives.
func (r *Run) Decide(ctx context.Context, approval string, d Decision) error {
	return serviceOf(r.ID, r.log).Decide(ctx, approval, d)
}

// Answered tells whether something that an agent of the run asked was answered, and how.
func (r *Reader) Answered(approval string) (how string, ok bool, err error) {
	return (&agentapi.Service{Run: r.ID, Log: r.log}).Answered(approval)
}
