package compose

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/hostrule"
)

// A network is what a sandbox reaches: all, none, or a list of hosts.
type network struct {
	at
	word  text
	hosts list[text]
}

func (n *network) read(d *decoder, from *yaml.Node, r rule) {
	n.node = from
	if from.Kind == yaml.ScalarNode {
		r.among = choices["networks"]
		n.word.read(d, from, r)
		return
	}
	n.hosts.read(d, from, r)
}

func (n *network) schema(r rule) map[string]any {
	return r.described(map[string]any{"anyOf": []any{
		map[string]any{"enum": choices["networks"]()},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
	}})
}

// read accepts the kind alone for a sandbox without further wishes.
func (s *sandboxKeys) read(d *decoder, n *yaml.Node, r rule) {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		s.node = n
		r.among = choices["sandboxes"]
		s.Kind.read(d, n, r)
		return
	}
	d.section(n, s, r)
}

func (s *sandboxKeys) schema(r rule) map[string]any {
	return r.described(map[string]any{"anyOf": []any{
		map[string]any{"enum": choices["sandboxes"]()}, sectionSchema(s, rule{}),
	}})
}

// checkSandbox checks the sandbox of a provider.
func (c *compiler) checkSandbox(s *sandboxKeys) {
	if !s.given() || s.broken {
		return
	}
	if !s.Kind.given() && s.node.Kind == yaml.MappingNode { // a wrong kind alone is reported already
		c.missing(s.node, "the sandbox has no kind").WithHint("write kind: %s", swarm.SandboxOS)
	}
	for _, paths := range []list[text]{s.Write, s.Read, s.Hide} {
		for _, path := range paths.items {
			if strings.TrimSpace(path.value) == "" {
				c.fail(path.node, "a path of the sandbox is empty").WithHint("write one, such as ~/go/pkg/mod, or take it out")
			}
		}
	}
	for _, path := range s.Write.items {
		if path.value == "/" || path.value == "~" || path.value == "~/" {
			c.fail(path.node, "a sandbox that may write %s confines nothing", path.value).
				WithHint("name the folders that it needs")
		}
	}
	for _, host := range s.Network.hosts.items {
		if _, err := hostrule.Parse(host.value, strings.Clone); err != nil {
			c.fail(host.node, "%s", err.Error()).Hint = swarm.HintOf(err)
		}
	}
}

// sandbox returns the sandbox that the file describes, or nil.
func (s *sandboxKeys) sandbox() *swarm.Sandbox {
	if !s.given() {
		return nil
	}
	box := &swarm.Sandbox{
		Kind: s.Kind.value, Write: texts(s.Write), Read: texts(s.Read), Hide: texts(s.Hide),
		Network: swarm.NetworkAll, Hosts: texts(s.Network.hosts),
	}
	switch {
	case len(box.Hosts) > 0:
		box.Network = swarm.NetworkHosts
	case s.Network.given():
		box.Network = swarm.NetworkNone // an empty list too
		if s.Network.word.given() {
			box.Network = s.Network.word.value
		}
	}
	return box
}
