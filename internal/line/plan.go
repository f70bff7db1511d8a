package line

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"swarm"
	"swarm/internal/prompt"
)

// A Standing is the state of a session when a line is entered.
type Standing struct {
	Agents map[string]AgentStanding // by name; missing agents have done nothing yet
	Open   []OpenTask               // tasks that have not ended, in the order of entry
}

// An AgentStanding is the state of one agent in a session.
type AgentStanding struct {
	Tasks  int  // number of tasks it was given, without refused lines
	Good   bool // one of them completed, so there is an output to refer to
	Failed bool // the newest ended task did not complete
}

// An OpenTask is a task that has not ended, with its dependencies.
type OpenTask struct {
	Name, Agent string
	After       []string // tasks; ended ones don't matter
	Awaits      []string // agents whose first output it needs
}

// PlanOptions are the parts of a plan that a line does not say.
type PlanOptions struct {
	Agents      map[string]swarm.Agent // by name
	Providers   []swarm.ProviderSpec   // at least those that the agents use
	Models      map[string]string      // by agent: a model or tier for stages without --model
	WaitTimeout time.Duration          // timeout for waiting on references; 0 = none
}

// A Fragment is the addition of one line to a session's plan.
type Fragment struct {
	Plan    swarm.Plan
	Bodies  [][]byte // texts that the plan names by hash
	Tasks   []string // names of the plan's tasks, in order
	Notices []string // what a person should know before the tasks run
}

// TaskName returns the name of the n-th task of an agent in a session. Agents' names hold no _, so
// task names are unique.
func TaskName(agent string, n int) string { return agent + "_" + strconv.Itoa(n) }

// Plan makes the tasks of a line. It is deterministic: the same line and the same standing give the
// same tasks. Its error is an *Error, and then no part of the line runs.
func (l *Line) Plan(s Standing, o PlanOptions) (*Fragment, error) {
	p := planner{line: l, standing: s, options: o, given: map[string]int{}, earlier: map[string][]string{}}
	p.out.Plan = swarm.Plan{Kind: swarm.LineRun, Tasks: []swarm.Task{}, Groups: []swarm.Group{}, Agents: []swarm.Agent{}}
	for i := range l.Stages {
		if err := p.stage(&l.Stages[i]); err != nil {
			return nil, err
		}
	}
	if err := p.checkCycle(); err != nil {
		return nil, err
	}
	return &p.out, nil
}

// A planner builds a fragment, stage by stage.
type planner struct {
	line     *Line
	standing Standing
	options  PlanOptions
	out      Fragment
	stages   []*Stage // by task: the stage that it comes from

	given   map[string]int      // by agent: its tasks in this line
	earlier map[string][]string // by agent: its tasks in earlier stages
	before  []task              // tasks of the previous stage
	flowing []task              // tasks whose outputs the next stage gets
}

type task struct{ name, agent string }

// stage adds the tasks of one stage: one for each agent, with the same prompt and the same
// dependencies.
func (p *planner) stage(s *Stage) error {
	var w waits
	for _, t := range slices.Concat(p.before, p.flowing) {
		if t.agent == Notify {
			w.after(t.name, swarm.OnAlways) // a failed notification stops no task
		} else {
			w.after(t.name, swarm.OnNeeded)
		}
	}
	if err := p.addReferences(s, &w); err != nil {
		return err
	}
	prompt := p.prompt(s)
	tasks := make([]task, len(s.Agents))
	for i, n := range s.Agents {
		if err := p.addAgent(n); err != nil {
			return err
		}
		p.given[n.Name]++
		tasks[i] = task{TaskName(n.Name, p.standing.Agents[n.Name].Tasks+p.given[n.Name]), n.Name}
		made := swarm.Task{
			Name: tasks[i].name, Agent: n.Name, Prompt: prompt,
			DependsOn: slices.Clone(w.tasks), Awaits: slices.Clone(w.agents),
		}
		made.Model, made.Tier = p.model(n.Name, s)
		if w.outside {
			made.WaitTimeout = p.options.WaitTimeout
		}
		p.add(made, s)
	}
	p.before = tasks
	isNotify := func(t task) bool { return t.agent == Notify }
	if working := slices.DeleteFunc(slices.Clone(tasks), isNotify); len(working) > 0 {
		p.flowing = working // a stage of @notify only passes the earlier outputs on
	}
	for _, t := range tasks {
		p.earlier[t.agent] = append(p.earlier[t.agent], t.name)
	}
	return nil
}

// add adds a task. Each task is its own group, so that a dependent task does not wait for the rest
// of the line.
func (p *planner) add(t swarm.Task, s *Stage) {
	t.Group = len(p.out.Plan.Groups)
	p.out.Plan.Groups = append(p.out.Plan.Groups, swarm.Group{Iterations: 1})
	p.out.Plan.Tasks = append(p.out.Plan.Tasks, t)
	p.out.Tasks = append(p.out.Tasks, t.Name)
	p.stages = append(p.stages, s)
}

// addAgent puts an agent and its provider into the plan.
func (p *planner) addAgent(n Name) error {
	plan := &p.out.Plan
	if slices.ContainsFunc(plan.Agents, func(a swarm.Agent) bool { return a.Name == n.Name }) {
		return nil
	}
	a, ok := p.options.Agents[n.Name]
	if !ok {
		return errorAt(n.Start, n.End, "@%s has no provider", n.Name).hint("give it a provider in swarm.yaml")
	}
	plan.Agents = append(plan.Agents, a)
	for _, spec := range p.options.Providers {
		if a.Uses(spec.Name) && !slices.ContainsFunc(plan.Providers, func(s swarm.ProviderSpec) bool { return s.Name == spec.Name }) {
			plan.Providers = append(plan.Providers, spec)
		}
	}
	return nil
}

// model returns the model or the tier of a stage for an agent. Users write one word for both: it is
// a tier if the agent's provider has a model for it.
func (p *planner) model(agent string, s *Stage) (model, tier string) {
	word := cmp.Or(s.Model, p.options.Models[agent])
	for _, spec := range p.options.Providers {
		if spec.Name == p.options.Agents[agent].Provider && spec.Models[word] != "" {
			return "", word
		}
	}
	return word, ""
}

// waits are the dependencies of a stage's tasks.
type waits struct {
	tasks   []swarm.Dependency
	agents  []string
	outside bool // some of them are not in this line
}

// after adds a dependency once. OnNeeded is stronger than OnAlways and replaces it.
func (w *waits) after(task string, c swarm.Condition) {
	for i := range w.tasks {
		if d := &w.tasks[i]; d.Task == task {
			if c == swarm.OnNeeded {
				d.Condition = c
			}
			return
		}
	}
	w.tasks = append(w.tasks, swarm.Dependency{Task: task, Condition: c})
}

// addReferences adds the dependencies of a stage's references. A task waits for all open tasks of
// the agent, and the newest of them must complete. If the agent has no open task, its last output
// counts. If it has no output either, a background line waits for the first one, and other lines
// are refused.
func (p *planner) addReferences(s *Stage, w *waits) error {
	for i, r := range s.Refs {
		if slices.ContainsFunc(s.Refs[:i], func(n Name) bool { return n.Name == r.Name }) {
			continue
		}
		open := p.openOf(r.Name)
		w.outside = w.outside || len(open) > 0
		open = append(open, p.earlier[r.Name]...)
		for i, name := range open {
			if i == len(open)-1 {
				w.after(name, swarm.OnNeeded)
			} else {
				w.after(name, swarm.OnAlways)
			}
		}
		switch has := p.standing.Agents[r.Name]; {
		case len(open) > 0:
		case has.Good && has.Failed:
			p.notice("@" + r.Name + "'s last task failed: $" + r.Name + " is its last good output")
		case has.Good:
		case p.line.Background:
			w.agents, w.outside = append(w.agents, r.Name), true
		default:
			return errorAt(r.Start, r.End, "Agent @%s has no output to reference. Run a task for @%s first.", r.Name, r.Name).
				hint("or end the line with & to wait for it")
		}
	}
	return nil
}

// openOf returns the agent's open tasks from earlier lines.
func (p *planner) openOf(agent string) (names []string) {
	for _, t := range p.standing.Open {
		if t.Agent == agent {
			names = append(names, t.Name)
		}
	}
	return names
}

// notice adds a notice once.
func (p *planner) notice(text string) {
	if !slices.Contains(p.out.Notices, text) {
		p.out.Notices = append(p.out.Notices, text)
	}
}

// prompt stores the prompt of a stage. Outputs of the previous stage come first, except those that
// the text refers to itself.
func (p *planner) prompt(s *Stage) swarm.Hash {
	var parts []prompt.Part
	for _, t := range p.flowing {
		if !refersTo(s, t.agent) && !alone(s, Notify) {
			parts = append(parts, prompt.Part{Kind: prompt.KindAgent, Name: t.agent, Task: t.name},
				prompt.Part{Kind: prompt.KindText, Text: "\n\n"})
		}
	}
	body := prompt.Template{Parts: append(parts, s.Parts...)}.Marshal()
	hash := swarm.HashOf(body)
	if !slices.ContainsFunc(p.out.Plan.Tasks, func(t swarm.Task) bool { return t.Prompt == hash }) {
		p.out.Bodies = append(p.out.Bodies, body)
	}
	return hash
}

// alone reports whether a stage is for this agent only.
func alone(s *Stage, agent string) bool { return len(s.Agents) == 1 && s.Agents[0].Name == agent }
