package run

import (
	"testing"

	"swarm"
)

// A changed message replaces the prompt that was written for the turn that reads it, and no other.
func TestWhichEditedPromptAForkReplaces(t *testing.T) {
	text := []byte("text")
	for _, c := range []struct {
		fork   Fork
		edited swarm.TurnID
		want   bool
	}{
		{Fork{}, "dev/1/1", false},
		{Fork{Edit: text}, "dev/1/1", true},
		{Fork{Edit: text, Message: "goal"}, "dev/1/1", false},
		{Fork{Edit: text, Message: "goal"}, "pm/1/2", true},
	} {
		if got := c.fork.replaces(c.edited, "pm/1/1"); got != c.want {
			t.Errorf("%+v, %s: %v", c.fork, c.edited, got)
		}
	}
}
