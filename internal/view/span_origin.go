package view

import (
	"fmt"

	"swarm"
)

// SpanOrigin describes where the bytes of a span came from.
func SpanOrigin(s swarm.Span) string {
	switch {
	case s.From == "output" && s.Turn != "":
		return "output of " + string(s.Turn)
	case s.From == "output":
		return fmt.Sprintf("output of task %s, which has none", s.Name)
	case s.From == "text" && s.Name == "":
		return "the task's prompt"
	case s.From == "text":
		return s.Name
	case s.From == "role" && s.Name == "":
		return "the agent's role"
	case s.From == "role":
		return "role, " + s.Name
	case s.From == "retry":
		return "why attempt " + s.Name + " failed"
	case s.From == "ids":
		return "who the agent is"
	case s.From == "stdin":
		return "standard input"
	case s.From == "edit":
		return "a person's edit"
	case s.From == "sent":
		return "what it had sent before it was cut"
	case s.From == "finding" && s.Name == "":
		return "what the team has published"
	case s.From == "finding" && s.Turn == "":
		return "a person's finding on " + s.Name
	case s.From == "finding":
		return "a finding of " + string(s.Turn) + " on " + s.Name
	case s.From == "separator":
		return "between the parts"
	case s.From == "redacted":
		return "it had secrets, so it is not known which part came from where"
	case s.Name != "":
		return s.From + " " + s.Name
	}
	return s.From
}
