package office

import (
	"context"

	"swarm"
	"swarm/internal/mail"
)

// Note tells an agent something in the name of the run, by a signal, which gives it no turn. Told again under the same id, it is the same
// note.
func (o *Office) Note(ctx context.Context, id, agent, text string) error {
	return o.note(ctx, id, agent, text, mail.Meta{Type: "note"})
}

// Nudge is a note that does not wait for the agent's next turn: the one that it has now is given it between two tools.
func (o *Office) Nudge(ctx context.Context, id, agent, text string) error {
	return o.note(ctx, id, agent, text, mail.Meta{Type: "note", Priority: mail.High})
}

func (o *Office) note(ctx context.Context, id, agent, text string, meta mail.Meta) error {
	e := swarm.Envelope{Kind: swarm.Signal, ID: derived("note", id), FromNodeID: swarm.Orchestrator, ToNodeID: agent, CreatedAt: o.now().UTC(),
		Payload: swarm.Payload{Message: text}, Meta: mail.Encode(meta)}
	return o.appendNew(ctx, []swarm.Event{inbound(e)})
}
