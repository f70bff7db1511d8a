package toolrule

import (
	"encoding/json"
	"testing"
)

// A hint after a refusal prints lines that can be pasted as they are.
func TestLinesToPaste(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"go test ./...","description":"Run the tests"}`, `agents: {coder: {tools: [Read, "Bash(go test:*)"]}}`},
		{"Bash", `{"command":"python3 -m unittest -q"}`, `agents: {coder: {tools: [Read, "Bash(python3:*)"]}}`},
		{"Bash", `{"command":"$(evil) now"}`, `agents: {coder: {tools: [Read, Bash]}}`},
		{"Bash", `"a long input, cut"`, `agents: {coder: {tools: [Read, Bash]}}`},
		{"WebFetch", `{"url":"https://example.com"}`, `agents: {coder: {tools: [Read, WebFetch]}}`},
		{"Read", `{}`, `agents: {coder: {tools: [Read]}}`},
	} {
		if got := Lines("coder", []string{"Read"}, Suggest(c.tool, json.RawMessage(c.input))); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.input, got, c.want)
		}
	}
}
