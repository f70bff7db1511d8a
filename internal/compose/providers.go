package compose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/providerkind"
)

// resolveProviders checks the declared providers.
func (c *compiler) resolveProviders() {
	for i := range c.file.Providers.entries {
		e := &c.file.Providers.entries[i]
		v := &e.value
		kind := providerkind.Of(kindOf(e))
		c.checkName(e.key, "provider", swarm.CheckTaskName)
		c.checkURL(v.BaseURL, keyElsewhere(kind))
		c.checkHeaders(v.Headers)
		c.checkCommand(v.Command, "command")
		c.checkEnv(v.Env)
		c.checkSandbox(&v.Sandbox)
		for _, m := range v.Models.entries {
			if !slices.Contains(tiers, m.name) {
				c.fail(m.key, "there is no tier %s", swarm.Quote(m.name)).
					WithHint("%s", swarm.DidYouMean(m.name, tiers))
			}
		}
		if !v.broken {
			c.checkKind(e, kind)
		}
	}
	if p := c.file.Provider; p.given() {
		c.checkProvider(p.value, p.node)
	}
	if p := c.file.Swarm.Provider; p.given() {
		c.checkProvider(p.value, p.node)
	}
	if p := c.o.Provider; p != "" && !c.knownProvider(p) {
		c.errs = append(
			c.errs,
			swarm.Errorf(swarm.BadInput, "there is no provider %s, which --provider or SWARM_PROVIDER names", swarm.Quote(p)).
				WithHint("%s", c.didYouMean(p, c.providerNames())),
		)
	}
	for i := range c.file.Agents.entries {
		if p := c.file.Agents.entries[i].value.Provider; p.given() {
			c.checkProvider(p.value, p.node)
		}
	}
}

// keyElsewhere says where to put a key that is in a provider's address.
func keyElsewhere(kind *providerkind.Kind) string {
	switch {
	case len(kind.KeyVars) > 0:
		return "take it out, and write env: {" + kind.KeyVars[0] + ": $NAME} for the provider"
	case kind.Takes("headers"):
		return "take it out, and write headers: {Authorization: Bearer $NAME} for the provider"
	}
	return "take it out, and name the variable that holds it under env of the provider"
}

// checkKind checks the keys of a provider against those that its kind needs and takes. A key that
// the kind does not take is an error, because its author believes that it has an effect.
func (c *compiler) checkKind(e *entry[providerKeys], kind *providerkind.Kind) {
	needed := kind.Needs.Key == ""
	for i := 0; i+1 < len(e.value.node.Content); i += 2 {
		key, value := e.value.node.Content[i].Value, e.value.node.Content[i+1]
		needed = needed || key == kind.Needs.Key
		if kind.Name == "" || kind.Takes(key) {
			continue
		}
		c.fail(value, "%s means nothing to a provider of the kind %q", key, kind.Name).
			WithHint("%s", kind.WithoutKey(key))
	}
	switch {
	case kind.Name == "":
		c.missing(e.key, "the provider %s has no kind", swarm.Quote(e.name)).
			WithHint("write kind: command, or another of %s", excerpt.List(providerkind.Names(), 20))
	case providerkind.Exists(e.name) && kind.Name != e.name:
		c.fail(e.key, "the provider %q is built in, and is not of the kind %q", e.name, kind.Name).
			WithHint("choose another name")
	case !needed:
		c.missing(e.key, "the provider %q has no %s", e.name, kind.Needs.Key).WithHint("%s", kind.Needs.Hint())
	}
}

// kindOf returns the kind of a provider. A provider with the name of a built-in kind needs no kind.
func kindOf(e *entry[providerKeys]) string {
	if !e.value.Kind.given() && providerkind.Exists(e.name) {
		return e.name
	}
	return e.value.Kind.value
}

// providerNames returns the declared providers and the presets, for hints.
func (c *compiler) providerNames() []string {
	names := c.file.Providers.names()
	for _, k := range providerkind.Presets() {
		if !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	return names
}

// knownProvider says whether a name is a declared provider, a preset, or nobody.
func (c *compiler) knownProvider(name string) bool {
	return c.file.Providers.find(name) != nil || slices.Contains(providerkind.Presets(), name) || providerkind.Of(name).Outside
}

// checkProvider checks a name of a provider at its place.
func (c *compiler) checkProvider(name string, node *yaml.Node) {
	switch {
	case c.knownProvider(name):
	case providerkind.Exists(name):
		c.fail(node, "%q is a kind of provider, and this file does not say which", name).
			WithHint("write providers: {mine: {kind: %s, %s}} and provider: mine", name, providerkind.Of(name).Needs)
	default:
		report := c.missing
		if c.whole && len(c.file.Agents.entries)+len(c.file.Tasks.entries) > 0 {
			// Providers are declared before what they are for, or not at all: most files need none. So
			// what is missing is not what follows.
			report = c.fail
		}
		report(node, "there is no provider %s", swarm.Quote(name)).
			WithHint("%s", c.didYouMean(name, c.providerNames()))
	}
}

// spec returns the provider with this name, which must exist. Its script is read now.
func (c *compiler) spec(name string) *swarm.ProviderSpec {
	if s, ok := c.specs[name]; ok {
		return s
	}
	s := &swarm.ProviderSpec{Name: name, Kind: name}
	if e := c.file.Providers.find(name); e != nil {
		v := &e.value
		s.Kind, s.Command, s.BaseURL, s.Models, s.Env, s.Headers = kindOf(
			e,
		), texts(
			v.Command,
		), v.BaseURL.value, pairs(
			v.Models,
		), pairs(
			v.Env,
		), pairs(
			v.Headers,
		)
		s.Price = swarm.Price{Input: v.Price.Input.value, Output: v.Price.Output.value}
		s.Effort, s.Thinking, s.ServiceTier, s.Extra = v.Effort.value, v.Thinking.value, v.ServiceTier.value, v.Extra.json
		s.API, s.MaxTokens, s.Sandbox, s.Mode, s.Context = v.API.value, v.MaxTokens.value, v.Sandbox.sandbox(), v.Mode.value, v.Context.limits()
		if v.Temperature.given() {
			s.Temperature = &v.Temperature.value
		}
		if v.Images.given() {
			s.Images = &v.Images.value
		}
		if v.Script.given() {
			s.Script, s.ScriptFile = c.fileBody(v.Script), v.Script.value
		}
	}
	preset(s)
	c.specs[name] = s
	return s
}

// preset fills in what the user has left out. A server of the user's own has its own models. If
// nothing names a model, the medium tier is used first.
func preset(s *swarm.ProviderSpec) {
	kind := providerkind.Of(s.Kind)
	if s.BaseURL == "" && kind.Models != nil {
		chosen := s.Models
		s.Models = maps.Clone(kind.Models)
		maps.Copy(s.Models, chosen)
	}
	if kind.Model != providerkind.NeedModel {
		return
	}
	for _, tier := range []string{"medium", "large", "small"} {
		if s.Model == "" {
			s.Model = s.Models[tier]
		}
	}
}

// agentsOf returns the agents of the selected tasks, or all agents if the file has no tasks. They
// get their providers here.
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
		c.findProvider(a, c.working || len(c.tasks) > 0)
		c.checkTools(a)
		c.checkSession(a)
		c.checkOwnLimit(a)
	}
	return list
}

// defaultProvider returns the provider of agents that name none. A file with only one provider
// needs no choice. Without a file it is the first program that is installed.
func (c *compiler) defaultProvider() string {
	name := cmp.Or(c.o.Provider, c.file.Provider.value)
	if all := c.file.Providers.entries; name == "" && len(all) == 1 {
		return all[0].name
	}
	if programs := c.found().Programs; name == "" && len(programs) > 0 {
		return programs[0]
	}
	return name
}

// findProvider finds an agent's provider. A missing one is an error only if the agent has to work.
func (c *compiler) findProvider(a *agent, works bool) {
	name := c.defaultProvider()
	switch {
	case a.keys != nil && a.keys.Provider.given():
		name = a.keys.Provider.value
	case c.worksOutside(a):
		name = providerkind.Desk
	}
	switch {
	case name != "" && c.knownProvider(name):
		a.spec = c.spec(name)
	case name == "" && works && !c.unprovided && !c.file.broken:
		c.unprovided = true
		who := fmt.Sprintf("%q works with", a.name)
		if a.node.Line == 0 { // no file or line names it
			who = "to use"
		}
		names := c.providerNames()
		all := excerpt.List(names, 20)
		hint := fmt.Sprintf(
			"write provider: %s (or another of %s) at the top of the file, or give --provider", names[0], all)
		if len(c.o.Source) == 0 && c.o.Found != nil {
			c.nothingInstalled()
			return
		}
		if len(c.o.Source) == 0 {
			hint = fmt.Sprintf("give --provider %s (or another of %s), or let `swarm init` write a file", names[0], all)
		}
		c.missing(a.node, "nothing says which provider %s", who).WithHint("%s", hint)
	}
}

// nothingInstalled notes that there is neither a file nor a provider nor a program of a coding agent.
func (c *compiler) nothingInstalled() {
	var programs []string
	for _, kind := range providerkind.Presets() {
		if p := providerkind.Of(kind).Program; p.Name != "" {
			programs = append(programs, p.Name)
		}
	}
	first := providerkind.Of(providerkind.Presets()[0]).Program
	c.missing(nil, "there are no agents: this folder has no compose file, and none of %s is installed", strings.Join(programs, ", ")).
		WithHint("install %s (npm install -g %s), write a file that needs no key with `swarm init`, or name a provider with --provider (%s)",
			first.Title, first.Package, strings.Join(providerkind.Presets(), ", "))
}
