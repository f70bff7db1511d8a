package run

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/statedir"
)

// A Decision is a person's answer to an approval.
type Decision = agentapi.Decision

// ErrAnswered refuses a second answer to the same approval.
var ErrAnswered = agentapi.ErrAnswered

// Decide answers an approval of a run, whichever process drives it. When it returns, the answer is
// on disk. Only the first answer counts: the error of a second says who answered first.
func Decide(ctx context.Context, h *statedir.Home, id swarm.RunID, approval string, d Decision) error {
	p, err := OpenUserMailbox(h, id)
	if err != nil {
		return err
	}
	return errors.Join(p.Decide(ctx, approval, d), p.Close())
}

// Decide answers an approval of a run that this process drives.
func (r *Run) Decide(ctx context.Context, approval string, d Decision) error {
	return serviceOf(r.ID, r.log).Decide(ctx, approval, d)
}

// Answered reports whether an approval of the run was answered, and how.
func (r *Reader) Answered(approval string) (how string, ok bool, err error) {
	return (&agentapi.Service{Run: r.ID, Log: r.log}).Answered(approval)
}

// PlanText returns the subtasks that a question about a plan is about, as the JSON that a person edits.
func (r *Reader) PlanText(approval string) ([]byte, error) {
	return (&agentapi.Service{Run: r.ID, Log: r.log}).PlanText(approval)
}
