package view

import (
	"testing"

	"swarm"
)

func TestNeed(t *testing.T) {
	mail := func(to, expectation string) swarm.Event {
		e := swarm.NewEvent(swarm.HandoffStored, swarm.Envelope{Kind: swarm.Handoff, ID: "m-1", FromNodeID: "coder", ToNodeID: to,
			Payload: swarm.Payload{Message: "Which?\nThe red one?", Response: &swarm.Response{Expectation: expectation}}})
		e.Agent = "coder"
		return e
	}
	asked := swarm.NewEvent(swarm.ApprovalAsked, swarm.Approval{ID: "code/1/1/x", What: "use Bash", Tool: "Bash"})
	asked.Agent = "coder"
	blocked := swarm.NewEvent(swarm.TaskBlocked, swarm.Reason{Reason: "exit status 1"})
	blocked.Task = "code"
	paused := swarm.NewEvent(swarm.Notice, swarm.Reason{Message: swarm.NewMessage(swarm.StallOnlyTwo), Reason: "the run is paused: they go in a circle", Hint: "swarm resume"})
	for _, c := range []struct {
		event swarm.Event
		want  string
	}{
		{asked, "@coder wants to use Bash: swarm approve code/1/1/x, or swarm deny code/1/1/x"},
		{mail("user", "required"), `@coder asks you: Which? The red one? · swarm reply m-1 "…"`},
		{mail("user", "optional"), ""},
		{mail("tester", "required"), ""},
		{blocked, "task code failed, and waits for a person: exit status 1"},
		{paused, "the run is paused: they go in a circle (swarm resume)"},
		{swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "by the way"}), ""},
		{swarm.NewEvent(swarm.RunPaused, nil), ""},
		{swarm.NewEvent(swarm.RunEnded, swarm.RunEnd{Status: swarm.Failed, Reason: "code failed"}), "failed: code failed"},
		{swarm.NewEvent(swarm.RunEnded, swarm.RunEnd{Status: swarm.Cancelled}), ""},
		{swarm.NewEvent(swarm.LimitReached, swarm.Limit{Provider: "p", Use: "q"}), ""},
	} {
		if got := Need(&c.event); got != c.want {
			t.Errorf("%s: %q, want %q", c.event.Kind, got, c.want)
		}
	}
}
