package compose

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/excerpt"
)

// maxAliased is the number of nodes that may be read through aliases. It stops alias bombs.
const maxAliased = 50_000

// A value is something that a file can hold. It reads itself from a node, and describes itself for
// editors.
type value interface {
	read(d *decoder, n *yaml.Node, r rule)
	schema(r rule) map[string]any
}

// A rule is what a key's tags say about its value.
type rule struct {
	key    string
	doc    string
	among  func() []string // the texts that it may be; nil = any
	loose  bool            // numbers and booleans are read as text, as written
	single bool            // one item may stand for a list of one
	min    float64
	max    float64 // 0 = no limit
}

// at is the node that a value was read from, or nil if the file does not have it.
type at struct{ node *yaml.Node }

func (a at) given() bool { return a.node != nil }

// A text is a string of the file.
type text struct {
	at
	value string
}

// An integer is a whole number of the file.
type integer struct {
	at
	value int64
}

// A number is a number of the file.
type number struct {
	at
	value float64
}

// A boolean is true or false in the file.
type boolean struct {
	at
	value bool
}

// A duration is a time span of the file, or a number of seconds.
type duration struct {
	at
	value time.Duration
}

// A list is values in order.
type list[T any] struct {
	at
	items []T
}

// A named is values under names that the user chooses, in the file's order.
type named[T any] struct {
	at
	entries []entry[T]
	index   map[string]int // by name; made by the first find
}

// An entry is one value of a named.
type entry[T any] struct {
	key   *yaml.Node
	name  string
	value T
}

// A section is the embedded part of every struct in keys.go: a mapping with known keys.
type section struct {
	at
	broken bool // something in it could not be read, and the error is noted
}

func (s *section) self() *section { return s }

// A sectioned is a pointer to a struct that embeds a section.
type sectioned interface{ self() *section }

// A decoder reads values from nodes.
type decoder struct {
	*problems
	aliased int // nodes read through aliases
	inAlias int // depth of aliases around the current node
}

// decode reads n into v, which is a pointer to a value or to a struct with a section.
func (d *decoder) decode(n *yaml.Node, v any, r rule) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
		d.inAlias++
		defer func() { d.inAlias-- }()
	}
	// Every node behind an alias counts, so nested aliases cannot multiply without a limit.
	if d.inAlias > 0 {
		if d.aliased++; d.aliased == maxAliased {
			d.fail(n, "the aliases of this file stand for too much").
				WithHint("write out what is meant, or use fewer aliases")
		}
		if d.aliased >= maxAliased {
			return
		}
	}
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		d.fail(n, "the tag %s means nothing here", n.Tag).WithHint("remove it")
		return
	}
	if v, ok := v.(value); ok {
		v.read(d, n, r)
		return
	}
	d.section(n, v.(sectioned), r)
}

// section reads a mapping with known keys into a struct.
func (d *decoder) section(n *yaml.Node, v sectioned, r rule) {
	before := len(d.errs)
	defer func() { v.self().broken = len(d.errs) > before }()
	v.self().node = n
	if isNull(n) {
		return
	}
	known := fieldsOf(reflect.TypeOf(v).Elem())
	target := reflect.ValueOf(v).Elem()
	d.pairs(n, r, func(key, val *yaml.Node) {
		f, ok := known.byKey[key.Value]
		switch {
		case key.Value == "<<":
			d.fail(key, "merge keys are not supported").WithHint("write the keys out")
		case !ok:
			d.fail(key, "unknown key %s", swarm.Quote(key.Value)).WithHint("%s", d.didYouMean(key.Value, known.keys))
		case isNull(val):
			d.missing(key, "%s has no value", key.Value).WithHint("write one, or leave the key out")
		default:
			d.decode(val, target.Field(f.index).Addr().Interface(), f.rule)
		}
	})
}

// pairs goes through a mapping. It refuses other nodes, keys that are not names, and duplicate
// keys.
func (d *decoder) pairs(n *yaml.Node, r rule, each func(key, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.wrong(n, r, "a mapping of keys and values")
		return
	}
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !d.enough(); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || strings.HasPrefix(key.Tag, "!") && !strings.HasPrefix(key.Tag, "!!") {
			d.fail(key, "a key must be a plain name")
			continue
		}
		if first := seen[key.Value]; first != nil {
			d.fail(key, "the key %s is here twice; first in line %d", swarm.Quote(key.Value), first.Line).
				WithHint("keep one of them")
			continue
		}
		seen[key.Value] = key
		each(key, n.Content[i+1])
	}
}

// wrong notes that a value has the wrong type.
func (d *decoder) wrong(n *yaml.Node, r rule, want string) *swarm.Error {
	what := r.key
	if what == "" {
		what = "the file"
	}
	return d.fail(n, "%s must be %s, not %s", what, want, describe(n))
}

// describe names what a node is, for errors.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "the number " + clip(n.Value)
	case n.Tag == "!!bool":
		return n.Value
	case n.Tag == "!!null":
		return "empty"
	}
	return "the text " + swarm.Quote(n.Value)
}

// isNull says whether a node is an empty value.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// read accepts a plain number or boolean only if the rule is loose. Elsewhere it is probably a
// mistake, and quotes make it a text.
func (t *text) read(d *decoder, n *yaml.Node, r rule) {
	plain := n.Tag == "!!str" || n.Tag == "!!timestamp" ||
		r.loose && (n.Tag == "!!int" || n.Tag == "!!float" || n.Tag == "!!bool")
	switch {
	case n.Kind != yaml.ScalarNode || isNull(n):
		d.wrong(n, r, "text")
	case !plain:
		d.wrong(n, r, "text").WithHint("write it in quotes: %q", n.Value)
	case strings.ContainsRune(n.Value, 0):
		d.fail(n, "%s holds a NUL character", r.key)
	case r.among != nil && !slices.Contains(r.among(), n.Value):
		d.fail(n, "%s cannot be %s", r.key, swarm.Quote(n.Value)).WithHint("%s", swarm.DidYouMean(n.Value, r.among()))
	default:
		t.node, t.value = n, n.Value
	}
}

func (i *integer) read(d *decoder, n *yaml.Node, r rule) {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
		d.wrong(n, r, "a whole number")
		return
	}
	if d.inRange(n, r, float64(v)) {
		i.node, i.value = n, v
	}
}

func (f *number) read(d *decoder, n *yaml.Node, r rule) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" || err != nil || v != v {
		d.wrong(n, r, "a number")
		return
	}
	if d.inRange(n, r, v) {
		f.node, f.value = n, v
	}
}

// inRange checks a number against its rule.
func (d *decoder) inRange(n *yaml.Node, r rule, v float64) bool {
	switch {
	case v < r.min:
		d.fail(n, "%s must be at least %s, not %s", r.key, plainNumber(r.min), swarm.Quote(n.Value))
	case r.max > 0 && v > r.max:
		d.fail(n, "%s must be at most %s, not %s", r.key, plainNumber(r.max), swarm.Quote(n.Value))
	default:
		return true
	}
	return false
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (f *boolean) read(d *decoder, n *yaml.Node, r rule) {
	v, err := strconv.ParseBool(strings.ToLower(n.Value))
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || err != nil {
		d.wrong(n, r, "true or false")
		return
	}
	f.node, f.value = n, v
}

func (t *duration) read(d *decoder, n *yaml.Node, r rule) {
	const hint = "write a duration such as 90s, 10m or 1h30m, or a number of seconds"
	var v time.Duration
	var err error
	switch {
	case n.Kind != yaml.ScalarNode || isNull(n) || n.Tag == "!!bool":
		d.wrong(n, r, "a duration").WithHint(hint)
		return
	case n.Tag == "!!int" || n.Tag == "!!float":
		v, err = time.ParseDuration(strings.ReplaceAll(n.Value, "_", "") + "s")
	default:
		v, err = time.ParseDuration(n.Value)
	}
	switch {
	case err != nil:
		d.wrong(n, r, "a duration").WithHint(hint)
	case v <= 0:
		d.fail(n, "%s must be more than nothing, not %s", r.key, swarm.Quote(n.Value)).WithHint(hint)
	default:
		t.node, t.value = n, v
	}
}

func (l *list[T]) read(d *decoder, n *yaml.Node, r rule) {
	items := []*yaml.Node{n}
	switch {
	case n.Kind == yaml.SequenceNode:
		items = n.Content
	case !r.single:
		e := d.wrong(n, r, "a list")
		if n.Kind == yaml.ScalarNode {
			e.Hint = fmt.Sprintf("write it in brackets: [%s]", strings.Join(strings.Fields(clip(n.Value)), ", "))
		}
		return
	}
	l.node, l.items = n, make([]T, 0, min(len(items), 1024))
	for _, item := range items {
		if d.enough() {
			return
		}
		var t T
		before := len(d.errs)
		if d.decode(item, &t, r); len(d.errs) == before {
			l.items = append(l.items, t)
		}
	}
}

// clip shortens a text of the file for an error.
func clip(s string) string { return excerpt.Head(s, 60) }

// read keeps the file's order. Sections may be empty, other values may not.
func (m *named[T]) read(d *decoder, n *yaml.Node, r rule) {
	m.node = n
	var zero T
	_, declares := any(&zero).(sectioned)
	m.entries = make([]entry[T], 0, min(len(n.Content)/2, 16_384))
	d.pairs(n, r, func(key, val *yaml.Node) {
		switch {
		case declares && isSlip(key):
			hint := d.didYouMean(key.Value, m.names())
			if !strings.HasPrefix(hint, "did you mean") {
				hint = fmt.Sprintf("to add it, give all of it: --set '%s.%s={…}'", r.key, key.Value)
			}
			d.fail(key, "%s has no %s", r.key, swarm.Quote(key.Value)).WithHint("%s", hint)
			return
		case !declares && isNull(val):
			d.missing(key, "%s has no value", swarm.Quote(key.Value)).WithHint("write one, or leave the key out")
			return
		}
		m.entries = append(m.entries, entry[T]{key: key, name: key.Value})
		d.decode(val, &m.entries[len(m.entries)-1].value, rule{key: key.Value, loose: r.loose})
	})
}

// names returns the names in the file's order.
func (m *named[T]) names() []string {
	names := make([]string, len(m.entries))
	for i, e := range m.entries {
		names[i] = e.name
	}
	return names
}

// find returns the entry with this name, or nil.
func (m *named[T]) find(name string) *entry[T] {
	if m.index == nil {
		m.index = make(map[string]int, len(m.entries))
		for i, e := range m.entries {
			m.index[e.name] = i
		}
	}
	if i, ok := m.index[name]; ok {
		return &m.entries[i]
	}
	return nil
}
