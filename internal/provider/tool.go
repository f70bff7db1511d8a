package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Usage says what a tool takes, to whoever has called it wrongly.
func (t ToolSpec) Usage() string {
	var takes struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	_ = json.Unmarshal(t.Schema, &takes) // one that says it in other words is shown to its user as it is
	var may []string
	for name := range takes.Properties {
		if !slices.Contains(takes.Required, name) {
			may = append(may, name)
		}
	}
	slices.Sort(may)
	switch {
	case len(takes.Properties) == 0:
		return fmt.Sprintf("%s takes one JSON object", t.Name)
	case len(may) == 0:
		return fmt.Sprintf("%s takes an object with %s", t.Name, strings.Join(takes.Required, ", "))
	case len(takes.Required) == 0:
		return fmt.Sprintf("%s takes an object that may have %s", t.Name, strings.Join(may, ", "))
	}
	return fmt.Sprintf("%s takes an object with %s; it may also have %s", t.Name, strings.Join(takes.Required, ", "), strings.Join(may, ", "))
}
