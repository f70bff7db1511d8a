package view

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"swarm"
)

func TestWish(t *testing.T) {
	for _, c := range []struct{ what, tool, input, want string }{
		{"use Bash", "Bash", `{"command":"touch made1.txt"}`, "use Bash touch made1.txt"},
		{"use Bash", "Bash", `{"description":"Make a file", "command":"touch made1.txt"}`, "use Bash touch made1.txt description=Make a file"},
		{"use Write", "Write", `{"file_path":"a.go","content":"package a\n\nvar x = 1"}`, `use Write a.go content=package a\n\nvar x = 1`},
		{"use shell", "shell", `{"command":["sh","-c","rm -r x"]}`, `use shell ["sh","-c","rm -r x"]`},
		{"use Bash", "Bash", `{"command":"echo ok\u001b[2J\u202e\r\nrm -r x"}`, `use Bash echo ok\x1b[2J\u202e\r\nrm -r x`},
		{"use \x1b[2J", "x", ``, `use \x1b[2J`},
		{"", "Bash", `null`, "use Bash"},
		{"run make", "", `{}`, "run make"},
		{"use x", "x", `"{\"command\":\"cut off"`, `use x {"command":"cut off`},
		{"use x", "x", `{"broken`, `use x {"broken`},
		{"use Bash", "Bash", `{"command":"touch a` + strings.Repeat(" ", 5000) + `; rm -r x"}`, "use Bash touch a" + strings.Repeat(" ", 126) + "…" + strings.Repeat(" ", 57) + "; rm -r x"},
	} {
		if got := Wish(swarm.Approval{What: c.what, Tool: c.tool, Input: json.RawMessage(c.input)}); got != c.want {
			t.Errorf("%q %s:\n%q, want\n%q", c.what, c.input, got, c.want)
		}
	}
}

// Whatever an agent asks for, it is one line that can be printed, and not a long one.
func FuzzWish(f *testing.F) {
	f.Add("use Bash", `{"command":"ls","x":1}`)
	f.Add("\x00", `{"a":{"b":[1,"\u202e"]}}`)
	f.Fuzz(func(t *testing.T, what, input string) {
		got := Wish(swarm.Approval{What: what, Input: json.RawMessage(input)})
		if utf8.RuneCountInString(got) > mostWish {
			t.Errorf("%d characters", len(got))
		}
		for _, r := range got {
			if r < ' ' || r != utf8.RuneError && !unicode.IsPrint(r) {
				t.Errorf("%q has %q in it", got, r)
			}
		}
	})
}
