package plan

import (
	"slices"

	"swarm"
)

// What a replay asks of a team. Turns and answers begin in their recorded order, nothing waits for a
// clock or a person, and the run ends where the recording does. It is in one file so that it can be
// taken out of here in one piece.

// replays says whether the run is a replay.
func (t *Team) replays() bool { return t.order != nil }

// Halt notes that the team went round in circles, and was or would have been paused.
func (t *Team) Halt() { t.stuck = true }

// staysOpen says of a team of which nobody has anything left to do that it goes on all the same: a
// person may have something to say. In a replay no person has, once all of the recording is through.
func (t *Team) staysOpen() bool {
	if t.order.Through() {
		return false
	}
	return t.Rules.Mode == swarm.InteractiveMode && (!t.replays() || len(t.Owed) == 0)
}

// firstEarly gives a turn to the one of those that others go before that was recorded first, when what was
// recorded before it does not come: the plan has changed.
func (t *Team) firstEarly() []TeamStep {
	if !t.replays() || !t.Ready || t.Running() > 0 || t.awaited() {
		return nil
	}
	var first *Member
	for i := range t.Members {
		if m := &t.Members[i]; t.mayRun(m) && (first == nil || t.order.Before(m.nextTurn(), first.nextTurn())) {
			first = m
		}
	}
	if first == nil {
		return nil
	}
	return []TeamStep{t.give(first)}
}

// lastRequest deals with an answer before its recorded place, when nothing else can happen any more.
func (t *Team) lastRequest() []TeamStep {
	if len(t.Answered) == 0 || !t.asleep() || t.awaited() {
		return nil
	}
	return t.dealWith(0)
}

// awaited says whether an answer is still to come that was recorded: a turn that began after it waits for it.
func (t *Team) awaited() bool {
	return slices.ContainsFunc(t.Open, func(r Request) bool { return t.order.Has(swarm.AnswerPlace(r.ID)) })
}

// beyond says of a member that its next turn comes after all that is recorded, in a run that had stood
// still: there a person had ended it.
func (t *Team) beyond(m *Member) bool {
	return t.replays() && t.stuck && !t.order.Has(m.nextTurn())
}

// endWithRecording ends a replay where a person had ended the run.
func (t *Team) endWithRecording() {
	if !t.replays() || !t.stuck || t.inTurn() || t.Closing != "" || !t.heard() || len(t.Open)+len(t.Answered) > 0 {
		return
	}
	left := 0
	for i := range t.Members {
		m := &t.Members[i]
		if m.wants() && !t.beyond(m) {
			return
		}
		if m.wants() {
			left++
		}
	}
	if left > 0 {
		t.close(ClosedByCancel)
	}
}
