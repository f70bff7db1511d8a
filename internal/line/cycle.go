package line

import (
	"slices"
	"strings"

	"swarm"
)

// A waiter is an open task, or one of the new line, in the graph of who waits for whom.
type waiter struct {
	agent  string
	after  []int    // tasks that must end before it starts
	awaits []string // agents of which any task will do
	ends   bool     // it can end
}

// A graph is all waiting at once: what chains and references of this and of earlier lines wait for.
type graph struct {
	waiters []waiter
	old     int // how many of them were there before the line
}

func (p *planner) graph() *graph {
	open, tasks := p.standing.Open, p.out.Plan.Tasks
	g := &graph{make([]waiter, 0, len(open)+len(tasks)), len(open)}
	at := make(map[string]int, len(open)+len(tasks))
	for i, t := range open {
		at[t.Name] = i
	}
	for i, t := range tasks {
		at[t.Name] = len(open) + i
	}
	add := func(agent string, awaits []string) *waiter {
		g.waiters = append(g.waiters, waiter{agent: agent, awaits: awaits})
		return &g.waiters[len(g.waiters)-1]
	}
	for _, t := range open {
		w := add(t.Agent, t.Awaits)
		for _, name := range t.After {
			if i, ok := at[name]; ok {
				w.after = append(w.after, i)
			}
		}
	}
	for _, t := range tasks {
		w := add(t.Agent, t.Awaits)
		for _, d := range t.DependsOn {
			if i, ok := at[d.Task]; ok {
				w.after = append(w.after, i)
			}
		}
	}
	return g
}

// makers are the tasks that could make what i awaits of an agent: all of the agent's but i itself.
func (g *graph) makers(i int, agent string) (tasks []int) {
	for j := range g.waiters {
		if j != i && g.waiters[j].agent == agent {
			tasks = append(tasks, j)
		}
	}
	return tasks
}

// settle finds out which tasks can end: those for which all that they come after can, and of each agent that they await at least
// one task can. An agent that has nothing to do may be given something by a later line, so nobody waits for it in vain yet.
func (g *graph) settle() {
	for changed := true; changed; {
		changed = false
		for i := range g.waiters {
			if w := &g.waiters[i]; !w.ends && len(g.hindrances(i)) == 0 {
				w.ends, changed = true, true
			}
		}
	}
}

// hindrances are the tasks that cannot end and that i waits for.
func (g *graph) hindrances(i int) (tasks []int) {
	stuck := func(j int) bool { return !g.waiters[j].ends }
	for _, j := range g.waiters[i].after {
		if stuck(j) {
			tasks = append(tasks, j)
		}
	}
	for _, agent := range g.waiters[i].awaits {
		if makers := g.makers(i, agent); !slices.ContainsFunc(makers, func(j int) bool { return !stuck(j) }) {
			tasks = append(tasks, makers...)
		}
	}
	return tasks
}

// cycle is the shortest way from i back to i over tasks that cannot end, with i at its beginning; nil when there is none.
func (g *graph) cycle(i int) []int {
	from := map[int]int{}
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for _, j := range g.hindrances(queue[0]) {
			if j == i {
				path := []int{queue[0]}
				for path[0] != i {
					path = slices.Insert(path, 0, from[path[0]])
				}
				return path
			}
			if _, seen := from[j]; !seen {
				from[j] = queue[0]
				queue = append(queue, j)
			}
		}
	}
	return nil
}

// checkCycle refuses a line of which a task would wait for itself.
func (p *planner) checkCycle() error {
	awaited := func(t OpenTask) bool { return len(t.Awaits) > 0 }
	awaits := func(t swarm.Task) bool { return len(t.Awaits) > 0 }
	if !slices.ContainsFunc(p.standing.Open, awaited) && !slices.ContainsFunc(p.out.Plan.Tasks, awaits) {
		return nil // tasks only come after earlier ones
	}
	g := p.graph()
	g.settle()
	for i := g.old; i < len(g.waiters); i++ {
		if g.waiters[i].ends {
			continue
		}
		if path := g.cycle(i); path != nil {
			return p.circular(g, path)
		}
	}
	return nil
}

// circular names a cycle by its agents, each once in a row, and shows the reference with which it begins.
func (p *planner) circular(g *graph, path []int) error {
	s := p.stages[path[0]-g.old]
	names := make([]string, 0, len(path)+1)
	for _, i := range path {
		if name := "@" + g.waiters[i].agent; len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if last := "@" + g.waiters[path[0]].agent; len(names) == 1 || names[len(names)-1] != last {
		names = append(names, last)
	}
	next := path[1%len(path)]
	whom, at := g.waiters[next].agent, s.Agents[0]
	if i := slices.IndexFunc(s.Refs, func(n Name) bool { return n.Name == whom }); i >= 0 {
		at = s.Refs[i]
	}
	hint := "take $" + whom + " out"
	if next < g.old {
		hint += ", or cancel what waits first: /cancel @" + whom
	}
	return errorAt(at.Start, at.End, "Circular dependency detected: %s", strings.Join(names, " → ")).hint("%s", hint)
}
