package compose

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// ourServer is the name under which our own tools are offered.
const ourServer = "swarm"

// checkTools checks an agent's `tools`, by what its kind makes of the list.
func (c *compiler) checkTools(a *agent) {
	if a.keys == nil || a.spec == nil {
		return
	}
	k := a.keys
	if k.Root.given() {
		c.checkFolder("root", k.Root, "it then is the folder in which swarm was started")
	}
	switch providerkind.Of(a.spec.Kind).ToolNames {
	case providerkind.OurNames:
		servers := append(c.file.Tools.MCP.names(), ourServer)
		for _, entry := range k.Tools.items {
			if !meansTool(a, entry) {
				continue
			}
			r, err := toolrule.Parse(entry.value, servers)
			if err != nil {
				c.fail(entry.node, "%s", err.Error()).Hint = swarm.HintOf(err)
			}
			a.served = a.served || r.Server != "" && r.Server != ourServer
		}
	case providerkind.Unheeded:
		if k.Tools.given() {
			c.warn(k.Tools.node, "%q works with the provider %q, of the kind %s, to which a list of tools says nothing", a.name, a.spec.Name, a.spec.Kind).
				WithHint("leave it out: what the agent may do is decided where it runs")
		}
	case providerkind.ProgramNames:
		for _, entry := range k.Tools.items {
			c.checkProgramTool(a, entry)
		}
	}
}

// meansTool reports whether an entry of an agent's `tools` means something to its provider. A
// script ignores the names of a coding agent's tools, such as Bash(go test:*) and mcp__github. So a
// script can play the agents of a file without changes to their `tools`.
func meansTool(a *agent, entry text) bool {
	return a.spec == nil || !providerkind.Of(a.spec.Kind).Plays ||
		!strings.HasPrefix(entry.value, "mcp__") && strings.IndexFunc(entry.value, unicode.IsUpper) != 0
}

// toolsOf returns the entries of an agent's `tools` that mean something to its provider.
func toolsOf(a *agent) (tools []string) {
	for _, entry := range a.keys.Tools.items {
		if meansTool(a, entry) {
			tools = append(tools, entry.value)
		}
	}
	return tools
}

// checkProgramTool warns about entries that mean nothing to a coding agent. The program defines the
// names of its tools, but some names are certainly not among them.
func (c *compiler) checkProgramTool(a *agent, entry text) {
	name, _, _ := strings.Cut(entry.value, "(")
	switch kind := providerkind.Of(a.spec.Kind); {
	case !strings.HasPrefix(name, kind.ToolPrefix):
		c.warn(entry.node, "%s says nothing to %s, which does what its sandbox allows", swarm.Quote(entry.value), kind.Program.Title).
			WithHint("leave it out; for a tool server of its own settings write %sSERVER", kind.ToolPrefix)
	case slices.Contains(toolrule.Tools, name) && name != toolrule.WebFetch: // Gemini CLI has its own web_fetch
		c.warn(entry.node, "%s is a tool of models over HTTP, and %q works with %s", swarm.Quote(entry.value), a.name, a.spec.Name).
			WithHint("write what its program calls it: %s", kind.ToolSample)
	}
}

// checkFolder checks the folder that tools may touch. without says which it is if the key is left
// out.
func (c *compiler) checkFolder(key string, root text, without string) {
	folder := c.folder(root.value)
	outside, err := filepath.Rel(c.o.Dir, folder)
	switch {
	case strings.TrimSpace(root.value) == "":
		c.fail(root.node, "%s is empty", key).WithHint("write a folder, or leave it out: %s", without)
	case c.startsAtHome(key, root):
	case folder == string(filepath.Separator):
		c.fail(root.node, "%s is the whole machine", key).WithHint("write the folder of its work: %s: .", key)
	case err != nil || !filepath.IsLocal(outside):
		c.warn(root.node, "%s is %s, outside of the folder in which swarm was started", key, folder).
			WithHint("write a folder in it, if that is not on purpose")
	}
}

// checkModels checks that every agent that has to work has a model.
func (c *compiler) checkModels(sel *selection) {
	for _, a := range c.agentsOf(sel) {
		if len(c.tasks) == 0 {
			c.checkModel(a, a.node, text{}, text{})
		}
	}
	for _, i := range sel.tasks {
		t := &c.tasks[i]
		c.checkModel(c.agents[t.agent], t.key, t.value.Model, t.value.Tier)
	}
}

// checkModel finds the model as a turn does: the task's, the agent's, the provider's.
func (c *compiler) checkModel(a *agent, at *yaml.Node, model, tier text) {
	s := a.spec
	if s == nil {
		return
	}
	if !model.given() && !tier.given() && a.keys != nil {
		model, tier = a.keys.Model, a.keys.Tier
	}
	kind := providerkind.Of(s.Kind)
	switch {
	case model.value != "":
	case tier.value != "" && s.Models[tier.value] == "" && (len(s.Models) > 0 || kind.Model != providerkind.AnyModel):
		hint := "write models: {" + tier.value + ": NAME} for it under providers"
		if have := slices.DeleteFunc(slices.Clone(tiers), func(t string) bool { return s.Models[t] == "" }); len(
			have,
		) > 0 {
			hint += ", or choose a tier that it has: " + strings.Join(have, ", ")
		}
		c.missing(tier.node, "the provider %q has no model for the tier %q", s.Name, tier.value).WithHint("%s", hint)
	case tier.value == "" && s.Model == "" && kind.Model == providerkind.NeedModel:
		c.missing(at, "nothing says which model of the provider %q is to do it", s.Name).
			WithHint("write model: NAME for the agent, or models: {small: NAME, medium: NAME, large: NAME} for the provider")
	}
}

// servers returns the tool servers of the file.
func (c *compiler) servers() (list []swarm.ToolServer) {
	for _, m := range c.file.Tools.MCP.entries {
		v := &m.value
		list = append(
			list,
			swarm.ToolServer{
				Name:    m.name,
				Command: texts(v.Command),
				URL:     v.URL.value,
				Headers: pairs(v.Headers),
				Env:     pairs(v.Env),
			},
		)
	}
	return list
}

// checkServers checks the declared tool servers.
func (c *compiler) checkServers() {
	for _, m := range c.file.Tools.MCP.entries {
		v := &m.value
		c.checkName(m.key, "tool server", swarm.CheckTaskName)
		c.checkURL(v.URL, "take it out, and write headers: {Authorization: Bearer $NAME} for the server")
		c.checkCommand(v.Command, "command")
		c.checkEnv(v.Env)
		c.checkHeaders(v.Headers)
		switch {
		case v.broken:
		case m.name == ourServer:
			c.fail(m.key, `the name "swarm" is that of our own tools`).WithHint("choose another name")
		case slices.Contains(toolrule.Tools, m.name):
			c.fail(m.key, "the name %q is that of a tool", m.name).WithHint("choose another name")
		case v.Command.given() == v.URL.given():
			c.fail(m.key, "the tool server %q needs a command or a url, one of the two", m.name).
				WithHint("write command: [my-server]")
		case v.URL.given() && v.Env.given():
			c.fail(v.Env.node, "the tool server %q is reached by its url, and has an environment of its own", m.name).
				WithHint("write headers: {Authorization: Bearer $NAME} for what it has to be told")
		case v.Command.given() && v.Headers.given():
			c.fail(v.Headers.node, "the tool server %q is a program, and is sent no headers", m.name).
				WithHint("write env: {NAME: $NAME} for what it has to be told")
		}
	}
}

// checkHeaders keeps keys out of the file: a header with a key must end with the name of a
// variable.
func (c *compiler) checkHeaders(headers named[text]) {
	for _, h := range headers.entries {
		value := h.value.value
		last := value[strings.LastIndexByte(value, ' ')+1:]
		switch {
		case h.name == "" || strings.ContainsFunc(h.name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r) }):
			c.fail(h.key, "%s is not the name of a header", swarm.Quote(h.name)).
				WithHint("write one such as Authorization")
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
			c.fail(h.value.node, "the header %s cannot hold this", h.name).WithHint("write it in one line")
		case holdsSecret(h.name, last):
			c.fail(h.key, "%s looks like a secret, and what stands in the file would be stored with the run", h.name).
				WithHint("write %q and set it in the environment", strings.TrimSuffix(value, last)+"$NAME")
		}
	}
}
