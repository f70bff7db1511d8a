package schema

// maxSteps is how often a value, or something in it, may be held against a schema: about a second.
const maxSteps = 3_000_000

// inner are the schemas for what is in a value, as far as they count for how long it takes.
type inner struct {
	named  map[string]*node // properties
	others []*node          // of properties that are not named
	every  []*node          // of all properties, perhaps
	names  []*node          // of the properties' names
	first  []*node          // items, one by one
	rest   []*node          // of the items after these
	items  []*node          // of all items
}

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

// fits counts the steps of holding a value against a schema, or somewhat more; false = there are more than are left.
func (n *node) fits(value any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	all := func(nodes []*node, value any) bool {
		for _, next := range nodes {
			if !next.fits(value, left) {
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
				if !next.fits(v, left) {
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
				if !in.first[i].fits(v, left) {
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
