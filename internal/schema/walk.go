package schema

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxDepth limits the nesting of schemas.
const maxDepth = 100

// Keys of a schema that hold further schemas, by the type of the key's value.
var (
	single = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	listed = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	named  = []string{"$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties", "properties"}
)

// sameValue are the keys whose schemas apply to the same value as the outer schema. The schemas of all
// other keys apply to a part of it.
var sameValue = []string{"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}

var (
	references = []string{"$ref", "$dynamicRef", "$recursiveRef"}
	types      = []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	versions   = []string{
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2020-12/schema",
	}
)

// A node is a schema within a schema.
type node struct {
	path   string         // "#/properties/a"
	keys   map[string]any // empty for true and false
	same   []*node        // schemas for the same value
	inner  inner          // schemas for the parts of the value
	looked state
	name   string // its key, under a key of named
}

type state int

const (
	unseen state = iota
	open         // on the current path of the search
	done
)

// A walker collects the schemas of a file.
type walker struct {
	all     []*node
	paths   map[string]*node
	anchors map[string]*node
	id      string // of the whole
}

// walk converts a tree to schemas. It returns an error if their evaluation might not end.
func walk(tree any) (*node, error) {
	root, ok := asSchema(tree, "")
	if !ok {
		return nil, fmt.Errorf("a schema is an object, or true or false")
	}
	w := &walker{paths: map[string]*node{}, anchors: map[string]*node{}}
	w.id, _ = root.keys["$id"].(string)
	whole, err := w.collect(root.keys, "#", 0)
	if err != nil {
		return nil, err
	}
	for _, n := range w.all {
		if err := w.link(n); err != nil {
			return nil, err
		}
	}
	for _, n := range w.all {
		if path := n.findCycle(); path != nil {
			return nil, fmt.Errorf("it never comes to an end: %s", strings.Join(path, " → "))
		}
	}
	return whole, nil
}

func asSchema(value any, path string) (node, bool) {
	switch value := value.(type) {
	case bool:
		return node{path: path}, true
	case map[string]any:
		return node{path: path, keys: value}, true
	}
	return node{}, false
}

// collect adds a schema and the schemas within it.
func (w *walker) collect(keys map[string]any, path string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("schemas stand in each other more than %d deep", maxDepth)
	}
	n := &node{path: path, keys: keys}
	w.all, w.paths[path] = append(w.all, n), n
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := keys[key].(string); ok {
			w.anchors[name] = n
		}
	}
	if err := n.check(depth); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		for _, c := range under(key, keys[key]) {
			child, err := w.collect(c.keys, path+"/"+escape(key)+c.path, depth+1)
			if err != nil {
				return nil, err
			}
			if slices.Contains(sameValue, key) {
				n.same = append(n.same, child)
			} else {
				n.inner.add(key, c.name, child)
			}
		}
	}
	return n, nil
}

// exact are the keys that decide what is evaluated.
var exact = slices.Concat(single, listed, named, references, []string{"$anchor", "$dynamicAnchor", "$id"})

// check reports mistakes that the library does not.
func (n *node) check(depth int) error {
	for _, key := range slices.Sorted(maps.Keys(n.keys)) {
		as := func(other string) bool { return key != other && strings.EqualFold(key, other) }
		if i := slices.IndexFunc(exact, as); i >= 0 {
			return fmt.Errorf("%s: the key %q is not understood; write %q", n.path, key, exact[i])
		}
	}
	if _, ok := n.keys["$id"]; ok && depth > 0 {
		return fmt.Errorf("%s: an $id in a schema that stands in another is not understood", n.path)
	}
	if version, ok := n.keys["$schema"].(string); ok && !slices.Contains(versions, version) {
		return fmt.Errorf("%s: the version %q is not understood; draft-07 and draft 2020-12 are", n.path, version)
	}
	of := []any{n.keys["type"]}
	if list, ok := of[0].([]any); ok {
		of = list
	}
	for _, t := range of {
		if name, ok := t.(string); ok && !slices.Contains(types, name) {
			return fmt.Errorf("%s: there is no type %q; there are %s", n.path, name, strings.Join(types, ", "))
		}
	}
	return nil
}

// under returns the schemas under a key, with the rest of their paths.
func under(key string, value any) (found []node) {
	add := func(value any, path string) {
		if n, ok := asSchema(value, path); ok {
			found = append(found, n)
		}
	}
	list, isList := value.([]any)
	names, isObject := value.(map[string]any)
	switch {
	case isList && slices.Contains(listed, key):
		for i, v := range list {
			add(v, "/"+strconv.Itoa(i))
		}
	case isObject && slices.Contains(named, key):
		for _, name := range slices.Sorted(maps.Keys(names)) {
			add(names[name], "/"+escape(name))
			if len(found) > 0 {
				found[len(found)-1].name = name
			}
		}
	case slices.Contains(single, key):
		add(value, "")
	}
	return found
}

// link resolves the references of a schema.
func (w *walker) link(n *node) error {
	for _, key := range references {
		ref, ok := n.keys[key].(string)
		if !ok {
			continue
		}
		to := w.find(ref)
		if to == nil {
			return fmt.Errorf("%s: %q leads to no schema of this file", n.path, ref)
		}
		n.same = append(n.same, to)
	}
	return nil
}

// find resolves a reference within this file: a JSON pointer or an anchor, with or without the
// file's own $id. Other files are never read.
func (w *walker) find(ref string) *node {
	if w.id != "" {
		ref = strings.TrimPrefix(ref, strings.TrimSuffix(w.id, "#"))
	}
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok && ref != "" {
		return nil
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment == "" || fragment[0] == '/' {
		return w.paths["#"+fragment]
	}
	return w.anchors[fragment]
}

// escape escapes a key for a JSON pointer.
func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// findCycle returns a path from a schema back to itself without a step into the value, or nil. It
// is a depth-first search.
func (n *node) findCycle() []string {
	switch n.looked {
	case done:
		return nil
	case open:
		return []string{n.path}
	}
	n.looked = open
	defer func() { n.looked = done }()
	for _, next := range n.same {
		if path := next.findCycle(); path != nil {
			return append([]string{n.path}, path...)
		}
	}
	return nil
}
