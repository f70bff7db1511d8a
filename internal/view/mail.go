package view

import (
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/fact"
	"swarm/internal/plan"
)

// A Box is the mail of an agent of a team. Its size grows with unread mail, not with all mail.
type Box struct {
	Inbox []Unread `json:"inbox,omitempty"` // the envelopes that it has not consumed
	// Reading is the last envelope that its running turn has seen, in its prompt or injected.
	Reading int64  `json:"reading,omitempty"`
	Last    Letter `json:"last,omitzero"` // the last one that it sent or received
}

// An Unread is an envelope that its receiver has not consumed.
type Unread struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"` // when it was stored
}

// A Letter is the sender, the receiver and the beginning of an envelope.
type Letter struct {
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// Unread returns the number of envelopes that the agent has not seen.
func (b Box) Unread() int { return b.unseen().Unread }

// unseen returns what the agent has not seen.
func (b Box) unseen() *Inbox {
	in := &Inbox{}
	for _, u := range b.Inbox {
		if u.Seq > b.Reading {
			if in.Unread++; in.Oldest.IsZero() {
				in.Oldest = u.Time
			}
		}
	}
	return in
}

// foldMail folds an event about the mail of a team.
func (r *Run) foldMail(e *swarm.Event) error {
	if e.Kind == swarm.HandoffStored {
		r.useEdge(e)
	}
	if r.team == nil {
		return nil
	}
	switch e.Kind {
	case swarm.HandoffStored:
		return swarm.UseBody(e, func(env swarm.StoredEnvelope) {
			f := fact.Head(e)
			f.Body = fact.Mail(e, &env)
			r.team.Apply(f)
			if AsksPerson(&env.Envelope) {
				r.addQuestion(question{env.ID, shorten(excerpt.OneLine(env.Payload.Message), maxQuestion)})
			}
			last := Letter{env.FromNodeID, env.ToNodeID, FirstLine(env.Payload.Message)}
			r.box(env.FromNodeID, func(b *Box) { b.Last = last })
			r.box(env.ToNodeID, func(b *Box) {
				b.Last, b.Inbox = last, append(b.Inbox, Unread{e.Seq, e.Time})
			})
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
				b.Inbox = slices.DeleteFunc(b.Inbox, func(u Unread) bool { return u.Seq <= in.Upto })
			})
		})
	case swarm.AgentEnded: // its unread mail is returned
		r.box(e.Agent, (*Box).empty)
	case swarm.RunEnded:
		for name := range r.boxes {
			r.box(name, (*Box).empty)
		}
	}
	return nil
}

// A question is what an agent asks a person, by the id of its envelope.
type question struct{ ID, Text string }

const (
	keptQuestions = 20
	maxQuestion   = 2000 // characters
)

// AsksPerson reports whether a message requires a person's reply.
func AsksPerson(env *swarm.Envelope) bool {
	return env.ToNodeID == swarm.User && env.Payload.Response != nil && env.Payload.Response.Expectation == "required"
}

// addQuestion keeps the text of a question for those who show the wait for its answer. The newest are
// kept.
func (r *Run) addQuestion(q question) {
	r.questions = append(r.questions, q)
	if n := len(r.questions); n > keptQuestions {
		r.questions = append(r.questions[:0], r.questions[n-keptQuestions:]...)
	}
}

// quote adds the text of the question to a wait for a person's reply.
func (r *Run) quote(w *Wait) {
	if w.For != plan.ForReply || w.Agent != swarm.User {
		return
	}
	for _, q := range r.questions {
		if q.ID == w.Reason {
			w.Question = q.Text
		}
	}
}

func (b *Box) empty() { b.Inbox = nil }

// box changes the box of an agent. A person has none.
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

// useEdge counts an envelope for the edge between its sender and its receiver. The body need not be
// read for that.
func (r *Run) useEdge(e *swarm.Event) {
	if i, ok := r.edgeAt[[2]string{e.Agent, strings.TrimPrefix(e.To, "@")}]; ok {
		r.edges[i].Handoffs++
		r.edges[i].LastSeq = e.Seq
	}
}
