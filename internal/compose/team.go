package compose

import (
	"cmp"
	"slices"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/providerkind"
)

// defaultTeam is the team if a file names no agent, or if there is no file.
var defaultTeam = []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}

// CompileTeam makes a plan without tasks, of all agents of a file: those that it declares, else
// those that its tasks name or are, else the default team. The source may be empty: then the agents
// are what the machine has, see [Found].
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

// supervisor returns the provider of a swarm's supervisor: --provider, swarm.provider or the
// default provider. It returns nil if there is none, or if the default provider has no model.
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

// declareTeam declares the agents of a file that declares none. Without a file, the programs that are
// installed are the agents, unless --provider names one. The roles of .claude/agents join them.
func (c *compiler) declareTeam() {
	c.file.Agents = named[agentKeys]{at: at{&yaml.Node{Kind: yaml.ScalarNode}}}
	found := c.found()
	if len(found.Programs) > 0 && c.o.Provider == "" {
		for _, kind := range found.Programs {
			c.declare(providerkind.Of(kind).Program.Name).Provider = text{at{&yaml.Node{Kind: yaml.ScalarNode}}, kind}
		}
	} else {
		for _, name := range c.teamNames() {
			c.declare(name)
		}
	}
	for _, name := range found.Roles {
		role := text{at{&yaml.Node{Kind: yaml.ScalarNode}}, name}
		if swarm.CheckAgentName(name) == nil && c.usableRole(role) {
			c.declareRole(role)
		}
	}
}

// found returns what replaces a missing file. It is empty if there is a file.
func (c *compiler) found() Found {
	if len(c.o.Source) > 0 || c.o.Found == nil {
		return Found{}
	}
	return *c.o.Found
}

// declare adds an agent to those of the file, and returns its keys.
func (c *compiler) declare(name string) *agentKeys {
	all := &c.file.Agents.entries
	*all = append(*all, entry[agentKeys]{key: &yaml.Node{Kind: yaml.ScalarNode, Value: name}, name: name})
	return &(*all)[len(*all)-1].value
}

// declareRole adds the agent of a role, or gives the role to the agent that has its name.
func (c *compiler) declareRole(role text) {
	all := c.file.Agents.entries
	if i := slices.IndexFunc(all, func(e entry[agentKeys]) bool { return e.name == role.value }); i >= 0 {
		all[i].value.Role = role
		return
	}
	c.declare(role.value).Role = role
}

// usableRole reports whether a role can be read. Its mistakes are warnings, because no line has
// addressed the role yet.
func (c *compiler) usableRole(name text) bool {
	errs, warns := len(c.errs), len(c.warns)
	c.rolePiece(name)
	bad := c.errs[errs:]
	c.errs, c.warns = c.errs[:errs:errs], c.warns[:warns:warns] // the role is read again where it is used
	for _, e := range bad {
		e.Kind = Warning
		c.warns = append(c.warns, e)
	}
	return len(bad) == 0
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
