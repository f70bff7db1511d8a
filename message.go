package swarm

import "strings"

// A Message is something that the runtime says to an agent or a person: a code with its arguments.
// Loops decide by codes. Package wording makes the sentence when it is written down. A new wording
// therefore changes no decision, and an interrupted run can be resumed with it.
type Message struct {
	Code MessageCode `json:"code,omitempty"`
	Args []string    `json:"args,omitempty"`
}

// NewMessage makes a message.
func NewMessage(code MessageCode, args ...string) Message { return Message{code, args} }

// A MessageCode names a sentence. Its arguments are listed at the codes below.
type MessageCode string

// Stall reports whether the message says why a team made no progress.
func (c MessageCode) Stall() bool { return strings.HasPrefix(string(c), "stall_") }

// Notes to agents, with their arguments.
const (
	ToldSameOutput MessageCode = "told_same_output" // how often: the agent's outputs are the same
	ToldSameAction MessageCode = "told_same_action" // in how many turns, evidence: the agent repeats an action with the same result
	ToldSameMail   MessageCode = "told_same_mail"   // in how many turns, to whom: the agent sends the same message
	ToldOnlyTwo    MessageCode = "told_only_two"    // how many messages, two agents: only these two write
	ToldCheck      MessageCode = "told_check"       // check, of how many, why: the check of the team's goal failed
	ToldUnsent     MessageCode = "told_unsent"      // pairs of evidence and receiver: the agent claims to have written, and has not
)

// Reasons why mail is undeliverable.
const (
	BackFailed    MessageCode = "back_failed"    // why: the receiver failed
	BackCancelled MessageCode = "back_cancelled" // a person cancelled the receiver
	BackEnded     MessageCode = "back_ended"     // the receiver had ended before
)

// Reasons why a team made no progress, for a person.
const (
	StallSameOutput MessageCode = "stall_same_output" // agent, how often
	StallSameAction MessageCode = "stall_same_action" // agent, in how many turns, evidence
	StallSameMail   MessageCode = "stall_same_mail"   // agent, to whom, the envelope, in how many turns
	StallOnlyTwo    MessageCode = "stall_only_two"    // how many messages, two agents
	StallUnsent     MessageCode = "stall_unsent"      // agent, to whom, evidence
	Undivided       MessageCode = "undivided"         // why the query of a swarm could not be divided
	Unanswered      MessageCode = "unanswered"        // why no model could make one answer of a swarm's results
	NotReplanned    MessageCode = "not_replanned"     // why the supervisor of a swarm could not plan anew
	NotReviewed     MessageCode = "not_reviewed"      // why a member of a council gives no vote
	StallShared     MessageCode = "stall_shared"      // files, phase, turn, agent, who else worked: the author is unknown
)

// Other notes to a person.
const (
	WaitsForPaused MessageCode = "waits_for_paused" // agent: the run waits because the agent is paused
	GoalUnmet      MessageCode = "goal_unmet"       // how many checks failed, why the last did: the run ends as failed
)

// MessageCodes lists all codes.
var MessageCodes = []MessageCode{ToldSameOutput, ToldSameAction, ToldSameMail, ToldOnlyTwo, ToldUnsent, ToldCheck, GoalUnmet, BackFailed, BackCancelled, BackEnded,
	StallSameOutput, StallSameAction, StallSameMail, StallOnlyTwo, StallUnsent, StallShared, WaitsForPaused, Undivided, Unanswered, NotReplanned, NotReviewed}
