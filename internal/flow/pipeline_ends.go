package flow

import (
	"strconv"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// turnEnded decides what the end of a turn means for its task.
func (p *pipeline) turnEnded(r Result) error {
	i, ok := p.sched.Find(agentOf(r.ID))
	if !ok {
		return nil
	}
	g := &p.tasks[i]
	p.sched.EndTurn(i, &r.CallEnd)
	if p.sched.MayFit(i, &r.CallEnd) && !g.cancelled {
		g.tries-- // this attempt does not count
		p.usage = p.usage.Plus(r.Usage)
		t := p.sched.Task(i)
		p.sched.AwaitRoom(i)
		return p.tellRoom(t.Agent, t.Name, g.iteration, g.attempt, r)
	}
	if g.cancelled && r.Crowded { // it does not mean that the budget is spent
		p.usage = p.usage.Plus(r.Usage)
		return p.endTask(i, swarm.Cancelled, swarm.CutByCancel, "it was cancelled")
	}
	if p.outlasts(i, &r.CallEnd) {
		g.tries-- // this attempt does not count
		t := p.sched.Task(i)
		if err := p.reachLimit(t.Agent, t.Name, p.route(t.Agent), r); err != nil {
			return err
		}
		p.sched.Wait(i, plan.Wait{For: plan.ForLimit})
		p.sched.Again(i) // the schedule holds it back
		return nil
	}
	v, after, err := p.judge(r, g.tries, p.sched.Task(i).Retries)
	if err != nil {
		return err
	}
	switch {
	case v == didWell:
		return p.endTask(i, swarm.Completed, "", "")
	case v == wasCancelled || g.cancelled:
		return p.endTask(i, swarm.Cancelled, swarm.CutByCancel, "it was cancelled")
	case v == hadNoBudget:
		return p.endTask(i, swarm.Cancelled, r.Kind, "budget")
	case v == wentAstray:
		p.halt("another turn does not match")
		return p.endTask(i, swarm.Failed, r.Kind, r.Reason)
	case v == triesAgain && p.stop == swarm.OverBudget:
		return p.endTask(i, swarm.Cancelled, swarm.OverBudget, "budget; its last attempt failed: "+r.Reason)
	case v == hasFailed || p.stop != "":
		return p.giveUp(i, r)
	case v == triesAgain:
		return p.retry(i, r, after)
	}
	g.tries-- // this attempt does not count
	if r.Kind == swarm.CutToReset {
		g.tries = 0
	}
	p.sched.Wait(i, plan.Wait{For: plan.ForRetry})
	p.sched.Again(i)
	return nil
}

// outlasts says whether the end of a turn is a provider's limit that its task waits out, or another
// provider makes up for.
func (p *pipeline) outlasts(i int, end *swarm.CallEnd) bool {
	g := &p.tasks[i]
	if g.limited = plan.LimitedSince(g.limited, end, p.fx.Now()); end.Limit == nil {
		return false
	}
	return p.stop == "" && !g.cancelled && p.Reached().Outlasts(p.route(p.sched.Task(i).Agent), end, g.limited)
}

// retry schedules a retry of the task.
func (p *pipeline) retry(i int, r Result, after time.Duration) error {
	t, g := p.sched.Task(i), &p.tasks[i]
	due := p.fx.Now().Add(after)
	p.sched.Wait(i, plan.Wait{For: plan.ForRetry, Until: due, Reason: r.Reason})
	if after == 0 {
		p.sched.Again(i)
	} else {
		p.retries = append(p.retries, timer{i, due})
	}
	return p.tellRetry(t.Agent, t.Name, g.iteration, g.attempt, r, after)
}

// giveUp applies the task's on_failure.
func (p *pipeline) giveUp(i int, r Result) error {
	t, g := p.sched.Task(i), &p.tasks[i]
	switch {
	case t.OnFailure == swarm.FailSkip:
		return p.endTask(i, swarm.Skipped, r.Kind, "it failed: "+r.Reason)
	case t.OnFailure == swarm.FailStop:
		p.stopFor(r.Kind)
		p.halt(t.Name + " failed")
	case (t.OnFailure == swarm.FailFix || t.OnFailure == swarm.FailEscalate) && p.stop == "":
		g.failure = &r
		p.sched.Wait(i, plan.Wait{For: plan.ForPerson, Reason: r.Reason})
		err := p.tell(Fact{Kind: swarm.TaskBlocked, Key: key(swarm.TaskBlocked, t.Name, g.iteration) + "/" + strconv.Itoa(g.attempt),
			Task: t.Name, Agent: t.Agent, Turn: swarm.TurnID(r.ID), Body: swarm.Reason{Reason: r.Reason}})
		if err != nil || t.OnFailure == swarm.FailFix {
			return err
		}
		id := swarm.RetryQuestion(r.ID)
		return p.tell(Fact{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey(id), Task: t.Name, Agent: t.Agent, Turn: swarm.TurnID(r.ID),
			Body: swarm.Approval{ID: id, What: "try again", Retry: &swarm.RetryRequest{Failure: r.Reason, Inputs: t.Inputs}}})
	}
	return p.endTask(i, swarm.Failed, r.Kind, r.Reason)
}

// answered acts on a person's answer to a failed task that asked for a retry. Answers to other
// questions are for the turns that wait for them. A question is void if the task was retried or
// cancelled meanwhile.
func (p *pipeline) answered(a swarm.ApprovalAnswer) error {
	for i := range p.tasks {
		g := &p.tasks[i]
		if g.failure == nil || swarm.RetryQuestion(g.failure.ID) != a.ID || !p.waitsForPerson(i) {
			continue
		}
		if a.OK {
			p.retryBlocked(p.sched.Task(i).Name)
			return nil
		}
		return p.endTask(i, swarm.Failed, g.failure.Kind, g.failure.Reason)
	}
	return nil
}

func (p *pipeline) waitsForPerson(i int) bool {
	waits := p.sched.Waits(i)
	return len(waits) == 1 && waits[0].For == plan.ForPerson
}

func (p *pipeline) endTask(i int, st swarm.Status, kind swarm.ErrorKind, reason string) error {
	p.sched.Ended(i, st)
	return p.tellEnd(i, st, kind, reason)
}

func (p *pipeline) tellEnd(i int, st swarm.Status, kind swarm.ErrorKind, reason string) error {
	t, iteration := p.sched.Task(i), p.sched.Iteration(i)
	p.tasks[i].why = reason
	return p.tell(Fact{Kind: endKinds[st], Key: "task_ended:" + t.Name + "/" + strconv.Itoa(iteration), Task: t.Name, Agent: t.Agent,
		Body: swarm.TaskEnd{Iteration: iteration, Kind: kind, Reason: reason}})
}
