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

// A roster is where every agent stands. It is the fold of the run's events, with what only a face wants to know: which tasks are
// open, since when, and what became of an agent's last one. What it costs to ask grows with the open tasks and not with the session.
type roster struct {
	run   *view.Run
	met   int                    // so many of the run's tasks are known
	open  []string               // tasks that have not ended, in the order in which they came
	since map[string]time.Time   // when an open task came
	last  map[string]ended       // an agent's last task that has ended
	spent map[string]swarm.Usage // by agent, of tasks that have ended
	live  map[string]swarm.Usage // by task, of the turn that runs
	typed bool                   // commands can be typed while a line runs
}

// ended is a task that has ended.
type ended struct {
	task   string
	status swarm.Status
	reason string
	took   time.Duration // -1 = no time
	usage  swarm.Usage
}

func newRoster(run *view.Run) *roster {
	r := &roster{run: run, since: map[string]time.Time{}, last: map[string]ended{}, spent: map[string]swarm.Usage{}, live: map[string]swarm.Usage{}}
	r.meet()
	return r
}

// meet gets to know the tasks that are new.
func (r *roster) meet() {
	for ; r.met < r.run.Len(); r.met++ {
		t := r.run.At(r.met)
		r.open, r.since[t.Name] = append(r.open, t.Name), r.run.Time
		if t.Status.Ended() {
			r.end(t)
		}
	}
}

// apply takes the next event, and gives the task that it ended, if it did.
func (r *roster) apply(e *swarm.Event) (over ended, agent string, err error) {
	err = r.run.Apply(e)
	switch e.Kind {
	case swarm.PlanAdded:
		r.meet()
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

func (r *roster) end(t view.Task) {
	i := slices.Index(r.open, t.Name)
	if i < 0 {
		return
	}
	r.open = slices.Delete(r.open, i, i+1)
	delete(r.since, t.Name)
	delete(r.live, t.Name)
	over := ended{task: t.Name, status: t.Status, reason: t.Reason, took: -1, usage: t.Usage}
	if !t.Started.IsZero() && t.Ended.After(t.Started) {
		over.took = t.Ended.Sub(t.Started)
	}
	r.last[t.Agent] = over
	r.spent[t.Agent] = r.spent[t.Agent].Plus(t.Usage)
}

// delta takes what a running turn says of its cost.
func (r *roster) delta(task string, d swarm.Delta) {
	if d.Kind == swarm.DeltaUsage {
		r.live[task] = d.Usage
	}
}

// agent is who does a task. One whose plan has not been told yet is named after him.
func (r *roster) agent(task string) string {
	if t, ok := r.run.Task(task); ok {
		return t.Agent
	}
	if i := strings.LastIndexByte(task, '_'); i > 0 {
		return task[:i]
	}
	return task
}

// through says whether tasks have ended. One that is not known yet has not.
func (r *roster) through(tasks []string) bool {
	for _, name := range tasks {
		if t, ok := r.run.Task(name); !ok || !t.Status.Ended() {
			return false
		}
	}
	return true
}

// usage is what the session has cost, with what runs.
func (r *roster) usage() swarm.Usage {
	u := r.run.Usage
	for _, live := range r.live {
		u = u.Plus(live)
	}
	return u
}

// An agentState is where an agent stands.
type agentState struct {
	Name    string
	Default bool
	Status  swarm.Status
	Words   string    // the status in the words of lines: executing, waiting for @pm, idle
	Task    string    // the one that it is about
	Since   time.Time // when that began
	Queue   int       // how many more tasks it has to do
	Usage   swarm.Usage
	Last    ended
}

// states are where the agents stand, the team's first, in its order.
func (r *roster) states(team Team) []agentState {
	states := make([]agentState, 0, len(team.Agents))
	at := make(map[string]int, len(team.Agents))
	meet := func(name string) *agentState {
		i, ok := at[name]
		if !ok {
			i = len(states)
			at[name] = i
			states = append(states, agentState{Name: name, Default: name == team.Default, Status: swarm.Idle, Words: "idle", Queue: -1, Usage: r.spent[name], Last: r.last[name]})
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
		if st := r.standing(t); a.Task == "" || view.Telling(st) > view.Telling(a.Status) {
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

// standing is what a task says about its agent; nothing runs in a run that nobody drives.
func (r *roster) standing(t view.Task) swarm.Status {
	st := t.AgentStatus()
	if st == swarm.Running && r.run.Status == swarm.Interrupted {
		return swarm.Interrupted
	}
	return st
}

// starting is the word for the moment between being ready and being at it.
const starting = "starting"

// words says where a task stands in the words of lines.
func (r *roster) words(s swarm.Status, t view.Task) string {
	switch s {
	case swarm.Running:
		return "executing"
	case swarm.Waiting:
		return "waiting for " + waitsFor(t)
	case swarm.Blocked:
		i := slices.IndexFunc(r.run.Approvals, func(a view.Approval) bool { return a.Task == t.Name })
		if r.typed && i >= 0 {
			return "blocked: " + term.OneLine(lets(r.run.Approvals[i]))
		}
		return "blocked: " + term.OneLine(t.Waits[0].Reason)
	case swarm.Pending:
		return starting
	}
	return string(s)
}

// Status says where each agent of a team stands, a line each, in the words of the panel.
func Status(run *view.Run, agents []string) string {
	r := newRoster(run)
	r.typed = true
	var b strings.Builder
	for _, a := range r.states(Team{Agents: agents})[:len(agents)] {
		b.WriteString("@" + a.Name + ": " + a.Words + "\n")
	}
	return b.String()
}

// lets says how an agent is let do what it asks for.
func lets(a view.Approval) string {
	return "/approve @" + a.Agent + " lets it " + view.DescribeApproval(a.Approval)
}

// waitsFor names whom a task waits for: agents, each once, and what else there is to wait for.
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

// ending says how a task ended, and what it took.
func (e ended) ending() string {
	text := string(e.status)
	if e.reason != "" {
		text += ": " + term.OneLine(e.reason)
	}
	return text + term.Cost(e.took, e.usage)
}
