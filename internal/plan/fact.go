package plan

import (
	"time"

	"swarm"
)

// A Fact is an event of a run's log with its body decoded. Loops and readers of the log both keep a
// [Team] by applying facts. A loop reads and appends facts; a reader decodes them from events. The
// body is typed because encoding/json has no place in a workflow.
type Fact struct {
	Seq  int64     // sequence number in the log; 0 = the loop appends it, and does not know the number yet
	Time time.Time // when it was appended
	Kind swarm.EventKind
	Key  string
	// Agent, Task and Turn are its subject.
	Agent string
	Task  string
	Turn  swarm.TurnID
	Body  any // the type that [swarm.EventKind] names for the kind; for an envelope a [Mail]
}

// Undriven is how long no process drove the run, of the fact that another owns it. last is the time of
// the fact before it, from which an older log counts. Timers stand still for that long. They do not
// stand still while the owner before lived, even if it wrote nothing: otherwise a turn that is killed
// again and again would have its whole time each time.
func (f *Fact) Undriven(last time.Time) time.Duration {
	if o, ok := f.Body.(swarm.Ownership); ok && !o.Lived.IsZero() {
		last = o.Lived
	}
	return max(0, f.Time.Sub(last))
}

// Mail is what a team needs to know of an envelope.
type Mail struct {
	Ref      string       `json:"ref"` // unique in the run
	ID       string       `json:"id"`  // as the sender knows it
	From     string       `json:"from"`
	To       string       `json:"to"`
	Wakes    bool         `json:"wakes,omitempty"`    // it gives its receiver a turn
	Required bool         `json:"required,omitempty"` // it asks for a reply
	ReplyTo  string       `json:"reply_to,omitempty"` // the receiver of the reply
	Answers  string       `json:"answers,omitempty"`  // ref or id of the envelope that it says it answers
	Says     string       `json:"says,omitempty"`     // hash of the content, to recognize a repeated message
	Turn     swarm.TurnID `json:"turn,omitempty"`     // the turn that sent it
	// Read is the sequence number up to which its sender had read its own mail; 0 = not recorded.
	Read int64 `json:"read,omitempty"`
}

// Replies says whether m is the reply to an earlier envelope with the sequence number seq. Either m
// names that envelope, or m goes from the agent that was asked to the one that the reply is for,
// and its sender had read the question by then. This is the only rule about replies: loops, views
// and receipts share it.
func (m *Mail) Replies(to *Mail, seq, read int64) bool {
	if m.Answers != "" && (m.Answers == to.Ref || m.Answers == to.ID) {
		return true
	}
	return to.To == m.From && to.ReplyTo == m.To && seq <= read
}
