package view

import (
	"strings"
	"testing"

	"swarm"
)

func TestDescribeTool(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"Edit", `{"replace_all":false,"file_path":"calc.py","old_string":"a","new_string":"b"}`, "Edit calc.py"},
		{"Bash", `{"description":"Run the tests","command":"python3 -m unittest"}`, "Bash python3 -m unittest"},
		{"shell", `{"command":["bash","-lc","go test ./..."]}`, "shell go test ./..."},
		{"shell", `{"command":["ls","-l"]}`, "shell ls -l"},
		{"mcp__swarm__send_handoff", `{"to":"coder","message":"Make div safe"}`, "send_handoff to @coder"},
		{"Grep", `{"pattern":"func main","output_mode":"content"}`, "Grep func main"},
		{"TodoWrite", `{"a":1,"b":"two","c":[],"d":4}`, "TodoWrite a=1 b=two c= …"},
		{"list", `{}`, "list"},
		{"list", ``, "list"},
		{"x", `{"broken`, `x {"broken`},
		{"Bash", `{"command":"echo ok\u001b[2J\nrm x"}`, `Bash echo ok\x1b[2J\nrm x`},
		{"Bash", `{"command":"` + strings.Repeat("y", 500) + `"}`, "Bash " + strings.Repeat("y", 106) + "…" + strings.Repeat("y", 53)},
	} {
		if got := DescribeTool(&swarm.ToolUse{Name: c.name, Input: []byte(c.input)}); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.input, got, c.want)
		}
	}
}
