package plan

import (
	"time"

	"swarm"
)

// A Fact is an event of a run's log with its body decoded. It is the common currency of everybody
// who keeps a [Team]: a loop is told facts and tells them, and a reader of the log decodes them. The
// body is typed because encoding/json has no place in a workflow.
type Fact struct {
	Seq  int64     // its number in the log; 0 = a loop tells it, and does not know the number yet
	Time time.Time // when it was written
	Kind swarm.EventKind
	Key  string
	// Agent, Task and Turn are what it is about.
	Agent string
	Task  string
	Turn  swarm.TurnID
	Body  any // the type that [swarm.EventKind] names for the kind; of an envelope a [Mail]
}

// Mail is what a team has to know of an envelope.
type Mail struct {
	Ref      string       `json:"ref"` // names it in its run
	ID       string       `json:"id"`  // as its sender knows it
	From     string       `json:"from"`
	To       string       `json:"to"`
	Wakes    bool         `json:"wakes,omitempty"`    // its receiver has a turn for it
	Required bool         `json:"required,omitempty"` // it wants a reply
	ReplyTo  string       `json:"reply_to,omitempty"` // who gets the reply
	Answers  string       `json:"answers,omitempty"`  // the envelope that it says it is the reply to, by ref or id
	Says     string       `json:"says,omitempty"`     // what tells it from another message to the same receiver
	Turn     swarm.TurnID `json:"turn,omitempty"`     // the one that sent it
	// Read is how far its sender had read its own mail when it wrote this; 0 = that was not recorded.
	Read int64 `json:"read,omitempty"`
}

// Replies says whether m is the reply to an earlier envelope, which has the number seq: m names it, or
// m goes from who was asked to who wants the reply, and its sender had read the question by then. This
// is the only rule about replies; loops, views and receipts use it.
func (m *Mail) Replies(to *Mail, seq, read int64) bool {
	if m.Answers != "" && (m.Answers == to.Ref || m.Answers == to.ID) {
		return true
	}
	return to.To == m.From && to.ReplyTo == m.To && seq <= read
}
