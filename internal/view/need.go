package view

import (
	"fmt"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// Need returns why an event needs a person, and what to type; "" = it needs none. The end of a run
// needs one who waits for it.
func Need(e *swarm.Event) string {
	switch e.Kind {
	case swarm.ApprovalAsked:
		a, _ := swarm.Body[swarm.Approval](e)
		if a.Auto {
			return ""
		}
		return NeedsAnswer(e.Agent, a)
	case swarm.HandoffStored:
		env, _ := swarm.Body[swarm.Envelope](e)
		if !AsksPerson(&env) {
			return ""
		}
		return fmt.Sprintf("@%s asks you: %s · swarm reply %s \"…\"", env.FromNodeID, shorten(excerpt.OneLine(env.Payload.Message), maxQuestion), env.ID)
	case swarm.LimitReached:
		if l, _ := swarm.Body[swarm.Limit](e); l.Use != "" {
			return "" // another provider goes on
		}
		return "@" + e.Agent + ": " + DescribeEvent(e)
	case swarm.RunEnded:
		if end, _ := swarm.Body[swarm.RunEnd](e); end.Status == swarm.Cancelled {
			return "" // a person has done that
		}
		return DescribeEvent(e)
	case swarm.TaskBlocked:
		return "task " + e.Task + " " + DescribeEvent(e)
	case swarm.Notice:
		if Stalled(e) {
			return DescribeEvent(e)
		}
	}
	return ""
}

// NeedsAnswer returns what an agent wants to do, and how a person answers.
func NeedsAnswer(agent string, a swarm.Approval) string {
	return fmt.Sprintf("@%s wants to %s: swarm approve %s, or swarm deny %s", agent, DescribeApproval(a), a.ID, a.ID)
}

// maxNeeds bounds the needs of a run that a list shows.
const maxNeeds = 20

// Needs returns what the run needs a person for, the most urgent first. [Need] says the same of one
// event, for a person who is told of it as it happens.
func (p *Picture) Needs() (needs []swarm.Need) {
	asking := map[string]bool{} // tasks that wait for an approval
	for _, a := range p.Approvals {
		asking[a.Task] = true
		if !a.Auto {
			needs = append(needs, swarm.Need{Kind: swarm.NeedsApproval, ID: a.ID, Agent: a.Agent, Text: "wants to " + DescribeApproval(a.Approval)})
		}
	}
	var stalled []swarm.Need
	for i := range p.Tasks {
		t := &p.Tasks[i]
		for _, w := range t.Waits {
			switch {
			case w.For == plan.ForReply && w.Agent == swarm.User:
				needs = append(needs, swarm.Need{Kind: swarm.NeedsAnswer, ID: w.Reason, Agent: t.Agent, Text: w.Question})
			case w.For == plan.ForPerson && !asking[t.Name]:
				stalled = append(stalled, swarm.Need{Kind: swarm.NeedsHelp, Agent: t.Agent, Text: w.Reason})
			}
		}
	}
	switch why := p.PausedFor(); {
	case p.Status.Ended():
	case why != "":
		stalled = append(stalled, swarm.Need{Kind: swarm.NeedsHelp, Text: why})
	case p.Status == swarm.Running && p.Reason != "" && len(needs)+len(stalled) == 0:
		stalled = append(stalled, swarm.Need{Kind: swarm.NeedsHelp, Text: p.Reason})
	}
	if needs = append(needs, stalled...); p.Status == swarm.Failed {
		needs = append(needs, swarm.Need{Kind: swarm.NeedsRetry, Text: p.Reason})
	}
	return needs[:min(len(needs), maxNeeds)]
}
