package compose

import (
	"encoding/json"
	"reflect"

	"go.yaml.in/yaml/v4"

	"swarm/internal/providerkind"
)

// Schema makes the JSON Schema of a compose file, for editors. It comes from the table of keys and
// the table of provider kinds.
func Schema() []byte {
	root := schemaOf(reflect.New(reflect.TypeFor[fileKeys]()).Interface(), rule{})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "swarm.yaml"
	root["$defs"] = limitToKinds(root["properties"].(map[string]any)["providers"].(map[string]any))
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // it has only maps, lists, texts and numbers
	}
	return out
}

// limitToKinds changes the schema of `providers`, so that a provider has only the keys of its kind,
// as in checkKind. The kind is the one that the provider declares, or its name if that is a
// built-in one. It returns the definitions that the schema refers to.
func limitToKinds(providers map[string]any) (defs map[string]any) {
	ref := func(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }
	defs = map[string]any{"provider": providers["additionalProperties"]}
	named, byKind := map[string]any{}, []any{ref("provider")}
	for _, name := range providerkind.Names() {
		kind, def := providerkind.Of(name), "provider-"+name
		keys := map[string]any{"propertyNames": map[string]any{"enum": append([]string{"kind", "price"}, kind.Keys...)}}
		if need := kind.Needs.Key; need != "" {
			keys["type"], keys["required"] = "object", []string{need}
		}
		defs[def] = keys
		is := map[string]any{"properties": map[string]any{"kind": map[string]any{"const": name}}}
		named[name] = map[string]any{"allOf": []any{ref("provider"), ref(def), is}}
		said := map[string]any{"properties": is["properties"], "required": []string{"kind"}}
		byKind = append(byKind, map[string]any{"if": said, "then": ref(def)})
	}
	providers["properties"] = named
	providers["additionalProperties"] = map[string]any{"type": "object", "required": []string{"kind"}, "allOf": byKind}
	return defs
}

// schemaOf makes the schema of a value or a section.
func schemaOf(v any, r rule) map[string]any {
	if v, ok := v.(value); ok {
		return v.schema(r)
	}
	return sectionSchema(v, r)
}

func sectionSchema(v any, r rule) map[string]any {
	t := reflect.TypeOf(v).Elem()
	known := fieldsOf(t)
	properties := make(map[string]any, len(known.keys))
	for _, key := range known.keys {
		f := known.byKey[key]
		properties[key] = schemaOf(reflect.New(t.Field(f.index).Type).Interface(), f.rule)
	}
	return r.described(map[string]any{"type": "object", "properties": properties, "additionalProperties": false})
}

func (r rule) described(s map[string]any) map[string]any {
	if r.doc != "" {
		s["description"] = r.doc
	}
	return s
}

func (*text) schema(r rule) map[string]any {
	s := map[string]any{"type": "string"}
	switch {
	case r.among != nil:
		s = map[string]any{"enum": r.among()}
	case r.loose:
		s["type"] = []string{"string", "number", "boolean"}
	}
	return r.described(s)
}

func (*integer) schema(r rule) map[string]any { return r.bounded(map[string]any{"type": "integer"}) }
func (*number) schema(r rule) map[string]any  { return r.bounded(map[string]any{"type": "number"}) }
func (*boolean) schema(r rule) map[string]any { return r.described(map[string]any{"type": "boolean"}) }

func (r rule) bounded(s map[string]any) map[string]any {
	s["minimum"] = r.min
	if r.max > 0 {
		s["maximum"] = r.max
	}
	return r.described(s)
}

func (*duration) schema(r rule) map[string]any {
	return r.described(map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
		map[string]any{"type": "number", "exclusiveMinimum": 0},
	}})
}

func (*list[T]) schema(r rule) map[string]any {
	doc := r.doc
	r.doc = ""
	item := schemaOf(new(T), r)
	s := map[string]any{"type": "array", "items": item}
	if r.single {
		s = map[string]any{"anyOf": []any{s, item}}
	}
	r.doc = doc
	return r.described(s)
}

func (*named[T]) schema(r rule) map[string]any {
	return r.described(
		map[string]any{"type": "object", "additionalProperties": nullable(schemaOf(new(T), rule{loose: r.loose}))},
	)
}

// nullable lets a section be empty: `coder:` declares an agent.
func nullable(s map[string]any) map[string]any {
	if s["type"] == "object" {
		s["type"] = []string{"object", "null"}
	}
	return s
}

// read accepts a name alone for a dependency without a condition.
func (a *afterKeys) read(d *decoder, n *yaml.Node, r rule) {
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		a.node = n
		a.Task.read(d, n, r)
		return
	}
	d.section(n, a, r)
}

func (a *afterKeys) schema(r rule) map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, sectionSchema(a, rule{})}}
}
