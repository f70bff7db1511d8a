package flow

import (
	"strconv"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// A runState is what every loop that is a whole run has: how far it has read, what was used, whether it is
// paused, when its time is over, and why it ends early. What can be wanted of any run, to pause it or one of its
// agents, to cancel it, to try a turn again and to end, is done here, once for all loops.
type runState struct {
	fx      Fx
	machine machine
	seen    int64     // the last record read,
	now     time.Time // and its time
	usage   swarm.Usage
	pausing time.Time       // since when no turn starts; zero = they do
	stalled *swarm.Message  // why the run ends by itself
	paused  bool            // and none runs
	stop    swarm.ErrorKind // why the run ends early, or ""
	told    map[string]bool // by agent that is paused: it was told that the run waits for it
	agents  bool            // what is told of an agent stands where that of a task does

	wallEnd   time.Time // when the run's time is over; zero = never
	wallStops time.Time // since when that clock stands: while a person has the run paused, but not while it has paused by itself
}

// A machine is what a loop drives: the schedule of a pipeline, or a team.
type machine interface {
	Apply(Fact)                               // changes it by what was read, or told
	Running() int                             // turns that keep the run from being paused
	Paused(agent string) (paused, known bool) // whether an agent is paused, and whether it could be
	Stuck() []string                          // agents for which nothing goes on because they are paused
}

// A loop is what is different about loops.
type loop interface {
	advance() error          // does what can be done now
	over() bool              // says whether the run is through
	finish() (Result, error) // tells how it ended
	due() time.Time          // when the clock has something to do; zero = never
	take(Signal) error       // acts on a record that its machine knows of already
}

// drive runs a loop to its end.
func (r *runState) drive(l loop) (Result, error) {
	for {
		err := l.advance()
		if err == nil {
			err = r.settle()
		}
		if err != nil {
			return Result{}, err
		}
		if l.over() {
			return l.finish()
		}
		s, err := r.next(l.due())
		if err == nil {
			err = l.take(s)
		}
		if err != nil {
			return Result{}, err
		}
	}
}

// plan reads a stored plan. It was checked where it entered, so it is only missing when the log was written by
// another program; refused then says why.
func (r *runState) plan(id, ref string) (p *swarm.Plan, refused, err error) {
	got, err := r.fx.Do(Call{ID: id, Kind: KindPlan, Ref: ref})
	if err == nil && got.Plan == nil {
		refused = swarm.Errorf(swarm.BadInput, "no plan %s: %s", ref, got.Reason)
	}
	return got.Plan, refused, err
}

// begin takes over what the first plan says of the whole run.
func (r *runState) begin(p *swarm.Plan) {
	r.now = r.fx.Now()
	if p.Budget.Wall > 0 {
		r.wallEnd = r.now.Add(p.Budget.Wall)
	}
}

// refuse ends a run whose first plan cannot be used.
func (r *runState) refuse(why error) (Result, error) {
	r.stop = swarm.BadInput
	return r.end(swarm.RunEnd{Status: swarm.Failed, Exit: swarm.ExitBadInput, Reason: why.Error()})
}

// next waits for the next record, and has the machine know of it. While nobody drove the run its clocks stood.
func (r *runState) next(due time.Time) (Signal, error) {
	s, err := r.fx.Next(r.until(due))
	if err != nil {
		return s, err
	}
	r.seen, s.Time = max(r.seen, s.Seq), r.fx.Now()
	if s.Kind == swarm.RunOwned && r.wallStops.IsZero() {
		r.delay(s.Time.Sub(r.now))
	}
	r.machine.Apply(s.Fact)
	r.now = s.Time
	return s, nil
}

// tell writes a fact down, and has the machine know of it.
func (r *runState) tell(f Fact) error {
	f.Time = r.fx.Now()
	r.machine.Apply(f)
	return r.fx.Tell(f)
}

func (r *runState) delay(by time.Duration) {
	if !r.wallEnd.IsZero() {
		r.wallEnd = r.wallEnd.Add(by)
	}
}

// obey does what a person wants of any run, and says whether that was all.
func (r *runState) obey(w swarm.ControlCommand) (done bool, err error) {
	switch on := w.Command == swarm.CommandPause; {
	case (on || w.Command == swarm.CommandResume) && w.Target != "":
		return true, r.pauseAgent(w.Target, on)
	case on || w.Command == swarm.CommandResume:
		if on && r.wallStops.IsZero() {
			r.wallStops = r.fx.Now()
		}
		return true, r.pause(on)
	case w.Command == swarm.CommandCancel && w.Target == "":
		r.stopFor(swarm.CutByCancel)
		r.pausing, r.wallStops = time.Time{}, time.Time{}
		return true, nil
	}
	return false, nil
}

// pause stops the clocks, or lets them go on: what was due in ten seconds is due ten seconds after the run goes on.
func (r *runState) pause(on bool) error {
	at := strconv.FormatInt(r.seen, 10)
	switch {
	case on && r.pausing.IsZero():
		r.pausing, r.paused = r.fx.Now(), false
		return r.tell(Fact{Kind: swarm.RunPausing, Key: "run_pausing:" + at})
	case !on && !r.pausing.IsZero():
		if !r.wallStops.IsZero() {
			r.delay(r.fx.Now().Sub(r.wallStops))
			r.wallStops = time.Time{}
		}
		err := r.tell(Fact{Kind: swarm.RunUnpaused, Key: "run_unpaused:" + at})
		r.pausing, r.paused = time.Time{}, false
		return err
	}
	return nil
}

// pauseAgent has an agent get no turn, or get turns again.
func (r *runState) pauseAgent(agent string, on bool) error {
	if paused, known := r.machine.Paused(agent); !known || paused == on {
		return nil
	}
	kind := swarm.AgentResumed
	if delete(r.told, agent); on {
		kind = swarm.AgentPaused
	}
	f := Fact{Kind: kind, Key: string(kind) + r.single(agent), Agent: agent}
	if r.agents {
		f.Task = agent
	}
	return r.tell(f)
}

// single ends the key of what is told of one agent because of the record that was read last.
func (r *runState) single(agent string) string {
	return ":" + agent + ":" + strconv.FormatInt(r.seen, 10)
}

// settle tells, when all is done that can be, that the run is paused or waits for agents that are.
func (r *runState) settle() error {
	for _, agent := range r.machine.Stuck() {
		if r.told[agent] {
			continue
		}
		if r.told == nil {
			r.told = map[string]bool{}
		}
		r.told[agent] = true
		if err := r.tell(Fact{Kind: swarm.Notice, Key: "held" + r.single(agent), Agent: agent, Body: swarm.Reason{Message: swarm.NewMessage(swarm.WaitsForPaused, agent)}}); err != nil {
			return err
		}
	}
	if r.pausing.IsZero() || r.machine.Running() > 0 {
		if r.paused && !r.pausing.IsZero() { // it was, but an agent that waited in its turn goes on
			r.paused = false
			return r.tell(Fact{Kind: swarm.RunPausing, Key: "run_pausing:" + strconv.FormatInt(r.seen, 10)})
		}
		return nil
	}
	if r.paused {
		return nil
	}
	r.paused = true
	return r.tell(Fact{Kind: swarm.RunPaused, Key: "run_paused:" + strconv.FormatInt(r.seen, 10)})
}

// until is how long it is to the earliest of the time that is given and the end of the run's own; 0 = there is
// none, or the clocks stand.
func (r *runState) until(due time.Time) time.Duration {
	if !r.pausing.IsZero() {
		due = time.Time{}
	}
	if r.stop == "" && r.wallStops.IsZero() {
		due = earlier(due, r.wallEnd)
	}
	if due.IsZero() {
		return 0
	}
	return max(time.Millisecond, due.Sub(r.fx.Now()))
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// checkWall ends the run when its time is over.
func (r *runState) checkWall() error {
	if r.stop != "" || !r.wallStops.IsZero() || r.wallEnd.IsZero() || r.fx.Now().Before(r.wallEnd) {
		return nil
	}
	return r.outOfBudget("the run's wall time is over")
}

// outOfBudget ends the run because its budget is spent.
func (r *runState) outOfBudget(reason string) error {
	if r.stop != "" {
		return nil
	}
	r.stop = swarm.OverBudget
	return r.tell(Fact{Kind: swarm.BudgetSpent, Key: string(swarm.BudgetSpent), Body: swarm.Reason{Reason: reason}})
}

// stopFor notes why the run ends early. The first reason counts.
func (r *runState) stopFor(kind swarm.ErrorKind) {
	if r.stop == "" {
		r.stop = kind
	}
}

// A verdict is what is to be made of a turn's end.
type verdict int

const (
	didWell      verdict = iota
	wasCancelled         // for good
	wasCut               // a person wanted it: it is tried again, and no attempt was lost
	hadNoBudget          // the run ends
	wentAstray           // it was not the turn that was asked for: the run ends
	triesAgain           // after a time
	hasFailed            // it has no attempt left
)

// judge decides what is to be made of a turn's end, and when it is tried again. tries is how many attempts have
// failed, with this one; retries is how many more than the first there may be. At once it is tried again when its
// work was looked at and found wanting, else after 1 s, 2 s, 4 s …
func (r *runState) judge(end Result, tries, retries int) (v verdict, after time.Duration, err error) {
	r.usage = r.usage.Plus(end.Usage)
	switch {
	case end.Status == swarm.CallOK:
		return didWell, 0, nil
	case end.Kind == swarm.CutByCancel:
		return wasCancelled, 0, nil
	case end.Kind == swarm.CutToSpeak, end.Kind == swarm.CutToReset:
		return wasCut, 0, nil
	case end.Kind == swarm.OverBudget:
		return hadNoBudget, 0, r.outOfBudget(end.Reason)
	case end.Kind == swarm.Mismatch: // what follows from it shows nothing
		r.stopFor(swarm.Mismatch)
		return wentAstray, 0, nil
	case tries > retries:
		return hasFailed, 0, nil
	}
	if end.Kind != swarm.Unexpected && !end.CarriedOver {
		after = time.Second << min(tries-1, 6)
	}
	return triesAgain, after, nil
}

// tellRetry tells that a turn is tried again.
func (r *runState) tellRetry(agent, task string, iteration, attempt int, end Result, after time.Duration) error {
	return r.tell(Fact{Kind: swarm.TaskRetrying, Key: "retrying:" + end.ID, Task: task, Agent: agent, Turn: swarm.TurnID(end.ID),
		Body: swarm.Retry{Iteration: iteration, Attempt: attempt, Reason: end.Reason, After: after}})
}

// conclude tells how the run ended. What counts are the tasks, or agents, that have failed or were cancelled.
func (r *runState) conclude(end swarm.RunEnd, failed, cancelled []string) (Result, error) {
	switch {
	case r.stop == swarm.OverBudget:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitBudget, "the budget is spent"
	case r.stop == swarm.CutByCancel:
		end.Status, end.Exit, end.Reason = swarm.Cancelled, swarm.ExitFailed, "the run was cancelled"
	case r.stop == swarm.Stalled:
		end.Status, end.Exit, end.Why = swarm.Failed, swarm.ExitFailed, r.stalled
	case len(failed) > 0:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitFailed, excerpt.List(failed, 5)+" failed"
	case len(cancelled) > 0:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitFailed, excerpt.List(cancelled, 5)+" cancelled"
	default:
		end.Status, end.Exit = swarm.Completed, swarm.ExitDone
	}
	return r.end(end)
}

// end tells the run's end, and is the loop's answer.
func (r *runState) end(end swarm.RunEnd) (Result, error) {
	end.Usage = r.usage
	res := Result{CallEnd: swarm.CallEnd{Status: swarm.CallOK, Usage: r.usage}}
	if end.Exit != swarm.ExitDone {
		res.Status, res.Kind, res.Reason = swarm.CallFailed, r.stop, end.Reason
	}
	return res, r.tell(Fact{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Body: end})
}

// agentOf is the task, or the agent of a team, that a turn's id begins with.
func agentOf(turn string) string {
	for i := range turn {
		if turn[i] == '/' {
			return turn[:i]
		}
	}
	return turn
}
