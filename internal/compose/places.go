package compose

import (
	"go.yaml.in/yaml/v4"

	"swarm"
)

// A Place is where something stands in the file, or in a --set; zero = nowhere.
type Place struct {
	File         string
	Line, Column int
}

// Blame gives an error that has no place this one.
func (p Place) Blame(e *swarm.Error) *swarm.Error {
	if e.File == "" {
		e.File, e.Line, e.Column = p.File, p.Line, p.Column
	}
	return e
}

// Places are where those things stand that may turn out to be missing when a run is about to begin, by their names.
type Places struct {
	Providers map[string]Place // where it is declared, else where an agent, or the file, first names it
	Servers   map[string]Place
	Roots     map[string]Place // by the agent's name in the file
}

func (c *compiler) place(n *yaml.Node) Place {
	if n == nil || n.Line == 0 {
		return Place{}
	}
	e := c.at(n, "", "", nil)
	return Place{e.File, e.Line, e.Column}
}

// places finds them for the agents that are to work.
func (c *compiler) places(sel *selection) Places {
	p := Places{Providers: map[string]Place{}, Servers: map[string]Place{}, Roots: map[string]Place{}}
	for _, a := range c.agentsOf(sel) {
		if a.keys != nil && a.keys.Root.given() {
			p.Roots[a.name] = c.place(a.keys.Root.node)
		}
		if a.spec == nil {
			continue
		}
		if _, known := p.Providers[a.spec.Name]; !known {
			p.Providers[a.spec.Name] = c.place(c.naming(a))
		}
	}
	for _, s := range c.file.Tools.MCP.entries {
		p.Servers[s.name] = c.place(s.key)
	}
	return p
}

// naming is what an agent has its provider from; nil when the command line or the environment named it.
func (c *compiler) naming(a *agent) *yaml.Node {
	switch e := c.file.Providers.find(a.spec.Name); {
	case e != nil:
		return e.key
	case a.keys != nil && a.keys.Provider.given():
		return a.keys.Provider.node
	case c.o.Provider == "":
		return c.file.Provider.node
	}
	return nil
}
