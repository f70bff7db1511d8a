package plan

import (
	"cmp"
	"slices"
	"time"

	"swarm"
)

// A TeamStep is the next thing for a team's loop to do.
type TeamStep struct {
	Kind    TeamStepKind
	Agent   string          // its subject
	Turn    swarm.TurnID    // for GiveTurn
	Owed    Owed            // for RemindOf and GiveUpOn
	Request Request         // for DealWith
	End     *swarm.AgentEnd // for EndAgent: why; nil = a person has cancelled it
	Try     int             // for TakeAction: the attempt
	Task    string          // for Assign: the entry
}

// A TeamStepKind is the kind of a step.
type TeamStepKind int

// The kinds of steps.
const (
	GiveTurn   TeamStepKind = iota // start the agent's turn, or start it again; the team counts it as running
	EndAgent                       // end an agent that has no turn: a person has cancelled it, or its work in a swarm is over
	Restart                        // start an agent again, on a person's command
	RemindOf                       // remind the agent of its reply
	GiveUpOn                       // give up on the agent's reply
	DealWith                       // carry out the answer to the request; the team counts it as handled
	Divide                         // add what the supervisor's turn names: workers for subtasks, and messages
	Assign                         // add a worker for the open entry Task of the task list
	AskPlan                        // ask a person whether the workers may begin
	TakeAction                     // take the action that the worker's turn asks for
	CheckGoal                      // check whether the goal is reached, or check it again after a change of owner
)

// Next returns the steps to do now, or none until another fact comes. A step that appends a fact is
// offered until that fact is applied.
//
// The order matters: departures come first, so a cancelled agent gets no further turn. Reminders to
// an idle team come last, because any other step may bring the replies.
func (t *Team) Next() []TeamStep {
	for _, offers := range []func() []TeamStep{t.departures, t.lateReplies, t.requests, t.division, t.assignments, t.question, t.actions, t.cutTurns, t.turns, t.idleReplies, t.checks} {
		if steps := offers(); len(steps) > 0 {
			return steps
		}
	}
	return nil
}

// going says whether the run is neither paused nor about to end. No turn starts while the goal is
// checked: the check sees files that nobody changes.
func (t *Team) going() bool {
	return t.Closing == "" && t.PauseAt.IsZero() && !t.Check.Running
}

// departures ends or restarts the members for which a person wants it, once they have no turn.
func (t *Team) departures() (steps []TeamStep) {
	for i := range t.Members {
		m := &t.Members[i]
		if m.InTurn() {
			continue
		}
		if end := t.leavingWorker(m); end != nil && m.Leave == Stays {
			steps = append(steps, TeamStep{Kind: EndAgent, Agent: m.Name, End: end})
			continue
		}
		switch {
		case m.Leave == Stays:
		case m.End == nil:
			steps = append(steps, TeamStep{Kind: EndAgent, Agent: m.Name})
		default:
			steps = append(steps, TeamStep{Kind: Restart, Agent: m.Name})
		}
	}
	return steps
}

// lateReplies reminds an agent after half of the reply timeout, and gives up at its end.
func (t *Team) lateReplies() (steps []TeamStep) {
	if !t.going() {
		return nil
	}
	for _, o := range slices.Backward(t.Owed) {
		switch due, over := t.replyDue(&o); {
		case due.IsZero() || t.Now.Before(due):
		case over:
			steps = append(steps, TeamStep{Kind: GiveUpOn, Agent: o.To, Owed: o})
		default:
			steps = append(steps, TeamStep{Kind: RemindOf, Agent: o.To, Owed: o})
		}
	}
	return steps
}

// replyDue is when a reply needs a reminder, or is to be given up if over is set; zero = never. The
// timeout does not apply to a member that is paused, that a limit holds back, or that waits for room in
// the budget.
func (t *Team) replyDue(o *Owed) (due time.Time, over bool) {
	limit := t.Rules.ReplyTimeout
	paused, _ := t.Paused(o.To)
	if m := t.Member(o.To); m != nil && !m.HeldAt.IsZero() {
		paused = true
	}
	switch {
	case limit <= 0 || paused:
		return time.Time{}, false
	case o.Reminded || !t.Now.Before(o.Since.Add(limit)):
		return o.Since.Add(limit), true
	}
	return o.Since.Add(limit / 2), false
}

// requests returns the oldest answered growth request.
func (t *Team) requests() []TeamStep {
	if len(t.Answered) == 0 {
		return nil
	}
	r := t.Answered[0]
	t.Answered = slices.Delete(t.Answered, 0, 1)
	t.dealt++
	return []TeamStep{{Kind: DealWith, Agent: r.Agent, Request: r}}
}

// cutTurns starts the turns again that were cut with their process, as far as there are slots. A
// run that is paused or about to end waits for them, so they start there too.
func (t *Team) cutTurns() (steps []TeamStep) {
	cut := 0
	for i := range t.Members {
		if t.Members[i].State == MemberCut {
			cut++
		}
	}
	for i, free := 0, t.Limit-(t.Running()-cut); i < len(t.Members) && cut > 0; i++ {
		m := &t.Members[i]
		if m.State == MemberCut && (t.Limit == 0 || free > 0) {
			m.begin(m.Turn, t.Seen)
			steps = append(steps, TeamStep{Kind: GiveTurn, Agent: m.Name, Turn: m.Turn})
			cut, free = cut-1, free-1
		}
	}
	return steps
}

// turns starts a turn for each member with mail, as far as there are slots. Running counts cut
// turns too, so these come first. Then come members that were called because there may be room for
// them in the budget, and last the supervisor's plan, which does not delay the others.
func (t *Team) turns() (steps []TeamStep) {
	if !t.going() {
		return nil
	}
	running, reserving, crowded := t.Running(), t.reserving(), t.crowded()
	for pass := range 3 {
		for i := range t.Members {
			m := &t.Members[i]
			if t.Limit > 0 && running >= t.Limit {
				break
			}
			switch {
			case m.State != MemberDue || t.Now.Before(m.Retry) || !t.hasRoom(m) || pass != m.pass():
				continue
			case m.Effort != nil && m.Effort.Next != nil:
				steps = append(steps, m.takeAction())
			case t.held(m) != nil, reserving && (m.awaitsRoom() || crowded && !m.Called):
				continue
			default:
				if m.Using = ""; len(t.Limits) > 0 {
					m.Using, _ = t.Limits.Choose(m.Route)
				}
				t.Check.Passed = false
				m.begin(m.nextTurn(), t.Seen)
				t.holdBackMember(m)
				t.startClock(m)
				steps = append(steps, TeamStep{Kind: GiveTurn, Agent: m.Name, Turn: m.Turn})
				reserving = true
			}
			running++
		}
	}
	return steps
}

// pass returns the position of a member among the turns that begin at the same time; 0 is first.
func (m *Member) pass() int {
	switch {
	case m.Called:
		return 0
	case m.Want == WantReplan:
		return 2
	}
	return 1
}

// asleep says whether nothing more happens by itself: no turn needs a slot, and all mail of the run
// has arrived.
func (t *Team) asleep() bool { return t.Ready && t.Running() == 0 && t.heard() }

// idleReplies handles owed replies in an idle team, where only a reminder can bring them. After all
// reminders it gives up. It reminds one member at a time, since its turn may bring the other
// replies too.
func (t *Team) idleReplies() (steps []TeamStep) {
	if !t.asleep() || t.inTurn() || !t.going() || t.wanted() || t.Rules.Mode == swarm.InteractiveMode {
		return nil
	}
	for _, o := range t.Owed {
		paused, member := t.Paused(o.To)
		if !member || paused {
			return nil // a person, or an agent that a person paused, may take any time
		}
	}
	for _, o := range t.Owed {
		if o.Reminded {
			continue
		}
		steps = append(steps, TeamStep{Kind: RemindOf, Agent: o.To, Owed: o})
		if _, member := t.at[o.To]; member {
			break
		}
	}
	if len(steps) > 0 {
		return steps
	}
	for _, o := range t.Owed {
		steps = append(steps, TeamStep{Kind: GiveUpOn, Agent: o.To, Owed: o})
	}
	return steps
}

// wanted says whether any agent has mail to read or any growth request is open. A swarm that has its
// answer needs no other agent.
func (t *Team) wanted() bool {
	grows := len(t.Open)+len(t.Answered) > 0 && (t.Swarm == nil || t.Swarm.Answer == "")
	return grows || t.anyMember((*Member).wants)
}

// Over says whether the run has ended. Either no work is left, or a person, the lead or the budget
// closed it, and the last turn has ended.
func (t *Team) Over() bool {
	if !t.asleep() || t.inTurn() || t.checkDue() {
		return false
	}
	return t.Closing != "" || t.Finished()
}

// Finished says whether no work is left, whatever else may end the run. An interactive team is
// never finished, because a person may write to it.
func (t *Team) Finished() bool {
	return t.PauseAt.IsZero() && !t.wanted() && len(t.Owed) == 0 && t.Rules.Mode != swarm.InteractiveMode && t.hasAnswer()
}

// Due is when the next timer fires; zero = never.
func (t *Team) Due() (due time.Time) {
	for i := range t.Members {
		m := &t.Members[i]
		if t.Now.Before(m.Retry) {
			due = earlier(due, m.Retry)
		}
		if m.Effort != nil && m.End == nil && !m.InTurn() && m.HeldAt.IsZero() && m.PauseAt.IsZero() { // a turn watches its own time
			due = earlier(due, t.deadline(m))
		}
	}
	for i := range t.Owed {
		at, _ := t.replyDue(&t.Owed[i])
		due = earlier(due, at)
	}
	return due
}

// Stuck lists the paused members that hold up the run: they have mail or owe a reply, and no other
// work is left.
func (t *Team) Stuck() (names []string) {
	if !t.Ready || t.Running() > 0 || !t.going() {
		return nil
	}
	for i := range t.Members {
		if m := &t.Members[i]; m.State == MemberDue {
			return nil
		}
	}
	for i := range t.Members {
		m := &t.Members[i]
		owes := slices.ContainsFunc(t.Owed, func(o Owed) bool { return o.To == m.Name })
		if m.End == nil && !m.PauseAt.IsZero() && (m.wants() || owes) {
			names = append(names, m.Name)
		}
	}
	return names
}

// An Ending is how a member's work ended with the run.
type Ending struct {
	Status swarm.Status
	Why    swarm.TaskEnd
}

// Ending is how the work of the i-th member ends if the run ends now. stop is the reason for an
// early end, or "". A member with unread mail has not completed its work.
func (t *Team) Ending(i int, stop swarm.ErrorKind) Ending {
	m := &t.Members[i]
	failed := ""
	if m.Tries > 0 {
		failed = "; its last attempt failed: " + m.Trouble
	}
	switch {
	case m.Name == Supervisor && t.Swarm != nil && t.Swarm.Without != "":
		return Ending{swarm.Failed, swarm.TaskEnd{Kind: stop, Reason: t.Swarm.Without}}
	case m.failed():
		return Ending{swarm.Failed, swarm.TaskEnd{Kind: m.End.Kind, Reason: cmp.Or(m.Trouble, m.End.Reason)}}
	case m.End != nil && m.End.Outcome != "":
		return Ending{Status: swarm.Completed}
	case m.End != nil:
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: swarm.CutByCancel, Reason: cmp.Or(m.End.Reason, "it was cancelled")}}
	case m.wants() && stop == swarm.OverBudget:
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: stop, Reason: "budget" + failed}}
	case m.wants() && m.Turns == 0 && stop == "":
		return Ending{swarm.Skipped, swarm.TaskEnd{Reason: "the run ended before it had a turn"}}
	case m.wants() && t.Swarm != nil:
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: stop, Reason: "the run ended before it was done" + failed}}
	case m.wants():
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: stop, Reason: "the run ended before it had read its mail" + failed}}
	case m.Turns == 0 && t.Swarm != nil:
		return Ending{swarm.Skipped, swarm.TaskEnd{Reason: "the run ended before it had begun"}}
	case m.Turns == 0:
		return Ending{swarm.Skipped, swarm.TaskEnd{Reason: "nobody wrote to it"}}
	}
	return Ending{Status: swarm.Completed}
}

// failed says whether a member ended because it failed, and not because a person cancelled it.
func (m *Member) failed() bool {
	return m.End != nil && m.End.Kind != swarm.CutByCancel && !m.End.Outcome.Good()
}
