package compose

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

// copyName returns the name of a task's or agent's copy. Copy 0 is the original.
func copyName(name string, copy int) string {
	if copy == 0 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, copy)
}

// emit makes the plan of a selection.
func (c *compiler) emit(sel *selection) swarm.Plan {
	p := swarm.Plan{Kind: swarm.PipelineRun, Tasks: []swarm.Task{}, Groups: []swarm.Group{}, Agents: []swarm.Agent{}}
	b := c.file.Budget
	p.Budget = swarm.Budget{Tokens: b.Tokens.value, USD: b.USD.value, Calls: b.Calls.value, Wall: b.Wall.value}
	settings := c.settings()
	p.MaxParallel = settings.MaxParallel
	if d := c.file.Desks; d.given() {
		p.Desks = c.folder(d.value)
	}
	p.Notify = settings.Notify.spec()
	if limits := (swarm.TopicLimits{Entries: settings.Swarm.WorkspaceMaxEntries, Chars: settings.Swarm.WorkspaceSnippetChars}); limits != swarm.DefaultTopics {
		p.Topics = &limits
	}
	agents := c.agentsOf(sel)
	if sel.pipeline != nil {
		p.Name = sel.pipeline.name
		c.emitPipeline(&p, sel, agents)
	} else {
		c.emitTasks(&p, sel, agents)
	}
	used := map[string]bool{}
	use := func(s *swarm.ProviderSpec) {
		if !used[s.Name] {
			used[s.Name] = true
			p.Providers = append(p.Providers, *s)
		}
	}
	for _, a := range agents {
		if a.spec != nil {
			use(a.spec)
		}
	}
	for _, a := range agents {
		if on := c.onLimit(a); on != nil && on.Use != "" {
			use(c.spec(on.Use))
		}
	}
	if slices.ContainsFunc(agents, func(a *agent) bool { return a.served }) {
		p.Servers = c.servers()
	}
	p.Approvals = swarm.Approvals{Tools: c.file.Approvals.Tools.value, Spawn: c.file.Approvals.Spawn.value}
	if sel.stdin && c.o.Stdin != nil {
		text, err := c.o.Stdin()
		if err != nil {
			c.failWith(nil, err)
			return p
		}
		p.Stdin = c.bodies.add(text)
	}
	return p
}

// emitPipeline emits the copies of a pipeline side by side. Each is a group, with agents of its
// own.
func (c *compiler) emitPipeline(p *swarm.Plan, sel *selection, agents []*agent) {
	for _, copy := range numbers(c.copies(sel, 0)) {
		p.Groups = append(p.Groups, swarm.Group{Iterations: c.iterations(sel, 0)})
		for _, i := range sel.tasks {
			var deps []swarm.Dependency
			for _, a := range c.tasks[i].after {
				deps = append(deps, c.emitDependency(a, copy))
			}
			p.Tasks = append(p.Tasks, c.emitTask(i, copy, len(p.Groups)-1, deps))
		}
		for _, a := range agents {
			p.Agents = append(p.Agents, c.emitAgent(a, copy))
		}
	}
	c.emitEdges(p)
}

// emitDependency makes a dependency of the plan on one copy of a task.
func (c *compiler) emitDependency(a after, copy int) swarm.Dependency {
	d := swarm.Dependency{Task: copyName(c.tasks[a.task].name, copy), Condition: a.condition}
	for _, o := range a.keys.Outputs.items {
		d.Outputs = append(d.Outputs, deskPath(o, outbox))
	}
	if a.keys.CopyTo.given() {
		d.CopyTo = deskPath(a.keys.CopyTo, inbox)
	}
	return d
}

// numbers returns the numbers of n copies. A single one is the original, with the number 0.
func numbers(n int) []int {
	if n == 1 {
		return []int{0}
	}
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

// emitTasks emits tasks without a pipeline: each copy of each is a group. A task that depends on
// another depends on all its copies.
func (c *compiler) emitTasks(p *swarm.Plan, sel *selection, agents []*agent) {
	busy := make(map[string]map[int]bool, len(agents)) // by agent: its copies that have a task
	for _, i := range sel.tasks {
		t := &c.tasks[i]
		var deps []swarm.Dependency
		for _, a := range t.after {
			if !sel.has[a.task] {
				continue
			}
			for _, copy := range numbers(c.copies(sel, a.task)) {
				deps = append(deps, c.emitDependency(a, copy))
			}
		}
		if busy[t.agent] == nil {
			busy[t.agent] = map[int]bool{}
		}
		for _, copy := range numbers(c.copies(sel, i)) {
			busy[t.agent][copy] = true
			p.Groups = append(p.Groups, swarm.Group{Iterations: c.iterations(sel, i)})
			p.Tasks = append(p.Tasks, c.emitTask(i, copy, len(p.Groups)-1, deps))
		}
	}
	for _, a := range agents {
		copies := slices.Sorted(maps.Keys(busy[a.name]))
		if len(c.tasks) == 0 {
			copies = []int{0} // a file of agents only
		}
		for _, copy := range copies {
			p.Agents = append(p.Agents, c.emitAgent(a, copy))
		}
	}
	c.emitEdges(p)
}

// emitEdges emits the edges between the agents of the plan. Edges join copies with the same number,
// and copies with agents that have none.
func (c *compiler) emitEdges(p *swarm.Plan) {
	copies := make(map[string][]string, len(p.Agents)) // by the file's name: "" or ".2"
	for _, a := range p.Agents {
		base := a.Name
		if a.Base != "" {
			base = a.Base
		}
		copies[base] = append(copies[base], strings.TrimPrefix(a.Name, base))
	}
	for _, e := range c.file.Edges.items {
		from, to, both, ok := arrow(e.value)
		if !ok {
			continue
		}
		for _, f := range copies[from] {
			for _, t := range copies[to] {
				if f == t || f == "" || t == "" {
					p.Edges = append(p.Edges, swarm.Edge{From: from + f, To: to + t, Both: both})
				}
			}
		}
	}
}

// emitTask makes a task of the plan from one copy of a task of the file.
func (c *compiler) emitTask(i, copy, group int, deps []swarm.Dependency) swarm.Task {
	t := &c.tasks[i]
	v := &t.value
	out := swarm.Task{
		Name:        copyName(t.name, copy),
		Copy:        copy,
		Group:       group,
		Agent:       copyName(t.agent, copy),
		Prompt:      t.prompt.hash,
		DependsOn:   deps,
		Inputs:      pairs(v.Inputs),
		Expect:      t.prompt.expect,
		Retries:     int(v.Retries.value),
		OnFailure:   swarm.OnFailure(v.OnFailure.value),
		Timeout:     v.Timeout.value,
		Concurrency: int(v.Concurrency.value),
		Model:       v.Model.value,
		Tier:        v.Tier.value,
		Budget:      v.Budget.budget(),
		Env:         pairs(v.Env),
		Workdir:     c.folder(v.Workdir.value),
		Desk:        c.ownWorker(t),
	}
	for _, f := range v.Files.items {
		out.Files = append(out.Files, c.folder(f.value))
	}
	if copy > 0 {
		out.Base = t.name
	}
	if v.Kind.value == swarm.SwarmKind {
		limits := c.settings().Swarm
		out.Swarm = &swarm.SwarmTask{MaxAgents: limits.MaxAgents, Swarm: swarm.Swarm{Workers: swarm.DefaultWorkers, Iterations: limits.MaxIterationsPerAgent,
			Timeout: limits.AgentTimeout, Messages: limits.MaxMessagesPerAgent, Workspace: limits.Workspace, Replan: limits.Replan, Strategy: limits.Strategy}}
	}
	return out
}

// emitAgent makes an agent of the plan from one copy of an agent of the file.
func (c *compiler) emitAgent(a *agent, copy int) swarm.Agent {
	out := swarm.Agent{Name: copyName(a.name, copy)}
	if copy > 0 {
		out.Base = a.name
	}
	if a.spec != nil {
		out.Provider = a.spec.Name
	}
	if a.role != nil {
		out.Role = a.role.hash
	}
	out.Desk, out.OnLimit = c.agentWorker(a), c.onLimit(a)
	if k := a.keys; k != nil {
		out.RoleName = k.Role.value
		out.Model, out.Tier, out.Tools, out.Env = k.Model.value, k.Tier.value, toolsOf(a), pairs(k.Env)
		out.Permissions = swarm.Permissions{
			Spawn:       k.Permissions.Spawn.value,
			Orchestrate: k.Permissions.Orchestrate.value,
		}
		out.Session, out.Context, out.Budget = k.Session.value, k.Context.limits(), k.Budget.budget()
		if k.Root.given() {
			out.Root = c.folder(k.Root.value)
		}
	}
	return out
}

// folder returns a folder of the file as an absolute path.
func (c *compiler) folder(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.o.Dir, path)
}
