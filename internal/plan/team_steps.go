package plan

import (
	"slices"
	"time"

	"swarm"
)

// A TeamStep is what the loop of a team is to do next.
type TeamStep struct {
	Kind    TeamStepKind
	Agent   string       // whom it is about
	Turn    swarm.TurnID // of GiveTurn
	Owed    Owed         // of RemindOf and GiveUpOn
	Request Request      // of DealWith
}

// A TeamStepKind says what is to be done.
type TeamStepKind int

// What can be to do.
const (
	GiveTurn TeamStepKind = iota // start the agent's turn; it counts as running
	EndAgent                     // a person has cancelled it, and it has no turn
	Restart                      // a person starts it again
	RemindOf                     // tell the agent that its reply is still wanted
	GiveUpOn                     // wait no longer for the agent's reply
	DealWith                     // do what was answered to the request; it counts as done
)

// Next gives what is to be done now; nothing, until another fact comes. A step that a fact tells of is
// done when that is applied, and offered until then.
func (t *Team) Next() []TeamStep {
	for _, offers := range []func() []TeamStep{t.departures, t.lateReplies, t.requests, t.turns, t.idleReplies} {
		if steps := offers(); len(steps) > 0 {
			return steps
		}
	}
	return nil
}

// going says whether the run is neither paused nor about to end.
func (t *Team) going() bool { return t.Closing == "" && t.PauseAt.IsZero() }

// departures are members that a person has cancelled or started, as soon as they have no turn.
func (t *Team) departures() (steps []TeamStep) {
	for i := range t.Members {
		m := &t.Members[i]
		switch {
		case m.InTurn() || m.Leave == Stays:
		case m.End == nil:
			steps = append(steps, TeamStep{Kind: EndAgent, Agent: m.Name})
		default:
			steps = append(steps, TeamStep{Kind: Restart, Agent: m.Name})
		}
	}
	return steps
}

// lateReplies are replies whose time has come: at half of it the agent is reminded, at its end nobody
// waits any more.
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

// replyDue is when something is to be done about a reply by the clock, and whether that is to give it
// up; zero = never. A member that is paused has the time that there is.
func (t *Team) replyDue(o *Owed) (due time.Time, over bool) {
	limit := t.Rules.ReplyTimeout
	paused, _ := t.Paused(o.To)
	switch {
	case limit <= 0 || paused:
		return time.Time{}, false
	case o.Reminded || !t.Now.Before(o.Since.Add(limit)):
		return o.Since.Add(limit), true
	}
	return o.Since.Add(limit / 2), false
}

// requests are what was answered, the oldest first.
func (t *Team) requests() []TeamStep {
	if len(t.Answered) == 0 {
		return nil
	}
	r := t.Answered[0]
	t.Answered = slices.Delete(t.Answered, 0, 1)
	t.dealt++
	return []TeamStep{{Kind: DealWith, Agent: r.Agent, Request: r}}
}

// turns are for everybody who has mail for one, as far as there are slots.
func (t *Team) turns() (steps []TeamStep) {
	if !t.going() {
		return nil
	}
	running := t.Running()
	for i := range t.Members {
		m := &t.Members[i]
		if t.Limit > 0 && running >= t.Limit {
			break
		}
		if m.State == MemberDue && !t.Now.Before(m.Retry) {
			m.begin(m.nextTurn(), t.Seen)
			steps = append(steps, TeamStep{Kind: GiveTurn, Agent: m.Name, Turn: m.Turn})
			running++
		}
	}
	return steps
}

// asleep says whether nothing happens any more unless the team itself, or somebody outside, does something.
func (t *Team) asleep() bool { return t.Ready && t.Running() == 0 && t.heard() }

// idleReplies are for a team in which everybody is idle: only a reminder can bring a reply that is still
// wanted. When all were given, nobody waits any more. Only one member is reminded at a time, since what it does
// may bring the other replies too.
func (t *Team) idleReplies() (steps []TeamStep) {
	if !t.asleep() || t.inTurn() || !t.going() || t.wanted() || t.Rules.Mode == swarm.InteractiveMode {
		return nil
	}
	for _, o := range t.Owed {
		paused, member := t.Paused(o.To)
		if !member || paused {
			return nil // a person is asked, or somebody whom a person has paused, and has the time that there is
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

// wanted says whether anybody has something left to do, or to be told.
func (t *Team) wanted() bool {
	return len(t.Open)+len(t.Answered) > 0 || slices.ContainsFunc(t.Members, func(m Member) bool { return m.wants() })
}

// Over says whether the run is through: nobody has anything left to do, or a person, the lead or the
// budget says so and the last turn has ended.
func (t *Team) Over() bool {
	if !t.asleep() || t.inTurn() {
		return false
	}
	return t.Closing != "" || t.Finished()
}

// Finished says whether nobody has anything left to do, whatever else may end the run. In an interactive team a person may always
// have something to say.
func (t *Team) Finished() bool {
	return t.PauseAt.IsZero() && !t.wanted() && len(t.Owed) == 0 && t.Rules.Mode != swarm.InteractiveMode
}

// Due is when something is to be done next by the clock; zero = never.
func (t *Team) Due() (due time.Time) {
	for i := range t.Members {
		if m := &t.Members[i]; t.Now.Before(m.Retry) {
			due = earlier(due, m.Retry)
		}
	}
	for i := range t.Owed {
		at, _ := t.replyDue(&t.Owed[i])
		due = earlier(due, at)
	}
	return due
}

// Stuck are the members for which nothing goes on because they are paused: they have mail, or owe a reply.
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

// Ending is how the work of the i-th member ended, if the run ends now, early for a reason or "". A member that
// still had something to do has not completed it.
func (t *Team) Ending(i int, stop swarm.ErrorKind) Ending {
	m := &t.Members[i]
	failed := ""
	if m.Tries > 0 {
		failed = "; its last attempt failed: " + m.Trouble
	}
	switch {
	case m.failed():
		return Ending{swarm.Failed, swarm.TaskEnd{Kind: m.End.Kind, Reason: m.Trouble}}
	case m.End != nil:
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"}}
	case m.wants() && stop == swarm.OverBudget:
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: stop, Reason: "budget" + failed}}
	case m.wants() && m.Turns == 0 && stop == "":
		return Ending{swarm.Skipped, swarm.TaskEnd{Reason: "the run ended before it had a turn"}}
	case m.wants():
		return Ending{swarm.Cancelled, swarm.TaskEnd{Kind: stop, Reason: "the run ended before it had read its mail" + failed}}
	case m.Turns == 0:
		return Ending{swarm.Skipped, swarm.TaskEnd{Reason: "nobody wrote to it"}}
	}
	return Ending{Status: swarm.Completed}
}

// failed says of a member that has ended whether that was because it could not do its work.
func (m *Member) failed() bool { return m.End != nil && m.End.Kind != swarm.CutByCancel }
