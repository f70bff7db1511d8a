package line

import (
	"slices"
	"strings"

	"swarm"
)

// A waiter is a node of the wait graph: an open task, or a task of the new line.
type waiter struct {
	agent  string
	after  []int    // tasks that must end before it starts
	awaits []string // agents from which it needs an output, of whichever task
	ends   bool     // it is known to end
}

// A graph is the wait graph: everything that chains and references wait for, of this line and of
// earlier ones.
type graph struct {
	waiters []waiter
	old     int // number of waiters from before this line
}

// graph builds the wait graph from the open tasks and the tasks of this line. Dependencies on ended
// tasks are left out.
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

// makers returns the tasks that could produce the output that task i awaits: all tasks of the agent
// except i.
func (g *graph) makers(i int, agent string) (tasks []int) {
	for j := range g.waiters {
		if j != i && g.waiters[j].agent == agent {
			tasks = append(tasks, j)
		}
	}
	return tasks
}

// markEnding computes which tasks can end, as a fixed point. A task can end if all tasks that it
// comes after can end, and for each agent that it awaits at least one task can. An agent without
// tasks does not block: a later line may give it one.
func (g *graph) markEnding() {
	for changed := true; changed; {
		changed = false
		for i := range g.waiters {
			if w := &g.waiters[i]; !w.ends && len(g.blockers(i)) == 0 {
				w.ends, changed = true, true
			}
		}
	}
}

// blockers returns the tasks that i waits for and that cannot end.
func (g *graph) blockers(i int) (tasks []int) {
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

// cycle returns the shortest path from i back to i over tasks that cannot end, starting with i; nil
// = none.
func (g *graph) cycle(i int) []int {
	from := map[int]int{}
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for _, j := range g.blockers(queue[0]) {
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

// checkCycle refuses a line if one of its tasks would wait for itself: a deadlock. Only awaited
// agents can close a cycle, because a task comes after earlier tasks only.
func (p *planner) checkCycle() error {
	awaited := func(t OpenTask) bool { return len(t.Awaits) > 0 }
	awaits := func(t swarm.Task) bool { return len(t.Awaits) > 0 }
	if !slices.ContainsFunc(p.standing.Open, awaited) && !slices.ContainsFunc(p.out.Plan.Tasks, awaits) {
		return nil
	}
	g := p.graph()
	g.markEnding()
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

// circular returns the error for a cycle. It names the agents on the cycle, without repetitions in
// a row, and points at the reference where the cycle begins.
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
