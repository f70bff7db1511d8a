package compose

import (
	"cmp"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/providerkind"
)

// defaultTeam is the team if a file names no agent, or if there is no file.
var defaultTeam = []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}

// CompileTeam makes a plan without tasks, of all agents of a file: those that it declares, else
// those that its tasks name or are, else the default team. The source may be empty.
func CompileTeam(o Options) (*Bundle, error) {
	c := newCompiler(o)
	c.working = true // every agent can be addressed, and then has to work
	declared := false
	var supervisor *swarm.ProviderSpec
	b, err := c.compile(func() {
		if declared = len(c.file.Agents.entries) > 0; !declared {
			c.declareTeam()
		}
		c.file.Tasks = named[taskKeys]{}
	}, func() *selection {
		supervisor = c.supervisor()
		return c.selectAll()
	})
	if err == nil {
		b.Plan.Kind, b.DeclaresAgents, b.Supervisor = swarm.LineRun, declared, supervisor
	}
	return b, err
}

// supervisor returns the provider of a swarm's supervisor. Without swarm.provider it is that of
// agents that name none, if that needs no more to know its model.
func (c *compiler) supervisor() *swarm.ProviderSpec {
	name := cmp.Or(c.o.Provider, c.file.Swarm.Provider.value, c.defaultProvider())
	if name == "" || providerkind.Of(name).Outside {
		return nil
	}
	s := c.spec(name)
	if s.Model == "" && providerkind.Of(s.Kind).Model == providerkind.NeedModel && name != c.file.Swarm.Provider.value {
		return nil
	}
	return s
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
