package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"swarm"
)

// Apply changes the team by one fact. A fact that is not about teams only advances the clock.
func (t *Team) Apply(f Fact) {
	before := t.Now
	t.Seen = max(t.Seen, f.Seq)
	if f.Time.After(t.Now) {
		t.Now = f.Time
	}
	switch f.Kind {
	case swarm.PlanAdded:
		if p, ok := f.Body.(*swarm.Plan); ok { // otherwise the loop has yet to read the plan
			t.add(p, f.Key)
		}
	case swarm.HandoffStored:
		t.applyMail(f.Body.(Mail), f.Seq)
	case swarm.ReplyOverdue:
		t.overdue(f.Body.(swarm.Overdue))
	case swarm.ApprovalAsked:
		t.ask(f.Agent, f.Body.(swarm.Approval))
	case swarm.ApprovalAnswered:
		a := f.Body.(swarm.ApprovalAnswer)
		if t.answer(f.Agent, a.ID); t.Swarm != nil && swarm.AsksAboutPlan(a.ID) {
			t.decidePlan(a)
		}
	case swarm.Control:
		t.control(f.Body.(swarm.ControlCommand))
	case swarm.RunOwned:
		t.applyOwner(f.Undriven(before))
	case swarm.RunPausing:
		if t.PauseAt.IsZero() {
			t.PauseAt = t.Now
		}
	case swarm.RunUnpaused:
		t.unpause()
	case swarm.LimitReached:
		t.Limits.reach(f.Body.(swarm.Limit), t.Now)
		t.holdBack()
	case swarm.LimitEnded:
		t.Limits.end(f.Body.(swarm.Limit).Provider)
		t.holdBack()
	case swarm.BudgetSpent:
		if t.Swarm == nil || t.Swarm.Draining || !t.Swarm.Divided {
			t.close(ClosedByBudget)
		} else {
			t.Swarm.Draining = true
			t.summon()
		}
	case swarm.Notice:
		r, ok := f.Body.(swarm.Reason)
		if ok && r.Ended {
			t.close(ClosedByStall)
		}
		if ok && r.Converged {
			t.converge(t.Member(f.Agent), r.Message)
		}
		if ok && r.Code == swarm.Undivided && t.Swarm != nil {
			t.giveUp()
			t.divide("")
		}
		if ok && r.Code == swarm.Unanswered && t.Swarm != nil {
			t.Swarm.Without = cmp.Or(strings.Join(r.Args, " "), "no reason is known")
			t.Swarm.Delays, t.Swarm.Since = 0, time.Time{} // listing the results has its own time
			t.summon()
		}
		if ok && r.Code == swarm.NotReplanned && t.Swarm != nil {
			t.giveUp()
			t.Swarm.Fixed = true
			t.summon()
		}
		if ok && r.Code == swarm.NotReviewed && t.Swarm != nil {
			t.silence(t.Member(f.Agent), strings.Join(r.Args, " "))
		}
	case swarm.CheckStarted:
		t.beginCheck(f.Body.(swarm.GoalCheck))
	case swarm.CheckEnded:
		t.endCheck(f.Body.(swarm.CallEnd))
	case swarm.RunEnded:
		t.Owed = nil
		for i := range t.Members {
			t.Members[i].consume(t.Seen)
		}
	default:
		if m := t.Member(f.Agent); m != nil {
			t.applyTo(m, &f)
		}
	}
}

// applyTo changes one member by a fact about it.
func (t *Team) applyTo(m *Member, f *Fact) {
	switch f.Kind {
	case swarm.TurnStarted:
		t.Check.Passed = false
		m.begin(f.Turn, f.Seq)
		t.holdBackMember(m)
		t.startClock(m)
	case swarm.TurnEnded:
		t.endTurn(m, f.Turn, f.Body.(swarm.CallEnd))
	case swarm.ActionEnded:
		t.endAction(m, f.Body.(swarm.CallEnd))
	case swarm.HandoffConsumed:
		m.consume(f.Body.(swarm.Consumption).Upto)
	case swarm.WaitBegan:
		if m.InTurn() && m.State != MemberWaiting && m.Turn == f.Turn {
			m.State, m.For, m.WaitSeq, m.Since = MemberWaiting, f.Body.(swarm.AgentWait).For, f.Seq, t.Now
		}
	case swarm.WaitEnded:
		if m.State == MemberWaiting && m.Turn == f.Turn {
			m.State, m.For, m.Since = MemberRunning, nil, time.Time{}
		}
	case swarm.TaskRetrying:
		m.Retry = t.Now.Add(f.Body.(swarm.Retry).After)
	case swarm.AgentPaused:
		m.PauseAt = t.Now
		m.settle()
	case swarm.AgentResumed:
		t.postponeReplies(m.Name, t.Now.Sub(m.PauseAt))
		t.postponeEnd(m, t.Now.Sub(m.PauseAt))
		m.PauseAt = time.Time{}
		m.settle()
	case swarm.AgentEnded:
		t.end(m, f.Body.(swarm.AgentEnd))
	case swarm.AgentRestarted:
		m.Starts, m.End, m.Leave, m.PauseAt = m.Starts+1, nil, Stays, time.Time{}
		m.Attempt, m.Tries, m.Trouble, m.Retry, m.Limited = 0, 0, "", time.Time{}, time.Time{}
		m.Effort.restart()
		t.regain(m.Name)
		m.rest()
		m.consume(max(m.Gone, f.Seq)) // earlier mail was returned
		t.summon()
	case swarm.TaskCompleted:
		m.Over = swarm.Completed
	case swarm.TaskFailed:
		m.Over = swarm.Failed
	case swarm.TaskSkipped:
		m.Over = swarm.Skipped
	case swarm.TaskCancelled:
		m.Over = swarm.Cancelled
	}
}

// endTurn records how a member's turn ended. The loop decides whether a failed turn is retried.
func (t *Team) endTurn(m *Member, turn swarm.TurnID, end swarm.CallEnd) {
	if m.Turn != turn { // it was refused before its start
		m.begin(turn, t.Seen)
	}
	m.Asks, m.For, m.Since = nil, nil, time.Time{}
	m.State, m.Called = MemberIdle, false
	t.makeRoom(m, &end)
	t.giveWait(m, end.Waited)
	waits, fits := t.Outlasts(m, &end), t.MayFit(m, &end)
	m.Limited = LimitedSince(m.Limited, &end, t.Now)
	switch {
	case waits: // it does not count as an attempt
	case end.Status == swarm.CallOK:
		m.Attempt, m.Tries, m.Trouble = 0, 0, ""
		m.Made = m.Made || end.Output != ""
		if end.Done && m.Name == t.Rules.Lead {
			t.close(ClosedByLead)
			t.Report = end.Report
		}
		m.consume(end.Inputs.Upto) // mail that came while the turn ran, or before a crashed turn started again, is still unread
	case end.Kind == swarm.CutByCancel:
		m.Leave = leaving(m.Leave)
	case end.Kind == swarm.CutToSpeak, end.Kind == swarm.CutToReset, end.Kind == swarm.OverBudget, fits: // these do not count as an attempt
		if end.Crowded {
			m.Crowded = t.Seen
		}
	case end.Kind == swarm.Mismatch: // the turn does not match the call
		m.End, m.Trouble = &swarm.AgentEnd{Kind: end.Kind, Reason: end.Reason}, end.Reason
		t.close(ClosedByStray)
	default:
		m.Tries++
		m.Trouble = end.Reason
	}
	if t.Swarm != nil {
		t.endIteration(m, turn, end, waits || fits)
	}
	if !m.acting() {
		m.rest()
	}
	t.holdBackMember(m)
	if len(t.Limits) > 0 {
		t.holdBack()
	}
}

// end records that a member gets no turn any more. The replies that it owes are dropped.
func (t *Team) end(m *Member, end swarm.AgentEnd) {
	m.End = &end
	if m.Effort != nil {
		m.Effort.Last, m.Effort.Began = m.Turn, time.Time{}
		if m.Crowded > 0 {
			m.Effort.Unrun++
		}
	}
	m.Crowded, m.Called = 0, false
	t.holdBackMember(m)
	if m.Leave == Leaves {
		m.Leave = Stays
	}
	m.Asks, m.For, m.Since = nil, nil, time.Time{}
	m.rest()
	t.Owed = slices.DeleteFunc(t.Owed, func(o Owed) bool { return o.To == m.Name })
	t.lose(m)
	if m.Name == t.Rules.Lead {
		t.close(ClosedByLoss)
	}
	t.summon()
}

// close records why no turn starts any more. The first reason counts. A later one keeps a failed check
// of the goal from opening the team again.
func (t *Team) close(why Closing) {
	if t.Closing != "" && why != ClosedByLead {
		t.Check.Last = true
	}
	if t.Closing == "" {
		t.Closing = why
	}
	switch why {
	case ClosedByCancel, ClosedByLoss, ClosedByStray, ClosedByStall: // the run does not count as completed
		t.Check.Dropped = true
	}
}

// applyMail records an envelope: the turn that it gives, the questions that it answers, and the
// reply that it asks for.
func (t *Team) applyMail(mail Mail, seq int64) {
	if m := t.Member(mail.To); m != nil && mail.Wakes && t.Swarm == nil { // the agents of a swarm have turns anyway
		if !m.wants() {
			m.Queued = t.Now
		}
		m.Mail = max(m.Mail, seq)
		m.settle()
	}
	read := mail.Read
	if from := t.Member(mail.From); from != nil && read == 0 {
		read = from.Began // an older log does not record it: assume the mail that was there when its turn began
	}
	t.Owed = slices.DeleteFunc(t.Owed, func(o Owed) bool { return mail.Replies(&o.Mail, o.Seq, read) })
	if mail.Required {
		t.Owed = append(t.Owed, Owed{Mail: mail, Seq: seq, Since: t.Now})
	}
	t.grown(&mail)
	if t.Swarm != nil && mail.To == Supervisor && mail.From != swarm.Orchestrator {
		t.Swarm.Mail = max(t.Swarm.Mail, seq)
		t.summon()
	}
}

// overdue records a reminder of a reply, or that the reply was given up.
func (t *Team) overdue(o swarm.Overdue) {
	if o.Over {
		t.Owed = slices.DeleteFunc(t.Owed, func(w Owed) bool { return w.Ref == o.ID })
		return
	}
	for i := range t.Owed {
		t.Owed[i].Reminded = t.Owed[i].Reminded || t.Owed[i].Ref == o.ID
	}
}

// ask records an agent's request for approval. A turn waits for the approval of a tool, but not for
// the answer to a growth request.
func (t *Team) ask(agent string, a swarm.Approval) {
	if swarm.AsksAboutPlan(a.ID) && t.Swarm != nil {
		t.askPlan(a)
	} else if a.Growth != nil {
		t.Open = append(t.Open, Request{a.ID, agent})
		t.Swarm.grow(a.ID)
	} else if m := t.Member(agent); m != nil {
		m.Asks = append(m.Asks, a.ID)
	}
}

func (t *Team) answer(agent, id string) {
	if m := t.Member(agent); m != nil {
		m.Asks = slices.DeleteFunc(m.Asks, func(asked string) bool { return asked == id })
	}
	if i := slices.IndexFunc(t.Open, func(r Request) bool { return r.ID == id }); i >= 0 {
		t.Answered = append(t.Answered, t.Open[i])
		t.Open = slices.Delete(t.Open, i, i+1)
	}
}

// control records a person's command, if no other fact tells of it or it takes effect only after
// the turn.
func (t *Team) control(w swarm.ControlCommand) {
	m := t.Member(w.Target)
	switch {
	case w.Command == swarm.CommandClose && t.Swarm != nil && t.Swarm.Divided && t.Closing == "": // it answers with what is there
		t.Swarm.Draining, t.Swarm.Closed = true, true
		t.summon()
	case w.Command == swarm.CommandClose:
		t.close(ClosedByPerson)
	case w.Command == swarm.CommandCancel && w.Target == "":
		t.close(ClosedByCancel)
		t.PauseAt = time.Time{}
	case m == nil:
	case w.Command == swarm.CommandCancel && m.End == nil:
		m.Leave = Leaves
	case w.Command == swarm.CommandStart && (m.End != nil || m.Leave == Leaves):
		m.Leave = Restarts
	case w.Command == swarm.CommandReset:
		m.Tries, m.Retry = 0, time.Time{}
	}
}

func leaving(before Leave) Leave {
	if before == Stays {
		return Leaves
	}
	return before
}

// applyOwner records that a process drives the run. The turns of the process before it start over,
// also those that waited for others and had no slot. So there may be more of them than slots. While
// no process drove the run, its timers did not run, so gap is added to them.
func (t *Team) applyOwner(gap time.Duration) {
	taken := t.Ready
	t.Ready = true
	for i := range t.Members {
		switch m := &t.Members[i]; {
		case !taken || !m.InTurn():
		case m.acting():
			m.Effort.begun = false // the loop asks for it again, with the time that is left
		default:
			m.State, m.For, m.Since = MemberCut, nil, time.Time{}
		}
	}
	t.Check.issued = false // the check of the process before starts over
	if t.PauseAt.IsZero() {
		t.postpone(gap)
	}
}

func (t *Team) unpause() {
	if !t.PauseAt.IsZero() {
		t.postpone(t.Now.Sub(t.PauseAt))
		t.PauseAt = time.Time{}
	}
}

// postpone delays all timers.
func (t *Team) postpone(by time.Duration) {
	for i := range t.Members {
		m := &t.Members[i]
		if !m.Retry.IsZero() {
			m.Retry = m.Retry.Add(by)
		}
		t.postponeEnd(m, by)
		if !m.PauseAt.IsZero() { // resuming the agent must not delay them twice
			m.PauseAt = earlier(m.PauseAt.Add(by), t.Now)
		}
		if !m.HeldAt.IsZero() { // nor must the end of a limit, or room
			m.HeldAt = earlier(m.HeldAt.Add(by), t.Now)
		}
	}
	for i := range t.Owed {
		t.Owed[i].Since = t.Owed[i].Since.Add(by)
	}
}

// postponeEnd gives a member more time.
func (t *Team) postponeEnd(m *Member, by time.Duration) {
	if began := t.began(m); began != nil {
		*began = began.Add(by)
	}
}

// began returns the clock of a member's work in a swarm: when it began. nil = it does not run.
func (t *Team) began(m *Member) *time.Time {
	switch {
	case m.Effort != nil && !m.Effort.Began.IsZero():
		return &m.Effort.Began
	case m.Effort == nil && t.Swarm != nil && !t.Swarm.Since.IsZero():
		return &t.Swarm.Since
	}
	return nil
}

func (t *Team) postponeReplies(of string, by time.Duration) {
	for i := range t.Owed {
		if t.Owed[i].To == of {
			t.Owed[i].Since = t.Owed[i].Since.Add(by)
		}
	}
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
