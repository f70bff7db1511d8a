package compose

import (
	"slices"

	"swarm"
	"swarm/internal/prompt"
)

// warnNever warns about selected tasks that can never start. Tasks in a cycle are left out: the
// cycle is an error already.
func (c *compiler) warnNever(sel *selection) {
	never := map[int]bool{}
	for _, i := range c.inOrder(sel) {
		t := &c.tasks[i]
		if a, clash := contradiction(t.after); clash {
			never[i] = true
			c.warn(a.node, "the task %q can never run: it waits for the success and for the failure of %q", t.name, c.tasks[a.task].name).
				WithHint("write condition: any, or make it two tasks")
			continue
		}
		if a, stuck := stuck(t.after, never); stuck {
			never[i] = true
			c.warn(a.node, "the task %q can never run, because %q cannot", t.name, c.tasks[a.task].name)
		}
	}
}

// contradiction finds a task whose success and failure are both required.
func contradiction(list []after) (after, bool) {
	type end struct {
		task      int
		condition swarm.Condition
	}
	opposite := map[swarm.Condition]swarm.Condition{swarm.OnSuccess: swarm.OnFailed, swarm.OnFailed: swarm.OnSuccess}
	seen := make(map[end]bool, len(list))
	for _, a := range list {
		if other, ok := opposite[a.condition]; ok {
			if seen[end{a.task, other}] {
				return a, true
			}
			seen[end{a.task, a.condition}] = true
		}
	}
	return after{}, false
}

// stuck finds a required dependency on a task that never runs.
func stuck(list []after, never map[int]bool) (after, bool) {
	alive := 0
	var dead *after
	for k, a := range list {
		switch {
		case !never[a.task]:
			alive++
		case a.condition == swarm.OnSuccess || a.condition == swarm.OnFailed:
			return a, true
		case a.condition == swarm.OnAny:
			dead = &list[k]
		}
	}
	if dead != nil && alive == 0 {
		return *dead, true
	}
	return after{}, false
}

// inOrder sorts the selected tasks so that each comes after those that it depends on.
func (c *compiler) inOrder(sel *selection) []int {
	open := make(map[int]int, len(sel.tasks))
	next := make(map[int][]int, len(sel.tasks))
	var order []int
	for _, i := range sel.tasks {
		for _, a := range c.tasks[i].after {
			if sel.has[a.task] {
				open[i]++
				next[a.task] = append(next[a.task], i)
			}
		}
		if open[i] == 0 {
			order = append(order, i)
		}
	}
	for k := 0; k < len(order); k++ {
		for _, i := range next[order[k]] {
			if open[i]--; open[i] == 0 {
				order = append(order, i)
			}
		}
	}
	return order
}

// hasEdge says whether the agent may send work on by message. Then its output need not be read.
func (c *compiler) hasEdge(agent string) bool {
	return slices.ContainsFunc(c.file.Edges.items, func(e text) bool {
		from, to, both, _ := arrow(e.value)
		return from == agent || both && to == agent
	})
}

// checkUnused warns about tasks in no pipeline, outputs that no prompt reads, and inputs that no
// prompt uses.
func (c *compiler) checkUnused() {
	if c.failed() {
		return // a part that could not be read may use them
	}
	listed, leads := map[string]bool{}, make([]bool, len(c.tasks))
	for _, p := range c.file.Pipelines.entries {
		for _, item := range p.value.Tasks.items {
			listed[item.value] = true
		}
	}
	for i := range c.tasks {
		t := &c.tasks[i]
		for _, a := range t.after {
			byFiles := c.worker(t) != "" && c.worker(&c.tasks[a.task]) != "" // from desk to desk
			leads[a.task] = leads[a.task] || !byFiles
		}
	}
	for i := range c.tasks {
		t := &c.tasks[i]
		switch {
		case len(listed) > 0 && !listed[t.name]:
			c.warn(t.key, "the task %q is in no pipeline", t.name).
				WithHint("add it to one; swarm up %s runs it by itself", t.name)
		case leads[i] && t.readers == 0 && !c.hasEdge(t.agent):
			c.notice(t.key, "no prompt reads the output of the task %q", t.name).
				WithHint("write {{output:%s}} in a prompt that comes after it", t.name)
		}
		c.checkInputs(t)
	}
}

// checkInputs warns about inputs that no prompt of the task uses.
func (c *compiler) checkInputs(t *task) {
	asked := map[string]bool{}
	for _, r := range c.refs(t) {
		if r.Kind == prompt.KindInput {
			asked[r.Name] = true
		}
	}
	for _, in := range t.value.Inputs.entries {
		if t.prompt != nil && !t.prompt.broken && !asked[in.name] {
			c.warn(in.key, "no prompt of the task %q asks for the input %q", t.name, in.name).
				WithHint("write {{input:%s}} in it", in.name)
		}
	}
}
