package schema

// maxSteps limits how often a value, or a part of it, is checked against a schema. It takes about a
// second.
const maxSteps = 3_000_000

// inner are the schemas for the parts of a value, as far as they matter for the number of steps.
type inner struct {
	named  map[string]*node // properties, by name
	others []*node          // for properties without a name in named
	every  []*node          // may apply to any property
	names  []*node          // for the names of properties
	first  []*node          // items by position
	rest   []*node          // for items after first
	items  []*node          // for all items
}

// add files a schema under the parts of a value to which its key applies. Keys that never apply to
// a part are ignored.
func (in *inner) add(key, name string, n *node) {
	switch key {
	case "properties":
		if in.named == nil {
			in.named = map[string]*node{}
		}
		in.named[name] = n
	case "additionalProperties", "unevaluatedProperties":
		in.others = append(in.others, n)
	case "patternProperties":
		in.every = append(in.every, n)
	case "propertyNames":
		in.names = append(in.names, n)
	case "prefixItems":
		in.first = append(in.first, n)
	case "items", "additionalItems", "unevaluatedItems":
		in.rest = append(in.rest, n)
	case "contains":
		in.items = append(in.items, n)
	}
}

// countSteps subtracts the steps of a check from left, or slightly more. It returns false if there
// are too few.
func (n *node) countSteps(value any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	all := func(nodes []*node, value any) bool {
		for _, next := range nodes {
			if !next.countSteps(value, left) {
				return false
			}
		}
		return true
	}
	if !all(n.same, value) {
		return false
	}
	in := &n.inner
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if next, ok := in.named[name]; ok {
				if !next.countSteps(v, left) {
					return false
				}
			} else if !all(in.others, v) {
				return false
			}
			if !all(in.every, v) || !all(in.names, name) {
				return false
			}
		}
	case []any:
		for i, v := range value {
			if i < len(in.first) {
				if !in.first[i].countSteps(v, left) {
					return false
				}
			} else if !all(in.rest, v) {
				return false
			}
			if !all(in.items, v) {
				return false
			}
		}
	}
	return true
}
