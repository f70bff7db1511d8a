package office

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"swarm"
	"swarm/internal/mail"
)

// Return sends the unread mail of an agent that has ended back to where it came from: each envelope is marked as undeliverable, and its
// sender is told by a signal, which gives nobody a turn. An agent has ended when the log says so; from then on nothing more comes
// into its inbox. Whatever was returned already stays as it is.
func (o *Office) Return(ctx context.Context, agent, reason string) error {
	after, err := o.Cursor(agent)
	if err != nil {
		return err
	}
	for {
		events, err := o.Log.Read(after, page/2, swarm.ToAgent(agent))
		if err != nil || len(events) == 0 {
			return err
		}
		var b swarm.Batch
		for _, e := range events {
			after = e.Seq
			if e.Kind != swarm.HandoffStored {
				continue
			}
			var env swarm.Envelope
			if err := decode(e, &env); err != nil {
				return err
			}
			b.Events = append(b.Events, o.returned(env, reason)...)
		}
		if err := o.appendNew(ctx, b.Events); err != nil {
			return err
		}
	}
}

// returned is what says that an envelope came back, and tells its sender.
func (o *Office) returned(e swarm.Envelope, reason string) []swarm.Event {
	events := []swarm.Event{{Kind: swarm.HandoffReturned, Key: swarm.ReturnedKey(e.Ref()), Agent: e.ToNodeID, Data: mail.Encode(swarm.Return{ID: e.ID, Ref: e.Ref(), Reason: reason})}}
	o.mu.Lock()
	told := e.FromNodeID != swarm.Orchestrator && !o.rules.Ended(e.FromNodeID)
	o.mu.Unlock()
	if !told {
		return events
	}
	back := swarm.Envelope{Kind: swarm.Signal, ID: derived("back", e.Ref()), FromNodeID: swarm.Orchestrator, ToNodeID: e.FromNodeID, CreatedAt: o.now().UTC(),
		Payload: swarm.Payload{Message: fmt.Sprintf("Your message %s to %s was not delivered: %s", e.ID, e.ToNodeID, reason),
			Structured: mail.Encode(map[string]string{"undeliverable": e.ID, "to": e.ToNodeID, "reason": reason}), Status: &swarm.PayloadStatus{Reason: "undeliverable"}},
		Meta: mail.Encode(mail.Meta{Type: "undeliverable"})}
	return append(events, inbound(back))
}

func inbound(e swarm.Envelope) swarm.Event {
	return swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(e.ToNodeID), Key: swarm.MailKey(e.Ref()), Agent: e.FromNodeID, Data: mail.Encode(e)}
}

// appendNew appends the events whose keys are not there yet.
func (o *Office) appendNew(ctx context.Context, events []swarm.Event) error {
	if len(events) == 0 {
		return nil
	}
	_, err := o.Log.Append(ctx, swarm.Batch{Events: events})
	if !errors.Is(err, swarm.ErrConflict) {
		return err
	}
	for _, e := range events { // some were written before, at another time or for another reason
		if _, ok, err := o.Log.Find(e.Key); err != nil {
			return err
		} else if ok {
			continue
		}
		if _, _, err := o.append(ctx, swarm.Batch{Events: []swarm.Event{e}}); err != nil {
			return err
		}
	}
	return nil
}

// Remind tells an agent that an envelope still wants its reply. It gives the agent a turn. Told again, it is the same reminder.
func (o *Office) Remind(ctx context.Context, agent, id string) error {
	asked, err := o.Envelope(id)
	if err != nil {
		return err
	}
	to := mail.ReplyTo(asked)
	e := swarm.Envelope{Kind: swarm.Handoff, ID: derived("remind", id), FromNodeID: swarm.Orchestrator, ToNodeID: agent, CreatedAt: o.now().UTC(),
		Payload: swarm.Payload{Message: fmt.Sprintf("Message %s from %s still wants your reply. Answer it now with send_handoff to %s. It says: %s", asked.ID, asked.FromNodeID, to, head(asked.Payload.Message)),
			Structured: mail.Encode(map[string]string{"reminder": id, "replyTo": to})},
		Meta: mail.Encode(mail.Meta{Type: "reminder"})}
	return o.appendNew(ctx, []swarm.Event{inbound(e)})
}

// derived is the id of an envelope that is made because of another.
func derived(what, id string) string {
	sum := sha256.Sum256([]byte(what + "\x00" + id))
	return what + "-" + hex.EncodeToString(sum[:12])
}
