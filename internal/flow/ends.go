package flow

import (
	"strconv"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// turnEnded decides what the end of a turn means for its task.
func (p *pipeline) turnEnded(s Signal) error {
	i, ok := p.sched.Find(taskOf(s.ID))
	if !ok {
		return nil
	}
	r := s.Result
	p.usage = p.usage.Plus(r.Usage)
	switch {
	case r.Status == swarm.CallOK:
		return p.end(i, swarm.Completed, "", "")
	case r.Kind == swarm.CutByCancel || p.tasks[i].cancelled:
		return p.end(i, swarm.Cancelled, swarm.CutByCancel, "it was cancelled")
	case (r.Kind == swarm.CutToSpeak || r.Kind == swarm.CutToReset) && p.stop == "":
		p.tasks[i].tries-- // a person wanted it: no attempt was lost
		if r.Kind == swarm.CutToReset {
			p.tasks[i].tries = 0
		}
		p.sched.Hold(i, plan.Wait{For: plan.ForRetry})
		p.sched.Again(i)
		return nil
	case r.Kind == swarm.OverBudget:
		if err := p.outOfBudget(r.Reason); err != nil {
			return err
		}
		return p.end(i, swarm.Cancelled, r.Kind, "budget")
	case r.Kind == swarm.Mismatch: // a replay that has left its track shows nothing any more
		p.stopRun(swarm.Mismatch, "the replay does not match")
		return p.end(i, swarm.Failed, r.Kind, r.Reason)
	case p.tasks[i].tries <= p.sched.Task(i).Retries && p.stop == "":
		return p.retry(i, r)
	}
	return p.giveUp(i, r)
}

func taskOf(turn string) string {
	for i := range turn {
		if turn[i] == '/' {
			return turn[:i]
		}
	}
	return turn
}

// retry has the task tried again: at once when its work was looked at and found wanting, else after 1 s, 2 s, 4 s …
func (p *pipeline) retry(i int, r Result) error {
	t, g := p.sched.Task(i), &p.tasks[i]
	var after time.Duration
	if r.Kind != swarm.Unexpected && !r.Kept && !p.replay {
		after = time.Second << min(g.tries-1, 6)
	}
	due := p.fx.Now().Add(after)
	p.sched.Hold(i, plan.Wait{For: plan.ForRetry, Until: due, Reason: r.Reason})
	if after == 0 {
		p.sched.Again(i)
	} else {
		p.retries = append(p.retries, timer{i, due})
	}
	return p.fx.Tell(Fact{Kind: swarm.TaskRetrying, Key: key(swarm.TaskRetrying, t.Name, g.iteration) + "/" + strconv.Itoa(g.attempt),
		Task: t.Name, Agent: t.Agent, Turn: r.ID,
		Body: swarm.Retry{Iteration: g.iteration, Attempt: g.attempt, Reason: r.Reason, After: after}})
}

// giveUp does what the task's on_failure says.
func (p *pipeline) giveUp(i int, r Result) error {
	t, g := p.sched.Task(i), &p.tasks[i]
	switch {
	case t.OnFailure == swarm.FailSkip:
		return p.end(i, swarm.Skipped, r.Kind, "it failed: "+r.Reason)
	case t.OnFailure == swarm.FailStop:
		p.stopRun(r.Kind, t.Name+" failed")
	case (t.OnFailure == swarm.FailFix || t.OnFailure == swarm.FailEscalate) && p.stop == "":
		p.sched.Hold(i, plan.Wait{For: plan.ForPerson, Reason: r.Reason})
		return p.fx.Tell(Fact{Kind: swarm.TaskBlocked, Key: key(swarm.TaskBlocked, t.Name, g.iteration) + "/" + strconv.Itoa(g.attempt),
			Task: t.Name, Agent: t.Agent, Turn: r.ID, Body: swarm.Reason{Reason: r.Reason}})
	}
	return p.end(i, swarm.Failed, r.Kind, r.Reason)
}

func (p *pipeline) outOfBudget(reason string) error {
	if p.stop != "" {
		return nil
	}
	p.stopRun(swarm.OverBudget, "budget")
	return p.spent(reason)
}

func (p *pipeline) stopRun(kind swarm.ErrorKind, why string) {
	if p.stop == "" {
		p.stop = kind
	}
	p.open = false
	p.sched.Stop(why)
}

func (p *pipeline) end(i int, st swarm.Status, kind swarm.ErrorKind, reason string) error {
	p.sched.Ended(i, st)
	return p.tellEnd(i, st, kind, reason)
}

var endKinds = map[swarm.Status]swarm.EventKind{
	swarm.Completed: swarm.TaskCompleted, swarm.Failed: swarm.TaskFailed, swarm.Skipped: swarm.TaskSkipped, swarm.Cancelled: swarm.TaskCancelled,
}

func (p *pipeline) tellEnd(i int, st swarm.Status, kind swarm.ErrorKind, reason string) error {
	t, iteration := p.sched.Task(i), p.sched.Iteration(i)
	p.tasks[i].why = reason
	return p.fx.Tell(Fact{Kind: endKinds[st], Key: "task_ended:" + t.Name + "/" + strconv.Itoa(iteration), Task: t.Name, Agent: t.Agent,
		Body: swarm.TaskEnd{Iteration: iteration, Kind: kind, Reason: reason}})
}
