package compose

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/secret"
	"swarm/internal/yamlfile"
)

// A compiler is one reading of one file.
type compiler struct {
	problems
	o       Options
	sources *readPrompts // o.Prompts
	root    *yaml.Node
	file    fileKeys

	tasks      []task // in the file's order
	taskNames  []string
	taskAt     map[string]int
	agents     map[string]*agent
	agentNames []string // declared ones in the file's order, then those that only tasks name
	specs      map[string]*swarm.ProviderSpec
	pieces     map[string]*piece
	bodies     bodies
	teamExpect *swarm.Expect
	lineStarts []int
	walk       walk
	unprovided bool // the missing provider was reported
	working    bool // agents without a task have to work too
}

// A task is a task of the file, with its names resolved.
type task struct {
	*entry[taskKeys]
	agent   string
	own     bool // it names no agent, and is its own
	after   []after
	readers int     // number of tasks that read its output
	prompt  *loaded // nil until it is read, and if it cannot be
	tried   bool
}

// An after is a resolved dependency.
type after struct {
	task      int
	condition swarm.Condition
	node      *yaml.Node
	keys      *afterKeys
}

// An agent is declared, or named by a task, or a task's own.
type agent struct {
	name  string
	order int        // its place in agentNames
	node  *yaml.Node // where it is declared, or else first named
	keys  *agentKeys // nil if it is not declared
	own   bool       // it is only a task's own agent
	tasks []int
	role  *piece
	tried bool // its role and provider were looked for
	spec  *swarm.ProviderSpec

	served bool // it may use a tool server
}

func newCompiler(o Options) *compiler {
	if o.Prompts == nil {
		o.Prompts = noPrompts{}
	}
	read := &readPrompts{Prompts: o.Prompts, known: map[string]bool{}}
	o.Prompts = read
	return &compiler{
		sources:  read,
		problems: problems{file: o.File, sets: o.Set},
		o:        o,
		taskAt:   map[string]int{},
		agents:   map[string]*agent{},
		specs:    map[string]*swarm.ProviderSpec{},
		pieces:   map[string]*piece{},
		bodies:   bodies{known: map[swarm.Hash]bool{}},
	}
}

// A reading is a file that was parsed and decoded. A compiler changes nothing in it.
type reading struct {
	problems
	root *yaml.Node
	file fileKeys
}

// read parses and decodes the file, or takes over what ReadOnce has kept.
func (c *compiler) read() {
	r := c.o.ReadOnce().reading()
	c.root, c.file, c.problems = r.root, r.file, r.problems
	c.errs, c.warns = slices.Clip(c.errs), slices.Clip(c.warns) // what is added to them is our own
	c.missingErrs = maps.Clone(c.missingErrs)
}

// readFile parses and decodes the file.
func readFile(o Options) *reading {
	r := &reading{problems: problems{file: o.File, sets: o.Set}}
	root, err := yamlfile.Parse(
		o.File, o.Source,
		"write at least one task: `tasks: {hello: {prompt-string: \"Say hello.\"}}`, or let `swarm init` write a file")
	if err != nil {
		r.errs = append(r.errs, err)
		return r
	}
	r.root = root
	r.expectEnd(o.Source)
	r.override()
	d := &decoder{problems: &r.problems}
	d.decode(r.root, &r.file, rule{})
	if d.aliased >= maxAliased {
		r.root = nil // a bomb: its content is not examined
	}
	return r
}

// resolve looks at the file as a whole: names, and dependencies between tasks.
func (c *compiler) resolve() {
	f := &c.file
	if !f.Tasks.given() && !f.Agents.given() && !c.namesProvider() && !f.broken {
		e := c.missing(nil, "the file has neither tasks nor agents")
		e.Line = yamlfile.Lines(c.o.Source)
		e.WithHint("write at least one task: `tasks: {hello: {prompt-string: \"Say hello.\"}}`")
	}
	c.tasks = make([]task, len(f.Tasks.entries))
	c.taskNames = f.Tasks.names()
	for i := range f.Tasks.entries {
		c.tasks[i].entry = &f.Tasks.entries[i]
		c.taskAt[c.tasks[i].name] = i
	}
	c.resolveProviders()
	c.resolveAgents()
	for i := range c.tasks {
		c.resolveTask(&c.tasks[i])
	}
	c.checkCycles()
	for i := range f.Pipelines.entries {
		c.resolvePipeline(&f.Pipelines.entries[i])
	}
	c.resolveEdges()
	c.checkSettings()
}

// checkName checks a name at its place.
func (c *compiler) checkName(key *yaml.Node, what string, check func(string) error) bool {
	err := check(key.Value)
	if err == nil {
		return true
	}
	e := c.fail(key, "%s", err.Error())
	e.Hint = swarm.HintOf(err)
	for _, noun := range []string{"a task", "an agent"} {
		if strings.HasSuffix(e.Msg, "a name for "+noun) {
			e.Msg = strings.TrimSuffix(e.Msg, noun) + "a " + what
		}
	}
	if what == "agent" {
		e.Msg = strings.Replace(e.Msg, "a agent", "an agent", 1)
	}
	return false
}

// ownVariables are the variables that swarm sets in every turn.
var ownVariables = []string{
	"SWARM_RUN_ID",
	"SWARM_TASK",
	"SWARM_TASK_ID",
	"SWARM_AGENT",
	"SWARM_AGENT_ID",
	"SWARM_ITERATION",
	"SWARM_ATTEMPT",
	"SWARM_TURN_ID",
	"SWARM_DEPTH",
	"SWARM_URL",
	"SWARM_AGENT_TOKEN",
	"SWARM_DESK",
}

// checkEnv checks variables: their names, and that no secret is in the file.
func (c *compiler) checkEnv(env named[text]) {
	for _, e := range env.entries {
		switch {
		case e.name == "" || strings.ContainsFunc(e.name, func(r rune) bool { return r == '=' || unicode.IsSpace(r) || unicode.IsControl(r) }):
			c.fail(e.key, "%s is not the name of a variable", swarm.Quote(e.name)).WithHint("write one such as API_URL")
		case slices.Contains(ownVariables, e.name):
			c.fail(e.key, "%s is set by swarm itself", e.name).WithHint("choose another name")
		case holdsSecret(e.name, e.value.value):
			c.fail(e.key, "%s looks like a secret, and what stands in the file would be stored with the run", e.name).
				WithHint("write ${%s} and set it in the environment", e.name)
		}
	}
}

// holdsSecret says whether a value that looks like a secret is in the file itself.
func holdsSecret(name, value string) bool {
	_, elsewhere := secret.Reference(value)
	return secret.LooksSecret(name) && value != "" && !elsewhere
}

// resolveAgents finds all agents: declared ones, those that tasks name, and tasks that are their
// own.
func (c *compiler) resolveAgents() {
	entries := c.file.Agents.entries
	for i := range entries {
		e := &entries[i]
		c.checkName(e.key, "agent", swarm.CheckAgentName)
		c.checkEnv(e.value.Env)
		c.checkOnLimit(&e.value.OnLimit)
		c.addAgent(e.name, e.key).keys = &e.value
	}
	declared := slices.Clone(c.agentNames)
	for i := range c.tasks {
		t := &c.tasks[i]
		c.checkName(t.key, "task", swarm.CheckTaskName)
		t.own = !t.value.Agent.given()
		if t.agent = t.value.Agent.value; t.own {
			t.agent = swarm.AgentOf(t.name)
		}
	}
	for i := range c.tasks {
		if t := &c.tasks[i]; t.own && t.agent == t.name && c.agents[t.agent] == nil {
			c.addAgent(t.agent, t.key).own = true
		}
	}
	for i := range c.tasks {
		if t := &c.tasks[i]; !t.own && c.agents[t.agent] == nil {
			c.nameAgent(t, declared)
		}
	}
	for i := range c.tasks {
		t := &c.tasks[i]
		if t.own && t.agent != t.name {
			if other := c.agents[t.agent]; other != nil {
				c.fail(t.key, "the agent of the task %q would be %q, and that name is taken %s", t.name, t.agent, c.where(other.node)).
					WithHint("rename one of them, or give the task an agent")
			} else {
				c.addAgent(t.agent, t.key).own = true
			}
		}
		c.agents[t.agent].tasks = append(c.agents[t.agent].tasks, i)
	}
	c.sortAgents(declared)
}

func (c *compiler) addAgent(name string, node *yaml.Node) *agent {
	a := &agent{name: name, node: node}
	c.agents[name] = a
	c.agentNames = append(c.agentNames, name)
	return a
}

// nameAgent adds an agent that is not declared. That is allowed, but if other agents are declared
// it may be a misspelling.
func (c *compiler) nameAgent(t *task, declared []string) {
	node := t.value.Agent.node
	c.addAgent(t.agent, node)
	if !c.checkName(node, "agent", swarm.CheckAgentName) || len(declared) == 0 {
		return
	}
	if hint := c.didYouMean(t.agent, declared); strings.HasPrefix(hint, "did you mean") {
		c.missing(node, "there is no agent %q", t.agent).WithHint("%s", hint)
		return
	}
	c.warn(node, "the agent %q is declared nowhere, so it is one without any settings", t.agent).
		WithHint("write it under agents")
}

// sortAgents puts agents that are not declared in the order of their first tasks.
func (c *compiler) sortAgents(declared []string) {
	c.agentNames = declared
	for i := range c.tasks {
		if a := c.agents[c.tasks[i].agent]; a.keys == nil && a.tasks[0] == i {
			c.agentNames = append(c.agentNames, a.name)
		}
	}
	for i, name := range c.agentNames {
		c.agents[name].order = i
	}
}

// checkExpect checks the conditions of a task or of a team.
func (c *compiler) checkExpect(x *expectKeys, folder, key string) {
	for name, asked := range map[string]text{"command": x.Command, "matches": x.Matches} {
		if asked.given() && asked.value == "" {
			c.fail(asked.node, "%s is empty", name).WithHint("leave it out, or write what is expected")
		}
	}
	if m := x.Matches; m.given() {
		switch tree, err := syntax.Parse(m.value, syntax.Perl); {
		case err != nil:
			c.fail(m.node, "matches is not a regular expression: %v", err).WithHint("write one in the syntax of RE2")
		case regexpSize(tree) > maxRegexp:
			c.fail(m.node, "matches is too large: with its repetitions written out it has more than %d parts", maxRegexp).
				WithHint("use smaller numbers in {}, or check the output by a command")
		}
	}
	if f := x.File; f.given() && !filepath.IsLocal(f.value) {
		c.fail(f.node, "%s is outside %s", swarm.Quote(f.value), folder).
			WithHint("write a path relative to %s", key)
	}
	if x.given() && !x.broken && !x.Command.given() && !x.File.given() && !x.Matches.given() &&
		!x.Schema.given() {
		c.fail(x.node, "expect expects nothing").WithHint("write at least one of command, file, schema, matches")
	}
}

// resolveTask checks a task's own keys, and finds the tasks that it depends on.
func (c *compiler) resolveTask(t *task) {
	v := &t.value
	c.checkPromptKeys(t)
	c.checkEnv(v.Env)
	c.checkExpect(&v.Expect, "the task's folder", "workdir")
	for _, in := range v.Inputs.entries {
		c.checkName(in.key, "input", swarm.CheckTaskName)
	}
	type once struct {
		task      int
		condition swarm.Condition
	}
	seen := make(map[once]bool, len(v.DependsOn.items))
	for k := range v.DependsOn.items {
		d := &v.DependsOn.items[k]
		name := d.Task
		if !name.given() {
			if !d.broken {
				c.fail(d.node, "this dependency names no task").WithHint("write {task: name, condition: success}")
			}
			continue
		}
		i, ok := c.taskAt[name.value]
		if !ok {
			c.missing(name.node, "there is no task %s to depend on", swarm.Quote(name.value)).
				WithHint("%s", c.didYouMean(name.value, c.taskNames))
			continue
		}
		condition := swarm.OnAny
		if d.Condition.given() {
			condition = swarm.Condition(d.Condition.value)
		}
		if seen[once{i, condition}] {
			c.warn(name.node, "%q is named twice in depends_on", name.value).WithHint("keep one of them")
			continue
		}
		seen[once{i, condition}] = true
		t.after = append(t.after, after{i, condition, name.node, d})
	}
}

// checkPromptKeys checks that a task has exactly one prompt.
func (c *compiler) checkPromptKeys(t *task) {
	v := &t.value
	var have []string
	var second *yaml.Node
	for _, p := range []struct {
		key  string
		text text
	}{{"prompt", v.Prompt}, {"prompt-file", v.PromptFile}, {"prompt-string", v.PromptString}} {
		if !p.text.given() {
			continue
		}
		if have = append(have, p.key); len(have) == 2 {
			second = p.text.node
		}
		if strings.TrimSpace(p.text.value) == "" {
			c.fail(p.text.node, "the %s of the task %q is empty", p.key, t.name)
		}
	}
	switch {
	case len(have) > 1:
		c.fail(second, "the task %q has %s", t.name, strings.Join(have, " and ")).
			WithHint("write exactly one of prompt, prompt-file, prompt-string")
	case len(have) == 0 && !v.broken:
		c.missing(t.key, "the task %s has no prompt", swarm.Quote(t.name)).
			WithHint("write one of prompt: NAME, prompt-file: PATH, prompt-string: TEXT")
	}
}

// checkCycles reports cycles that have no task in common.
func (c *compiler) checkCycles() {
	const enough = 20
	next := make([][]int, len(c.tasks))
	for i, t := range c.tasks {
		for _, a := range t.after {
			next[i] = append(next[i], a.task)
		}
	}
	for range enough {
		cycle := plan.Cycle(len(next), func(i int) []int { return next[i] })
		if cycle == nil {
			return
		}
		c.fail(c.tasks[cycle[0]].key, "dependency cycle: %s", c.path(cycle)).
			WithHint("remove one of these dependencies; an output of the iteration before needs none")
		for _, i := range cycle {
			next[i] = nil
		}
	}
}

// path formats a cycle. A long one is shortened.
func (c *compiler) path(cycle []int) string {
	const most = 100
	var names []string
	for k, i := range cycle {
		if k == most {
			names = append(names, fmt.Sprintf("… %d more …", len(cycle)-most))
			break
		}
		names = append(names, c.tasks[i].name)
	}
	return strings.Join(append(names, c.tasks[cycle[0]].name), " → ")
}

// resolvePipeline checks the tasks of a pipeline. It must have all tasks on which its tasks depend.
func (c *compiler) resolvePipeline(p *entry[pipelineKeys]) {
	c.checkName(p.key, "pipeline", swarm.CheckTaskName)
	if len(p.value.Tasks.items) == 0 {
		if !p.value.broken {
			c.missing(p.key, "the pipeline %s has no tasks", swarm.Quote(p.name)).
				WithHint("write tasks: [%s]", strings.Join(c.taskNames[:min(3, len(c.taskNames))], ", "))
		}
		return
	}
	listed := make(map[int]bool, len(p.value.Tasks.items))
	for _, item := range p.value.Tasks.items {
		i, ok := c.taskAt[item.value]
		switch {
		case !ok:
			c.missing(item.node, "there is no task %s", swarm.Quote(item.value)).
				WithHint("%s", c.didYouMean(item.value, c.taskNames))
		case listed[i]:
			c.fail(item.node, "the pipeline %q lists %q twice", p.name, item.value).WithHint("keep one of them")
		}
		listed[i] = listed[i] || ok
	}
	if p.value.broken {
		return
	}
	for _, item := range p.value.Tasks.items {
		i, ok := c.taskAt[item.value]
		if !ok {
			continue
		}
		for _, a := range c.tasks[i].after {
			if !listed[a.task] {
				c.missing(item.node, "the pipeline %q lists %q but not %q, which it depends on", p.name, item.value, c.tasks[a.task].name).
					WithHint("add %s to its tasks", c.tasks[a.task].name)
			}
		}
	}
}

// arrow splits an edge.
func arrow(s string) (from, to string, both, ok bool) {
	from, to, both = strings.Cut(s, "<->")
	if !both {
		if from, to, ok = strings.Cut(s, "->"); !ok {
			return "", "", false, false
		}
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	return from, to, both, from != "" && to != "" && !strings.ContainsAny(from+to, "<> ")
}

// resolveEdges checks that edges join agents that exist.
func (c *compiler) resolveEdges() {
	for _, e := range c.file.Edges.items {
		from, to, _, ok := arrow(e.value)
		if !ok {
			c.fail(e.node, "%s is not an edge", swarm.Quote(e.value)).
				WithHint(`write "planner -> coder" or "planner <-> coder"`)
			continue
		}
		for _, name := range []string{from, to} {
			if c.agents[name] == nil {
				c.missing(e.node, "there is no agent %s", swarm.Quote(name)).
					WithHint("%s", c.didYouMean(name, c.agentNames))
			}
		}
		if from == to {
			c.fail(e.node, "an edge must lead to another agent")
		}
	}
}
