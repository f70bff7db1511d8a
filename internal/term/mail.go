package term

import (
	"fmt"

	"swarm"
	"swarm/internal/view"
)

// mailDetail shows an agent's text, or else its last message, and the number of unread messages.
func (f Frame) mailDetail(t *view.Task, said string) string {
	box, ok := f.Mail[t.Agent]
	if !ok {
		return said
	}
	switch last := box.Last; {
	case said != "" || last == (view.Letter{}):
	case last.From == t.Agent:
		said = OneLine("→ @" + last.To + ": " + last.Text)
	default:
		said = OneLine("← @" + last.From + ": " + last.Text)
	}
	switch n := box.Unread(); {
	case n > 0 && said != "":
		return fmt.Sprintf("%d unread · %s", n, said)
	case n > 0:
		return fmt.Sprintf("%d unread", n)
	}
	return said
}

// Noun returns what the tasks of a run are called: those of a team are its agents.
func Noun(kind swarm.RunKind) string {
	if kind.Team() {
		return "agent"
	}
	return "task"
}
