package view

import (
	"fmt"
	"strings"

	"swarm"
)

// Turn is the turn that a user means by its id, or the last one of a task, or of a task's iteration: code/2/1, code/2, code.
func (d Details) Turn(name string) (found Turn, err error) {
	var ids []string
	ok := false
	for _, t := range d.Turns {
		if t.ID == name || strings.HasPrefix(t.ID, name+"/") {
			found, ok = t, true
		}
		ids = append(ids, t.ID)
	}
	if ok {
		return found, nil
	}
	e := swarm.Errorf(swarm.BadInput, "the run has no turn %q", name)
	if len(ids) == 0 {
		return found, e.WithHint("it has had no turn yet")
	}
	return found, e.WithHint("%s", swarm.DidYouMean(name, ids))
}

// Output is the last output of a task in an iteration, or, if it must be good, the last one of a turn that did what was asked.
func (d Details) Output(task string, iteration int, good bool) (out Output) {
	for _, t := range d.Turns {
		if t.Task == task && t.Iteration == iteration && t.Output.Hash != "" && (!good || t.Status == swarm.Completed) {
			out = t.Output
		}
	}
	return out
}

// Origin says where the bytes of a span came from.
func Origin(s swarm.Span) string {
	switch {
	case s.From == "output" && s.Turn != "":
		return "output of " + s.Turn
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
	case s.From == "sent":
		return "what it had sent before it was cut"
	case s.From == "finding" && s.Name == "":
		return "what the team has published"
	case s.From == "finding" && s.Turn == "":
		return "a person's finding on " + s.Name
	case s.From == "finding":
		return "a finding of " + s.Turn + " on " + s.Name
	case s.From == "separator":
		return "between the parts"
	case s.From == "redacted":
		return "it had secrets, so it is not known which part came from where"
	case s.Name != "":
		return s.From + " " + s.Name
	}
	return s.From
}
