// Package fact decodes the events of a run's log into facts about its agents. Loops, views and the
// agents' tools all decode through it, so they cannot interpret an event differently.
package fact

import (
	"swarm"
	"swarm/internal/mail"
	"swarm/internal/plan"
)

// Of decodes an event into a fact. For an event that is not about a team, the fact has no body and
// ok is false.
func Of(e *swarm.Event) (f plan.Fact, ok bool, err error) {
	f = Head(e)
	switch e.Kind {
	case swarm.RunPausing, swarm.RunUnpaused, swarm.BudgetSpent, swarm.RunEnded, swarm.TurnStarted, swarm.AgentPaused,
		swarm.AgentResumed, swarm.AgentRestarted, swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
	case swarm.RunOwned:
		if len(e.Data) > 0 { // an older recording has no body
			f.Body, err = body[swarm.Ownership](e)
		}
	case swarm.PlanAdded:
		f.Body, err = swarm.PlanOf(e)
	case swarm.HandoffStored:
		var stored swarm.StoredEnvelope
		stored, err = swarm.Body[swarm.StoredEnvelope](e)
		f.Body = Mail(e, &stored)
	case swarm.Notice:
		if len(e.Data) == 0 {
			return f, false, nil
		}
		f.Body, err = body[swarm.Reason](e)
	case swarm.HandoffConsumed:
		f.Body, err = body[swarm.Consumption](e)
	case swarm.ReplyOverdue:
		f.Body, err = body[swarm.Overdue](e)
	case swarm.CheckStarted:
		f.Body, err = body[swarm.GoalCheck](e)
	case swarm.TurnEnded, swarm.ActionEnded, swarm.CheckEnded:
		f.Body, err = body[swarm.CallEnd](e)
	case swarm.TaskRetrying:
		f.Body, err = body[swarm.Retry](e)
	case swarm.LimitReached, swarm.LimitEnded:
		f.Body, err = body[swarm.Limit](e)
	case swarm.WaitBegan, swarm.WaitEnded:
		f.Body, err = body[swarm.AgentWait](e)
	case swarm.AgentEnded:
		f.Body, err = body[swarm.AgentEnd](e)
	case swarm.ApprovalAsked:
		f.Body, err = body[swarm.Approval](e)
	case swarm.ApprovalAnswered:
		f.Body, err = body[swarm.ApprovalAnswer](e)
	case swarm.Control:
		f.Body, err = body[swarm.ControlCommand](e)
	default:
		return f, false, nil
	}
	return f, err == nil, err
}

// Head makes a fact without a body.
func Head(e *swarm.Event) plan.Fact {
	return plan.Fact{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Key: e.Key, Agent: e.Agent, Task: e.Task, Turn: e.Turn}
}

func body[T any](e *swarm.Event) (any, error) {
	b, err := swarm.Body[T](e)
	return b, err
}

// Mail extracts what a team needs to know of a stored envelope.
func Mail(e *swarm.Event, s *swarm.StoredEnvelope) plan.Mail {
	env := &s.Envelope
	return plan.Mail{Ref: env.Ref(), ID: env.ID, From: env.FromNodeID, To: env.ToNodeID, Wakes: env.Kind == swarm.Handoff, Required: mail.Expects(*env),
		ReplyTo: mail.ReplyTo(*env), Answers: mail.MetaOf(*env).InReplyTo, Turn: e.Turn, Read: s.Read}
}
