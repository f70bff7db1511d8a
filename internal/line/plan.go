package line

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"swarm"
	"swarm/internal/prompt"
)

// A Standing is where a session stands when a line is entered.
type Standing struct {
	Agents map[string]AgentStanding // by name; who is not there has done nothing yet
	Open   []OpenTask               // the tasks that have not ended, in the order in which they were entered
}

// An AgentStanding is what an agent has done so far.
type AgentStanding struct {
	Tasks  int  // how many tasks it has been given, those of refused lines not counted
	Good   bool // one of them completed, so that there is an output to refer to
	Failed bool // of those that have ended, the newest did not complete
}

// An OpenTask is a task that has not ended, and what it waits for.
type OpenTask struct {
	Name, Agent string
	After       []string // tasks; those that have ended do not matter
	Awaits      []string // agents of which it needs a first output
}

// PlanOptions are what a line's tasks are made with.
type PlanOptions struct {
	Agents      map[string]swarm.Agent // by name
	Providers   []swarm.ProviderSpec   // those that the agents use, and others
	Models      map[string]string      // by agent: a model or a tier for stages that name none
	WaitTimeout time.Duration          // how long a task waits for what it refers to; 0 = as long as it takes
}

// A Fragment is what a session's plan grows by.
type Fragment struct {
	Plan    swarm.Plan
	Bodies  [][]byte // the texts that the plan names by their hash
	Tasks   []string // the plan's tasks, in order
	Notices []string // what a person should know before they run
}

// TaskName is the name of the n-th task of an agent in a session. An agent's name holds no _, so no two are the same.
func TaskName(agent string, n int) string { return agent + "_" + strconv.Itoa(n) }

// Plan makes the tasks of a line. The same line makes the same tasks wherever a session stands the same. Its error is an *Error,
// and then nothing of the line is to run.
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

// A planner makes a fragment, stage by stage.
type planner struct {
	line     *Line
	standing Standing
	options  PlanOptions
	out      Fragment
	stages   []*Stage // by task: where it comes from

	given   map[string]int      // by agent: its tasks in this line
	earlier map[string][]string // by agent: its tasks in earlier stages
	before  []task              // the tasks of the stage before
	flowing []task              // whose outputs the next stage gets
}

type task struct{ name, agent string }

// stage adds the tasks of one stage: one for each of its agents, all with the same prompt and waiting for the same.
func (p *planner) stage(s *Stage) error {
	var w waits
	for _, t := range slices.Concat(p.before, p.flowing) {
		if t.agent == Notify {
			w.after(t.name, swarm.OnAlways) // whether somebody could be told stops nobody
		} else {
			w.after(t.name, swarm.OnNeeded)
		}
	}
	if err := p.refer(s, &w); err != nil {
		return err
	}
	prompt := p.prompt(s)
	tasks := make([]task, len(s.Agents))
	for i, n := range s.Agents {
		if err := p.use(n); err != nil {
			return err
		}
		p.given[n.Name]++
		tasks[i] = task{TaskName(n.Name, p.standing.Agents[n.Name].Tasks+p.given[n.Name]), n.Name}
		made := swarm.Task{Name: tasks[i].name, Agent: n.Name, Prompt: prompt, DependsOn: slices.Clone(w.tasks), Awaits: slices.Clone(w.agents)}
		made.Model, made.Tier = p.model(n.Name, s)
		if w.outside {
			made.WaitTimeout = p.options.WaitTimeout
		}
		p.add(made, s)
	}
	p.before = tasks
	if told := slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return t.agent == Notify }); len(told) > 0 {
		p.flowing = told // past a @notify the outputs before it flow on
	}
	for _, t := range tasks {
		p.earlier[t.agent] = append(p.earlier[t.agent], t.name)
	}
	return nil
}

// add adds a task. Each is a group by itself, so that whoever waits for it does not wait for the rest of its line.
func (p *planner) add(t swarm.Task, s *Stage) {
	t.Group = len(p.out.Plan.Groups)
	p.out.Plan.Groups = append(p.out.Plan.Groups, swarm.Group{Iterations: 1})
	p.out.Plan.Tasks = append(p.out.Plan.Tasks, t)
	p.out.Tasks = append(p.out.Tasks, t.Name)
	p.stages = append(p.stages, s)
}

// use puts an agent, and the provider that it is reached through, into the plan.
func (p *planner) use(n Name) error {
	plan := &p.out.Plan
	if slices.ContainsFunc(plan.Agents, func(a swarm.Agent) bool { return a.Name == n.Name }) {
		return nil
	}
	a, ok := p.options.Agents[n.Name]
	if !ok {
		return errorAt(n.Start, n.End, "nobody says how @%s is reached", n.Name).hint("give it a provider in swarm.yaml")
	}
	plan.Agents = append(plan.Agents, a)
	named := func(s swarm.ProviderSpec) bool { return s.Name == a.Provider }
	if i := slices.IndexFunc(p.options.Providers, named); i >= 0 && !slices.ContainsFunc(plan.Providers, named) {
		plan.Providers = append(plan.Providers, p.options.Providers[i])
	}
	return nil
}

// model is the model, or else the tier, that a stage asks of an agent. One word names either: it is a tier if the agent's
// provider has a model for it.
func (p *planner) model(agent string, s *Stage) (model, tier string) {
	word := cmp.Or(s.Model, p.options.Models[agent])
	for _, spec := range p.options.Providers {
		if spec.Name == p.options.Agents[agent].Provider && spec.Models[word] != "" {
			return "", word
		}
	}
	return word, ""
}

// waits is what the tasks of a stage wait for.
type waits struct {
	tasks   []swarm.Dependency
	agents  []string
	outside bool // something of it is not in this line
}

// after adds a task, once; that it is needed says more than that it has to end.
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

// refer adds what the references of a stage wait for: all that the agent has still to do, of which the newest must go well. An
// agent that has nothing to do is taken at its last word; one that has never said any is awaited, if nobody sits and waits.
func (p *planner) refer(s *Stage, w *waits) error {
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

// openOf is what an agent has still to do of the lines before this one.
func (p *planner) openOf(agent string) (names []string) {
	for _, t := range p.standing.Open {
		if t.Agent == agent {
			names = append(names, t.Name)
		}
	}
	return names
}

func (p *planner) notice(text string) {
	if !slices.Contains(p.out.Notices, text) {
		p.out.Notices = append(p.out.Notices, text)
	}
}

// prompt stores a stage's prompt: what flows into it stands in front, except where its text refers to the same agent.
func (p *planner) prompt(s *Stage) swarm.Hash {
	var parts []prompt.Part
	for _, t := range p.flowing {
		if !refersTo(s, t.agent) && !alone(s, Notify) {
			parts = append(parts, prompt.Part{Kind: prompt.KindAgent, Name: t.agent, Task: t.name}, prompt.Part{Kind: prompt.KindText, Text: "\n\n"})
		}
	}
	body := prompt.Template{Parts: append(parts, s.Parts...)}.Marshal()
	hash := swarm.HashOf(body)
	if !slices.ContainsFunc(p.out.Plan.Tasks, func(t swarm.Task) bool { return t.Prompt == hash }) {
		p.out.Bodies = append(p.out.Bodies, body)
	}
	return hash
}

// alone says whether a stage is for this agent only.
func alone(s *Stage, agent string) bool { return len(s.Agents) == 1 && s.Agents[0].Name == agent }
