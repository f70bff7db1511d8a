package agentapi

import (
	"encoding/json"

	"swarm"
	"swarm/internal/mail"
)

// takeQuestion folds what an envelope says about answers: it may be one, and it may want one. A reminder
// gives the right to answer once more: what was written meanwhile was not taken for the answer.
func (o *Office) takeQuestion(env *swarm.Envelope) {
	if o.Shelf != nil { // a person's office has one, and asks nobody for leave to answer
		return
	}
	if env.FromNodeID != swarm.Orchestrator {
		o.rules.Answer(env.FromNodeID, env.ToNodeID)
	} else if mail.MetaOf(*env).Type == reminder {
		var again struct{ Reminder, ReplyTo string }
		if json.Unmarshal(env.Payload.Structured, &again) == nil {
			o.rules.Owe(env.ToNodeID, again.ReplyTo, again.Reminder)
		}
	}
	o.rules.Ask(*env)
}

// Inbox is an agent's mail as it stands in its prompt.
func (o *Office) Inbox(agent string, items []mail.Item) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.follow(); err != nil {
		return "", err
	}
	return o.rules.Inbox(agent, items), nil
}

// isStored says whether the log has this very message.
func (o *Office) isStored(e swarm.Envelope) bool {
	there, ok, err := o.Log.Find(swarm.MailKey(e.Ref()))
	if err != nil || !ok {
		return false
	}
	stored, err := swarm.Body[swarm.Envelope](&there)
	return err == nil && mail.Same(stored, e)
}
