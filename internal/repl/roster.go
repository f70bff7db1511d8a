package repl

import (
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A roster is the state of every agent. It is the fold of the run's events, with what only a face
// needs: the open tasks, since when, and the end of an agent's last task. The cost of asking grows
// with the open tasks and not with the session.
type roster struct {
	run     *view.Run
	known   int                    // number of the run's tasks that are known
	open    []string               // tasks that have not ended, in the order in which they came
	since   map[string]time.Time   // when an open task came
	last    map[string]ended       // an agent's last ended task
	spent   map[string]swarm.Usage // by agent, of ended tasks
	live    map[string]swarm.Usage // by task, of the running turn
	canType bool                   // commands can be typed while a line runs
}

// An ended is a task that has ended.
type ended struct {
	task   string
	status swarm.Status
	reason string
	took   time.Duration // -1 = unknown
	usage  swarm.Usage
}

func newRoster(run *view.Run) *roster {
	r := &roster{
		run:   run,
		since: map[string]time.Time{},
		last:  map[string]ended{},
		spent: map[string]swarm.Usage{},
		live:  map[string]swarm.Usage{},
	}
	r.addTasks()
	return r
}

// addTasks adds the tasks that are new.
func (r *roster) addTasks() {
	for ; r.known < r.run.Len(); r.known++ {
		t := r.run.At(r.known)
		r.open, r.since[t.Name] = append(r.open, t.Name), r.run.Time
		if t.Status.Ended() {
			r.end(t)
		}
	}
}

// apply takes the next event, and returns the task that it ended, if any.
func (r *roster) apply(e *swarm.Event) (over ended, agent string, err error) {
	err = r.run.Apply(e)
	switch e.Kind {
	case swarm.PlanAdded:
		r.addTasks()
	case swarm.TurnStarted, swarm.TurnEnded:
		delete(r.live, e.Task)
	case swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		if t, ok := r.run.Task(e.Task); ok && t.Status.Ended() {
			r.end(t)
			return r.last[t.Agent], t.Agent, err
		}
	}
	return ended{}, "", err
}

// end moves a task from the open ones to its agent's last one.
func (r *roster) end(t view.Task) {
	i := slices.Index(r.open, t.Name)
	if i < 0 {
		return
	}
	r.open = slices.Delete(r.open, i, i+1)
	delete(r.since, t.Name)
	delete(r.live, t.Name)
	over := ended{task: t.Name, status: t.Status, reason: t.EndReason(), took: -1, usage: t.Usage}
	if !t.Started.IsZero() && t.Ended.After(t.Started) {
		over.took = t.Ended.Sub(t.Started)
	}
	r.last[t.Agent] = over
	r.spent[t.Agent] = r.spent[t.Agent].Plus(t.Usage)
}

// delta takes the usage of a running turn.
func (r *roster) delta(task string, d swarm.Delta) {
	if d.Kind == swarm.DeltaUsage {
		r.live[task] = d.Usage
	}
}

// agent returns the agent of a task. A task whose plan is not known yet is named after its agent.
func (r *roster) agent(task string) string {
	if t, ok := r.run.Task(task); ok {
		return t.Agent
	}
	if i := strings.LastIndexByte(task, '_'); i > 0 {
		return task[:i]
	}
	return task
}

// haveEnded says whether all tasks have ended. A task that is not known yet has not.
func (r *roster) haveEnded(tasks []string) bool {
	for _, name := range tasks {
		if t, ok := r.run.Task(name); !ok || !t.Status.Ended() {
			return false
		}
	}
	return true
}

// usage returns the cost of the session, with its running turns.
func (r *roster) usage() swarm.Usage {
	u := r.run.Usage
	for _, live := range r.live {
		u = u.Plus(live)
	}
	return u
}

// An agentState is the state of an agent.
type agentState struct {
	Name    string
	Default bool
	Status  swarm.Status
	Words   string    // the status in words: executing, waiting for @pm, idle
	Task    string    // the task that the status is about
	Since   time.Time // when that began
	Queue   int       // number of its other open tasks
	Usage   swarm.Usage
	Last    ended
}

// states returns the states of agents: the team's first, in its order.
func (r *roster) states(team Team) []agentState {
	states := make([]agentState, 0, len(team.Agents))
	at := make(map[string]int, len(team.Agents))
	meet := func(name string) *agentState {
		i, ok := at[name]
		if !ok {
			i = len(states)
			at[name] = i
			states = append(
				states,
				agentState{
					Name:    name,
					Default: name == team.Default,
					Status:  swarm.Idle,
					Words:   "idle",
					Queue:   -1,
					Usage:   r.spent[name],
					Last:    r.last[name],
				},
			)
		}
		return &states[i]
	}
	for _, name := range team.Agents {
		meet(name)
	}
	for _, name := range r.open {
		t, _ := r.run.Task(name)
		a := meet(t.Agent)
		a.Queue++
		a.Usage = a.Usage.Plus(t.Usage).Plus(r.live[name])
		if st := r.taskStatus(t); a.Task == "" || view.Telling(st) > view.Telling(a.Status) {
			a.Status, a.Words, a.Task, a.Since = st, r.words(st, t), name, r.since[name]
			if st == swarm.Running {
				a.Since = t.Started
			}
		}
	}
	for i := range states {
		states[i].Queue = max(0, states[i].Queue)
	}
	return states
}

// taskStatus returns the status that a task gives its agent. Nothing runs in a run without an
// owner.
func (r *roster) taskStatus(t view.Task) swarm.Status {
	st := t.AgentStatus()
	if st == swarm.Running && r.run.Status == swarm.Interrupted {
		return swarm.Interrupted
	}
	return st
}

// starting is the word for the moment between ready and running.
const starting = "starting"

// words describes a task's status.
func (r *roster) words(s swarm.Status, t view.Task) string {
	switch s {
	case swarm.Running:
		return "executing"
	case swarm.Waiting:
		return "waiting for " + waitsFor(t)
	case swarm.Blocked:
		i := slices.IndexFunc(r.run.Approvals, func(a view.Approval) bool { return a.Task == t.Name })
		if r.canType && i >= 0 {
			return "blocked: " + term.OneLine(approvalHint(r.run.Approvals[i]))
		}
		return "blocked: " + term.OneLine(t.Waits[0].Reason)
	case swarm.Pending:
		return starting
	}
	return string(s)
}

// Status describes the state of each agent of a team, one line each, in the words of the panel.
func Status(run *view.Run, agents []string) string {
	r := newRoster(run)
	r.canType = true
	var b strings.Builder
	for _, a := range r.states(Team{Agents: agents})[:len(agents)] {
		b.WriteString("@" + a.Name + ": " + a.Words + "\n")
	}
	return b.String()
}

// questionName returns what a person types to answer a question: its agent, if the agent asks nothing
// else.
func (r *roster) questionName(q view.Approval) string {
	for _, other := range r.run.Approvals {
		if other.Agent == q.Agent && other.ID != q.ID {
			return q.ID
		}
	}
	return "@" + q.Agent
}

// approvalHint says how to allow an agent what it asks for.
func approvalHint(a view.Approval) string {
	return "/approve @" + a.Agent + " lets it " + view.DescribeApproval(a.Approval)
}

// waitsFor names what a task waits for: agents, each once, and other things.
func waitsFor(t view.Task) string {
	var names []string
	for _, w := range t.Waits {
		name := term.OneLine(w.String())
		if w.For == plan.ForDependency && w.Agent != "" {
			name = "@" + w.Agent
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// describe says how a task ended, and what it took.
func (e ended) describe() string {
	text := string(e.status)
	if e.reason != "" {
		text += ": " + term.OneLine(e.reason)
	}
	return text + term.Cost(e.took, e.usage)
}
