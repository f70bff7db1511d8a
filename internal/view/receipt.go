package view

import (
	"cmp"
	"slices"
	"time"

	"swarm"
	"swarm/internal/fact"
	"swarm/internal/plan"
)

// An Envelope is a stored envelope and what became of it.
type Envelope struct {
	swarm.Envelope
	Receipt Receipt `json:"receipt"`
}

// A Receipt says how far an envelope has come, and when.
type Receipt struct {
	Seq      int64      `json:"seq"`
	State    string     `json:"state"`             // stored, injected, answered or undeliverable
	Stored   time.Time  `json:"stored,omitzero"`   // when its sender was told that it was accepted, it was stored
	Injected time.Time  `json:"injected,omitzero"` // when the turn began in whose prompt it stood; when that ended, if it was read by a tool; when it was given it, if that was between two
	Answered time.Time  `json:"answered,omitzero"`
	Returned time.Time  `json:"returned,omitzero"` // since when it is undeliverable
	Turn     string     `json:"turn,omitempty"`    // the one it was injected into
	Prompt   swarm.Hash `json:"prompt,omitempty"`  // and its prompt, when it stood there; else the agent read it by a tool
	Tool     string     `json:"tool,omitempty"`    // beside whose answer the agent was given it; "" = it asked for it
	Answer   string     `json:"answer,omitempty"`  // the envelope that answers it
	Reason   string     `json:"reason,omitempty"`  // why it is undeliverable
	Overdue  string     `json:"overdue,omitempty"` // a required reply that has not come: reminded, or over, when it is not waited for any more
}

// How far an envelope can have come. That it was accepted is the same as that it is stored.
const (
	MailStored        = "stored"
	MailInjected      = "injected"
	MailAnswered      = "answered"
	MailUndeliverable = "undeliverable"
)

// What becomes of a required reply that does not come.
const (
	ReplyReminded = "reminded"
	ReplyOver     = "over"
)

// Pending says whether something is still to become of an envelope: it is to be read, or to be answered.
func (e *Envelope) Pending() bool {
	if e.Receipt.State == MailStored {
		return true
	}
	r := e.Payload.Response
	return r != nil && r.Expectation == "required" && e.Receipt.State == MailInjected && e.Receipt.Overdue != ReplyOver
}

// Age is how long an envelope has been waiting, or has waited until it was read.
func (e *Envelope) Age(now time.Time) time.Duration {
	for _, t := range []time.Time{e.Receipt.Injected, e.Receipt.Returned} {
		if !t.IsZero() {
			now = t
			break
		}
	}
	return max(0, now.Sub(e.Receipt.Stored))
}

// Changed is the envelopes that are new since it was last asked, or that something became of, in their order.
func (c *Collector) Changed() []Envelope {
	slices.Sort(c.changed)
	var all []Envelope
	for _, i := range slices.Compact(c.changed) {
		all = append(all, c.Envelopes[i])
	}
	c.changed = c.changed[:0]
	return all
}

// takeMail takes an event about mail.
func (c *Collector) takeMail(e *swarm.Event) error {
	switch e.Kind {
	case swarm.HandoffStored:
		return swarm.UseBody(e, func(env swarm.StoredEnvelope) { c.stored(e, &env) })
	case swarm.HandoffInjected:
		return swarm.UseBody(e, func(in swarm.Injection) {
			t := c.turn(e) // the envelopes are injected when it commits: if it is cut, it has read nothing
			// What overlaps with it had not reached the agent.
			t.Injected = slices.DeleteFunc(t.Injected, func(before Aside) bool { return before.Upto > in.From })
			t.Injected = append(t.Injected, Aside{in, e.Time})
		})
	case swarm.HandoffConsumed:
		return swarm.UseBody(e, func(in swarm.Inputs) { c.injected(e, in) })
	case swarm.HandoffReturned:
		return swarm.UseBody(e, func(r swarm.Return) {
			if i, ok := c.ids[cmp.Or(r.Ref, r.ID)]; ok {
				c.returned(e, i, r.Reason)
			}
		})
	case swarm.ReplyOverdue:
		return swarm.UseBody(e, c.overdue)
	case swarm.RunEnded:
		c.over, c.owed = true, nil
		for i := range c.Envelopes {
			if env := &c.Envelopes[i]; env.Receipt.State == MailStored && env.ToNodeID != swarm.User { // a person reads when the run is over, too
				c.returned(e, i, runEnded)
			}
		}
	}
	return nil
}

const runEnded = "run ended"

func (c *Collector) stored(e *swarm.Event, env *swarm.StoredEnvelope) {
	m := fact.Mail(e, env)
	c.answers(e, &m)
	i := len(c.Envelopes)
	c.Envelopes = append(c.Envelopes, Envelope{env.Envelope, Receipt{Seq: e.Seq, State: MailStored, Stored: e.Time}})
	c.mail = append(c.mail, m)
	c.boxes[m.To] = append(c.boxes[m.To], i)
	c.ids[m.ID], c.ids[m.Ref] = i, i
	if m.Required {
		c.owed = append(c.owed, i)
	}
	c.changed = append(c.changed, i)
	if c.over && m.To != swarm.User {
		c.returned(e, i, runEnded)
	}
}

// between are the envelopes in a receiver's inbox after a number and up to another.
func (c *Collector) between(agent string, in swarm.Inputs) []int {
	from := c.after(c.boxes[agent], in.From)
	return from[:len(from)-len(c.after(from, in.Upto))]
}

// after are those of some envelopes, in their order, that come after a number.
func (c *Collector) after(some []int, seq int64) []int {
	n, _ := slices.BinarySearchFunc(some, seq+1, func(i int, seq int64) int { return cmp.Compare(c.Envelopes[i].Receipt.Seq, seq) })
	return some[n:]
}

// injected marks the envelopes that a turn has consumed, or that a person has read.
func (c *Collector) injected(e *swarm.Event, in swarm.Inputs) {
	var t *Turn
	if e.Turn != "" {
		t = c.turn(e)
	}
	for _, i := range c.between(e.Agent, in) {
		r := &c.Envelopes[i].Receipt
		if r.Turn, r.Injected = string(e.Turn), e.Time; r.State == MailStored {
			r.State = MailInjected
		}
		c.changed = append(c.changed, i)
		if t != nil {
			if in := t.aside(r.Seq); in != nil {
				r.Tool, r.Injected = in.Tool, in.Time
			}
		}
		if t != nil && r.Seq <= t.Inputs.Upto {
			r.Prompt, r.Injected = t.Prompt, t.Started
		}
	}
}

// aside is what the turn was given between two tools with an envelope in it, or nil.
func (t *Turn) aside(seq int64) *Aside {
	for i := range t.Injected {
		if in := &t.Injected[i]; in.From < seq && seq <= in.Upto {
			return in
		}
	}
	return nil
}

// answers marks what an envelope answers, by [plan.Mail.Replies]: of what its sender was given in the turn that sent it, and of the
// questions that are still open.
func (c *Collector) answers(e *swarm.Event, m *plan.Mail) {
	if i, ok := c.ids[m.Answers]; ok && m.Answers != "" {
		c.answered(i, m, e.Time)
	}
	read := m.Read
	var given []int
	if n, ok := c.at[e.Turn]; ok && e.Turn != "" {
		read = max(read, c.Turns[n].Inputs.Upto)
		given = c.between(m.From, swarm.Inputs{From: c.Turns[n].Inputs.From, Upto: read})
	}
	for _, some := range [][]int{given, c.owed} {
		for _, i := range some {
			if m.Replies(&c.mail[i], c.Envelopes[i].Receipt.Seq, read) {
				c.answered(i, m, e.Time)
			}
		}
	}
	c.owed = slices.DeleteFunc(c.owed, func(i int) bool { return c.Envelopes[i].Receipt.State == MailAnswered })
}

func (c *Collector) answered(i int, by *plan.Mail, at time.Time) {
	if r := &c.Envelopes[i].Receipt; r.Answer == "" {
		r.State, r.Answer, r.Answered = MailAnswered, by.ID, at
		c.changed = append(c.changed, i)
	}
}

// returned marks an envelope that nobody will read.
func (c *Collector) returned(e *swarm.Event, i int, reason string) {
	r := &c.Envelopes[i].Receipt
	r.State, r.Reason, r.Returned = MailUndeliverable, reason, e.Time
	c.owed = slices.DeleteFunc(c.owed, func(o int) bool { return o == i })
	c.changed = append(c.changed, i)
}

func (c *Collector) overdue(o swarm.Overdue) {
	i, ok := c.ids[o.ID]
	if !ok {
		return
	}
	r := &c.Envelopes[i].Receipt
	if r.Overdue = ReplyReminded; o.Over {
		r.Overdue = ReplyOver
		c.owed = slices.DeleteFunc(c.owed, func(owed int) bool { return owed == i })
	}
	c.changed = append(c.changed, i)
}
