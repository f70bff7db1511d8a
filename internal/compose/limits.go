package compose

import (
	"cmp"

	"go.yaml.in/yaml/v4"

	"swarm"
)

// onLimitKeys is what an agent does at a provider's limit: a word, or a mapping with the provider that
// does its turns meanwhile.
type onLimitKeys struct {
	section
	word text
	Use  text `key:"use" doc:"The provider that does its turns until the limit resets."`
}

func (k *onLimitKeys) read(d *decoder, n *yaml.Node, r rule) {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		k.node = n
		r.among = choices["on_limit"]
		k.word.read(d, n, r)
		return
	}
	d.section(n, k, r)
}

func (k *onLimitKeys) schema(r rule) map[string]any {
	return r.described(map[string]any{"anyOf": []any{
		map[string]any{"enum": choices["on_limit"]()}, sectionSchema(k, rule{}),
	}})
}

// The words of on_limit.
const (
	limitWaits = "wait"
	limitFails = "fail"
)

// checkOnLimit checks what happens at a limit, of one agent or of all.
func (c *compiler) checkOnLimit(k *onLimitKeys) {
	switch {
	case !k.given() || k.broken:
	case k.Use.given():
		c.checkProvider(k.Use.value, k.Use.node)
	case k.node.Kind == yaml.MappingNode:
		c.missing(k.node, "on_limit names no provider").WithHint("write on_limit: {use: NAME}, or one of wait, fail")
	}
}

// checkOwnLimit checks that an agent has another provider to use than its own.
func (c *compiler) checkOwnLimit(a *agent) {
	if a.spec != nil && a.keys != nil && a.keys.OnLimit.Use.given() && a.keys.OnLimit.Use.value == a.spec.Name {
		c.fail(a.keys.OnLimit.Use.node, "%q is the provider of the agent %q itself", a.spec.Name, a.name).
			WithHint("name another provider, or write on_limit: wait")
	}
}

// onLimit returns what an agent does at a limit of its provider; nil = the default.
func (c *compiler) onLimit(a *agent) *swarm.OnLimit {
	keys, wait := &c.file.OnLimit, c.file.LimitWait.value
	if a.keys != nil && a.keys.OnLimit.given() {
		keys = &a.keys.OnLimit
	}
	if a.keys != nil {
		wait = cmp.Or(a.keys.LimitWait.value, wait)
	}
	out := swarm.OnLimit{Fail: keys.word.value == limitFails, Use: keys.Use.value, Wait: wait}
	if a.spec == nil || out.Use == a.spec.Name || !c.knownProvider(out.Use) {
		out.Use = ""
	}
	if out == (swarm.OnLimit{}) {
		return nil
	}
	return &out
}
