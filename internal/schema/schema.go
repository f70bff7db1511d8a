// Package schema checks JSON against JSON Schemas that users write.
//
// A schema is self-contained: nothing is read or fetched for it. The library underneath trusts its
// schemas. A schema that refers to itself without a step into the value would overflow the stack.
// So Parse walks each schema first and refuses such cycles, before any agent has worked for it. The
// library must read the same schema as the walk did. It takes keys in any case ("AllOf"), and merges
// the values of a key that stands there twice. So Parse refuses the former, and gives the library the
// tree that was walked.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is a schema that is safe to use.
type Schema struct {
	resolved *jsonschema.Resolved
	root     *node
}

// Parse parses and checks a schema.
func Parse(source []byte) (*Schema, error) {
	tree, err := Value(source)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	root, err := walk(tree)
	if err != nil {
		return nil, err
	}
	walked, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(walked, &s); err != nil {
		return nil, plainly(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, plainly(err)
	}
	return &Schema{resolved, root}, nil
}

// Value decodes a value for Check. Numbers beyond float64 become the largest float64, because the
// library compares only those. The text keeps the exact number.
func Value(text []byte) (v any, err error) {
	if err := json.Unmarshal(text, &v); err == nil {
		return v, nil
	}
	var whole json.RawMessage // accepts one value with nothing after it
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, inLine(text, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, inLine(text, err)
	}
	return clampNumbers(v), nil
}

// clampNumbers replaces numbers beyond float64 by the largest float64.
func clampNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			f = math.Copysign(math.MaxFloat64, f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = clampNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = clampNumbers(v[key])
		}
	}
	return v
}

// Check returns an error if a value does not fit the schema. The time can double with each level of
// the value, if the schema branches and refers to itself. So Check counts the steps first, and
// refuses a value that would take too many.
func (s *Schema) Check(value any) error {
	left := maxSteps
	if !s.root.countSteps(value, &left) {
		return fmt.Errorf("it cannot be held against the schema in less than %d steps: "+
			"the schema branches and leads back to itself", maxSteps)
	}
	if err := s.resolved.Validate(value); err != nil {
		return plainly(err)
	}
	return nil
}

// inLine adds the line to an error in JSON.
func inLine(text []byte, err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(len(text), int(s.Offset))], []byte("\n")), err)
	}
	return err
}

// plainly removes the library's own names from its error.
func plainly(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		key := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		return fmt.Errorf("%s cannot be of the type %s", key, wrong.Value)
	}
	text := strings.TrimPrefix(err.Error(), "jsonschema.Schema: ")
	text = strings.TrimPrefix(strings.ReplaceAll(text, "<anonymous schema>", "the schema"), "validating root: ")
	return errors.New(text)
}
