// Package flow holds the loops that decide what a run does next: [Pipeline] and [Team]. A loop is an
// ordinary function against the five verbs of [Fx]. It does no I/O, reads no clock and starts no
// goroutine. So an engine resumes a loop by giving it the same records again, and another engine can
// run the same loops.
package flow

import (
	"time"

	"swarm"
	"swarm/internal/plan"
)

// Version is written into a run when it starts. A program with another version refuses to resume it.
const Version = "3"

// A Call asks for one outside thing. It carries references, never bodies.
type Call struct {
	ID        string // unique in the run and the same each time that a loop is resumed: "code/2/1" = task, iteration, attempt
	Kind      string // one of the Kind constants, or a loop's name: a child loop is a call too
	Task      string
	Agent     string
	Iteration int           // from 1
	Of        int           // iterations in all
	Attempt   int           // from 1
	Ref       string        // key of a stored record: the plan
	Note      swarm.Message // what is to be told; the sentence is made where it is written down
	Answered  int           // of a turn in a team: how many growth requests were dealt with before, by which the team may have grown
	Since     int64         // how far the caller had read the log: the turn runner obeys control records after it

	// An engine sets the rest, and a loop leaves it empty. Both may differ each time that the call is made, so they are no part of
	// its fingerprint.
	Fence int64 // of the owner in whose name the call is made: what it writes is refused when the run has another owner
	Again bool  // the call may have been made before, by a process that died or was replaced
}

// The kinds of calls that are not loops.
const (
	KindPlan   = "plan"   // Do: reads the plan stored under Ref
	KindTurn   = "turn"   // Go: one turn of an agent
	KindRemind = "remind" // Do: tells Agent that the envelope Ref still wants a reply
	KindGiveUp = "giveup" // Do: tells Agent, who sent the envelope Ref, that nobody waits for the reply any more
	KindNote   = "note"   // Do: tells Agent what Note says, in the name of the run
	KindUrge   = "urge"   // Do: the same, and gives it a turn
	KindReturn = "return" // Do: sends the unread mail of Agent, which has ended, back; Note says why
	KindGrant  = "grant"  // Do: does what was answered to the growth request Ref of Agent, or tells it why not
)

// Print is a call's fingerprint. It stands in the record of the call's end, so that a loop that asks something else under the
// same id when it is resumed is caught. Of a message it has the code: another sentence is the same call.
func (c Call) Print() string {
	if c.Note.Code != "" {
		return c.Kind + " " + c.Task + " " + c.Agent + " " + string(c.Note.Code)
	}
	return c.Kind + " " + c.Task + " " + c.Agent + " " + c.Ref
}

// A Result is an answer. A failure is an answer too: whether to try again is the loop's decision.
type Result struct {
	swarm.CallEnd
	Seq  int64       // the record that says so
	Plan *swarm.Plan // the answer to KindPlan: typed, because encoding/json has no place in a workflow
}

// A Signal is one record addressed to the loop. Which bodies its fact has, says [swarm/internal/engine].
type Signal struct {
	Fact
	Result Result // of the end of a call
}

// A Fact is a record of the log. Those that a loop tells have a key made from the plan, so that telling
// one again when the loop is resumed writes nothing.
type Fact = plan.Fact

// Fx is everything that a loop may ask of the world. An error always means "stop now, say nothing".
type Fx interface {
	Do(Call) (Result, error)                // a short thing, answered before it returns
	Go(Call) error                          // a long thing; its end arrives from Next
	Tell(Fact) error                        // a fact for the log; nobody waits for the disk
	Next(max time.Duration) (Signal, error) // the next record addressed to this loop, in the log's order, or a tick after max; 0 = no tick
	Now() time.Time                         // the time of the last record that Next returned; before the first one, of the run's start
}
