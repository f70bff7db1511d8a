package swarm

import "strings"

// A Message is something that the run itself says to an agent or a person: a code, and what goes into its sentence.
// Loops decide with messages. The sentence is made where it is written down, so that another wording
// changes no decision, and an interrupted run goes on with it.
type Message struct {
	Code MessageCode `json:"code,omitempty"`
	Args []string    `json:"args,omitempty"`
}

// NewMessage makes a message.
func NewMessage(code MessageCode, args ...string) Message { return Message{code, args} }

// A MessageCode names a sentence.
type MessageCode string

// Stall says whether a message tells why a team made no progress.
func (c MessageCode) Stall() bool { return strings.HasPrefix(string(c), "stall_") }

// What is said to agents, with the arguments.
const (
	ToldSameOutput MessageCode = "told_same_output" // how often: its outputs are the same
	ToldSameAction MessageCode = "told_same_action" // in how many turns, evidence: it did the same with the same result
	ToldSameMail   MessageCode = "told_same_mail"   // in how many turns, to whom: it sent the same message
	ToldOnlyTwo    MessageCode = "told_only_two"    // how many messages, two agents: nobody else wrote
	ToldUnsent     MessageCode = "told_unsent"      // pairs of evidence and receiver: it says that it has written, and has not
)

// Why mail came back.
const (
	BackFailed    MessageCode = "back_failed"    // why: its receiver could not do its work
	BackCancelled MessageCode = "back_cancelled" // a person has cancelled its receiver
	BackEnded     MessageCode = "back_ended"     // its receiver had ended before
)

// Why a team made no progress, for a person.
const (
	StallSameOutput MessageCode = "stall_same_output" // agent, how often
	StallSameAction MessageCode = "stall_same_action" // agent, in how many turns, evidence
	StallSameMail   MessageCode = "stall_same_mail"   // agent, to whom, the envelope, in how many turns
	StallOnlyTwo    MessageCode = "stall_only_two"    // how many messages, two agents
	StallUnsent     MessageCode = "stall_unsent"      // agent, to whom, evidence
	StallShared     MessageCode = "stall_shared"      // files, phase, turn, agent, who else worked: nobody can tell who changed them
)

// What else a person is told.
const (
	WaitsForPaused MessageCode = "waits_for_paused" // agent: nothing goes on because it is paused
)

// MessageCodes lists them all.
var MessageCodes = []MessageCode{ToldSameOutput, ToldSameAction, ToldSameMail, ToldOnlyTwo, ToldUnsent, BackFailed, BackCancelled, BackEnded,
	StallSameOutput, StallSameAction, StallSameMail, StallOnlyTwo, StallUnsent, StallShared, WaitsForPaused}
