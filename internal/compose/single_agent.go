package compose

import (
	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/prompt"
)

// A Single is one prompt to run by itself, outside of any pipeline.
type Single struct {
	Task string // its name
	// Agent is the name of an agent that lines can address. "" means the agent with the task's name
	// if there is one, else the task's own.
	Agent string
	File  string // the origin of the text, for messages and spans
	Text  []byte
}

// CompileSingle makes the plan of one prompt, with the agents and providers of the file. The source
// may be empty. Outputs of other tasks do not exist: {{output:x}} gives the placeholder.
func CompileSingle(o Options, s Single) (*Bundle, error) {
	c := newCompiler(o)
	b, err := c.compile(func() {
		here := at{&yaml.Node{Kind: yaml.ScalarNode}}
		keys := taskKeys{PromptString: text{here, string(s.Text)}}
		if s.Agent == "" && c.file.Agents.find(s.Task) != nil {
			s.Agent = s.Task
		}
		if s.Agent != "" {
			c.requireAgent(s.Agent)
			keys.Agent = text{here, s.Agent}
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: s.Task}
		c.file.Tasks = named[taskKeys]{at: here, entries: []entry[taskKeys]{{key: key, name: s.Task, value: keys}}}
	}, func() *selection { return c.chooseSingle(s) })
	if err == nil {
		b.Plan.Name = s.Task
	}
	return b, err
}

// requireAgent checks that the agent that a user names is one that a line can name.
func (c *compiler) requireAgent(name string) {
	if len(c.file.Agents.entries) == 0 {
		c.declareTeam()
	}
	if c.file.Agents.find(name) == nil {
		c.failWith(nil, swarm.UnknownAgent(name, c.file.Agents.names()))
	}
}

// chooseSingle selects the one task, and reads its prompt.
func (c *compiler) chooseSingle(s Single) *selection {
	sel := c.selectAll()
	sel.alone = true
	tpl, warnings, err := prompt.Parse(prompt.Source{File: s.File, Text: s.Text}, c.o.Prompts.Include)
	if err != nil {
		for _, e := range prompt.Errors(err) {
			c.failWith(nil, e)
		}
		return sel
	}
	c.warns = append(c.warns, warnings...)
	for _, ref := range tpl.Refs() {
		sel.stdin = sel.stdin || ref.Kind == prompt.KindStdin
	}
	c.tasks[0].tried, c.tasks[0].prompt = true, &loaded{hash: c.bodies.add(tpl.Marshal())}
	return sel
}
