package compose

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"swarm"
)

// resolveProviders checks what is declared.
func (c *compiler) resolveProviders() {
	for i := range c.file.Providers.entries {
		e := &c.file.Providers.entries[i]
		v := &e.value
		c.checkName(e.key, "provider", swarm.CheckTaskName)
		key := "take it out, and write env: {OPENAI_API_KEY: $NAME} (or ANTHROPIC_API_KEY) for the provider"
		if kindOf(e) == "a2a" {
			key = "take it out, and write headers: {Authorization: Bearer $NAME} for the provider"
		}
		c.checkURL(v.BaseURL, key)
		c.checkHeaders(v.Headers)
		c.checkCommand(v.Command, "command")
		c.checkEnv(v.Env)
		for _, m := range v.Models.entries {
			if !slices.Contains(tiers, m.name) {
				c.fail(m.key, "there is no tier %s", swarm.Quote(m.name)).WithHint("%s", swarm.DidYouMean(m.name, tiers))
			}
		}
		if v.broken {
			continue
		}
		kind := kindOf(e)
		switch preset := slices.Contains(kinds, e.name); {
		case kind == "":
			c.missing(e.key, "the provider %s has no kind", swarm.Quote(e.name)).WithHint("write kind: command, or another of %s", listed(kinds))
		case preset && kind != e.name:
			c.fail(e.key, "the provider %q is built in, and is not of the kind %q", e.name, kind).WithHint("choose another name")
		case kind == "command" && !v.Command.given():
			c.missing(e.key, "the provider %q has no command", e.name).WithHint("write command: [program, argument]")
		case kind == "acp" && !v.Command.given():
			c.missing(e.key, "the provider %q has no command", e.name).WithHint("write which program speaks the Agent Client Protocol: command: [gemini, --acp]")
		case kind == "a2a" && !v.BaseURL.given():
			c.missing(e.key, "the provider %q has no base_url", e.name).WithHint("write where the agent's card is, or what that begins with: base_url: http://127.0.0.1:7777/a2a/coder")
		case kind == "script" && !v.Script.given():
			c.missing(e.key, "the provider %q has no script", e.name).WithHint("write script: FILE.yaml")
		case kind != "script" && v.Script.given():
			c.fail(v.Script.node, "a provider of the kind %q has no script", kind).WithHint("write kind: script")
		}
		c.checkMeaning(v, kind)
	}
	if p := c.file.Provider; p.given() {
		c.checkProvider(p.value, p.node)
	}
	if p := c.o.Provider; p != "" && !c.knownProvider(p) {
		c.errs = append(c.errs, swarm.Errorf(swarm.BadInput, "there is no provider %s, which --provider or SWARM_PROVIDER names", swarm.Quote(p)).
			WithHint("%s", c.didYouMean(p, c.providerNames())))
	}
	for i := range c.file.Agents.entries {
		if p := c.file.Agents.entries[i].value.Provider; p.given() {
			c.checkProvider(p.value, p.node)
		}
	}
}

// checkMeaning finds keys that mean nothing to a kind: whoever wrote them thinks that they do something.
func (c *compiler) checkMeaning(v *providerKeys, kind string) {
	if !slices.Contains(kinds, kind) {
		return
	}
	nothing := func(node *yaml.Node, key, hint string) {
		if node != nil {
			c.fail(node, "%s means nothing to a provider of the kind %q", key, kind).WithHint("%s", hint)
		}
	}
	if kind == "a2a" {
		remote := "leave it out: it is reached over HTTP, at base_url, and is what its owner has made of it"
		nothing(v.Command.node, "command", remote)
		nothing(v.Models.node, "models", remote)
		nothing(v.MaxTokens.node, "max_tokens", remote)
		nothing(v.Temperature.node, "temperature", remote)
		nothing(v.Env.node, "env", "leave it out; for a key write headers: {Authorization: Bearer $NAME}")
		return
	}
	nothing(v.Headers.node, "headers", "leave it out: only agents over A2A (kind: a2a) are sent them")
	if slices.Contains(overHTTP, kind) {
		nothing(v.Command.node, "command", "leave it out: it is reached over HTTP, at base_url; or write kind: command")
		return
	}
	if kind == "script" {
		nothing(v.Command.node, "command", "leave it out, or write kind: command")
	}
	url, ours := "leave it out, or write kind: openai", "leave it out: only models over HTTP (kind: anthropic or openai) are asked for it"
	if !slices.Contains(toolless, kind) {
		url = "leave it out: where its models are, its program is told by its own settings, or by a variable under env"
	}
	nothing(v.BaseURL.node, "base_url", url)
	nothing(v.MaxTokens.node, "max_tokens", ours)
	nothing(v.Temperature.node, "temperature", ours)
}

func kindOf(e *entry[providerKeys]) string {
	if !e.value.Kind.given() && slices.Contains(kinds, e.name) {
		return e.name
	}
	return e.value.Kind.value
}

func (c *compiler) providerNames() []string {
	names := c.file.Providers.names()
	for _, k := range kinds {
		if !slices.Contains(names, k) && !needsDeclaring(k) {
			names = append(names, k)
		}
	}
	return names
}

// needsDeclaring says of a kind that it can do nothing without its keys.
func needsDeclaring(kind string) bool {
	return slices.Contains([]string{"command", "script", "acp", "a2a"}, kind)
}

// Presets are the kinds of providers that work without being declared.
func Presets() []string {
	return slices.DeleteFunc(slices.Clone(kinds), needsDeclaring)
}

func (c *compiler) knownProvider(name string) bool {
	return c.file.Providers.find(name) != nil || slices.Contains(kinds, name) && !needsDeclaring(name)
}

func (c *compiler) checkProvider(name string, node *yaml.Node) {
	switch {
	case c.knownProvider(name):
	case needsDeclaring(name):
		key := map[string]string{"command": "command: [program, argument]", "script": "script: FILE.yaml", "acp": "command: [gemini, --acp]",
			"a2a": "base_url: http://127.0.0.1:7777/a2a/coder"}[name]
		c.fail(node, "%q is a kind of provider, and this file does not say which", name).
			WithHint("write providers: {mine: {kind: %s, %s}} and provider: mine", name, key)
	default:
		c.missing(node, "there is no provider %s", swarm.Quote(name)).WithHint("%s", c.didYouMean(name, c.providerNames()))
	}
}

// spec is the provider with this name, which is known to exist. Its script is read now.
func (c *compiler) spec(name string) *swarm.ProviderSpec {
	if s, ok := c.specs[name]; ok {
		return s
	}
	s := &swarm.ProviderSpec{Name: name, Kind: name}
	if e := c.file.Providers.find(name); e != nil {
		v := &e.value
		s.Kind, s.Command, s.BaseURL, s.Models, s.Env, s.Headers = kindOf(e), texts(v.Command), v.BaseURL.value, pairs(v.Models), pairs(v.Env), pairs(v.Headers)
		s.Price = swarm.Price{Input: v.Price.Input.value, Output: v.Price.Output.value}
		s.MaxTokens = v.MaxTokens.value
		if v.Temperature.given() {
			s.Temperature = &v.Temperature.value
		}
		if v.Script.given() {
			s.Script, s.ScriptFile = c.fileBody(v.Script), v.Script.value
		}
	}
	preset(s)
	c.specs[name] = s
	return s
}

// models are the sellers' own, by tier, for those who do not choose.
var models = map[string]map[string]string{
	"anthropic":   {"small": "claude-haiku-5-5", "medium": "claude-sonnet-5-5", "large": "claude-opus-5-5"},
	"openai":      {"small": "gpt-6-luna", "medium": "gpt-6.1-terra", "large": "gpt-6.1-sol"},
	"claude-code": {"small": "haiku", "medium": "sonnet", "large": "opus"},
	"codex":       {"small": "gpt-6-luna", "medium": "gpt-6.1-terra", "large": "gpt-6.1-sol"},
	"gemini":      {"small": "flash-lite", "medium": "flash", "large": "pro"},
}

// chooses are the kinds whose programs choose a model by themselves when none is named.
var chooses = []string{"claude-code", "codex", "gemini"}

// preset fills what the user has left out. A server of the user's own has models of its own, and of those that it has the one in
// the middle does what names none.
func preset(s *swarm.ProviderSpec) {
	usual, known := models[s.Kind]
	if !known {
		return
	}
	if s.BaseURL == "" {
		chosen := s.Models
		s.Models = maps.Clone(usual)
		maps.Copy(s.Models, chosen)
	}
	if slices.Contains(chooses, s.Kind) {
		return
	}
	for _, tier := range []string{"medium", "large", "small"} {
		if s.Model == "" {
			s.Model = s.Models[tier]
		}
	}
}

// agentsOf are the agents that do the selected tasks; all there are when the file has no tasks. They get their providers here.
func (c *compiler) agentsOf(sel *selection) []*agent {
	var list []*agent
	for _, i := range sel.tasks {
		list = append(list, c.agents[c.tasks[i].agent])
	}
	if len(c.tasks) == 0 {
		for _, name := range c.agentNames {
			list = append(list, c.agents[name])
		}
	}
	slices.SortFunc(list, func(a, b *agent) int { return a.order - b.order })
	list = slices.Compact(list)
	for _, a := range list {
		c.provide(a, len(c.tasks) > 0)
		c.checkTools(a)
	}
	return list
}

// provide finds an agent's provider. Without one it cannot work, which matters only if it has to.
func (c *compiler) provide(a *agent, works bool) {
	name := c.o.Provider
	if name == "" {
		name = c.file.Provider.value
	}
	if a.keys != nil && a.keys.Provider.given() {
		name = a.keys.Provider.value
	}
	switch {
	case name != "" && c.knownProvider(name):
		a.spec = c.spec(name)
	case name == "" && works && !c.unprovided && !c.file.broken:
		c.unprovided = true
		c.missing(a.node, "nothing says which provider %q works with", a.name).
			WithHint("write provider: claude-code (or another of %s) at the top of the file, or give --provider", listed(c.providerNames()))
	}
}
