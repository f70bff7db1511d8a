package flow

import (
	"strconv"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// Loops maps the names that a Call uses to the loops.
var Loops = map[string]func(Fx, Call) (Result, error){"pipeline": Pipeline, "team": Team}

// A pipeline is the state of one Pipeline loop.
type pipeline struct {
	runState
	sched *plan.Schedule
	tasks []progress // by the schedule's index

	open    bool                  // the plan may grow
	routes  map[string]plan.Route // by agent; nil = they are to be found in plans
	plans   []*swarm.Plan
	limited time.Time // since when any provider's limit is reached; zero = none is

	retries []timer // retries with a delay; unsorted, because there are few
	waits   []timer // wait timeouts of blocked tasks; unsorted, too
}

type progress struct {
	ref       string // key of the plan that it came with
	iteration int
	attempt   int       // of the last turn
	began     time.Time // of the last turn, later by the time in which no process drove the run
	tries     int       // attempts that count against its retries
	provider  string    // of the last turn; "" = its agent's
	limited   time.Time // the first of the attempts in a row that a limit ended; zero = none
	cancelled bool      // it never runs again
	why       string    // why it did not complete
	failure   *Result   // result of the last attempt, while the task waits for a person
}

type timer struct {
	task int
	due  time.Time
}

// Pipeline drives a plan, which may grow while it runs. One loop has many turns in flight.
func Pipeline(fx Fx, c Call) (Result, error) {
	p := &pipeline{runState: runState{fx: fx}, sched: plan.New()}
	p.machine, p.sched.Routes = p, p.route
	first, refused, err := p.add("plan", c.Ref)
	switch {
	case err != nil:
		return Result{}, err
	case refused != nil:
		return p.refuse(refused)
	}
	p.begin(first)
	p.open = first.Open
	return p.drive(p)
}

// add adds a stored plan to the schedule.
func (p *pipeline) add(id, ref string) (added *swarm.Plan, refused, err error) {
	added, refused, err = p.plan(id, ref)
	if refused == nil && err == nil {
		refused = p.sched.Add(added)
	}
	if refused != nil || err != nil {
		return nil, refused, err
	}
	p.plans, p.routes = append(p.plans, added), nil
	for i := len(p.tasks); i < p.sched.Len(); i++ {
		p.tasks = append(p.tasks, progress{ref: ref})
		if t := p.sched.Task(i); t.WaitTimeout > 0 && p.sched.Blocked(i) {
			p.waits = append(p.waits, timer{i, p.fx.Now().Add(t.WaitTimeout)})
		}
	}
	return added, nil, nil
}

// Apply applies facts about the whole run or an agent to the schedule.
func (p *pipeline) Apply(f Fact) {
	switch f.Kind {
	case swarm.RunOwned:
		gap := f.Undriven(p.now)
		if p.pausing.IsZero() {
			p.delayTimers(gap)
		}
		for i := range p.tasks { // a turn that has begun has its time in a pause, too
			p.tasks[i].began = p.tasks[i].began.Add(gap)
		}
	case swarm.RunPausing:
		p.sched.Pause(true)
	case swarm.RunUnpaused:
		p.sched.Pause(false)
		p.delayTimers(f.Time.Sub(p.pausing))
	case swarm.AgentPaused, swarm.AgentResumed:
		p.sched.PauseAgent(f.Agent, f.Kind == swarm.AgentPaused)
	case swarm.LimitReached:
		if p.limited.IsZero() {
			p.limited = f.Time
		}
		p.sched.ReachLimit(f.Body.(swarm.Limit), f.Time)
	case swarm.LimitEnded:
		if p.sched.EndLimit(f.Body.(swarm.Limit).Provider); len(p.Reached()) == 0 {
			delayEach(p.waits, f.Time.Sub(p.limited))
			p.limited = time.Time{}
		}
	case swarm.BudgetSpent:
		p.halt("budget")
	case swarm.Control:
		if w := f.Body.(swarm.ControlCommand); w.Command == swarm.CommandCancel && w.Target == "" {
			p.halt("the run was cancelled")
			p.sched.Pause(false)
		}
	}
}

// halt stops turns from starting.
func (p *pipeline) halt(why string) {
	p.open = false
	p.sched.Stop(why)
}

// Reached returns the limits of providers that are reached.
func (p *pipeline) Reached() plan.Limits { return p.sched.Limits() }

// HeldBack returns the providers with a limit that a task or an agent uses; "" = all with one.
func (p *pipeline) HeldBack(target string) []string { return p.sched.HeldBack(target) }

// route returns the route of an agent. Of two plans the later one counts. Only a limit needs routes,
// so they are looked up when the first limit is reached.
func (p *pipeline) route(agent string) plan.Route {
	if p.routes == nil {
		p.routes = map[string]plan.Route{}
		for _, added := range p.plans {
			for i := range added.Agents {
				p.routes[added.Agents[i].Name] = plan.RouteOf(&added.Agents[i])
			}
		}
	}
	return p.routes[agent]
}

// Running is the number of running turns.
func (p *pipeline) Running() int { return p.sched.Running() }

// Paused says whether an agent is paused, and whether it has tasks.
func (p *pipeline) Paused(agent string) (paused, known bool) { return p.sched.Paused(agent) }

// Stuck lists the paused agents that hold up the run.
func (p *pipeline) Stuck() (agents []string) {
	if p.sched.PausedAgents() == 0 || p.sched.Running() > 0 || len(p.retries)+len(p.Reached()) > 0 || p.stop != "" || !p.pausing.IsZero() {
		return nil
	}
	for i := range p.tasks {
		if waits := p.sched.Waits(i); len(waits) > 0 && waits[0].For == plan.ForPause && waits[0].Agent != "" {
			agents = append(agents, waits[0].Agent)
		}
	}
	return agents
}

func (p *pipeline) over() bool { return p.sched.Done() && !p.open }

// advance takes steps until the schedule has none.
func (p *pipeline) advance() error {
	for {
		var err error
		switch step := p.sched.Next(); step.Kind {
		case plan.StepNone:
			if stuck, err := p.failStuck(); !stuck || err != nil {
				return err
			}
		case plan.StepFail:
			err = p.tellEnd(step.Task, swarm.Failed, swarm.WaitFailed, step.Reason+excerpt.Reason(p.tasks[step.Needed].why))
		case plan.StepRun:
			err = p.start(step.Task, step.Iteration)
		case plan.StepSkip:
			err = p.tellEnd(step.Task, swarm.Skipped, "", step.Reason)
		case plan.StepCancel:
			err = p.tellEnd(step.Task, swarm.Cancelled, p.stop, step.Reason)
		case plan.StepIterate:
			err = p.tell(Fact{Kind: swarm.IterationStarted, Key: "iteration_started:" + strconv.Itoa(step.Group) + "/" + strconv.Itoa(step.Iteration),
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
		return p.endTask(i, swarm.Cancelled, swarm.CutByCancel, "it was cancelled")
	}
	if g.iteration != iteration {
		*g = progress{ref: g.ref, iteration: iteration}
		if err := p.tell(Fact{Kind: swarm.TaskStarted, Key: key(swarm.TaskStarted, t.Name, iteration), Task: t.Name, Agent: t.Agent,
			Body: swarm.Iteration{Iteration: iteration, Of: p.sched.Iterations(i)}}); err != nil {
			return err
		}
	}
	g.attempt++
	g.tries++
	g.began, g.provider = p.fx.Now(), ""
	if limits := p.Reached(); len(limits) > 0 {
		g.provider, _ = limits.Choose(p.route(t.Agent))
	}
	return p.giveTurn(i)
}

// giveTurn starts the last turn of a task, or starts it again with the time that its earlier starts
// have left.
func (p *pipeline) giveTurn(i int) error {
	t, g := p.sched.Task(i), &p.tasks[i]
	c := Call{ID: string(swarm.NewTurnID(t.Name, g.iteration, g.attempt)), Kind: KindTurn, Task: t.Name, Agent: t.Agent, Iteration: g.iteration,
		Of: p.sched.Iterations(i), Attempt: g.attempt, Ref: g.ref, Provider: g.provider, Since: p.seen, Reissued: true}
	if t.Timeout > 0 {
		c.Timeout = max(t.Timeout-p.fx.Now().Sub(g.began), time.Millisecond)
	}
	return p.fx.Go(c)
}

// startAgain starts the turns again that were cut with the process before.
func (p *pipeline) startAgain() error {
	for i := range p.tasks {
		if p.sched.Status(i) != swarm.Running {
			continue
		}
		if err := p.giveTurn(i); err != nil {
			return err
		}
	}
	return nil
}

func key(kind swarm.EventKind, task string, iteration int) string {
	return string(kind) + ":" + task + "/" + strconv.Itoa(iteration)
}

// handle acts on one record.
func (p *pipeline) handle(s Signal) error {
	switch s.Kind {
	case swarm.TurnEnded, swarm.LoopEnded:
		return p.turnEnded(s.Result)
	case swarm.RunOwned:
		if err := p.startAgain(); err != nil {
			return err
		}
	case swarm.PlanAdded:
		_, refused, err := p.add("plan/"+strconv.FormatInt(s.Seq, 10), s.Key)
		if err != nil || refused == nil {
			return err
		}
		return p.tell(Fact{Kind: swarm.Notice, Key: "refused:" + s.Key, Body: swarm.Reason{Reason: "what was added cannot run: " + refused.Error()}})
	case swarm.ApprovalAnswered:
		if err := p.answered(s.Body.(swarm.ApprovalAnswer)); err != nil {
			return err
		}
	case swarm.Control:
		if err := p.control(s.Body.(swarm.ControlCommand)); err != nil {
			return err
		}
	}
	return p.clock()
}

// control obeys a person's command.
func (p *pipeline) control(w swarm.ControlCommand) error {
	if done, err := p.obey(w); done || err != nil {
		return err
	}
	switch w.Command {
	case swarm.CommandCancel:
		return p.cancel(w.Target)
	case swarm.CommandRetry:
		p.retryBlocked(w.Target)
	case swarm.CommandReset:
		p.reset(w.Target)
	case swarm.CommandClose:
		p.open = false
	}
	return nil
}

// due is when the next timer fires.
func (p *pipeline) due() (due time.Time) {
	running := [][]timer{p.retries, p.waits}
	if !p.limited.IsZero() {
		running = running[:1]
	}
	for _, timers := range running {
		for _, t := range timers {
			due = earlier(due, t.due)
		}
	}
	return due
}

// clock handles the timers that have fired.
func (p *pipeline) clock() error {
	if !p.pausing.IsZero() {
		return nil
	}
	now := p.fx.Now()
	if !p.sched.Done() {
		if err := p.checkWall(); err != nil {
			return err
		}
	}
	for _, i := range expire(&p.retries, now) {
		p.sched.Again(i)
	}
	if err := p.checkLimits(); err != nil {
		return err
	}
	if !p.limited.IsZero() { // waits for the outputs of agents that a limit may hold back stand still
		return nil
	}
	for _, i := range expire(&p.waits, now) {
		if !p.sched.Blocked(i) {
			continue
		}
		if p.waitsForOwn(i) { // its own stages come first, so its wait for the others has not begun
			p.waits = append(p.waits, timer{i, now.Add(p.sched.Task(i).WaitTimeout)})
			continue
		}
		reason := "timed out after " + p.sched.Task(i).WaitTimeout.String() + " waiting for " + p.awaitedAgents(i)
		if err := p.endTask(i, swarm.Failed, swarm.TimedOut, reason); err != nil {
			return err
		}
	}
	return nil
}

// expire removes the timers that have fired and returns their tasks.
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

// waitsForOwn says whether the task waits for an earlier stage that came with the same plan.
func (p *pipeline) waitsForOwn(i int) bool {
	for _, w := range p.sched.Waits(i) {
		if j, ok := p.sched.Find(w.Task); ok && w.For == plan.ForDependency && p.tasks[j].ref == p.tasks[i].ref {
			return true
		}
	}
	return false
}

// awaitedAgents names the agents that the task waits for, each once.
func (p *pipeline) awaitedAgents(i int) (names string) {
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

// failStuck fails a task that waits for an output which no task can make any more: nothing runs,
// and the plan cannot grow.
func (p *pipeline) failStuck() (bool, error) {
	if p.open || !p.pausing.IsZero() || p.stop != "" || p.sched.Running() > 0 || p.sched.Done() || p.sched.PausedAgents() > 0 || len(p.retries)+len(p.Reached()) > 0 {
		return false, nil
	}
	for i := range p.tasks {
		for _, w := range p.sched.Waits(i) {
			if w.For == plan.ForOutput {
				return true, p.endTask(i, swarm.Failed, swarm.WaitFailed, "Agent @"+w.Agent+" has no output to reference, and nothing is left that could make one")
			}
		}
	}
	return false, nil
}

// delayTimers delays all timers.
func (p *pipeline) delayTimers(by time.Duration) {
	delayEach(p.retries, by)
	delayEach(p.waits, by)
	if !p.limited.IsZero() { // the end of a limit must not delay the waits twice
		p.limited = p.limited.Add(by)
	}
}

func delayEach(timers []timer, by time.Duration) {
	for i := range timers {
		timers[i].due = timers[i].due.Add(by)
	}
}

// cancel ends the tasks with this name or of this agent, in later iterations too. The turn runners
// cut the running turns.
func (p *pipeline) cancel(target string) error {
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
		if (target == "" || target == t.Name || target == t.Base) && p.waitsForPerson(i) {
			p.tasks[i].tries = 0
			p.sched.Again(i)
		}
	}
}

// reset resets the attempts of an agent's tasks and starts their pending retries at once. The turn
// runner cuts a running turn and drops the agent's session.
func (p *pipeline) reset(agent string) {
	var kept []timer
	for _, t := range p.retries {
		if p.sched.Task(t.task).Agent == agent {
			p.sched.Again(t.task)
		} else {
			kept = append(kept, t)
		}
	}
	p.retries = kept
	for i := range p.tasks {
		if p.sched.Task(i).Agent == agent && p.sched.Status(i) != swarm.Running {
			p.tasks[i].tries = 0
		}
	}
}

// finish ends the run. Each task counts with its state in its last iteration.
func (p *pipeline) finish() (Result, error) {
	var failed, cancelled []string
	left := false // an iteration did not begin
	for i := range p.tasks {
		left = left || p.sched.Iteration(i) < p.sched.Iterations(i)
		switch p.sched.Status(i) {
		case swarm.Failed:
			failed = append(failed, p.sched.Task(i).Name)
		case swarm.Cancelled:
			cancelled = append(cancelled, p.sched.Task(i).Name)
		}
	}
	if p.stop == swarm.OverBudget && len(cancelled) == 0 && !left {
		p.stop = "" // no work was left when the budget ran out
	}
	if len(cancelled) > 0 && p.stop == "" && p.plans[0].Kind == swarm.LineRun {
		// A person cancels a line on purpose, so the other lines decide how the session ended.
		if len(cancelled) == len(p.tasks) {
			p.stop = swarm.CutByCancel
		}
		cancelled = nil
	}
	return p.conclude(swarm.RunEnd{}, failed, cancelled)
}
