package control

import (
	"context"
	"errors"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/mail"
	"swarm/internal/run"
)

// Send stores a person's message to an agent of a run that has not ended. When it returns, the
// message is on disk. again says how to start another run, for the error of one that has ended.
func (c *Control) Send(ctx context.Context, s swarm.RunSummary, d mail.Draft, again string) (agentapi.SendResult, error) {
	if err := c.Caller.Steer(c.Home, s.ID, "writing to an agent as a person"); err != nil {
		return agentapi.SendResult{}, err
	}
	mailbox, err := run.OpenUserMailbox(c.Home, s.ID)
	if err != nil {
		return agentapi.SendResult{}, err
	}
	defer mailbox.Close()
	if _, err := mailbox.Find(d.To); err != nil {
		return agentapi.SendResult{}, err
	}
	if run.Current(c.Home, s).Status.Ended() {
		return agentapi.SendResult{}, refuse(again, "run %s has ended", s.ID)
	}
	mailbox.Client = c.Caller.Actor().Client
	send := mailbox.FromUser
	if d.InReplyTo != "" {
		send = func(ctx context.Context, d mail.Draft) (agentapi.SendResult, error) {
			return mailbox.Answer(ctx, d.InReplyTo, d)
		}
	}
	sent, err := send(ctx, d)
	if late, ok := errors.AsType[*agentapi.TooLateError](err); ok {
		err = &run.StateError{Err: late.Err}
	}
	return sent, err
}
