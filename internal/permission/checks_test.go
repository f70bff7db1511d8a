package permission

import (
	"errors"
	"strings"
	"testing"
)

// The first check that refuses decides. Later checks do not run.
func TestOrder(t *testing.T) {
	for _, c := range []struct{ refuses, asked, answer string }{
		{"", "phase capability approval", ""},
		{"approval", "phase capability approval", "approval"},
		{"capability", "phase capability", "capability"},
		{"capability approval", "phase capability", "capability"},
		{"phase", "phase", "phase"},
		{"phase capability approval", "phase", "phase"},
	} {
		var asked []string
		check := func(name string) func() error {
			return func() error {
				if asked = append(asked, name); strings.Contains(c.refuses, name) {
					return errors.New(name)
				}
				return nil
			}
		}
		answer := ""
		if err := (Checks{Phase: check("phase"), Capability: check("capability"), Approval: check("approval")}).Pass(); err != nil {
			answer = err.Error()
		}
		if got := strings.Join(asked, " "); got != c.asked || answer != c.answer {
			t.Errorf("%q refuses: asked %q, answered %q", c.refuses, got, answer)
		}
	}
	if err := (Checks{}).Pass(); err != nil {
		t.Error(err)
	}
}
