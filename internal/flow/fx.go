// Package flow holds the loops that decide what a run does next: [Pipeline] and [Team]. A loop is
// an ordinary function that uses the five methods of [Fx]. It does no I/O, reads no clock and
// starts no goroutine. So an engine resumes a loop by giving it the same records again, and another
// engine can run the same loops.
package flow

import (
	"time"

	"swarm"
	"swarm/internal/plan"
)

// Version is stored in a run when it starts. A program with another version refuses to resume it.
const Version = "3"

// checkedVersion is the version of a run whose goal is checked. A program that does not know of checks
// would complete such a run unchecked.
const checkedVersion = "4"

// VersionOf returns the version of the loop that drives a plan.
func VersionOf(p *swarm.Plan) string {
	if p.Team != nil && p.Team.Expect != nil {
		return checkedVersion
	}
	return Version
}

// A Call asks for one effect outside of the loop. It carries references, never bodies. Engines that
// send it to another process encode it as JSON.
type Call struct {
	ID        string        `json:"id"`   // unique in the run, and the same in a replay: "code/2/1" = task, iteration, attempt
	Kind      string        `json:"kind"` // one of the Kind constants, or the name of a child loop
	Task      string        `json:"task,omitempty"`
	Agent     string        `json:"agent,omitempty"`
	Iteration int           `json:"iteration,omitempty"` // from 1
	Of        int           `json:"of,omitempty"`        // number of iterations
	Attempt   int           `json:"attempt,omitempty"`   // from 1
	Ref       string        `json:"ref,omitempty"`       // key of a stored record: the plan
	Note      swarm.Message `json:"note,omitzero"`       // a message to tell; the adapter makes its text
	Answered  int           `json:"answered,omitempty"`  // for a turn of a team: the number of growth requests handled before, which may have changed the team
	Since     int64         `json:"since,omitempty"`     // sequence number that the loop has read; the turn runner obeys control records after it
	Want      plan.Want     `json:"want,omitempty"`      // for a turn of a swarm: what it is for
	Provider  string        `json:"provider,omitempty"`  // for a turn: the provider that does it; "" = its agent's
	Plan      string        `json:"plan,omitempty"`      // for an action or a check: key of the stored plan that its agent came with
	Timeout   time.Duration `json:"timeout,omitempty"`   // for a turn, an action or a check: how long it may take; 0 = as its task says
	// Reissued says that the loop makes the call again when another process owns the run. So an
	// engine that resumes the loop starts the call only then. It starts the call as first made, but
	// with the Timeout of then, which is what earlier starts have left.
	Reissued bool `json:"reissued,omitempty"`

	// The engine sets the rest, and a loop leaves it empty. Both fields may differ each time that
	// the call is made, so they are no part of the fingerprint.
	Fence int64 `json:"fence,omitempty"` // fence of the run's owner: once the run has another owner, writes under this fence are rejected
	Again bool  `json:"again,omitempty"` // a process that died or was replaced may have made the call before
}

// The kinds of calls that are not loops.
const (
	KindPlan   = "plan"   // Do: reads the plan stored under Ref
	KindTurn   = "turn"   // Go: one turn of an agent
	KindAction = "action" // Go: the action that the turn Ref of Agent asks for
	KindCheck  = "check"  // Go: checks whether the goal is reached; Agent is the lead, and Ref its last turn
	KindDivide = "divide" // Do: adds workers for the subtasks that the turn Ref names; "" = one for the whole query
	KindAssign = "assign" // Do: adds a worker for the open entry Ref of the task list
	KindRemind = "remind" // Do: reminds Agent that the envelope Ref asks for a reply
	KindGiveUp = "giveup" // Do: tells Agent, the sender of the envelope Ref, that its reply was given up
	KindNote   = "note"   // Do: sends Agent the message Note in the name of the run
	KindUrge   = "urge"   // Do: the same, and gives Agent a turn
	KindReturn = "return" // Do: returns the unread mail of Agent, which has ended; Note says why
	KindGrant  = "grant"  // Do: carries out the answer to the growth request Ref of Agent
)

// Print is the fingerprint of a call. It is stored with the call's end. So the engine notices a
// loop that asks for something else under the same id when it is resumed. For a message it has the
// code only: rewording the text does not change the call.
func (c Call) Print() string {
	if c.Note.Code != "" {
		return c.Kind + " " + c.Task + " " + c.Agent + " " + string(c.Note.Code)
	}
	return c.Kind + " " + c.Task + " " + c.Agent + " " + c.Ref
}

// A Result is the answer to a call. A failure is an answer too: the loop decides whether to retry.
type Result struct {
	swarm.CallEnd
	Seq  int64       // sequence number of the call's end
	Plan *swarm.Plan // the answer to KindPlan; typed, because encoding/json has no place in a workflow
}

// A Signal is one record addressed to the loop. The package [swarm/internal/engine] says which body
// its fact has.
type Signal struct {
	Fact
	Result Result // set for the end of a call
}

// A Fact is a record of the log. The facts that a loop tells have a key made from the plan. So a
// loop that is resumed and tells one again writes nothing.
type Fact = plan.Fact

// Fx is all that a loop may ask of the world. After an error the loop returns at once and tells
// nothing.
type Fx interface {
	Do(Call) (Result, error)                // a short call, answered before it returns
	Go(Call) error                          // a long call; its end arrives from Next
	Tell(Fact) error                        // a fact for the log; it does not wait for the disk
	Next(max time.Duration) (Signal, error) // the next record for this loop, in log order, or a tick after max; 0 = no tick
	Now() time.Time                         // time of the last record that Next returned; before the first one, of the run's start
}
