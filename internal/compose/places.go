package compose

import (
	"go.yaml.in/yaml/v4"

	"swarm"
)

// A Place is a place in the file, or a --set; zero = nowhere.
type Place struct {
	File         string
	Line, Column int
}

// Blame gives this place to an error that has none.
func (p Place) Blame(e *swarm.Error) *swarm.Error {
	if e.File == "" {
		e.File, e.Line, e.Column = p.File, p.Line, p.Column
	}
	return e
}

// Places are the places of things that may turn out to be missing when a run begins, by their
// names.
type Places struct {
	Providers map[string]Place // where it is declared, else where an agent or the file first names it
	Servers   map[string]Place
	Roots     map[string]Place // by the agent's name in the file
	Workspace Place            // of a swarm
	Store     Place
}

func (c *compiler) place(n *yaml.Node) Place {
	if n == nil || n.Line == 0 {
		return Place{}
	}
	e := c.at(n, "", "", nil)
	return Place{e.File, e.Line, e.Column}
}

// places finds the places for the agents that are to work.
func (c *compiler) places(sel *selection) Places {
	p := Places{Providers: map[string]Place{}, Servers: map[string]Place{}, Roots: map[string]Place{}, Workspace: c.place(c.file.Swarm.Workspace.node), Store: c.place(c.file.Store.node)}
	for _, a := range c.agentsOf(sel) {
		if a.keys != nil && a.keys.Root.given() {
			p.Roots[a.name] = c.place(a.keys.Root.node)
		}
		if a.spec == nil {
			continue
		}
		if _, known := p.Providers[a.spec.Name]; !known {
			p.Providers[a.spec.Name] = c.place(c.namingNode(a))
		}
		if on := c.onLimit(a); on != nil && on.Use != "" {
			if e := c.file.Providers.find(on.Use); e != nil {
				p.Providers[on.Use] = c.place(e.key)
			}
		}
	}
	for _, s := range c.file.Tools.MCP.entries {
		p.Servers[s.name] = c.place(s.key)
	}
	return p
}

// namingNode returns the node that names an agent's provider, or nil if the command line or the
// environment names it.
func (c *compiler) namingNode(a *agent) *yaml.Node {
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
