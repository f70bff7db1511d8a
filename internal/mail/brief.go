package mail

import (
	"strings"

	"swarm"
)

// Brief describes the team to an agent: its members, to whom it may write, who leads, and what the
// phase allows. It holds nothing that changes from turn to turn, so that prompts can be cached.
func (r *Rules) Brief(agent string, t swarm.Team) string {
	var b strings.Builder
	b.WriteString("You are one agent of a team: " + list(r.Agents()) +
		". You have a turn whenever somebody has written to you.\n")
	switch to := r.Receivers(agent); {
	case len(to) == 0:
		b.WriteString("You may write to nobody, but answer a message that asks for a response; " +
			"what you say in the end is kept as your output.\n")
	default:
		b.WriteString("You may write to: " + list(to) +
			r.Say(agent, ". Hand work on with send_handoff; what you merely say, nobody is given.\n"))
	}
	switch {
	case agent == t.Lead:
		b.WriteString(r.Say(agent, "You lead: when the goal is reached and checked, "+
			"call report_done with what came of it. That ends the run.\n"))
		if t.Pack != "" {
			b.WriteString("What is known of the goal is in the context pack " + t.Pack +
				": with it as contextRef, whoever you hand work to has it too.\n")
		}
	case t.Lead != "":
		b.WriteString(t.Lead + " leads.\n")
	}
	if t.Phase == swarm.PlanningPhase {
		b.WriteString("The phase is PLANNING: write files under docs/ only.\n")
	}
	return b.String()
}
