package view

import (
	"slices"

	"swarm"
	"swarm/internal/fact"
)

// A Box is the mail of an agent of a team. It grows with what the agent has not read, and not with what was ever sent.
type Box struct {
	Inbox   []int64 `json:"inbox,omitempty"`   // envelopes that it has not taken out, by their numbers in the log
	Reading int64   `json:"reading,omitempty"` // those up to this number its running turn has: they are in its prompt, or it was given them since
	Last    Letter  `json:"last,omitzero"`     // the last one that it sent or was sent
}

// A Letter is who wrote to whom, and how it begins.
type Letter struct {
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// Unread is how many envelopes it has not seen.
func (b Box) Unread() (n int) {
	for _, seq := range b.Inbox {
		if seq > b.Reading {
			n++
		}
	}
	return n
}

// foldMail folds in what happened to the mail of a team.
func (r *Run) foldMail(e *swarm.Event) error {
	if r.team == nil {
		return nil
	}
	switch e.Kind {
	case swarm.HandoffStored:
		return swarm.UseBody(e, func(env swarm.StoredEnvelope) {
			f := fact.Head(e)
			f.Body = fact.Mail(e, &env)
			r.team.Apply(f)
			last := Letter{env.FromNodeID, env.ToNodeID, FirstLine(env.Payload.Message)}
			r.box(env.FromNodeID, func(b *Box) { b.Last = last })
			r.box(env.ToNodeID, func(b *Box) {
				b.Last, b.Inbox = last, append(b.Inbox, e.Seq)
			})
		})
	case swarm.TurnStarted:
		return swarm.UseBody(e, func(s struct {
			Inputs swarm.Inputs `json:"inputs"`
		}) {
			r.box(e.Agent, func(b *Box) { b.Reading = s.Inputs.Upto })
		})
	case swarm.HandoffInjected:
		return swarm.UseBody(e, func(in swarm.Inputs) {
			r.box(e.Agent, func(b *Box) { b.Reading = in.Upto })
		})
	case swarm.TurnEnded:
		r.box(e.Agent, func(b *Box) { b.Reading = 0 })
	case swarm.HandoffConsumed:
		return swarm.UseBody(e, func(in swarm.Inputs) {
			r.box(e.Agent, func(b *Box) {
				b.Inbox = slices.DeleteFunc(b.Inbox, func(seq int64) bool { return seq <= in.Upto })
			})
		})
	case swarm.AgentEnded: // what it has not read goes back
		r.box(e.Agent, (*Box).empty)
	case swarm.RunEnded:
		for name := range r.boxes {
			r.box(name, (*Box).empty)
		}
	}
	return nil
}

func (b *Box) empty() { b.Inbox = nil }

// box changes the box of an agent; a person has none.
func (r *Run) box(agent string, change func(*Box)) {
	if _, ok := r.agentAt[agent]; !ok {
		return
	}
	if r.boxes == nil {
		r.boxes = map[string]Box{}
	}
	b := r.boxes[agent]
	change(&b)
	r.boxes[agent] = b
}
