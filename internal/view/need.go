package view

import (
	"fmt"

	"swarm"
	"swarm/internal/excerpt"
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
		return fmt.Sprintf("@%s wants to %s: swarm approve %s, or swarm deny %s", e.Agent, DescribeApproval(a), a.ID, a.ID)
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
