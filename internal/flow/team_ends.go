package flow

import (
	"strconv"
	"time"

	"swarm/internal/excerpt"

	"swarm"
)

// turnEnded decides what the end of a turn means for its agent.
func (t *team) turnEnded(s Signal) error {
	i, ok := t.at[taskOf(s.ID)]
	if !ok {
		return nil
	}
	m, r := &t.members[i], s.Result
	t.rest(m, false)
	m.busy = false
	t.running--
	t.usage = t.usage.Plus(r.Usage)
	err := t.judge(m, r)
	if err == nil {
		err = t.shared(m, r)
	}
	if err != nil || !m.leaving {
		return err
	}
	return t.leave(m)
}

// judge decides what is to be made of a turn's answer.
func (t *team) judge(m *member, r Result) error {
	switch {
	case r.Status == swarm.CallOK:
		if m.read = max(m.read, r.Inputs.Upto); r.Inputs.Upto == 0 {
			m.read = max(m.read, m.began) // there was none: another turn had read it
		}
		m.attempt, m.tries = 0, 0
		if r.Done && m.name == t.rules.Lead {
			t.done, t.report = true, r.Report
		}
		if err := t.said(m, r); err != nil {
			return err
		}
		if err := t.found(m, r); err != nil {
			return err
		}
		return t.clock()
	case r.Kind == swarm.CutByCancel:
		m.leaving = true
		return nil
	case r.Kind == swarm.CutToSpeak, r.Kind == swarm.CutToReset:
		return t.clock() // a person wanted it: no attempt was lost
	case r.Kind == swarm.OverBudget:
		if t.stop == "" {
			t.stop = swarm.OverBudget
			return t.spent(r.Reason)
		}
		return nil
	case r.Kind == swarm.Mismatch: // a replay that has left its track shows nothing any more
		t.stop = swarm.Mismatch
		m.failed, m.why = true, swarm.TaskEnd{Kind: r.Kind, Reason: r.Reason}
		return nil
	}
	m.trouble = r.Reason
	if m.tries++; m.tries < attempts {
		after := time.Duration(0)
		if r.Kind != swarm.Unexpected && !t.replay {
			after = time.Second << (m.tries - 1)
			m.due = t.fx.Now().Add(after)
		}
		return t.fx.Tell(Fact{Kind: swarm.TaskRetrying, Key: "retrying:" + r.ID, Task: m.name, Agent: m.name, Turn: r.ID,
			Body: swarm.Retry{Iteration: m.turns, Attempt: m.attempt, Reason: r.Reason, After: after}})
	}
	m.failed, m.why = true, swarm.TaskEnd{Kind: r.Kind, Reason: r.Reason}
	return t.endMember(m, swarm.AgentEnd{Kind: r.Kind, Reason: "it failed: " + r.Reason})
}

// leave ends an agent that a person has cancelled.
func (t *team) leave(m *member) error {
	again := m.again
	m.leaving, m.again = false, false
	if err := t.endMember(m, swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"}); err != nil || !again {
		return err
	}
	return t.startAgain(m)
}

// endMember has an agent get no turn any more. Its mail goes back to where it came from; without its lead a team is lost.
func (t *team) endMember(m *member, end swarm.AgentEnd) error {
	if m.ended {
		return nil
	}
	m.ended = true
	if err := t.fx.Tell(Fact{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey(m.name, m.starts), Agent: m.name, Task: m.name, Body: end}); err != nil {
		return err
	}
	id := "return/" + m.name
	if m.starts > 0 {
		id += "/" + strconv.Itoa(m.starts)
	}
	r, err := t.write(Call{ID: id, Kind: KindReturn, Agent: m.name, Ref: end.Reason})
	if err != nil {
		return err
	}
	m.gone = r.Seq
	kept := t.asks[:0]
	for _, a := range t.asks {
		if a.To != m.name {
			kept = append(kept, a)
		}
	}
	t.asks = kept
	if m.name == t.rules.Lead && t.stop == "" {
		t.stop = swarm.Other
		if !m.failed {
			t.stop = swarm.CutByCancel
		}
	}
	return t.clock()
}

// cancel ends the run, or one agent. Running turns are cut by the hands that run them.
func (t *team) cancel(target string) error {
	if target == "" {
		if t.stop == "" {
			t.stop = swarm.CutByCancel
		}
		t.pausing = time.Time{}
		return nil
	}
	i, ok := t.at[target]
	if !ok || t.members[i].ended {
		return nil
	}
	m := &t.members[i]
	m.leaving, m.again = true, false
	if m.busy {
		return nil
	}
	return t.leave(m)
}

// finish tells how the run ended.
func (t *team) finish() (Result, error) {
	end := swarm.RunEnd{Status: swarm.Completed, Exit: swarm.ExitDone, Report: t.report, Usage: t.usage}
	var failed []string
	for _, m := range t.members {
		if m.failed {
			failed = append(failed, "@"+m.name)
		}
	}
	switch {
	case t.stop == swarm.OverBudget:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitBudget, "the budget is spent"
	case t.stop == swarm.CutByCancel:
		end.Status, end.Exit, end.Reason = swarm.Cancelled, swarm.ExitFailed, "the run was cancelled"
	case len(failed) > 0:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitFailed, excerpt.List(failed, 5)+" failed"
	case !t.done && t.turns() == 0:
		end.Reason = "nobody had anything to do"
	}
	if err := t.tellEnds(); err != nil {
		return Result{}, err
	}
	r := Result{CallEnd: swarm.CallEnd{Status: swarm.CallOK, Usage: t.usage}}
	if end.Exit != swarm.ExitDone {
		r.Status, r.Kind, r.Reason = swarm.CallFailed, t.stop, end.Reason
	}
	return r, t.fx.Tell(Fact{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Body: end})
}

// tellEnds tells how each agent's work ended: to those who look, an agent of a team is a task that lasts as long as the run.
func (t *team) tellEnds() error {
	for i := range t.members {
		m := &t.members[i]
		kind, end := t.endOf(m)
		end.Iteration = 1
		if err := t.fx.Tell(Fact{Kind: kind, Key: "task_ended:" + m.name + "/1", Task: m.name, Agent: m.name, Body: end}); err != nil {
			return err
		}
	}
	return nil
}

// endOf is how an agent's work ended. Who still had something to do has not completed it.
func (t *team) endOf(m *member) (swarm.EventKind, swarm.TaskEnd) {
	switch {
	case m.failed:
		return swarm.TaskFailed, m.why
	case m.ended:
		return swarm.TaskCancelled, swarm.TaskEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"}
	case t.wants(m) && t.stop == swarm.OverBudget:
		return swarm.TaskCancelled, swarm.TaskEnd{Kind: t.stop, Reason: m.tried("budget")}
	case t.wants(m) && t.stop != "":
		return swarm.TaskCancelled, swarm.TaskEnd{Kind: t.stop, Reason: m.tried("the run ended before it had read its mail")}
	case m.turns == 0 && t.wants(m):
		return swarm.TaskSkipped, swarm.TaskEnd{Reason: "the run ended before it had a turn"}
	case m.turns == 0:
		return swarm.TaskSkipped, swarm.TaskEnd{Reason: "nobody wrote to it"}
	case t.wants(m):
		return swarm.TaskCancelled, swarm.TaskEnd{Reason: m.tried("the run ended before it had read its mail")}
	}
	return swarm.TaskCompleted, swarm.TaskEnd{}
}

// tried adds to why an agent was not through what its last attempt failed for, if it did.
func (m *member) tried(why string) string {
	if m.tries == 0 {
		return why
	}
	return why + "; its last attempt failed: " + m.trouble
}

func (t *team) turns() (n int) {
	for i := range t.members {
		n += t.members[i].turns
	}
	return n
}
