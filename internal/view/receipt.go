package view

import (
	"cmp"
	"slices"
	"time"

	"swarm"
	"swarm/internal/fact"
	"swarm/internal/plan"
)

// An Envelope is a stored envelope with its receipt.
type Envelope struct {
	swarm.Envelope
	Receipt Receipt `json:"receipt"`
}

// A Receipt says how far an envelope got, and when.
type Receipt struct {
	Seq    int64     `json:"seq"`
	State  string    `json:"state"`           // stored, injected, answered or undeliverable
	Stored time.Time `json:"stored,omitzero"` // when it was on disk: only then its sender got an answer
	// Injected is when the receiver saw it: the start of the turn whose prompt had it, the tool
	// call beside which it was injected, or the end of the turn that read it by a tool.
	Injected time.Time  `json:"injected,omitzero"`
	Answered time.Time  `json:"answered,omitzero"`
	Returned time.Time  `json:"returned,omitzero"` // when it became undeliverable
	Turn     string     `json:"turn,omitempty"`    // the turn that it was injected into
	Prompt   swarm.Hash `json:"prompt,omitempty"`  // the prompt that had it; "" = the agent read it by a tool
	Tool     string     `json:"tool,omitempty"`    // the tool call beside which it was injected; "" = none
	Answer   string     `json:"answer,omitempty"`  // the envelope that answers it
	Reason   string     `json:"reason,omitempty"`  // why it is undeliverable
	// Overdue says that a required reply is late: reminded, or over if the wait has ended.
	Overdue string `json:"overdue,omitempty"`
	Client  string `json:"client,omitempty"` // the key of the MCP client that wrote it for a person
	// Edited is who has changed its text, for the fork that the run is; nil = it is the sender's.
	Edited *swarm.Actor `json:"edited,omitempty"`
}

// Sender returns the name of the one that sent an envelope, with the MCP client that wrote it for a
// person.
func (e *Envelope) Sender() string { return sender(e.FromNodeID, e.Receipt.Client) }

func sender(from, client string) string {
	if client != "" {
		from += " (MCP client " + client + ")"
	}
	return from
}

// The states of an envelope. Accepted means stored.
const (
	MailStored        = "stored"
	MailInjected      = "injected"
	MailAnswered      = "answered"
	MailUndeliverable = "undeliverable"
)

// The states of a late reply.
const (
	ReplyReminded = "reminded"
	ReplyOver     = "over"
)

// Pending reports whether an envelope still waits to be read or answered.
func (e *Envelope) Pending() bool {
	if e.Receipt.State == MailStored {
		return true
	}
	r := e.Payload.Response
	return r != nil && r.Expectation == "required" && e.Receipt.State == MailInjected && e.Receipt.Overdue != ReplyOver
}

// Age returns how long an envelope has waited, up to the moment when it was read or returned.
func (e *Envelope) Age(now time.Time) time.Duration {
	for _, t := range []time.Time{e.Receipt.Injected, e.Receipt.Returned} {
		if !t.IsZero() {
			now = t
			break
		}
	}
	return max(0, now.Sub(e.Receipt.Stored))
}

// Changed returns the envelopes that are new or changed since the last call, in their order.
func (c *Collector) Changed() []Envelope {
	slices.Sort(c.changed)
	var all []Envelope
	for _, i := range slices.Compact(c.changed) {
		all = append(all, c.Envelopes[i])
	}
	c.changed = c.changed[:0]
	return all
}

// takeMail adds an event about mail.
func (c *Collector) takeMail(e *swarm.Event) error {
	switch e.Kind {
	case swarm.HandoffStored:
		return swarm.UseBody(e, func(env swarm.StoredEnvelope) { c.stored(e, &env) })
	case swarm.HandoffInjected:
		return swarm.UseBody(e, func(in swarm.Injection) {
			t := c.turn(e) // its receipts change when the turn commits: a turn that is cut has read nothing
			// An earlier injection that overlaps did not reach the agent.
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
			if env := &c.Envelopes[i]; env.Receipt.State == MailStored && env.ToNodeID != swarm.User { // people can read their mail after the run
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
	c.Envelopes = append(c.Envelopes, Envelope{env.Envelope, Receipt{Seq: e.Seq, State: MailStored, Stored: e.Time, Client: env.Client, Edited: env.Edited}})
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

// between returns the envelopes in a receiver's inbox after one number, up to another.
func (c *Collector) between(agent string, in swarm.Inputs) []int {
	from := c.after(c.boxes[agent], in.From)
	return from[:len(from)-len(c.after(from, in.Upto))]
}

// after returns those of some ordered envelopes that come after a number.
func (c *Collector) after(some []int, seq int64) []int {
	n, _ := slices.BinarySearchFunc(some, seq+1, func(i int, seq int64) int { return cmp.Compare(c.Envelopes[i].Receipt.Seq, seq) })
	return some[n:]
}

// injected marks the envelopes that a turn has consumed, or a person has read.
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

// aside returns the injection that contained an envelope, or nil.
func (t *Turn) aside(seq int64) *Aside {
	for i := range t.Injected {
		if in := &t.Injected[i]; in.From < seq && seq <= in.Upto {
			return in
		}
	}
	return nil
}

// answers marks the envelopes that this one answers, by [plan.Mail.Replies]. Candidates are the
// mail that its sender got in the same turn, and the required replies that are still open.
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

// returned marks an envelope as undeliverable.
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
