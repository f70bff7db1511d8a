package agentapi

import (
	"encoding/json"

	"swarm"
	"swarm/internal/mail"
)

// applyQuestion applies what an envelope says about answers: it may be one, and it may ask for one.
// A reminder gives the right to answer once more, because messages sent meanwhile did not count as
// the answer.
func (s *Service) applyQuestion(env *swarm.Envelope) {
	if s.Folds != nil { // only a person's service has stored folds, and a person needs no permission to answer
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

// isStored says whether the log has this message already, with the same content.
func (s *Service) isStored(e swarm.Envelope) bool {
	stored, ok, _ := swarm.FindBody[swarm.Envelope](s.Log, swarm.MailKey(e.Ref()))
	return ok && mail.Same(stored, e)
}
