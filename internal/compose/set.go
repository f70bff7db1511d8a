package compose

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/yamlfile"
)

// override writes the --set options over the tree. It does not know the keys. The decoder does, and
// a negative line tells it that a node comes from a --set.
func (r *reading) override() {
	for i, set := range r.sets {
		at := &yaml.Node{Line: -i - 1}
		path, text, ok := strings.Cut(set, "=")
		keys := strings.Split(path, ".")
		switch {
		case !ok || path == "" || slices.Contains(keys, ""):
			r.fail(at, "this sets nothing").
				WithHint("write --set path.to.key=value, such as --set pipelines.main.iterations=3")
		case !utf8.ValidString(set):
			r.fail(at, "this is not UTF-8")
		default:
			r.overrideOne(keys, setValue(text, at.Line), at)
		}
	}
}

// overrideOne follows the path of keys to a slot in the tree, and puts the value there. Missing
// keys on the way are added.
func (r *reading) overrideOne(keys []string, val, at *yaml.Node) {
	slot := &r.root
	for i, key := range keys {
		whole := i == len(keys)-1 && val.Kind == yaml.MappingNode
		for (*slot).Kind == yaml.AliasNode {
			*slot = copied((*slot).Alias) // other users of the anchor keep their value
		}
		n := *slot
		switch {
		case n.Kind == yaml.SequenceNode:
			k, err := strconv.Atoi(key)
			if err != nil || k < 0 || k >= len(n.Content) {
				r.fail(at, "%s is a list of %d items, and %s is none of them", strings.Join(keys[:i], "."), len(n.Content), swarm.Quote(key)).
					WithHint("count from 0")
				return
			}
			slot = &n.Content[k]
		case n.Kind == yaml.MappingNode:
			slot = valueSlot(n, key, at, whole)
		case isNull(n):
			*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
			slot = valueSlot(n, key, at, whole)
		default:
			r.fail(at, "%s is %s and has no keys", strings.Join(keys[:i], "."), describe(n))
			return
		}
	}
	*slot = val
}

// copied copies a tree, in which aliases stay aliases.
func copied(n *yaml.Node) *yaml.Node {
	twin := *n
	twin.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		twin.Content[i] = copied(child)
	}
	return &twin
}

// valueSlot returns the slot of a key's value in a mapping. A missing key is added without a value.
// A key that gets its whole value at once also gets a column, because it may declare something (see
// isSlip).
func valueSlot(n *yaml.Node, key string, at *yaml.Node, whole bool) **yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return &n.Content[i+1]
		}
	}
	added := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: at.Line}
	if whole {
		added.Column = 1
	}
	n.Content = append(n.Content, added,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: at.Line})
	return &n.Content[len(n.Content)-1]
}

// isSlip says whether a --set made up the name of a task, agent, provider or pipeline on the way to
// one of its keys. That changes something which the file does not declare, and is probably
// misspelled. A --set that gives the whole value declares it.
func isSlip(key *yaml.Node) bool { return key.Line < 0 && key.Column == 0 }

// setValue reads a value as YAML does, but only text in brackets is a mapping or a list: "Note: be
// kind" is text, and so is {{output:x}}.
func setValue(text string, line int) *yaml.Node {
	plain := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: line}
	if text == "" || strings.HasPrefix(text, "{{") {
		return plain
	}
	root, err := yamlfile.Parse("", []byte(text), "")
	if err != nil || root.Kind != yaml.ScalarNode && !strings.ContainsAny(text[:1], "[{") {
		return plain
	}
	var mark func(*yaml.Node)
	mark = func(n *yaml.Node) {
		n.Line = line
		for _, child := range n.Content {
			mark(child)
		}
	}
	mark(root)
	return root
}
