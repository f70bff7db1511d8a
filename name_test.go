package swarm

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	choices := []string{"code", "notify", "reviewer", "claude-code"}
	for name, want := range map[string]string{
		"cod": "code", "coed": "code", "Code": "code", "revewer": "reviewer", "claude": "claude-code", "ntoify": "notify",
		"nope": "", "nobody": "", "x": "", "": "", "reader": "",
	} {
		if got := Nearest(name, choices); got != want {
			t.Errorf("the nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name        string
		agent, task bool // may it be an agent's, a task's?
	}{
		{"a", true, true},
		{"code-2", true, true},
		{"write_code", false, true},
		{"code_", false, true},
		{strings.Repeat("a", MaxName), true, true},
		{strings.Repeat("a", MaxName+1), false, false},
		{"", false, false},
		{"-rf", false, false},
		{"code-", false, false},
		{"2code", false, false},
		{"_code", false, false},
		{"Code", false, false},
		{"código", false, false},
		{"code\n", false, false},
		{"../x", false, false},
		{"code.2", false, false},
		{"all", false, false},
		{"lead", true, true},
		{"swarm-supervisor", false, false},
	} {
		if err := CheckAgentName(c.name); (err == nil) != c.agent {
			t.Errorf("an agent %q: %v", c.name, err)
		}
		if err := CheckTaskName(c.name); (err == nil) != c.task {
			t.Errorf("a task %q: %v", c.name, err)
		}
	}
}
