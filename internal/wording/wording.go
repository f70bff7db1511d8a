// Package wording makes the sentences that the run itself says to agents and people. Loops and
// rules decide by message codes, so every sentence here may be changed at any time.
package wording

import (
	"strconv"
	"strings"

	"swarm"
)

// A sentence is a text with a place for each argument, and a hint.
type sentence struct{ text, hint string }

// lookAtIt says what to do about a run that has paused by itself.
const lookAtIt = "look at it with swarm show, say something with swarm send, and go on with swarm resume"

var sentences = map[swarm.MessageCode]sentence{
	swarm.ToldSameOutput: {text: "Your last {1} outputs are the same to the letter. Do something else, or say what keeps you from it."},
	swarm.ToldSameAction: {text: "In your last {1} turns you have done the same with the same result: {2}. Do something else, or say what keeps you from it."},
	swarm.ToldSameMail:   {text: "In your last {1} turns you have sent {2} the same message. {2} has it already. Do something else, or say what keeps you from it."},
	swarm.ToldOnlyTwo: {text: "In the last {1} turns that sent messages, only {2} and {3} wrote, to each other. " +
		"If that brings you no nearer to the goal, decide, or ask another agent."},

	swarm.ToldCheck: {text: "The run checked whether the goal is reached, and it is not (check {1} of {2}). Have this fixed, then report again with report_done:\n{3}"},
	swarm.GoalUnmet: {text: "the goal is not reached (failed checks: {1}): {2}"},

	swarm.BackFailed:    {text: "it failed: {1}"},
	swarm.BackCancelled: {text: "it was cancelled"},
	swarm.BackEnded:     {text: "it has ended"},

	swarm.StallSameOutput: {"@{1} has said the same {2} times in a row, and was told so", lookAtIt},
	swarm.StallSameAction: {"@{1} has done the same in {2} turns in a row, with the same result, and was told so: {3}", lookAtIt},
	swarm.StallSameMail:   {"@{1} has sent @{2} the same message {3} in {4} turns in a row, and was told so", lookAtIt},
	swarm.StallOnlyTwo:    {"in the last {1} turns that sent messages, only @{2} and @{3} wrote, to each other, and both were told so", lookAtIt},
	swarm.Undivided:       {text: "the query could not be divided, so one agent gets the whole of it: {1}"},
	swarm.Unanswered:      {text: "the supervisor could not make one answer, so the results are listed as they are: {1}"},
	swarm.NotReviewed:     {text: "no vote, because its review failed: {1}"},
	swarm.NotReplanned:    {text: "the supervisor could not plan anew, so the swarm goes on as it is: {1}"},
	swarm.StallUnsent:     {"@{1} says again that it has written to @{2}, and has not: \"{3}\"", lookAtIt},
	swarm.StallShared: {"{1} changed against the phase {2} in the turn {3} of @{4}, and nobody can tell by whom: at the same time worked {5}",
		"swarm artifact ls has what each turn changed"},

	swarm.WaitsForPaused: {"the run waits for @{1}, which is paused", "let it go on with swarm resume @{1}"},
}

// Text returns the sentence of a message.
func Text(m swarm.Message) string {
	if m.Code == swarm.ToldUnsent {
		return unsent(m.Args)
	}
	return fill(sentences[m.Code].text, m)
}

// Hint returns the hint of a message, or "".
func Hint(m swarm.Message) string { return fill(sentences[m.Code].hint, m) }

// fill puts the arguments of a message in their places. An unknown code, from a newer version, is
// shown as it is.
func fill(text string, m swarm.Message) string {
	if _, known := sentences[m.Code]; !known {
		return strings.TrimSpace(string(m.Code) + " " + strings.Join(m.Args, " "))
	}
	var places []string
	for i, arg := range m.Args {
		places = append(places, "{"+strconv.Itoa(i+1)+"}", arg)
	}
	return strings.NewReplacer(places...).Replace(text)
}

// unsent makes the sentence about messages that an agent claims to have sent, and has not.
func unsent(args []string) (text string) {
	for i := 0; i+1 < len(args); i += 2 {
		text += "You said: \"" + args[i] + "\". No message of yours went to " + args[i+1] + " in that turn.\n"
	}
	return text + "If a message is to go there, send it now with send_handoff: what you merely say, nobody is given."
}

// Reason makes the body of an event that carries a message: the sentence for readers, and the code
// for decisions.
func Reason(r swarm.Reason) swarm.Reason {
	if r.Code == "" || r.Reason != "" {
		return r
	}
	r.Reason, r.Hint = Text(r.Message), Hint(r.Message)
	if r.Paused {
		r.Reason = "the run is paused: " + r.Reason
		r.Hint = lookAtIt
	}
	if r.Converged {
		r.Reason, r.Hint = "its agent ends: "+r.Reason, ""
	}
	if r.Ended {
		r.Reason = "the run ends, since nobody is there to decide: " + r.Reason
		r.Hint = "to have it pause instead: team: {on_stall: pause} in the compose file"
	}
	return r
}
