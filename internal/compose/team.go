package compose

import (
	"go.yaml.in/yaml/v4"

	"swarm"
)

// defaultTeam is the team if a file names no agent, or if there is no file.
var defaultTeam = []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}

// CompileTeam makes a plan without tasks, of all agents of a file: those that it declares, else
// those that its tasks name or are, else the default team. The source may be empty.
func CompileTeam(o Options) (*Bundle, error) {
	c := newCompiler(o)
	c.working = true // every agent can be addressed, and then has to work
	declared := false
	b, err := c.compile(func() {
		if declared = len(c.file.Agents.entries) > 0; !declared {
			c.declareTeam()
		}
		c.file.Tasks = named[taskKeys]{}
	}, c.selectAll)
	if err == nil {
		b.Plan.Kind, b.DeclaresAgents = swarm.LineRun, declared
	}
	return b, err
}

// declareTeam declares the agents of a file that declares none.
func (c *compiler) declareTeam() {
	c.file.Agents = named[agentKeys]{at: at{&yaml.Node{Kind: yaml.ScalarNode}}}
	for _, name := range c.teamNames() {
		c.file.Agents.entries = append(
			c.file.Agents.entries,
			entry[agentKeys]{key: &yaml.Node{Kind: yaml.ScalarNode, Value: name}, name: name},
		)
	}
}

// namesProvider says whether the file names a provider. Then it is useful even without agents and
// tasks.
func (c *compiler) namesProvider() bool { return c.file.Provider.given() || c.file.Providers.given() }

// teamNames returns the agents that tasks name or are, or else the default team.
func (c *compiler) teamNames() (names []string) {
	known := make(map[string]bool, len(c.file.Tasks.entries))
	for _, t := range c.file.Tasks.entries {
		name := t.value.Agent.value
		if name == "" {
			name = swarm.AgentOf(t.name)
		}
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	if names == nil {
		return defaultTeam
	}
	return names
}
