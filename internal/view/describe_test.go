package view

import (
	"encoding/json"
	"testing"
	"time"

	"swarm"
)

func TestTell(t *testing.T) {
	for _, c := range []struct {
		kind swarm.EventKind
		body any
		want string
	}{
		{swarm.RunStarted, swarm.RunStart{Kind: swarm.PipelineRun, Name: "main"}, "pipeline main started"},
		{swarm.RunStarted, swarm.RunStart{Kind: swarm.PipelineRun}, "pipeline started"},
		{swarm.RunStarted, swarm.RunStart{Kind: swarm.PipelineRun, From: "r1"}, "pipeline started, to try r1 again"},
		{swarm.RunStarted, swarm.RunStart{Kind: swarm.PipelineRun, Replay: true}, "pipeline started, from a recording"},
		{swarm.RunOwned, swarm.Ownership{PID: 7, Fence: 1}, ""},
		{swarm.RunOwned, swarm.Ownership{PID: 7, Fence: 2}, "process 7 drives the run from here on"},
		{swarm.RunPaused, nil, "paused"},
		{swarm.RunInterrupted, swarm.Reason{Reason: "Ctrl-C"}, "interrupted: Ctrl-C"},
		{swarm.RunEnded, swarm.RunEnd{Status: swarm.Failed, Reason: "b failed"}, "failed: b failed"},
		{swarm.BudgetSpent, swarm.Reason{Reason: "5 of 5 calls"}, "the budget is spent: 5 of 5 calls"},
		{swarm.Notice, swarm.Reason{Reason: "no git", Hint: "install it"}, "no git (install it)"},
		{swarm.TaskCancelled, swarm.TaskEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"}, "cancelled"},
		{swarm.TaskCancelled, swarm.TaskEnd{Kind: swarm.OverBudget, Reason: "budget"}, "cancelled: budget"},
		{swarm.Control, swarm.ControlCommand{Command: swarm.CommandCancel, Target: "b"}, "asked to cancel b"},
		{swarm.Control, swarm.ControlCommand{Command: swarm.CommandPause}, "asked to pause"},
		{swarm.Control, swarm.ControlCommand{Command: swarm.CommandClose}, "no line follows"},
		{swarm.Control, swarm.ControlCommand{Command: swarm.CommandResume}, "goes on"},
		{swarm.Control, swarm.ControlCommand{Command: swarm.CommandResume, Target: "b"}, "asked to resume b"},
		{swarm.Control, swarm.ControlCommand{Command: swarm.CommandPause, Actor: swarm.Actor{By: swarm.ByPerson, How: swarm.HowBoard, User: "ada"}}, "asked to pause by ada (board)"},
		{swarm.ApprovalAnswered, swarm.ApprovalAnswer{ID: "q1", Reason: "no", Actor: swarm.Actor{By: "swarm deny"}}, "may not: q1 was denied by swarm deny: no"},
		{swarm.IterationStarted, swarm.Iteration{Iteration: 2, Of: 3}, "iteration 2 of 3"},
		{swarm.TaskStarted, swarm.Iteration{Iteration: 1, Of: 1}, "started"},
		{swarm.TaskStarted, swarm.Iteration{Iteration: 2, Of: 3}, "started (iteration 2 of 3)"},
		{swarm.TurnStarted, swarm.TurnStart{Start: 1}, ""},
		{swarm.TurnStarted, swarm.TurnStart{Start: 2}, "turn b/1/1 was cut, and runs again"},
		{swarm.TaskRetrying, swarm.Retry{Attempt: 1, Reason: "no"}, "attempt 1 failed: no; again at once"},
		{swarm.TaskRetrying, swarm.Retry{Attempt: 2, Reason: "no", After: 2 * time.Second}, "attempt 2 failed: no; again in 2s"},
		{swarm.TaskBlocked, swarm.Reason{Reason: "no"}, "failed, and waits for a person: no"},
		{swarm.ApprovalAsked, swarm.Approval{ID: "q1", What: "use Bash", Input: json.RawMessage(`{"command":"ls"}`)}, "may it use Bash ls? swarm approve q1, or swarm deny q1"},
		{swarm.TaskCompleted, swarm.TaskEnd{}, "completed"},
		{swarm.TaskSkipped, swarm.TaskEnd{Reason: "a failed"}, "skipped: a failed"},
		{swarm.TurnEnded, swarm.CallEnd{}, ""},
		{swarm.TaskFailed, "what is this", "failed"},
	} {
		data, err := json.Marshal(c.body)
		if err != nil {
			t.Fatal(err)
		}
		if got := DescribeEvent(&swarm.Event{Kind: c.kind, Turn: "b/1/1", Data: data}); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, data, got, c.want)
		}
	}
}

func TestOrigin(t *testing.T) {
	for want, s := range map[string]swarm.Span{
		"output of plan/1/1":                  {From: "output", Name: "plan", Turn: "plan/1/1"},
		"output of task plan, which has none": {From: "output", Name: "plan"},
		"swarm/prompts/code.md":               {From: "text", Name: "swarm/prompts/code.md"},
		"role, swarm/prompts/coder.md":        {From: "role", Name: "swarm/prompts/coder.md"},
		"who the agent is":                    {From: "ids"},
		"why attempt 1 failed":                {From: "retry", Name: "1"},
		"standard input":                      {From: "stdin"},
		"pack":                                {From: "pack"},
		"a finding of code/1/1 on facts":      {From: "finding", Name: "facts", Turn: "code/1/1"},
		"a person's finding on facts":         {From: "finding", Name: "facts", Known: true},
		"what the team has published":         {From: "finding"},
	} {
		if got := SpanOrigin(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
