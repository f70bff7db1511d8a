package flow

import (
	"cmp"
	"strconv"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// A runState is the state that every loop of a whole run has: how far it has read, the usage,
// whether it is paused, its time limit, and why it ends early. It implements what a person may ask
// of any run, once for all loops: pausing the run or an agent, cancelling, and the end. It also
// decides about retries.
//
// The loop's goroutine owns it. Every decision depends only on the records read and their times, so
// a resumed loop decides the same.
type runState struct {
	fx      Fx
	machine machine
	seen    int64     // sequence number of the last record read
	now     time.Time // time of the last record read
	usage   swarm.Usage
	pausing time.Time       // since when no turn starts; zero = turns start
	stalled *swarm.Message  // why the run ends by itself
	paused  bool            // no turn starts and none runs
	stop    swarm.ErrorKind // why the run ends early, or ""
	denial  string          // why a person has denied its plan, or ""
	told    map[string]bool // paused agents for which the notice that the run waits for them was given
	agents  bool            // facts about an agent name it as their task, too

	wallEnd   time.Time     // end of the run's wall time, without the time for the answer; zero = no limit
	answering time.Duration // the time that is held back for the answer of a swarm
	wallStops time.Time     // since when the wall time stands still: a person has paused the run, not the run itself
}

// A machine is the model that a loop drives: the schedule of a pipeline, or a team.
type machine interface {
	Apply(Fact)                               // applies a fact that was read or told
	Running() int                             // number of turns that keep the run from being paused
	Paused(agent string) (paused, known bool) // whether an agent is paused, and whether it exists
	Stuck() []string                          // paused agents that hold up the run
	Reached() plan.Limits                     // limits of providers that are reached
	HeldBack(target string) []string          // providers with a limit that a task or an agent uses; "" = all of them
}

// A loop is the part in which loops differ.
type loop interface {
	advance() error          // takes all steps that are possible now
	over() bool              // says whether the run has ended
	finish() (Result, error) // tells how it ended
	due() time.Time          // when the next timer fires; zero = never
	handle(Signal) error     // acts on a record that its machine has applied
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
			err = l.handle(s)
		}
		if err != nil {
			return Result{}, err
		}
	}
}

// plan reads a stored plan. The plan was checked when it was stored, so it is missing only if
// another program wrote the log. Then refused says why.
func (r *runState) plan(id, ref string) (p *swarm.Plan, refused, err error) {
	got, err := r.fx.Do(Call{ID: id, Kind: KindPlan, Ref: ref})
	if err == nil && got.Plan == nil {
		refused = swarm.Errorf(swarm.BadInput, "no plan %s: %s", ref, got.Reason)
	}
	return got.Plan, refused, err
}

// begin applies the settings of the first plan to the run.
func (r *runState) begin(p *swarm.Plan) {
	r.now = r.fx.Now()
	if p.Budget.Wall > 0 {
		if p.Swarm != nil {
			r.answering = min(p.Budget.Wall/4, maxAnswering)
		}
		r.wallEnd = r.now.Add(p.Budget.Wall - r.answering)
	}
}

// maxAnswering is the most time that is held back for an answer. A slow model needs about a minute
// for one.
const maxAnswering = 2 * time.Minute

// refuse ends a run whose first plan cannot be used.
func (r *runState) refuse(why error) (Result, error) {
	r.stop = swarm.BadInput
	return r.end(swarm.RunEnd{Status: swarm.Failed, Exit: swarm.ExitBadInput, Reason: why.Error()})
}

// next waits for the next record and applies it to the machine. While no process drove the run, its
// timers did not run.
func (r *runState) next(due time.Time) (Signal, error) {
	s, err := r.fx.Next(r.until(earlier(due, r.machine.Reached().Due())))
	if err != nil {
		return s, err
	}
	r.seen, s.Time = max(r.seen, s.Seq), r.fx.Now()
	if end, ok := s.Body.(swarm.CallEnd); ok { // the loop adds the usage when it decides about the end
		r.usage = r.usage.Plus(end.Cut)
	}
	if s.Kind == swarm.RunOwned && r.wallStops.IsZero() {
		r.delay(s.Undriven(r.now))
	}
	r.machine.Apply(s.Fact)
	r.now = s.Time
	return s, nil
}

// tell appends a fact and applies it to the machine.
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

// obey obeys a command that every run understands, and says whether it was one.
func (r *runState) obey(w swarm.ControlCommand) (done bool, err error) {
	switch on := w.Command == swarm.CommandPause; {
	case (on || w.Command == swarm.CommandResume) && w.Target != "":
		return true, r.pauseAgent(w.Target, on)
	case on || w.Command == swarm.CommandResume:
		if on && r.wallStops.IsZero() {
			r.wallStops = r.fx.Now()
		}
		return true, r.pause(on)
	case w.Command == swarm.CommandRetry: // a pipeline has more to retry
		return false, r.endLimits(r.machine.HeldBack(w.Target), true)
	case w.Command == swarm.CommandCancel && w.Target == "":
		r.stopFor(swarm.CutByCancel)
		r.pausing, r.wallStops = time.Time{}, time.Time{}
		return true, nil
	}
	return false, nil
}

// pause pauses or resumes the run. The timers stop meanwhile: a retry due in ten seconds is due ten
// seconds after the run is resumed.
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

// pauseAgent stops an agent from getting turns, or lets it get them again.
func (r *runState) pauseAgent(agent string, on bool) error {
	if paused, known := r.machine.Paused(agent); !known || paused == on {
		return nil
	}
	kind := swarm.AgentResumed
	if delete(r.told, agent); on {
		kind = swarm.AgentPaused
	}
	f := Fact{Kind: kind, Key: string(kind) + r.keySuffix(agent), Agent: agent}
	if r.agents {
		f.Task = agent
	}
	return r.tell(f)
}

// keySuffix ends the key of a fact about one agent that the last record read causes. A resumed loop
// makes the same key.
func (r *runState) keySuffix(agent string) string {
	return ":" + agent + ":" + strconv.FormatInt(r.seen, 10)
}

// settle tells, once all steps are taken, that the run is paused, or that it waits for paused
// agents.
func (r *runState) settle() error {
	for _, agent := range r.machine.Stuck() {
		if r.told[agent] {
			continue
		}
		if r.told == nil {
			r.told = map[string]bool{}
		}
		r.told[agent] = true
		if err := r.tell(Fact{Kind: swarm.Notice, Key: "held" + r.keySuffix(agent), Agent: agent, Body: swarm.Reason{Message: swarm.NewMessage(swarm.WaitsForPaused, agent)}}); err != nil {
			return err
		}
	}
	if r.pausing.IsZero() || r.machine.Running() > 0 {
		if r.paused && !r.pausing.IsZero() { // the run was paused, but an agent that waited in its turn goes on
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

// until is the time until due or the end of the wall time, whichever is earlier; 0 = neither is
// set, or the timers stand still.
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

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// checkWall ends the run when its wall time is over.
func (r *runState) checkWall() error {
	if r.stop != "" || !r.wallStops.IsZero() || r.wallEnd.IsZero() || r.fx.Now().Before(r.wallEnd) {
		return nil
	}
	if r.answering > 0 {
		return r.outOfBudget("the run's wall time is over, except for what is held back for the answer")
	}
	return r.outOfBudget("the run's wall time is over")
}

// timeLeft is how long a turn may take that begins now: as long as its agent may, and until the wall
// time is over. 0 = as long as it likes.
func (r *runState) timeLeft(agents time.Duration, answers bool) time.Duration {
	if r.wallEnd.IsZero() || r.answering == 0 && !answers {
		return agents
	}
	left := r.wallEnd.Sub(r.fx.Now())
	if answers {
		left += r.answering
	}
	if agents > 0 {
		left = min(left, agents)
	}
	return max(left, time.Millisecond)
}

// timeUp says whether the time for the answer of a swarm is over, too.
func (r *runState) timeUp() bool {
	return !r.wallEnd.IsZero() && !r.fx.Now().Before(r.wallEnd.Add(r.answering))
}

// holdNoTime lets the run use the time that was held back for the answer, because only that is left
// to do.
func (r *runState) holdNoTime() {
	if r.stop == "" && r.answering > 0 {
		r.wallEnd, r.answering = r.wallEnd.Add(r.answering), 0
	}
}

// outOfBudget ends the run because its budget is spent.
func (r *runState) outOfBudget(reason string) error {
	if r.stop != "" {
		return nil
	}
	r.stop = swarm.OverBudget
	return r.tell(Fact{Kind: swarm.BudgetSpent, Key: string(swarm.BudgetSpent), Body: swarm.Reason{Reason: reason}})
}

// stopFor records why the run ends early. The first reason counts.
func (r *runState) stopFor(kind swarm.ErrorKind) {
	if r.stop == "" {
		r.stop = kind
	}
}

// A verdict is the loop's decision about the end of a turn.
type verdict int

const (
	didWell      verdict = iota
	wasCancelled         // for good
	wasCut               // a person cut it: it runs again, and the attempt does not count
	hadNoBudget          // the run ends
	wentAstray           // the turn does not match the call: the run ends
	triesAgain           // it is retried after a delay
	hasFailed            // it has no attempt left
)

// judge decides about the end of a turn. tries is the number of failed attempts, this one included.
// retries is how many attempts may follow the first. A turn whose result failed its checks is
// retried at once, since waiting does not help. Other failures are retried after 1 s, 2 s, 4 s and
// so on.
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
	case end.Kind == swarm.Mismatch: // the log does not belong to this call, so no later turn can be trusted
		r.stopFor(swarm.Mismatch)
		return wentAstray, 0, nil
	case tries > retries, end.Kind == swarm.OverShare, end.Limit != nil && !end.CarriedOver: // before the limit resets, no retry can succeed
		return hasFailed, 0, nil
	}
	if end.Kind != swarm.Unexpected && !end.CarriedOver {
		after = time.Second << min(tries-1, 6)
	}
	return triesAgain, after, nil
}

// tellRetry tells that a turn is retried.
func (r *runState) tellRetry(agent, task string, iteration, attempt int, end Result, after time.Duration) error {
	return r.tell(Fact{Kind: swarm.TaskRetrying, Key: "retrying:" + end.ID, Task: task, Agent: agent, Turn: swarm.TurnID(end.ID),
		Body: swarm.Retry{Iteration: iteration, Attempt: attempt, Reason: end.Reason, After: after}})
}

// tellRoom tells that a turn waits for room in the budget.
func (r *runState) tellRoom(agent, task string, iteration, attempt int, end Result) error {
	return r.tell(Fact{Kind: swarm.TaskRetrying, Key: "retrying:" + end.ID, Task: task, Agent: agent, Turn: swarm.TurnID(end.ID),
		Body: swarm.Retry{Iteration: iteration, Attempt: attempt, Reason: end.Reason, Room: true}})
}

// conclude ends the run. Its status follows from the tasks or agents that failed or were cancelled.
func (r *runState) conclude(end swarm.RunEnd, failed, cancelled []string) (Result, error) {
	switch {
	case r.stop == swarm.OverBudget:
		end.Status, end.Exit, end.Reason = swarm.Failed, swarm.ExitBudget, "the budget is spent"
	case r.stop == swarm.CutByCancel:
		end.Status, end.Exit, end.Reason = swarm.Cancelled, swarm.ExitFailed, cmp.Or(r.denial, "the run was cancelled")
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

// end tells the run's end and returns the loop's result.
func (r *runState) end(end swarm.RunEnd) (Result, error) {
	end.Usage = r.usage
	res := Result{CallEnd: swarm.CallEnd{Status: swarm.CallOK, Usage: r.usage}}
	if end.Exit != swarm.ExitDone {
		res.Status, res.Kind, res.Reason = swarm.CallFailed, r.stop, end.Reason
	}
	return res, r.tell(Fact{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Body: end})
}

// agentOf returns the first part of a turn's id: the task, or the agent of a team.
func agentOf(turn string) string {
	for i := range turn {
		if turn[i] == '/' {
			return turn[:i]
		}
	}
	return turn
}
