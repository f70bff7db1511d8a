package agentapi

import (
	"encoding/json"

	"swarm"
	"swarm/internal/mail"
)

// takeQuestion folds what an envelope says about answers: it may be one, and it may want one. A reminder
// gives the right to answer once more: what was written meanwhile was not taken for the answer.
func (s *Service) takeQuestion(env *swarm.Envelope) {
	if s.Folds != nil { // a person's service has one, and asks nobody for leave to answer
		return
	}
	if env.FromNodeID != swarm.Orchestrator {
		s.rules.Answer(env.FromNodeID, env.ToNodeID)
	} else if mail.MetaOf(*env).Type == reminder {
		var again struct{ Reminder, ReplyTo string }
		if json.Unmarshal(env.Payload.Structured, &again) == nil {
			s.rules.Owe(env.ToNodeID, again.ReplyTo, again.Reminder)
		}
	}
	s.rules.Ask(*env)
}

// isStored says whether the log has this very message.
func (s *Service) isStored(e swarm.Envelope) bool {
	stored, ok, _ := swarm.FindBody[swarm.Envelope](s.Log, swarm.MailKey(e.Ref()))
	return ok && mail.Same(stored, e)
}
