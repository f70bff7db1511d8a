package office

import (
	"context"
	"strings"

	"swarm"
	"swarm/internal/mail"
)

// orchestrator is who writes in the name of the run itself.
const orchestrator = "orchestrator"

// Remind tells an agent that an envelope in its inbox still wants a reply.
func (o *Office) Remind(ctx context.Context, agent, id string) error {
	e, ok, err := o.Log.Find(swarm.MailKey(id))
	if err != nil || !ok {
		return err
	}
	var env swarm.Envelope
	if err := decode(e, &env); err != nil {
		return err
	}
	to := env.FromNodeID
	if r := env.Payload.Response; r != nil && r.ReplyTo != "" {
		to = r.ReplyTo
	}
	return o.tell(ctx, swarm.Handoff, "remind-"+id, agent, "The message "+id+" from "+env.FromNodeID+" still wants a reply. Answer it now with send_handoff to "+to+".", nil)
}

// Return sends back what an agent that has ended has not read: each sender is told, and the envelope is undeliverable.
func (o *Office) Return(ctx context.Context, agent, reason string) error {
	after, err := o.Cursor(agent)
	if err != nil {
		return err
	}
	for {
		items, err := o.Unread(agent, after, mostMail)
		if err != nil || len(items) == 0 {
			return err
		}
		for _, item := range items {
			after = item.Seq
			back := []swarm.Event{{Kind: swarm.HandoffReturned, Key: "returned:" + item.ID, Agent: agent, Data: mail.Encode(swarm.Return{ID: item.ID, Reason: reason})}}
			if err := o.tell(ctx, swarm.Signal, "returned-"+item.ID, item.FromNodeID, "Your message "+item.ID+" to "+agent+" is undeliverable: "+agent+" has ended ("+reason+").", back); err != nil {
				return err
			}
		}
	}
}

// tell writes to somebody in the name of the run, with other events in the same batch. Told again, it is the same message.
func (o *Office) tell(ctx context.Context, kind swarm.EnvelopeKind, id, to, text string, with []swarm.Event) error {
	if _, ok, err := o.Log.Find(swarm.MailKey(id)); err != nil || ok {
		return err
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxNotice)], "")
	env := swarm.Envelope{Kind: kind, ID: id, FromNodeID: orchestrator, ToNodeID: to, CreatedAt: o.now().UTC(), Payload: swarm.Payload{Message: text}}
	_, err := o.Log.Append(ctx, swarm.Batch{Events: append(with, swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(to), Key: swarm.MailKey(id), Agent: orchestrator,
		Data: mail.Encode(env)})})
	return err
}

// maxNotice is how long a message of the run itself may be.
const maxNotice = 4000
