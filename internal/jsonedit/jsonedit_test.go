package jsonedit

import (
	"encoding/json"
	"testing"
)

func TestSetAndDelete(t *testing.T) {
	for _, c := range []struct{ before, set, deleted string }{
		{"", "{\n  \"mcp\": {\"a\": 1}\n}\n", "{\n  \"mcp\": {}\n}\n"},
		{"{}", "{\n  \"mcp\": {\"a\": 1}\n}", "{\n  \"mcp\": {}\n}"},
		{`{"x": [1, {"mcp": 2}]}`, `{"x": [1, {"mcp": 2}], "mcp": {"a": 1}}`, `{"x": [1, {"mcp": 2}], "mcp": {}}`},
		{"{\n\t\"x\": \"}\", // \"mcp\": {\n\t\"y\": null, /* } */\n}\n", "{\n\t\"x\": \"}\", // \"mcp\": {\n\t\"y\": null, /* } */\n\t\"mcp\": {\"a\": 1},\n}\n",
			"{\n\t\"x\": \"}\", // \"mcp\": {\n\t\"y\": null, /* } */\n\t\"mcp\": {},\n}\n"},
		{"{\n  \"mcp\": {\n    \"b\": 2 // two\n  }\n}", "{\n  \"mcp\": {\n    \"b\": 2, // two\n    \"a\": 1\n  }\n}", "{\n  \"mcp\": {\n    \"b\": 2 // two\n  }\n}"},
		{"{\n  \"mcp\": {\n    \"b\": {\"c\": 2}\n  }\n}", "{\n  \"mcp\": {\n    \"b\": {\"c\": 2},\n    \"a\": 1\n  }\n}", "{\n  \"mcp\": {\n    \"b\": {\"c\": 2}\n  }\n}"},
		{"{\"mcp\": {\n \"a\": {\"old\": true},\n \"b\": 2}}", "{\"mcp\": {\n \"a\": 1,\n \"b\": 2}}", "{\"mcp\": {\n \"b\": 2}}"},
	} {
		got, err := Set(c.before, "1", "mcp", "a")
		if err != nil || got != c.set {
			t.Errorf("%q: %v, %q, want %q", c.before, err, got, c.set)
		}
		if again, err := Set(got, "1", "mcp", "a"); err != nil || again != got {
			t.Errorf("again: %v, %q", err, again)
		}
		if value, found, err := Get(got, "mcp", "a"); value != "1" || !found || err != nil {
			t.Errorf("%q: %q, %v, %v", got, value, found, err)
		}
		deleted, found, err := Delete(got, "mcp", "a")
		if err != nil || !found || deleted != c.deleted {
			t.Errorf("%q: %v, %q, want %q", got, err, deleted, c.deleted)
		}
		if _, found, err := Delete(deleted, "mcp", "a"); found || err != nil {
			t.Errorf("%q: found again, %v", deleted, err)
		}
	}
}

// What is not one JSON object is not changed.
func TestBadForms(t *testing.T) {
	for _, text := range []string{"[]", "{", `{"a": }`, `{"a": 1 "b": 2}`, "{} {}", `{"mcp": 1}`, `{a: 1}`, "null", `{"mcp": {`, `{"a": tru}`} {
		if got, err := Set(text, "1", "mcp", "a"); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// FuzzSet: whatever the text is, a change that is made leaves valid JSON valid.
func FuzzSet(f *testing.F) {
	f.Add(`{"a": [1, 2], "mcp": {"b": {}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Set(text, "1", "mcp", "a")
		if err == nil && json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
