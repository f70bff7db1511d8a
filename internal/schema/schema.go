// Package schema holds JSON against JSON Schemas that users write.
//
// A schema is what it says itself: nothing is read or fetched for it. The library that does the work trusts its schemas, and a
// schema that leads back to itself without taking a step into the value would end the program; so each is walked first, and
// refused with what is wrong where it is named, before any agent has worked for it.
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

// A Schema is one that can be used.
type Schema struct {
	resolved *jsonschema.Resolved
	root     *node
}

// Parse reads a schema.
func Parse(source []byte) (*Schema, error) {
	tree, err := Value(source)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	root, err := walk(tree)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(source, &s); err != nil {
		return nil, plainly(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, plainly(err)
	}
	return &Schema{resolved, root}, nil
}

// Value reads a value that is to be held against a schema. A number that is larger than any that the library compares is the largest of
// those; the text is what says it exactly.
func Value(text []byte) (v any, err error) {
	if err := json.Unmarshal(text, &v); err == nil {
		return v, nil
	}
	var whole json.RawMessage // with one value, and nothing after it
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, inLine(text, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, inLine(text, err)
	}
	return inRange(v), nil
}

// inRange is a value with numbers that the library compares.
func inRange(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			f = math.Copysign(math.MaxFloat64, f)
		}
		return f
	case []any:
		for i := range v {
			v[i] = inRange(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = inRange(v[key])
		}
	}
	return v
}

// Check says what keeps a value from fitting the schema; nil when it fits. Schemas that branch and lead back to themselves can
// take twice as long with each level of the value: where that is more than anybody waits for, it is said instead.
func (s *Schema) Check(value any) error {
	left := maxSteps
	if !s.root.fits(value, &left) {
		return fmt.Errorf("it cannot be held against the schema in less than %d steps: the schema branches and leads back to itself", maxSteps)
	}
	if err := s.resolved.Validate(value); err != nil {
		return plainly(err)
	}
	return nil
}

// inLine adds to an error of reading JSON the line where it is.
func inLine(text []byte, err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(len(text), int(s.Offset))], []byte("\n")), err)
	}
	return err
}

// plainly says what the library found without its own names.
func plainly(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		key := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		return fmt.Errorf("%s cannot be of the type %s", key, wrong.Value)
	}
	text := strings.TrimPrefix(err.Error(), "jsonschema.Schema: ")
	text = strings.TrimPrefix(strings.ReplaceAll(text, "<anonymous schema>", "the schema"), "validating root: ")
	return errors.New(text)
}
