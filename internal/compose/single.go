package compose

import (
	"errors"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/prompt"
)

// A Single is one prompt to run by itself, outside of any pipeline.
type Single struct {
	Task  string // what it is called
	Agent string // who does it, by name; "" = an agent of the task's name if there is one, else one of its own
	File  string // where the text is from, for messages and spans
	Text  []byte
}

// CompileSingle makes the plan of one prompt, with the agents and providers of the file; the source may be empty. What the prompt
// reads of other tasks is not there: {{output:x}} gives the placeholder.
func CompileSingle(o Options, s Single) (*Bundle, error) {
	c := newCompiler(o)
	if len(o.Source) > 0 {
		if c.read(); c.failed() {
			return nil, c.firstError()
		}
	}
	here := &yaml.Node{Kind: yaml.ScalarNode}
	keys := taskKeys{PromptString: text{at{here}, string(s.Text)}}
	if s.Agent == "" && c.file.Agents.find(s.Task) != nil {
		s.Agent = s.Task
	}
	if s.Agent != "" {
		keys.Agent = text{at{here}, s.Agent}
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: s.Task}
	c.file.Tasks = named[taskKeys]{at: at{here}, entries: []entry[taskKeys]{{key: key, name: s.Task, value: keys}}}
	c.file.Pipelines = named[pipelineKeys]{}
	c.file.broken = false
	if c.resolve(); c.failed() {
		return nil, c.offFile(c.firstError())
	}
	tpl, warnings, err := prompt.Parse(prompt.Source{File: s.File, Text: s.Text}, c.o.Prompts.Include)
	if err != nil {
		return nil, err
	}
	c.warns = append(c.warns, warnings...)
	sel := c.all()
	for _, ref := range tpl.Refs() {
		sel.stdin = sel.stdin || ref.Kind == prompt.KindStdin
	}
	c.tasks[0].tried, c.tasks[0].prompt = true, &loaded{hash: c.bodies.add(tpl.Marshal())}
	c.loadPrompts(sel) // the agent's role
	c.checkModels(sel)
	c.checkMoney(sel)
	p := c.emit(sel)
	if c.failed() {
		return nil, c.offFile(c.firstError())
	}
	p.Name = s.Task
	return &Bundle{Plan: p, Bodies: c.bodies.texts, Warnings: c.sortedWarnings(), Settings: c.settings(), Places: c.places(sel)}, nil
}

// offFile takes the file off an error that has no line: what is wrong was not written there.
func (c *compiler) offFile(err error) error {
	if e := new(swarm.Error); errors.As(err, &e) && e.Line == 0 {
		e.File = ""
	}
	return err
}
