package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"swarm"
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
		env, err := swarm.Body[swarm.Envelope](e)
		if err != nil {
			return err
		}
		c.stored(e, env)
	case swarm.HandoffInjected:
		in, err := swarm.Body[swarm.Injection](e)
		if err != nil {
			return err
		}
		t := c.turn(e)                                                                                       // the envelopes are injected when it commits: if it is cut, it has read nothing
		t.Injected = slices.DeleteFunc(t.Injected, func(before Aside) bool { return before.Upto > in.From }) // it had not reached the agent
		t.Injected = append(t.Injected, Aside{in, e.Time})
	case swarm.HandoffConsumed:
		in, err := swarm.Body[swarm.Inputs](e)
		if err != nil {
			return err
		}
		c.injected(e, in)
	case swarm.HandoffReturned:
		r, err := swarm.Body[swarm.Return](e)
		if err != nil {
			return err
		}
		if i, ok := c.ids[cmp.Or(r.Ref, r.ID)]; ok {
			c.returned(e, i, r.Reason)
		}
	case swarm.ReplyOverdue:
		o, err := swarm.Body[swarm.Overdue](e)
		if err != nil {
			return err
		}
		c.overdue(o)
	case swarm.RunEnded:
		c.over = true
		for i := range c.Envelopes {
			if env := &c.Envelopes[i]; env.Receipt.State == MailStored && env.ToNodeID != swarm.User { // a person reads when the run is over, too
				c.returned(e, i, runEnded)
			}
		}
	}
	return nil
}

const runEnded = "run ended"

func (c *Collector) stored(e *swarm.Event, env swarm.Envelope) {
	c.answers(e, &env)
	i := len(c.Envelopes)
	c.Envelopes = append(c.Envelopes, Envelope{env, Receipt{Seq: e.Seq, State: MailStored, Stored: e.Time}})
	c.boxes[env.ToNodeID] = append(c.boxes[env.ToNodeID], i)
	c.ids[env.ID], c.ids[env.Ref()] = i, i
	if e.Turn != "" {
		c.sent[e.Turn] = append(c.sent[e.Turn], i)
	}
	c.changed = append(c.changed, i)
	if c.over && env.ToNodeID != swarm.User {
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
		if r.Turn, r.Injected = e.Turn, e.Time; r.State == MailStored {
			r.State = MailInjected
		}
		c.changed = append(c.changed, i)
		if t != nil {
			if in := t.aside(r.Seq); in != nil {
				r.Tool, r.Injected = in.Tool, in.Time
			}
		}
		switch {
		case t == nil:
		case r.Seq <= t.Inputs.Upto:
			r.Prompt, r.Injected = t.Prompt, t.Started
		case r.Answer == "": // read by a tool: what it sent to the sender afterwards is the answer
			for _, n := range c.after(c.sent[e.Turn], r.Seq) {
				if c.Envelopes[n].ToNodeID == c.Envelopes[i].replyTo() {
					c.answered(i, &c.Envelopes[n].Envelope, c.Envelopes[n].Receipt.Stored)
					break
				}
			}
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

func (e *Envelope) replyTo() string {
	if r := e.Payload.Response; r != nil && r.ReplyTo != "" {
		return r.ReplyTo
	}
	return e.FromNodeID
}

// answers marks what an envelope answers: the one that it names, or those that stood in the prompt of the turn which sent it and
// whose replies are for its receiver.
func (c *Collector) answers(e *swarm.Event, env *swarm.Envelope) {
	if bytes.Contains(env.Meta, []byte("inReplyTo")) {
		var meta struct {
			InReplyTo string `json:"inReplyTo"`
		}
		if json.Unmarshal(env.Meta, &meta) == nil {
			if i, ok := c.ids[meta.InReplyTo]; ok {
				c.answered(i, env, e.Time)
			}
		}
	}
	n, ok := c.at[e.Turn]
	if !ok || e.Turn == "" {
		return
	}
	for _, i := range c.between(env.FromNodeID, c.Turns[n].Inputs) {
		if asked := &c.Envelopes[i]; asked.replyTo() == env.ToNodeID {
			c.answered(i, env, e.Time)
		}
	}
}

func (c *Collector) answered(i int, by *swarm.Envelope, at time.Time) {
	if r := &c.Envelopes[i].Receipt; r.Answer == "" {
		r.State, r.Answer, r.Answered = MailAnswered, by.ID, at
		c.changed = append(c.changed, i)
	}
}

// returned marks an envelope that nobody will read.
func (c *Collector) returned(e *swarm.Event, i int, reason string) {
	r := &c.Envelopes[i].Receipt
	r.State, r.Reason, r.Returned = MailUndeliverable, reason, e.Time
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
	}
	c.changed = append(c.changed, i)
}
