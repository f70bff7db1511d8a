package telemetry

import (
	"strings"
	"testing"
	"time"

	"swarm"
)

// Turns of other runs, and incomplete turns, are exported as what they are.
func TestTurnsThatAreNotWhole(t *testing.T) {
	s := newStage(t)
	leave := s.join()
	s.write(swarm.TurnEnded, "kept/1/1", swarm.CallEnd{Status: swarm.CallOK, CarriedOver: true}) // another run's
	s.write(swarm.TurnEnded, "refused/1/1", swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.OverBudget})
	s.write(swarm.TurnStarted, "cut/1/1", swarm.TurnStart{Start: 1, Provider: "mine", Model: "m", Session: "s-1"})
	s.write(swarm.ApprovalAsked, "cut/1/1", swarm.Approval{ID: "ap-1", Tool: "rm", What: "not told"})
	s.write(swarm.ApprovalAnswered, "cut/1/1", swarm.ApprovalAnswer{ID: "ap-1", OK: false})
	s.write(swarm.TurnEnded, "cut/1/1", swarm.CallEnd{Status: swarm.CallCut, Kind: swarm.CutToSpeak})
	s.write(swarm.BudgetSpent, "", swarm.Reason{Reason: "3 of 3 calls"})
	s.write(swarm.RunEnded, "", swarm.RunEnd{Status: swarm.Cancelled, Exit: 3})
	leave()
	s.want("invoke_agent refused", "invoke_agent cut", "invoke_workflow main")
	tree := s.collector.Tree()
	for _, line := range []string{
		"    invoke_agent refused (client, error over_budget)",
		"    invoke_agent cut (client, unset)",
		"        gen_ai.provider.name=anthropic",
		"        gen_ai.request.model=m",
		"        gen_ai.conversation.id=s-1",
		"        swarm.outcome=cut",
		"      * swarm.approval_asked swarm.approval.id=ap-1 gen_ai.tool.name=rm swarm.task=cut gen_ai.agent.name=cut",
		"      * swarm.approval_answered swarm.approval.id=ap-1 swarm.approval.ok=false swarm.task=cut gen_ai.agent.name=cut",
		"  invoke_workflow main (internal, unset)",
		"    * swarm.budget_spent swarm.reason=3 of 3 calls",
	} {
		if !strings.Contains(tree, line+"\n") {
			t.Errorf("%q is not in\n%s", line, tree)
		}
	}
}

// A span has a limit of links and events; the others are counted.
func TestALotOfMail(t *testing.T) {
	s := newStage(t)
	s.write(swarm.TurnStarted, "a/1/1", swarm.TurnStart{Start: 1})
	for i := range maxLinks + 5 {
		s.write(swarm.HandoffStored, "a/1/1", swarm.Envelope{ID: string(rune('A' + i)), Kind: swarm.Signal, FromNodeID: "a", ToNodeID: "b"})
	}
	s.write(swarm.TurnStarted, "b/1/1", swarm.TurnStart{Start: 1, Inputs: swarm.Inputs{Upto: 1000}})
	s.write(swarm.HandoffConsumed, "b/1/1", swarm.Consumption{Inputs: swarm.Inputs{Upto: 1000}, Turn: "b/1/1"})
	s.write(swarm.TurnEnded, "b/1/1", swarm.CallEnd{Status: swarm.CallOK})
	s.join()()
	b := s.collector.Spans()[0]
	if len(b.Links) != maxLinks || b.DroppedLinksCount != 5 || len(b.Events) != maxEvents || b.DroppedEventsCount != 5 {
		t.Errorf("%d links and %d more, %d events and %d more", len(b.Links), b.DroppedLinksCount, len(b.Events), b.DroppedEventsCount)
	}
	trace := traceOf(run)
	if want := spanOf(trace, "turn", "a/1/1"); string(b.Links[0].SpanId) != string(want[:]) || string(b.Links[0].TraceId) != string(trace[:]) {
		t.Errorf("it is linked to %x", b.Links[0].SpanId)
	}
	if counts := s.collector.Counts(); !strings.Contains(counts, "swarm.mail.delivery: 133 values") {
		t.Errorf("counted was\n%s", counts)
	}
}

// A replay is exported, and not counted: it costs nothing.
func TestAReplayIsNotCounted(t *testing.T) {
	s := newStage(t)
	s.write(swarm.RunStarted, "", swarm.RunStart{ID: run, Kind: swarm.PipelineRun, Replay: true})
	s.turn("a/1/1")
	s.join()()
	s.want("invoke_agent a")
	if counts := s.collector.Counts(); counts != "" {
		t.Errorf("counted was\n%s", counts)
	}
}

// A tool's span ends when the log says so and is as long as its use was, but no longer than its
// turn.
func TestHowLongAToolTook(t *testing.T) {
	s := newStage(t)
	s.write(swarm.TurnStarted, "a/1/1", swarm.TurnStart{Start: 1})
	s.write(swarm.TurnTool, "a/1/1", swarm.ToolUse{Name: "short", Took: time.Nanosecond})
	s.write(swarm.TurnTool, "a/1/1", swarm.ToolUse{Name: "long", Took: time.Hour})
	s.write(swarm.TurnEnded, "a/1/1", swarm.CallEnd{Status: swarm.CallOK})
	s.join()()
	s.want("execute_tool short", "execute_tool long", "invoke_agent a")
	spans := s.collector.Spans()
	if short := spans[0]; short.EndTimeUnixNano-short.StartTimeUnixNano != 1 {
		t.Errorf("it took %d ns", short.EndTimeUnixNano-short.StartTimeUnixNano)
	}
	if long, turn := spans[1], spans[2]; long.StartTimeUnixNano != turn.StartTimeUnixNano || string(long.ParentSpanId) != string(turn.SpanId) {
		t.Errorf("%v is not in %v", long, turn)
	}
}

// Requests to a model are spans of their own below the turn, retries too, and lie within it.
func TestRequestsToAModel(t *testing.T) {
	s := newStage(t)
	s.write(swarm.TurnStarted, "a/1/1", swarm.TurnStart{Start: 1, Provider: "mine", Model: "m"})
	s.write(swarm.TurnEnded, "a/1/1", swarm.CallEnd{Status: swarm.CallOK, Requests: []swarm.ModelRequest{
		{Took: time.Nanosecond, Model: "m", Kind: swarm.RateLimited},
		{After: time.Nanosecond, Took: 2 * time.Nanosecond, Model: "m", Answered: "m-2026", Finish: "tool_calls", Usage: swarm.Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: 3}},
		{After: time.Hour, Took: time.Hour, Model: "m", Answered: "m-2026", Finish: "stop", Usage: swarm.Usage{InputTokens: 20, OutputTokens: 5, Estimated: true}},
	}})
	s.join()()
	s.want("chat m", "chat m", "chat m", "invoke_agent a")
	spans := s.collector.Spans()
	turn, ids := spans[3], map[string]bool{}
	for i, x := range spans[:3] {
		if ids[string(x.SpanId)] = true; string(x.ParentSpanId) != string(turn.SpanId) || x.StartTimeUnixNano < turn.StartTimeUnixNano || x.EndTimeUnixNano > turn.EndTimeUnixNano || x.EndTimeUnixNano < x.StartTimeUnixNano {
			t.Errorf("request %d is %v, in the turn %v", i, x, turn)
		}
	}
	if took := spans[1].EndTimeUnixNano - spans[1].StartTimeUnixNano; took != 2 || len(ids) != 3 {
		t.Errorf("it took %d ns, and there are %d ids", took, len(ids))
	}
	tree := s.collector.Tree()
	for _, lines := range []string{
		"chat m (client, error rate_limited)\n",
		"chat m (client, unset)\n",
		"gen_ai.operation.name=chat\n",
		"gen_ai.response.model=m-2026\n",
		"gen_ai.response.finish_reasons=[tool_calls]\n",
		"gen_ai.response.finish_reasons=[stop]\n",
		"gen_ai.usage.cache_read.input_tokens=N\n",
		"error.type=rate_limited\n",
		"swarm.usage.estimated=true\n",
	} {
		if !strings.Contains(tree, lines) {
			t.Errorf("%q is not in\n%s", lines, tree)
		}
	}
}
