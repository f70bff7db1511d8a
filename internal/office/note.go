package office

import (
	"context"

	"swarm"
	"swarm/internal/mail"
)

// Note tells an agent something in the name of the run, by a signal, which gives it no turn. Told again under the same id, it is the same
// note.
func (o *Office) Note(ctx context.Context, id, agent, text string) error {
	e := swarm.Envelope{Kind: swarm.Signal, ID: derived("note", id), FromNodeID: swarm.Orchestrator, ToNodeID: agent, CreatedAt: o.now().UTC(),
		Payload: swarm.Payload{Message: text}, Meta: mail.Encode(mail.Meta{Type: "note"})}
	return o.appendNew(ctx, []swarm.Event{inbound(e)})
}
