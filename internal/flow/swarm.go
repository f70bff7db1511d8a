package flow

import (
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A swarm is a team whose agents do not wait for mail: each works on its subtask in iterations, until
// it is done. This file has the steps that only a swarm takes. The supervisor's first turn divides
// the query, and its last one makes the answer.

// takeAction has the action of a worker's last turn taken, as a call of its own. So a crash between
// the two asks the model only once.
func (t *team) takeAction(s plan.TeamStep) error {
	m := t.Member(s.Agent)
	return t.fx.Go(Call{ID: swarm.ActionID(s.Turn, s.Try), Kind: KindAction, Task: m.Name, Agent: m.Name, Iteration: m.Turns, Attempt: s.Try, Ref: string(s.Turn), Plan: m.Ref,
		Since: t.seen, Timeout: t.timeLeft(t.TimeLeft(m), false), Reissued: true})
}

// actionEnded counts what an action cost. The team has decided what it means for its agent.
func (t *team) actionEnded(agent string, r Result) error {
	t.usage = t.usage.Plus(r.Usage)
	m := t.Member(agent)
	if m == nil || m.Retry.IsZero() || r.Status == swarm.CallOK {
		return nil
	}
	return t.tellRetry(m.Name, m.Name, m.Turns, m.Attempt, r, m.Retry.Sub(t.now))
}

// divide adds workers for the subtasks that a turn of the supervisor names, and sends its messages.
// Without a turn one worker gets the whole query.
func (t *team) divide(turn string) error {
	_, err := t.write(Call{ID: "divide/" + turn, Kind: KindDivide, Agent: swarm.Supervisor, Ref: turn})
	return err
}

// iterationEnded decides what the end of a turn means for an agent of a swarm. A failure that may
// pass by itself is tried again until the agent's time is over, and uses no iteration. An answer that
// cannot be read is asked for again, once.
func (t *team) iterationEnded(m *plan.Member, r Result) error {
	switch {
	case m.Effort == nil:
		return t.supervised(m, r)
	case m.End != nil:
		return t.reviewed(m, r)
	}
	switch {
	case r.Status == swarm.CallOK:
		t.usage = t.usage.Plus(r.Usage)
		if err := t.weighTurn(m.Name, r); err != nil {
			return err
		}
		return t.weighShared(m.Name, r)
	case r.Kind == swarm.Unexpected && m.Attempt > 0:
		t.usage = t.usage.Plus(r.Usage)
		return t.tellRetry(m.Name, m.Name, m.Turns, m.Attempt, r, 0)
	case m.Effort.Delays > 0 && plan.Transient(r.Kind):
		t.usage = t.usage.Plus(r.Usage)
		if t.Swarm.Draining || t.wallStops.IsZero() && !t.wallEnd.IsZero() && !t.fx.Now().Before(t.wallEnd) {
			return nil // nothing is left for another attempt, so none is announced
		}
		return t.tellRetry(m.Name, m.Name, m.Turns, m.Attempt, r, plan.Delay(m.Effort.Delays))
	}
	_, _, err := t.judge(r, 1, 0) // it is cut, has no budget, or has failed for good; the team ends it then
	return err
}

// supervised decides what the end of the supervisor's turn means. If it cannot divide the query, one
// worker gets the whole of it. If it cannot plan anew, the swarm goes on as it is. If it cannot make one
// answer, the results are listed as they are, so that no work is lost. Otherwise the run fails with it.
func (t *team) supervised(m *plan.Member, r Result) error {
	tries, retries := m.Tries, plan.Retries(&t.Rules)
	switch {
	case t.Swarm.Delays > 0: // it costs nothing and may pass, so it is no attempt
		tries, retries = 1, 1
	case r.Kind == swarm.BadInput || r.Kind == swarm.NotSignedIn || r.Kind == swarm.Protocol || t.Expired(m): // another attempt ends as this one did
		retries = 0
	}
	v, after, err := t.judge(r, tries, retries)
	if v == triesAgain && t.Swarm.Delays > 0 {
		after = plan.Delay(t.Swarm.Delays)
	}
	switch {
	case err != nil:
	case t.purpose == plan.WantAnswer && (v == hadNoBudget || v == hasFailed || v == triesAgain && t.timeUp()):
		err = t.tell(Fact{Kind: swarm.Notice, Key: string(swarm.Unanswered), Agent: m.Name, Body: swarm.Reason{Message: swarm.NewMessage(swarm.Unanswered, r.Reason)}})
	case v == triesAgain:
		err = t.tellRetry(m.Name, m.Name, m.Turns, m.Attempt, r, after)
	case v == hasFailed && t.purpose == plan.WantSubtasks && r.Kind == swarm.Unexpected:
		err = t.tell(Fact{Kind: swarm.Notice, Key: string(swarm.Undivided), Agent: m.Name, Body: swarm.Reason{Message: swarm.NewMessage(swarm.Undivided, r.Reason)}})
	case v == hasFailed && t.purpose == plan.WantReplan:
		err = t.tell(Fact{Kind: swarm.Notice, Key: string(swarm.NotReplanned), Agent: m.Name, Body: swarm.Reason{Message: swarm.NewMessage(swarm.NotReplanned, r.Reason)}})
	case v == hasFailed:
		err = t.endAgent(m.Name, swarm.AgentEnd{Kind: r.Kind, Reason: "it failed: " + r.Reason}, swarm.NewMessage(swarm.BackFailed, r.Reason))
	}
	return err
}

// reviewed decides what the end of a turn means in which a member of a council judges the others. A
// review that cannot be read is asked for again, once. One that fails for good counts as no vote.
func (t *team) reviewed(m *plan.Member, r Result) error {
	retries := plan.Retries(&t.Rules)
	if r.Kind == swarm.Unexpected {
		retries = min(retries, 1)
	}
	v, after, err := t.judge(r, m.Tries, retries)
	switch {
	case err != nil:
	case v == triesAgain:
		err = t.tellRetry(m.Name, m.Name, m.Turns, m.Attempt, r, after)
	case v == hasFailed || v == wasCancelled:
		err = t.tell(Fact{Kind: swarm.Notice, Key: string(swarm.NotReviewed) + ":" + r.ID, Agent: m.Name, Body: swarm.Reason{Message: swarm.NewMessage(swarm.NotReviewed, r.Reason)}})
	}
	return err
}

// askPlan asks a person whether the workers may begin. The wall time stands still meanwhile, unless
// others work.
func (t *team) askPlan() error {
	ask := t.PlanQuestion()
	if t.wallStops.IsZero() && t.Swarm.Approved == 0 {
		t.wallStops = t.fx.Now()
	}
	return t.tell(Fact{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey(ask.ID), Agent: swarm.Supervisor, Task: swarm.Supervisor, Body: ask})
}

// planAnswered lets the wall time go on.
func (t *team) planAnswered(id string) {
	if id == swarm.PlanQuestion && t.pausing.IsZero() && !t.wallStops.IsZero() {
		t.delay(t.fx.Now().Sub(t.wallStops))
		t.wallStops = time.Time{}
	}
}
