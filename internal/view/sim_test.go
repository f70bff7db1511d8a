package view

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A sim runs a plan as the pipeline loop does, with random outcomes of turns, and records the
// events.
type sim struct {
	t       testing.TB
	rnd     *rand.Rand
	sched   *plan.Schedule
	now     time.Time
	events  []swarm.Event
	attempt map[string]int
	running []int             // tasks whose turns run
	blocked []int             // tasks that wait for a person
	due     map[int]time.Time // when tasks are tried again
	pausing time.Time
	grow    []*swarm.Plan
	calm    bool // nothing fails and no person interferes
	paused  bool
	usage   swarm.Usage

	rest func() // called whenever the log says all that the schedule knows
}

func newSim(t testing.TB, seed uint64, plans ...*swarm.Plan) *sim {
	s := &sim{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), sched: plan.New(), now: time.Date(2026, 11, 15, 2, 0, 0, 0, time.UTC), attempt: map[string]int{}, due: map[int]time.Time{}, rest: func() {}}
	s.tell(swarm.Event{Kind: swarm.RunStarted}, swarm.RunStart{ID: "r1", Kind: swarm.PipelineRun, Name: "main", Dir: "/p", Version: "1", Loops: "1", Time: s.now})
	s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{PID: 7, Fence: 1})
	s.add(plans[0])
	s.grow = plans[1:]
	return s
}

func (s *sim) add(p *swarm.Plan) {
	s.tell(swarm.Event{Kind: swarm.PlanAdded}, p)
	if err := s.sched.Add(p); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) tell(e swarm.Event, body any) {
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		e.Data = data
	}
	s.now = s.now.Add(time.Millisecond)
	e.Seq, e.Time = int64(len(s.events)+1), s.now
	s.events = append(s.events, e)
}

// run runs until the plan has ended.
func (s *sim) run() []swarm.Event {
	for {
		s.advance()
		s.rest()
		if s.sched.Done() && len(s.grow) == 0 {
			break
		}
		s.happen()
	}
	s.tell(swarm.Event{Kind: swarm.RunEnded}, swarm.RunEnd{Status: swarm.Completed, Usage: s.usage})
	return s.events
}

func (s *sim) advance() {
	for i, due := range s.due {
		if !s.paused && !s.now.Before(due) {
			s.sched.Again(i)
			delete(s.due, i)
		}
	}
	for {
		step := s.sched.Next()
		switch step.Kind {
		case plan.StepNone:
			return
		case plan.StepRun:
			s.start(step.Task, step.Iteration)
		case plan.StepSkip:
			s.tellEnd(step.Task, swarm.TaskSkipped, step.Reason)
		case plan.StepCancel:
			s.tellEnd(step.Task, swarm.TaskCancelled, step.Reason)
		case plan.StepIterate:
			s.tell(swarm.Event{Kind: swarm.IterationStarted}, swarm.Iteration{Iteration: step.Iteration, Group: step.Group, Of: s.sched.GroupIterations(step.Group)})
		}
	}
}

func (s *sim) start(i, iteration int) {
	t := s.sched.Task(i)
	at := fmt.Sprint(t.Name, "/", iteration)
	if s.attempt[at]++; s.attempt[at] == 1 {
		s.tell(swarm.Event{Kind: swarm.TaskStarted, Task: t.Name, Agent: t.Agent}, swarm.Iteration{Iteration: iteration, Of: s.sched.Iterations(i)})
	}
	turn := swarm.NewTurnID(t.Name, iteration, s.attempt[at])
	starts := 1
	if !s.calm && s.rnd.IntN(20) == 0 {
		starts = 2
	}
	model := "m \"1\""
	if s.calm {
		model = "m-1"
	}
	for k := range starts {
		s.tell(swarm.Event{Kind: swarm.TurnStarted, Task: t.Name, Agent: t.Agent, Turn: turn}, swarm.TurnStart{Iteration: iteration, Attempt: s.attempt[at], Start: k + 1,
			Provider: "sh", Model: model, Prompt: swarm.HashOf([]byte(turn)), Bytes: 100, Spans: []swarm.Span{{From: "ids", End: 40}, {From: "output", Name: "a}b", Start: 40, End: 100}}})
	}
	s.running = append(s.running, i)
}

func (s *sim) happen() {
	chance := s.rnd.IntN(100)
	switch {
	case s.calm && len(s.running) > 0:
		s.endTurn(s.take(&s.running))
	case s.paused && (chance < 30 || len(s.running) == 0):
		s.paused = false
		s.sched.Pause(false)
		s.now = s.now.Add(time.Minute)
		s.tell(swarm.Event{Kind: swarm.RunUnpaused}, nil)
		for i := range s.due {
			s.due[i] = s.due[i].Add(s.now.Sub(s.pausing))
			w := s.sched.Waits(i)[0]
			w.Until = s.due[i]
			s.sched.Wait(i, w)
		}
	case !s.paused && !s.calm && chance < 4:
		s.paused = true
		s.sched.Pause(true)
		s.tell(swarm.Event{Kind: swarm.RunPausing}, nil)
		s.pausing = s.now
		if len(s.running) == 0 {
			s.tell(swarm.Event{Kind: swarm.RunPaused}, nil)
		}
	case len(s.grow) > 0 && (chance < 15 || len(s.running) == 0):
		s.add(s.grow[0])
		s.grow = s.grow[1:]
	case chance < 18:
		s.tell(swarm.Event{Kind: swarm.Notice}, swarm.Reason{Reason: fmt.Sprint("notice ", len(s.events)), Hint: "do \"x\""})
	case chance < 20:
		s.tell(swarm.Event{Kind: swarm.RunInterrupted}, swarm.Reason{Reason: "stopped"})
		s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{PID: 8, Fence: 2})
	case len(s.blocked) > 0 && (chance < 40 || len(s.running) == 0):
		i := s.take(&s.blocked)
		s.tell(swarm.Event{Kind: swarm.Control, To: swarm.ToControl}, swarm.ControlCommand{Command: swarm.CommandRetry, Target: s.sched.Task(i).Name})
		s.sched.Again(i)
	case len(s.due) > 0 && !s.paused && (chance < 60 || len(s.running) == 0):
		s.now = s.now.Add(time.Second)
		s.tell(swarm.Event{Kind: swarm.Tick}, nil)
	case len(s.running) > 0:
		s.endTurn(s.take(&s.running))
	}
}

func (s *sim) take(from *[]int) int {
	k := s.rnd.IntN(len(*from))
	i := (*from)[k]
	*from = append((*from)[:k], (*from)[k+1:]...)
	return i
}

func (s *sim) endTurn(i int) {
	t, iteration := s.sched.Task(i), s.sched.Iteration(i)
	attempt := s.attempt[fmt.Sprint(t.Name, "/", iteration)]
	turn := swarm.NewTurnID(t.Name, iteration, attempt)
	end := swarm.CallEnd{ID: string(turn), Call: "turn " + t.Name, Status: swarm.CallOK, Output: swarm.HashOf([]byte("out " + string(turn))), Bytes: int64(s.rnd.IntN(1000)),
		Usage: swarm.Usage{Calls: 1, InputTokens: int64(s.rnd.IntN(1000)), OutputTokens: 5, USD: 0.25, Estimated: s.rnd.IntN(5) == 0}, Session: "s-" + t.Agent}
	chance := s.rnd.IntN(100)
	if s.calm {
		chance = 100
	}
	if chance < 30 {
		end.Status, end.Kind, end.Reason = swarm.CallFailed, swarm.Exited, "exit status 1\n\"quoted\""
	}
	if chance >= 30 && chance < 35 {
		end.Status, end.Kind, end.Output = swarm.CallCut, swarm.CutToSpeak, ""
	}
	s.usage = s.usage.Plus(end.Usage)
	s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: t.Name, Agent: t.Agent, Turn: turn}, end)
	about := swarm.Event{Task: t.Name, Agent: t.Agent, Turn: turn}
	switch {
	case chance < 10:
		about.Kind = swarm.TaskRetrying
		s.tell(about, swarm.Retry{Iteration: iteration, Attempt: attempt, Reason: end.Reason, After: time.Second})
		s.sched.Wait(i, plan.Wait{For: plan.ForRetry, Until: s.now.Add(time.Second), Reason: end.Reason})
		s.due[i] = s.now.Add(time.Second)
	case chance < 15:
		about.Kind = swarm.TaskBlocked
		s.tell(about, swarm.Reason{Reason: end.Reason})
		s.sched.Wait(i, plan.Wait{For: plan.ForPerson, Reason: end.Reason})
		s.blocked = append(s.blocked, i)
	case chance < 20:
		about.Kind = swarm.TaskRetrying
		s.tell(about, swarm.Retry{Iteration: iteration, Attempt: attempt, Reason: end.Reason})
		s.sched.Wait(i, plan.Wait{For: plan.ForRetry})
		s.sched.Again(i)
	case chance < 30:
		s.sched.Ended(i, swarm.Failed)
		s.tellEnd(i, swarm.TaskFailed, end.Reason)
	case chance < 35:
		s.sched.Wait(i, plan.Wait{For: plan.ForRetry})
		s.sched.Again(i)
	default:
		s.sched.Ended(i, swarm.Completed)
		s.tellEnd(i, swarm.TaskCompleted, "")
	}
}

func (s *sim) tellEnd(i int, kind swarm.EventKind, reason string) {
	t := s.sched.Task(i)
	s.tell(swarm.Event{Kind: kind, Task: t.Name, Agent: t.Agent}, swarm.TaskEnd{Iteration: s.sched.Iteration(i), Reason: reason})
}

// somePlans makes a plan of two groups that depend on each other's tasks, and an addition to it.
func somePlans(seed uint64) []*swarm.Plan {
	rnd := rand.New(rand.NewPCG(seed, 2))
	conditions := []swarm.Condition{swarm.OnAny, swarm.OnAny, swarm.OnSuccess, swarm.OnFailed, swarm.OnAlways}
	var plans []*swarm.Plan
	var names []string
	for p := range 2 {
		pl := &swarm.Plan{Kind: swarm.PipelineRun, Name: "main", MaxParallel: 3, Groups: []swarm.Group{{Iterations: 1 + rnd.IntN(4)}, {Iterations: 1 + rnd.IntN(3)}}}
		for a := range 4 {
			pl.Agents = append(pl.Agents, swarm.Agent{Name: fmt.Sprint("agent", a), Provider: "sh", Model: "m"})
		}
		for k := range 6 {
			group := k / 3
			if seed%2 == 1 { // groups also depend on groups that come after them
				group = 1 - group
			}
			t := swarm.Task{Name: fmt.Sprintf("t%d%d", p, k), Base: fmt.Sprint("base", k%2), Group: group, Agent: fmt.Sprint("agent", rnd.IntN(5)), Concurrency: rnd.IntN(3)}
			for _, on := range names {
				if rnd.IntN(4) == 0 {
					t.DependsOn = append(t.DependsOn, swarm.Dependency{Task: on, Condition: conditions[rnd.IntN(len(conditions))]})
				}
			}
			names = append(names, t.Name)
			pl.Tasks = append(pl.Tasks, t)
		}
		plans = append(plans, pl)
	}
	return plans
}
