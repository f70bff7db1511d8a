package office

import (
	"bytes"
	"encoding/json"

	"swarm"
	"swarm/internal/mail"
)

// expectation stands in envelopes that ask for a response, and in few others.
var expectation = []byte(`"expectation":"`)

// takeQuestion folds what an envelope says about answers: it may be one, and it may want one. A reminder
// gives the right to answer once more: what was written meanwhile was not taken for the answer.
func (o *Office) takeQuestion(e *swarm.Event, receiver string) error {
	if e.Agent != swarm.Orchestrator {
		o.rules.Answer(e.Agent, receiver)
	}
	reminds := e.Agent == swarm.Orchestrator && bytes.Contains(e.Data, []byte(reminder))
	if !reminds && !bytes.Contains(e.Data, expectation) {
		return nil
	}
	env, err := swarm.Body[swarm.Envelope](e)
	if err != nil {
		return err
	}
	var again struct{ Reminder, ReplyTo string }
	if reminds && mail.MetaOf(env).Type == reminder && json.Unmarshal(env.Payload.Structured, &again) == nil {
		o.rules.Owe(receiver, again.ReplyTo, again.Reminder)
	}
	o.rules.Ask(env)
	return nil
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
