package compose

import (
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// failRef notes an error at a reference in a prompt whose target does not exist.
func (c *compiler) failRef(r prompt.Ref, format string, args ...any) *swarm.Error {
	e := c.missing(nil, format, args...)
	e.File, e.Line, e.Column = r.File, r.Line, r.Column
	return e
}

// refs returns a task's references: those of its prompt, and those of its agent's role.
func (c *compiler) refs(t *task) []prompt.Ref {
	var refs []prompt.Ref
	if t.prompt != nil {
		refs = t.prompt.refs
	}
	if role := c.agents[t.agent].role; role != nil && len(role.refs) > 0 {
		refs = append(refs[:len(refs):len(refs)], role.refs...)
	}
	return refs
}

// checkReferences checks that every reference of the selected tasks has a target.
func (c *compiler) checkReferences(sel *selection) {
	if sel.alone {
		return
	}
	for _, i := range sel.tasks {
		t := &c.tasks[i]
		for _, in := range t.value.Inputs.entries {
			to := in.value
			if to.given() {
				at := prompt.Ref{File: c.o.File, Line: to.node.Line, Column: to.node.Column}
				if to.node.Line < 0 {
					at = prompt.Ref{File: c.setName(to.node)}
				}
				c.checkOutput(sel, i, to.value, at, "the input "+in.name)
			}
		}
		for _, r := range c.refs(t) {
			switch r.Kind {
			case prompt.KindStdin:
				sel.stdin = true
			case prompt.KindOutput:
				c.checkOutput(sel, i, r.Name, r, "{{output:"+r.Name+"}}")
			case prompt.KindInput:
				if t.value.Inputs.find(r.Name) == nil {
					hint := c.didYouMean(r.Name, t.value.Inputs.names())
					if len(t.value.Inputs.entries) == 0 {
						hint = "write inputs: {" + r.Name + ": TASK} at the task, or {{output:TASK}} here"
					}
					c.failRef(r, "the task %q has no input %q", t.name, r.Name).WithHint("%s", hint)
				}
			}
		}
	}
}

// splitCopy splits the name of a copy. copy is 0 for a name without a number.
func splitCopy(name string) (base string, copy int) {
	base, number, ok := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 || number[0] == '0' || number[0] == '+' {
		return name, 0
	}
	return base, n
}

// checkOutput checks that a task can read another one's output. A task that exists but is not
// selected has no output, which is no error.
func (c *compiler) checkOutput(sel *selection, reader int, name string, at prompt.Ref, what string) {
	base, copy := splitCopy(name)
	i, ok := c.taskAt[base]
	if !ok {
		c.failRef(at, "%s: there is no task %s", what, swarm.Quote(name)).
			WithHint("%s", c.didYouMean(base, c.taskNames))
		return
	}
	c.tasks[i].readers++
	if !sel.has[i] {
		return
	}
	switch n, mine := c.copies(sel, i), c.copies(sel, reader); {
	case copy > 0 && n == 1:
		c.failRef(at, "%s: the task %q has no copies", what, base).WithHint("write %s", base)
	case copy > n:
		c.failRef(at, "%s: there is no copy %d of the task %q, only %d", what, copy, base, n).
			WithHint("write %s.1 to %s.%d", base, base, n)
	case copy == 0 && n > 1 && mine == 1:
		c.failRef(at, "%s: the task %q has %d copies", what, base, n).
			WithHint("say which: %s.1 to %s.%d", base, base, n)
	case copy == 0 && n > 1 && mine > n:
		c.failRef(at, "%s: the task %q has %d copies, but %q, which reads them one by one, has %d", what, base, n, c.tasks[reader].name, mine).
			WithHint("say which: %s.1 to %s.%d", base, base, n)
	}
}

// checkMoney warns about a budget in money against which a provider's turns do not count.
func (c *compiler) checkMoney(sel *selection) {
	check := func(usd number, a *agent) {
		if s := a.spec; usd.given() && s != nil && s.Price == (swarm.Price{}) && !providerkind.Of(s.Kind).KnowsCost(s) {
			c.warn(usd.node, "the provider %q has no price, so its turns count as $0 unless it reports what they cost", s.Name).
				WithHint("write price: {input: 3, output: 15} (US dollars for a million tokens), or bound tokens or calls instead")
		}
	}
	for _, a := range c.agentsOf(sel) {
		check(c.file.Budget.USD, a)
		if a.keys != nil {
			check(a.keys.Budget.USD, a)
		}
	}
	for _, i := range sel.tasks {
		check(c.tasks[i].value.Budget.USD, c.agents[c.tasks[i].agent])
	}
}

// checkTeamEdges warns about a file of agents that cannot message each other. `swarm team` refuses
// such a file. The agents of a swarm message each other without edges.
func (c *compiler) checkTeamEdges() {
	if c.file.Swarm.node != nil && c.file.Swarm.node.Line != 0 {
		return
	}
	if names := c.file.Agents.names(); len(c.tasks) == 0 && len(names) > 1 && len(c.file.Edges.items) == 0 &&
		c.file.Agents.node.Line != 0 {
		c.notice(c.file.Agents.node, "this team has no edges, so its agents cannot message each other").
			WithHint("write edges: [\"%s <-> %s\"] for swarm team; swarm solve, swarm run and swarm repl need none", names[0], names[1])
	}
}

// checkOrder warns about outputs that cannot exist yet, tasks that can never start, and prompts
// that may become too large.
func (c *compiler) checkOrder(sel *selection) {
	c.warnNever(sel)
	w := &c.walk
	w.c, w.sel = c, sel
	for _, i := range sel.tasks {
		t := &c.tasks[i]
		if t.prompt != nil && t.prompt.bytes > prompt.MaxPrompt {
			c.warn(t.key, "the prompt of the task %q may get as large as %.1f MB, and 4 MB is the limit", t.name, float64(t.prompt.bytes)/(1<<20)).
				WithHint("read less: {{output:task:last_50_lines}}")
		}
		if c.iterations(sel, i) > 1 || sel.listed != nil && sel.listed[i] {
			continue
		}
		for _, r := range c.refs(t) {
			name := r.Name
			if in := t.value.Inputs.find(name); r.Kind == prompt.KindInput && in != nil {
				name = in.value.value
			} else if r.Kind != prompt.KindOutput {
				continue
			}
			base, _ := splitCopy(name)
			if to, ok := c.taskAt[base]; ok {
				c.checkRead(w, i, to, r)
			}
		}
	}
}

// checkRead warns when a task that runs once reads the output of one that has not run, or may not
// have run, before it.
func (c *compiler) checkRead(w *walk, reader, to int, r prompt.Ref) {
	name, other := c.tasks[reader].name, c.tasks[to].name
	warn := func(format string, args ...any) *swarm.Error {
		e := c.warn(nil, format, args...)
		e.File, e.Line, e.Column = r.File, r.Line, r.Column
		return e
	}
	switch {
	case !w.sel.has[to]:
		warn("%q reads the output of %q, which does not run with it: there will be none", name, other).
			WithHint("add %s to the tasks of the pipeline", other)
	case reader == to:
		warn(
			"%q reads its own output, and runs only once: there will be none",
			name,
		).WithHint("write iterations: 2 or more")
	case w.before(to, reader):
	case w.before(reader, to):
		warn("%q reads the output of %q, which runs after it, and only once: there will be none", name, other).
			WithHint("write iterations: 2 or more at the pipeline")
	default:
		warn("%q reads the output of %q but does not wait for it: there may be none", name, other).
			WithHint("write depends_on: [%s]", other)
	}
}

// A walk answers which task runs before which. When all questions together take too long, it gives
// up and says yes, so that a warning is missing rather than a check hanging.
type walk struct {
	c     *compiler
	sel   *selection
	seen  []int // by task: the last question that reached it
	asked int
	steps int
}

// before says whether a ends before b starts, because b depends on it.
func (w *walk) before(a, b int) bool {
	const enough = 20_000_000
	if w.seen == nil {
		w.seen = make([]int, len(w.c.tasks))
	}
	w.asked++
	todo := []int{b}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, next := range w.c.tasks[i].after {
			if next.task == a {
				return true
			}
			if w.steps++; w.steps > enough {
				return true
			}
			if w.seen[next.task] != w.asked && w.sel.has[next.task] {
				w.seen[next.task] = w.asked
				todo = append(todo, next.task)
			}
		}
	}
	return false
}
