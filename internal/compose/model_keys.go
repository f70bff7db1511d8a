package compose

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/providerkind"
)

// A thinking is how a model thinks: a word, or a number of tokens.
type thinking struct{ text }

// thoughts are the words. A number of tokens is the API's older way.
var thoughts = []string{"adaptive", "disabled"}

// leastThinking is the least number of tokens that the API takes.
const leastThinking = 1024

func (t *thinking) read(d *decoder, n *yaml.Node, r rule) {
	r.loose = true
	t.text.read(d, n, r)
	if !t.given() || slices.Contains(thoughts, t.value) {
		return
	}
	tokens, err := strconv.ParseInt(t.value, 10, 64)
	switch {
	case err != nil:
		d.fail(n, "%s cannot be %s", r.key, swarm.Quote(t.value)).
			WithHint("write adaptive, disabled, or a number of tokens")
	case tokens < leastThinking:
		d.fail(n, "%s must be at least %d tokens, not %s", r.key, leastThinking, swarm.Quote(t.value))
	}
}

func (*thinking) schema(r rule) map[string]any {
	return r.described(map[string]any{"anyOf": []any{
		map[string]any{"enum": thoughts}, map[string]any{"type": "integer", "minimum": leastThinking},
	}})
}

// An object is a mapping whose values may be anything that JSON has.
type object struct {
	at
	json json.RawMessage
}

// ownFields are the fields of a request that say what is asked, in any of the APIs. A turn makes
// them.
var ownFields = []string{"model", "messages", "input", "system", "instructions", "tools", "stream"}

func (o *object) read(d *decoder, n *yaml.Node, r rule) {
	before := len(d.errs)
	d.pairs(n, r, func(key, _ *yaml.Node) {
		if slices.Contains(ownFields, key.Value) {
			d.fail(key, "%s cannot set %s, which the turn sets itself", r.key, key.Value).WithHint("remove it")
		}
	})
	if len(d.errs) > before {
		return
	}
	var v map[string]any
	err := n.Decode(&v)
	if err == nil {
		o.json, err = json.Marshal(v)
	}
	if err != nil {
		d.fail(n, "%s holds what JSON does not have", r.key).WithHint("write texts, numbers, true, false, lists and mappings")
		return
	}
	if name := secretIn(v); name != "" {
		d.fail(n, "%s looks like a secret, and what stands in the file would be stored with the run", name).
			WithHint("send it in a header: headers: {NAME: $VARIABLE}")
		return
	}
	o.node = n
}

// secretIn returns the name of a secret in a value of the file, or "". A number is none.
func secretIn(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if text, ok := v[name].(string); ok && holdsSecret(name, text) {
				return name
			}
			if found := secretIn(v[name]); found != "" {
				return found
			}
		}
	case []any:
		for _, e := range v {
			if found := secretIn(e); found != "" {
				return found
			}
		}
	}
	return ""
}

func (*object) schema(r rule) map[string]any {
	return r.described(map[string]any{
		"type": "object", "propertyNames": map[string]any{"not": map[string]any{"enum": ownFields}},
	})
}

// limits returns the limits that the file names.
func (k *contextKeys) limits() swarm.ContextLimits {
	return swarm.ContextLimits{Tokens: k.Tokens.value, Keep: int(k.Keep.value)}
}

// checkSession checks what an agent says about its session.
func (c *compiler) checkSession(a *agent) {
	if a.keys == nil || a.spec == nil {
		return
	}
	if k := &a.keys.Context; k.given() && providerkind.Of(a.spec.Kind).Sessions != providerkind.LogSessions {
		c.fail(k.node, "context is for models over HTTP, and %q works with the provider %q, of the kind %s", a.name, a.spec.Name, a.spec.Kind).
			WithHint("leave it out")
	}
}
