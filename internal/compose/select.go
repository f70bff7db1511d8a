package compose

import (
	"maps"
	"slices"

	"swarm"
	"swarm/internal/excerpt"
)

// Limits of a plan.
const (
	maxTasks = 100_000
	maxLinks = 1_000_000 // dependencies of all copies
)

// A selection is what is to run: a pipeline, or single tasks.
type selection struct {
	pipeline *entry[pipelineKeys] // nil: single tasks
	tasks    []int                // in the file's order
	has      map[int]bool
	stdin    bool   // one of its prompts has {{STDIN}}
	listed   []bool // by task: it is in a pipeline, which checks what it reads
	alone    bool   // its task is not from the file: tasks that it refers to need not exist
}

// iterations returns how often a selected task runs.
func (c *compiler) iterations(sel *selection, i int) int {
	if sel.pipeline != nil {
		return max(1, int(sel.pipeline.value.Iterations.value))
	}
	return max(1, int(c.tasks[i].value.Iterations.value))
}

// copies returns the number of copies of a selected task.
func (c *compiler) copies(sel *selection, i int) int {
	if sel.pipeline != nil {
		return max(1, int(sel.pipeline.value.Parallelism.value))
	}
	return max(1, int(c.tasks[i].value.Parallelism.value))
}

// choose finds what the user wants to run: main, the only pipeline, all tasks, or what is named.
func (c *compiler) choose() *selection {
	pipelines := &c.file.Pipelines
	if len(c.o.Select) > 0 {
		return c.chooseNamed()
	}
	if main := pipelines.find("main"); main != nil {
		return c.selectPipeline(main)
	}
	switch names := pipelines.names(); len(names) {
	case 0:
	case 1:
		return c.selectPipeline(&pipelines.entries[0])
	default:
		c.fail(pipelines.node, "there are several pipelines, and none is called main: %s", excerpt.List(names, 20)).
			WithHint("name one: swarm up %s", names[0])
	}
	return c.selectAll()
}

// chooseNamed selects one pipeline by its name, or tasks by theirs.
func (c *compiler) chooseNamed() *selection {
	var want []int
	for _, name := range c.o.Select {
		i, isTask := c.taskAt[name]
		p := c.file.Pipelines.find(name)
		switch {
		case isTask && p != nil:
			c.fail(c.tasks[i].key, "%q is a task and a pipeline, so naming it says too little", name).
				WithHint("rename one of them")
		case p != nil && len(c.o.Select) > 1:
			c.fail(nil, "%q is a pipeline and cannot run together with %s", name, excerpt.List(c.o.Select, 20)).
				WithHint("name one pipeline, or tasks")
		case p != nil:
			return c.selectPipeline(p)
		case !isTask:
			choices := append(c.file.Pipelines.names(), c.taskNames...)
			c.fail(nil, "there is no task or pipeline %s", swarm.Quote(name)).
				WithHint("%s", c.didYouMean(name, choices))
		default:
			want = append(want, i)
		}
	}
	return c.selectTasks(want, !c.o.Only)
}

// selectAll selects all tasks, each by itself.
func (c *compiler) selectAll() *selection {
	sel := &selection{has: map[int]bool{}}
	for i := range c.tasks {
		sel.has[i] = true
		sel.tasks = append(sel.tasks, i)
	}
	return sel
}

// selectPipeline selects the tasks of a pipeline.
func (c *compiler) selectPipeline(p *entry[pipelineKeys]) *selection {
	sel := &selection{pipeline: p, has: map[int]bool{}}
	for _, item := range p.value.Tasks.items {
		if i, ok := c.taskAt[item.value]; ok {
			sel.has[i] = true
		}
	}
	sel.fill()
	return sel
}

// selectTasks selects single tasks, with everything that they depend on if upstream is true.
func (c *compiler) selectTasks(want []int, upstream bool) *selection {
	sel := &selection{has: map[int]bool{}}
	for len(want) > 0 {
		i := want[len(want)-1]
		want = want[:len(want)-1]
		if sel.has[i] {
			continue
		}
		sel.has[i] = true
		if upstream {
			for _, a := range c.tasks[i].after {
				want = append(want, a.task)
			}
		}
	}
	sel.fill()
	return sel
}

// fill lists the selected tasks in the file's order.
func (sel *selection) fill() {
	sel.tasks = slices.Sorted(maps.Keys(sel.has))
}

// everySelection returns what Check looks at: what is named, or else every pipeline, and the tasks
// that are in none.
func (c *compiler) everySelection() []*selection {
	if len(c.o.Select) > 0 {
		return []*selection{c.choose()}
	}
	var sels []*selection
	listed := make([]bool, len(c.tasks))
	for i := range c.file.Pipelines.entries {
		sel := c.selectPipeline(&c.file.Pipelines.entries[i])
		for _, i := range sel.tasks {
			listed[i] = true
		}
		sels = append(sels, sel)
	}
	var rest []int
	for i := range c.tasks {
		if !listed[i] {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 || len(sels) == 0 {
		sel := c.selectTasks(rest, true)
		sel.listed = listed
		sels = append(sels, sel)
	}
	return sels
}

// checkCopies limits the size of a selection, and refuses keys that mean nothing inside a pipeline.
func (c *compiler) checkCopies(sel *selection) {
	tasks, links := 0, 0
	for _, i := range sel.tasks {
		t := &c.tasks[i]
		for _, k := range []struct {
			key string
			i   integer
		}{{"iterations", t.value.Iterations}, {"parallelism", t.value.Parallelism}} {
			if sel.pipeline != nil && k.i.given() {
				c.fail(k.i.node, "%s of the task %q means nothing inside the pipeline %q", k.key, t.name, sel.pipeline.name).
					WithHint("write it at the pipeline")
			}
		}
		n := c.copies(sel, i)
		tasks += n
		for _, a := range t.after {
			switch {
			case !sel.has[a.task]:
			case sel.pipeline != nil:
				links += n
			default:
				links += n * c.copies(sel, a.task)
			}
		}
		if tasks > maxTasks || links > maxLinks {
			at := t.key
			if sel.pipeline != nil {
				at = sel.pipeline.key
			}
			c.fail(at, "this makes more than %d tasks or %d dependencies", maxTasks, maxLinks).
				WithHint("lower parallelism")
			return
		}
	}
}
