package compose

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"swarm"
)

// usualTeam is who there is when a file names nobody, or there is none.
var usualTeam = []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}

// CompileTeam makes a plan without tasks, of all agents of a file: those that it declares, else those that its tasks name or are,
// else the usual team. The source may be empty.
func CompileTeam(o Options) (*Bundle, error) {
	c := newCompiler(o)
	if len(o.Source) > 0 {
		if c.read(); c.failed() {
			return nil, c.firstError()
		}
	}
	here := &yaml.Node{Kind: yaml.ScalarNode}
	if len(c.file.Agents.entries) == 0 {
		c.file.Agents = named[agentKeys]{at: at{here}}
		for _, name := range c.namesOfTeam() {
			c.file.Agents.entries = append(c.file.Agents.entries, entry[agentKeys]{key: &yaml.Node{Kind: yaml.ScalarNode, Value: name}, name: name})
		}
	}
	c.file.Tasks, c.file.Pipelines, c.file.broken = named[taskKeys]{}, named[pipelineKeys]{}, false
	if c.resolve(); c.failed() {
		return nil, c.offFile(c.firstError())
	}
	sel := c.all()
	for _, a := range c.agentsOf(sel) {
		c.provide(a, true) // whoever is there can be spoken to, and then has to work
		c.checkTools(a)
	}
	c.loadPrompts(sel)
	c.checkModels(sel)
	c.checkMoney(sel)
	p := c.emit(sel)
	if c.failed() {
		return nil, c.offFile(c.firstError())
	}
	p.Kind = swarm.LineRun
	return &Bundle{Plan: p, Bodies: c.bodies.texts, Warnings: c.sortedWarnings(), Settings: c.settings(), Places: c.places(sel)}, nil
}

func (c *compiler) namesOfTeam() (names []string) {
	for _, t := range c.file.Tasks.entries {
		name := t.value.Agent.value
		if name == "" {
			name = swarm.AgentOf(t.name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return usualTeam
	}
	return names
}
