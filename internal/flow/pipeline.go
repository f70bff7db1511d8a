package flow

import (
	"strconv"
	"time"

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/plan"
)

// Loops are the loops by the name that a Call uses.
var Loops = map[string]func(Fx, Call) (Result, error){"pipeline": Pipeline, "team": Team}

// A pipeline is the state of one Pipeline loop.
type pipeline struct {
	conduct
	sched *plan.Schedule
	tasks []progress // by the schedule's numbers

	open    bool            // the plan may grow
	held    map[string]bool // agents that are paused, and whether it was told that the run waits for one
	retries []timer         // tasks that are tried again at a time; in no order, for there are few
	waits   []timer         // tasks that fail if they still wait for others at a time
}

type progress struct {
	ref       string // the plan it came with
	iteration int
	attempt   int    // of the last turn
	tries     int    // attempts that count against its retries
	cancelled bool   // it never runs again
	why       string // it did not complete
}

type timer struct {
	task int
	due  time.Time
}

// Pipeline runs a plan that may grow while it runs: one loop, many turns in flight.
func Pipeline(fx Fx, c Call) (Result, error) {
	p := &pipeline{conduct: conduct{fx: fx}, sched: plan.New()}
	if refused, err := p.begin(c.Ref); err != nil || refused != nil {
		return Result{CallEnd: swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.BadInput, Reason: reasonOf(refused)}}, err
	}
	for {
		if err := p.advance(); err != nil {
			return Result{}, err
		}
		if p.sched.Done() && !p.open {
			return p.finish()
		}
		s, by, err := p.next(p.patience())
		if err != nil {
			return Result{}, err
		}
		p.delayTimers(by)
		if err := p.take(s); err != nil {
			return Result{}, err
		}
	}
}

// begin takes the plan that the run begins with, which also says what holds for the whole of it.
func (p *pipeline) begin(ref string) (refused, err error) {
	first, refused, err := p.add("plan", ref)
	if refused != nil || err != nil {
		return refused, err
	}
	p.open, p.replay = first.Open, len(first.Order) > 0
	if first.Budget.Wall > 0 {
		p.wallEnd = p.fx.Now().Add(first.Budget.Wall)
	}
	return nil, nil
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// add puts a stored plan into the schedule. A plan that is refused here was checked where it entered, so it only happens when
// the log was written by another hand; the run then fails and says so.
func (p *pipeline) add(id, ref string) (added *swarm.Plan, refused, err error) {
	r, err := p.fx.Do(Call{ID: id, Kind: KindPlan, Ref: ref})
	if err != nil {
		return nil, nil, err
	}
	if r.Plan == nil {
		return nil, swarm.Errorf(swarm.BadInput, "no plan %s: %s", ref, r.Reason), nil
	}
	if refused := p.sched.Add(r.Plan); refused != nil {
		return nil, refused, nil
	}
	for i := len(p.tasks); i < p.sched.Len(); i++ {
		p.tasks = append(p.tasks, progress{ref: ref})
		if t := p.sched.Task(i); t.WaitTimeout > 0 && p.sched.Blocked(i) {
			p.waits = append(p.waits, timer{i, p.fx.Now().Add(t.WaitTimeout)})
		}
	}
	return r.Plan, nil, nil
}

// advance does what the schedule offers, until it offers nothing more.
func (p *pipeline) advance() error {
	for {
		var err error
		switch step := p.sched.Next(); step.Kind {
		case plan.StepNone:
			if stuck, err := p.failStuck(); stuck || err != nil {
				if err != nil {
					return err
				}
				continue
			}
			if err := p.tellHeld(); err != nil {
				return err
			}
			return p.settlePause(p.sched.Running())
		case plan.StepFail:
			err = p.tellEnd(step.Task, swarm.Failed, swarm.WaitFailed, step.Reason+excerpt.Reason(p.tasks[step.Needed].why))
		case plan.StepRun:
			err = p.start(step.Task, step.Iteration)
		case plan.StepSkip:
			err = p.tellEnd(step.Task, swarm.Skipped, "", step.Reason)
		case plan.StepCancel:
			err = p.tellEnd(step.Task, swarm.Cancelled, p.stop, step.Reason)
		case plan.StepIterate:
			err = p.fx.Tell(Fact{Kind: swarm.IterationStarted, Key: "iteration_started:" + strconv.Itoa(step.Group) + "/" + strconv.Itoa(step.Iteration),
				Body: swarm.Iteration{Iteration: step.Iteration, Group: step.Group, Of: p.sched.GroupIterations(step.Group)}})
		}
		if err != nil {
			return err
		}
	}
}

func (p *pipeline) start(i, iteration int) error {
	t, g := p.sched.Task(i), &p.tasks[i]
	if g.cancelled {
		return p.end(i, swarm.Cancelled, swarm.CutByCancel, "it was cancelled")
	}
	if g.iteration != iteration {
		*g = progress{ref: g.ref, iteration: iteration}
		if err := p.fx.Tell(Fact{Kind: swarm.TaskStarted, Key: key(swarm.TaskStarted, t.Name, iteration), Task: t.Name, Agent: t.Agent,
			Body: swarm.Iteration{Iteration: iteration, Of: p.sched.Iterations(i)}}); err != nil {
			return err
		}
	}
	g.attempt++
	g.tries++
	return p.fx.Go(Call{ID: swarm.TurnID(t.Name, iteration, g.attempt), Kind: KindTurn, Task: t.Name, Agent: t.Agent, Iteration: iteration,
		Of: p.sched.Iterations(i), Attempt: g.attempt, Ref: g.ref, Since: p.seen})
}

func key(kind swarm.EventKind, task string, iteration int) string {
	return string(kind) + ":" + task + "/" + strconv.Itoa(iteration)
}

// take acts on one record.
func (p *pipeline) take(s Signal) error {
	switch s.Kind {
	case SignalEnd:
		return p.turnEnded(s)
	case SignalGrow:
		_, refused, err := p.add("plan/"+strconv.FormatInt(s.Seq, 10), s.Ref)
		if err != nil || refused == nil {
			return err
		}
		return p.fx.Tell(Fact{Kind: swarm.Notice, Key: "refused:" + s.Ref, Body: swarm.Reason{Reason: "what was added cannot run: " + refused.Error()}})
	case SignalTick:
		return p.clock()
	case SignalKind(swarm.WordPause), SignalKind(swarm.WordResume):
		on := s.Kind == SignalKind(swarm.WordPause)
		if s.ID != "" {
			return p.hold(s.ID, on, s.Seq)
		}
		changed, by, err := p.pause(on, s.Seq)
		if changed {
			p.sched.Pause(on)
			p.delayTimers(by)
		}
		return err
	case SignalKind(swarm.WordCancel):
		return p.cancel(s.ID)
	case SignalKind(swarm.WordRetry):
		p.retryBlocked(s.ID)
	case SignalKind(swarm.WordReset):
		p.reset(s.ID)
	case SignalKind(swarm.WordClose):
		p.open = false
	}
	return p.clock()
}

// patience is how long to wait for the next record before the clock has something to do.
func (p *pipeline) patience() time.Duration {
	var due time.Time
	for _, timers := range [][]timer{p.retries, p.waits} {
		for _, t := range timers {
			due = earlier(due, t.due)
		}
	}
	return p.until(due)
}

// clock does what its time has come for.
func (p *pipeline) clock() error {
	if !p.pausing.IsZero() {
		return nil
	}
	now := p.fx.Now()
	if p.wallOver() && !p.sched.Done() {
		if err := p.outOfBudget("the run's wall time is over"); err != nil {
			return err
		}
	}
	for _, i := range expire(&p.retries, now) {
		p.sched.Again(i)
	}
	for _, i := range expire(&p.waits, now) {
		if !p.sched.Blocked(i) {
			continue
		}
		if p.waitsForOwn(i) { // it could not start yet whatever the others did: its time begins after that
			p.waits = append(p.waits, timer{i, now.Add(p.sched.Task(i).WaitTimeout)})
			continue
		}
		reason := "timed out after " + p.sched.Task(i).WaitTimeout.String() + " waiting for " + p.whom(i)
		if err := p.end(i, swarm.Failed, swarm.TimedOut, reason); err != nil {
			return err
		}
	}
	return nil
}

// expire takes the tasks whose time has come out of timers.
func expire(timers *[]timer, now time.Time) (due []int) {
	later := (*timers)[:0]
	for _, t := range *timers {
		if now.Before(t.due) {
			later = append(later, t)
		} else {
			due = append(due, t.task)
		}
	}
	*timers = later
	return due
}

// waitsForOwn says whether the task waits for one that came with the same plan: an earlier stage of its line.
func (p *pipeline) waitsForOwn(i int) bool {
	for _, w := range p.sched.Waits(i) {
		if j, ok := p.sched.Find(w.Task); ok && w.For == plan.ForDependency && p.tasks[j].ref == p.tasks[i].ref {
			return true
		}
	}
	return false
}

// whom names the agents that the task waits for, each once.
func (p *pipeline) whom(i int) (names string) {
	seen := map[string]bool{}
	for _, w := range p.sched.Waits(i) {
		if w.Agent == "" || seen[w.Agent] {
			continue
		}
		seen[w.Agent] = true
		if names != "" {
			names += ", "
		}
		names += "@" + w.Agent
	}
	return names
}

// failStuck fails a task that waits for an output which nobody is left to make: nothing runs, and nothing can be added.
func (p *pipeline) failStuck() (bool, error) {
	if p.open || !p.pausing.IsZero() || p.stop != "" || p.sched.Running() > 0 || p.sched.Done() || p.sched.Held() > 0 || len(p.retries) > 0 {
		return false, nil
	}
	for i := range p.tasks {
		for _, w := range p.sched.Waits(i) {
			if w.For == plan.ForOutput {
				return true, p.end(i, swarm.Failed, swarm.WaitFailed, "Agent @"+w.Agent+" has no output to reference, and nothing is left that could make one")
			}
		}
	}
	return false, nil
}

// delayTimers puts off what is due.
func (p *pipeline) delayTimers(by time.Duration) {
	for _, timers := range [][]timer{p.retries, p.waits} {
		for i := range timers {
			timers[i].due = timers[i].due.Add(by)
		}
	}
}

// cancel ends the run, or the tasks with this name or of this agent, in later iterations too. Their running turns are cut by the
// hands that run them.
func (p *pipeline) cancel(target string) error {
	if target == "" {
		if p.stop == "" {
			p.stop = swarm.CutByCancel
		}
		p.sched.Stop("the run was cancelled")
		p.sched.Pause(false)
		p.pausing, p.open = time.Time{}, false
		return nil
	}
	for i := range p.tasks {
		t := p.sched.Task(i)
		if target != t.Name && target != t.Base && target != t.Agent {
			continue
		}
		p.tasks[i].cancelled = true
		if st := p.sched.Status(i); st == swarm.Pending || st == swarm.Waiting {
			p.sched.Ended(i, swarm.Cancelled)
			if err := p.tellEnd(i, swarm.Cancelled, swarm.CutByCancel, "it was cancelled"); err != nil {
				return err
			}
		}
	}
	return nil
}

// retryBlocked lets tasks that wait for a person run again, with all their retries.
func (p *pipeline) retryBlocked(target string) {
	for i := range p.tasks {
		t := p.sched.Task(i)
		waits := p.sched.Waits(i)
		if (target == "" || target == t.Name || target == t.Base) && len(waits) == 1 && waits[0].For == plan.ForPerson {
			p.tasks[i].tries = 0
			p.sched.Again(i)
		}
	}
}

// finish tells how the run ended. What counts is each task's state in its last iteration.
func (p *pipeline) finish() (Result, error) {
	end := swarm.RunEnd{Status: swarm.Completed, Exit: swarm.ExitDone, Usage: p.usage}
	kind := p.stop
	var bad, cancelled []string
	for i := range p.tasks {
		switch p.sched.Status(i) {
		case swarm.Failed:
			bad = append(bad, p.sched.Task(i).Name)
		case swarm.Cancelled:
			cancelled = append(cancelled, p.sched.Task(i).Name)
		}
	}
	switch {
	case kind == swarm.OverBudget:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitBudget, "the budget is spent"
	case kind == swarm.CutByCancel:
		end.Status, end.Exit, end.Reason = swarm.Cancelled, swarm.ExitFailed, "the run was cancelled"
	case len(bad) > 0:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitFailed, excerpt.List(bad, 5)+" failed"
	case len(cancelled) > 0:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitFailed, excerpt.List(cancelled, 5)+" cancelled"
	}
	r := Result{CallEnd: swarm.CallEnd{Status: swarm.CallOK, Usage: p.usage}}
	if end.Exit != swarm.ExitDone {
		r.Status, r.Kind, r.Reason = swarm.CallFailed, kind, end.Reason
	}
	return r, p.fx.Tell(Fact{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Body: end})
}
