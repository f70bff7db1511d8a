package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"swarm"
	"swarm/internal/wording"
)

// Limits of a worker. The seed of swarm mode names them.
const (
	maxIdle   = 3                // actions in a row that use no tool: it has converged
	maxErrors = 3                // tool calls in a row that fail for good: it is aborted
	delayStep = 5 * time.Second  // the delay before a retry grows by this
	maxDelay  = 30 * time.Second // and no further
)

// converge ends a worker that repeats itself although it was told so.
func (t *Team) converge(m *Member, why swarm.Message) {
	if m != nil && m.Effort != nil {
		m.Effort.end(swarm.OutcomeConverged, wording.Text(why))
	}
}

// endIteration records how the turn of a worker or of the supervisor ended. waits says that it waits
// out a provider's limit, or for room in a budget.
func (t *Team) endIteration(m *Member, turn swarm.TurnID, end swarm.CallEnd, waits bool) {
	e := m.Effort
	if e != nil && m.End == nil && end.Unbegun && !end.Crowded {
		e.Unrun++
	}
	switch {
	case e != nil && m.End != nil:
		t.endReview(m, turn, end)
	case e == nil && end.Status == swarm.CallOK:
		t.Swarm.Delays, t.Swarm.Since = 0, time.Time{}
		switch {
		case end.Action != nil && end.Action.Kind == swarm.ActReplan:
			t.replanned(turn, end.Action, end.CarriedOver)
		case !t.Swarm.Divided:
			t.divide(turn)
		default:
			t.Swarm.Answer = turn
			t.summon()
		}
	case e == nil:
		t.delaySupervisor(m, end)
		t.summon()
	case end.Status == swarm.CallOK:
		e.Delays = 0
		switch a := end.Action; {
		case a == nil: // words only
			t.iterated(m, "", end)
		case a.Kind == swarm.ActDone:
			e.end(swarm.OutcomeDone, "it is done")
		case a.Taken:
			t.iterated(m, a.Kind, end)
		default:
			e.Next, e.Tries, e.begun = a, 0, false
			if t.Closing == "" { // an iteration is its turn and its action, in one slot
				m.State = MemberRunning
			}
		}
	case end.Kind == swarm.Unexpected && m.Tries > 1: // it was told what was wrong, and its next answer was no better
		m.Attempt, m.Tries = 0, 0
		t.iterated(m, swarm.ActToolCall, end)
	case end.Kind == swarm.Unexpected, end.Kind == swarm.OverBudget, end.Status == swarm.CallCut:
	case end.Limit != nil: // endTurn has decided whether the worker waits
		if !waits {
			e.end(swarm.OutcomeAborted, end.Reason)
		}
	case end.Kind == swarm.OverShare && waits:
	case end.Kind == swarm.OverShare:
		e.end(swarm.OutcomeSpent, end.Reason)
	case end.Kind == swarm.TimedOut && t.Expired(m):
		e.end(swarm.OutcomeTimedOut, t.timeoutReason())
	case Transient(end.Kind):
		e.Delays++
	default:
		e.end(swarm.OutcomeAborted, end.Reason)
	}
}

// endAction records how the action of a worker ended. An action that failed for a reason that may
// pass is tried again, and uses no iteration.
func (t *Team) endAction(m *Member, end swarm.CallEnd) {
	e := m.Effort
	if e == nil || e.Next == nil {
		return
	}
	m.State = MemberIdle
	e.Tries++
	if end.Status != swarm.CallOK && Transient(end.Kind) {
		e.Delays++
		m.Retry = t.Now.Add(Delay(e.Delays))
	} else {
		kind := e.Next.Kind
		if e.Next.Ours {
			kind = ""
		}
		e.Next, e.Tries, e.Delays = nil, 0, 0
		t.iterated(m, kind, end)
	}
	m.rest()
	if len(t.Limits) > 0 {
		t.holdBack()
	}
}

// iterated counts an action and decides whether the worker goes on.
func (t *Team) iterated(m *Member, kind swarm.ActionKind, end swarm.CallEnd) {
	e := m.Effort
	switch {
	case kind != swarm.ActToolCall:
		e.Idle++
	case end.Status == swarm.CallOK:
		e.Idle, e.Errors = 0, 0
	default:
		e.Idle, e.Errors = 0, e.Errors+1
	}
	switch {
	case e.Errors >= maxErrors:
		e.end(swarm.OutcomeAborted, fmt.Sprintf("%d actions in a row failed; the last: %s", maxErrors, end.Reason))
	case m.Turns >= t.Swarm.Rules.Iterations && e.Errors >= m.Turns: // it has no result at all
		e.end(swarm.OutcomeAborted, "none of its actions succeeded; the last: "+end.Reason)
	case e.Idle >= maxIdle:
		e.end(swarm.OutcomeConverged, fmt.Sprintf("%d actions in a row used no tool", maxIdle))
	case m.Turns >= t.Swarm.Rules.Iterations:
		e.end(swarm.OutcomeForced, usedUp(t.Swarm.Rules.Iterations))
	}
}

func usedUp(iterations int) string {
	if iterations == 1 {
		return "its only iteration is used up"
	}
	return fmt.Sprintf("its %d iterations are used up", iterations)
}

// end records how a worker ends. The first reason counts.
func (e *Effort) end(o swarm.Outcome, why string) {
	if e.Outcome == "" {
		e.Outcome, e.Why = o, why
	}
}

// Transient says whether a failure of this kind may pass by itself.
func Transient(k swarm.ErrorKind) bool {
	return unpaid(k) || k == swarm.NoResult || k == swarm.TimedOut || k == swarm.Crashed
}

// unpaid says whether a failure of this kind also costs nothing: no model has worked.
func unpaid(k swarm.ErrorKind) bool { return k == swarm.RateLimited || k == swarm.Unreachable }

// delaySupervisor counts a failure of the supervisor's turn that may pass by itself and costs nothing.
// As long as its time has room for the delay it is no attempt, because the work of all depends on it.
func (t *Team) delaySupervisor(m *Member, end swarm.CallEnd) {
	if left := t.TimeLeft(m); !unpaid(end.Kind) || end.Limit != nil || left > 0 && left <= Delay(t.Swarm.Delays+1) {
		t.Swarm.Delays = 0
		return
	}
	t.Swarm.Delays++
	m.Tries--
}

// Delay is how long a worker waits before it tries again after so many failures in a row.
func Delay(failures int) time.Duration { return min(time.Duration(failures)*delayStep, maxDelay) }

// Expired says whether a member's time is over.
func (t *Team) Expired(m *Member) bool {
	at := t.deadline(m)
	return !at.IsZero() && !earlier(t.clock(m), m.HeldAt).Before(at)
}

// clock is the time by which the deadline of a member is judged. It stands still while a person has
// paused the run or the member.
func (t *Team) clock(m *Member) time.Time { return earlier(t.Now, earlier(t.PauseAt, m.PauseAt)) }

// deadline is when a member's time is over; zero = never, or it has not begun. A worker's time is that
// of all its turns, the supervisor's that of one turn with all its attempts.
func (t *Team) deadline(m *Member) time.Time {
	var began time.Time
	switch {
	case m.Effort != nil:
		began = m.Effort.Began
	case t.Swarm != nil && m.Name == Supervisor:
		began = t.Swarm.Since
	}
	if began.IsZero() || t.Swarm.Rules.Timeout <= 0 {
		return time.Time{}
	}
	return began.Add(t.Swarm.Rules.Timeout)
}

// TimeLeft is how long a member's turn may take; 0 = as long as it likes.
func (t *Team) TimeLeft(m *Member) time.Duration {
	at := t.deadline(m)
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(t.clock(m)), time.Millisecond)
}

func (t *Team) timeoutReason() string {
	return fmt.Sprintf("its time of %s is over", t.Swarm.Rules.Timeout)
}

// leavingWorker returns how a worker without a turn ends, or nil if it goes on.
func (t *Team) leavingWorker(m *Member) *swarm.AgentEnd {
	e := m.Effort
	if e == nil || m.End != nil || m.InTurn() {
		return nil
	}
	switch {
	case e.Dropped:
		return &swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: "a person has taken it out of the plan"}
	case e.Denied:
		return &swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: cmp.Or(e.Why, "a person has denied the plan that adds it")}
	case t.Closing == ClosedByCancel:
		return &swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: cmp.Or(t.Swarm.Denial, "the run was cancelled")}
	case e.Outcome != "":
	case t.Swarm.Draining && e.Next == nil: // an action that its model has decided on is still taken
		if t.Swarm.Closed {
			return &swarm.AgentEnd{Outcome: swarm.OutcomeForced, Reason: "a person has closed the run"}
		}
		return &swarm.AgentEnd{Outcome: swarm.OutcomeSpent, Reason: "the budget is spent"}
	case t.Expired(m):
		return &swarm.AgentEnd{Outcome: swarm.OutcomeTimedOut, Reason: t.timeoutReason()}
	default:
		return nil
	}
	return &swarm.AgentEnd{Outcome: e.Outcome, Reason: e.Why}
}

// Curtailed says whether the budget has kept a swarm from something: an agent from its work, an entry
// of the task list from an agent, the supervisor from a new plan, a council from its vote, or the answer
// from being one.
func (t *Team) Curtailed() bool {
	if t.Swarm == nil || !t.Swarm.Draining {
		return false
	}
	spent := func(m Member) bool { return m.End != nil && m.End.Outcome == swarm.OutcomeSpent }
	unheard := func(m Member) bool { return t.Swarm.Rules.IsCouncil() && m.answered() && m.Effort.Ballot == nil }
	open := func(e Task) bool { return e.Agent == "" }
	if t.Swarm.Rules.Replan && len(t.Swarm.Lost) > 0 {
		return true
	}
	return t.Swarm.Without != "" || t.Swarm.Answer == "" || slices.ContainsFunc(t.Members, spent) || slices.ContainsFunc(t.Members, unheard) || slices.ContainsFunc(t.Swarm.Tasks, open)
}
