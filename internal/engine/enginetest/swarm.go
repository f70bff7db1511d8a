package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/station"
	"swarm/internal/turn"
)

const swarmQuery = "Compare two markets"

// divideAndAnswer is the work of a swarm of three agents. The first one publishes, writes to the
// second, which answers once what cannot be read, and asks for help. Its helper writes to the
// supervisor, which plans anew. Its message comes too late for an agent that has ended.
func divideAndAnswer(_ context.Context, r provider.Request) (string, error) {
	other := station.Name(runID, 1)
	says := map[string]string{
		"supervisor/1/1": `{"subtasks": [{"id": "us", "description": "The US"}, {"id": "jp", "description": "Japan"}, {"id": "both", "description": "Both", "depends_on": ["us", "jp"]}]}`,
		"us/1/1":         `{"action": "publish_data", "topic": "findings", "data": "80 %"}`,
		"us/2/1":         `{"action": "send_message", "to": "` + other + `", "payload": {"message": "Look at edge AI"}}`,
		"us/3/1":         `{"action": "request_help", "help_description": "Look at the law"}`,
		"us/4/1":         `{"action": "done", "response": "The US leads."}`,
		"help-us/1/1":    `{"action": "send_message", "to": "supervisor", "message_type": "request", "payload": {"message": "Europe is missing"}}`,
		"help-us/2/1":    `{"action": "done", "response": "The law is new."}`,
		"jp/1/1":         "I shall look into it.",
		"jp/1/2":         `{"action": "tool_call", "tool": "nosuch", "tool_params": {}}`,
		"jp/2/1":         `{"action": "tool_call", "tool": "look", "tool_params": {"at": "Japan"}}`,
		"jp/3/1":         `{"action": "done", "response": "Edge AI."}`,
		"both/1/1":       `{"action": "tool_call", "tool": "task_add", "tool_params": {"description": "Check the figures", "depends_on": ["help-us"]}}`,
		"both/2/1":       `{"action": "done", "response": "Both grow."}`,
		"t5/1/1":         `{"action": "done", "response": "They are right."}`,
		"supervisor/2/1": "The answer.",
		"eu/1/1":         `{"action": "done", "response": "The EU follows."}`,
		"supervisor/3/1": "The answer.",
	}
	if strings.Contains(r.Prompt, "Decide what else is to be done.") {
		return `{"subtasks": [{"id": "eu", "description": "Europe", "depends_on": ["us"]}], "messages": [{"to": "` + other + `", "message": "Wait for Europe"}]}`, nil
	}
	_, rest, _ := strings.Cut(string(r.Turn), "/")
	say, ok := says[r.Task+"/"+rest]
	if !ok {
		return "", swarm.Errorf(swarm.Exited, "nothing to say in %s", r.Turn)
	}
	return say, nil
}

func swarmPlan() swarm.Plan {
	return swarm.Plan{Kind: swarm.SwarmRun, MaxParallel: 1, Approvals: swarm.Approvals{Spawn: "auto"}, Team: &swarm.Team{Lead: swarm.Supervisor, Mode: swarm.AutoMode, MaxAgents: 6},
		Providers: []swarm.ProviderSpec{{Name: "team", Kind: providerkind.Script}},
		Agents:    []swarm.Agent{{Name: swarm.Supervisor, Provider: "team"}},
		Swarm:     &swarm.Swarm{Query: swarm.HashOf([]byte(swarmQuery)), Workers: 3, Iterations: 5, Messages: 20, Replan: true, Worker: swarm.Agent{Provider: "team", Tools: []string{"look", "broken"}}}}
}

func newSwarmHarness(t *testing.T, run Subject, budget swarm.Budget) *harness {
	p := swarmPlan()
	p.Budget = budget
	b := newHarness(t, run, p, newTeam(divideAndAnswer))
	b.tools = func(_ *swarm.Agent, of swarm.TurnID) (turn.Toolbox, error) { return countedBox{b, of}, nil }
	b.append(swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "the query is stored"}), [][]byte{[]byte(swarmQuery)})
	return b
}

// A countedBox records which turns have called a tool.
type countedBox struct {
	h    *harness
	turn swarm.TurnID
}

func (b countedBox) Specs(ctx context.Context) ([]swarm.ToolSpec, error) { return aBox{}.Specs(ctx) }

func (b countedBox) Call(ctx context.Context, tool string, args json.RawMessage) (string, error) {
	b.h.team.mu.Lock()
	b.h.called = append(b.h.called, b.turn)
	b.h.team.mu.Unlock()
	return aBox{}.Call(ctx, tool, args)
}

// checkActions compares the calls of tools with their starts in the log. If a call may have been made
// twice, the agent's next prompt says so, and otherwise not.
func (h *harness) checkActions(at int) {
	h.t.Helper()
	starts := map[swarm.TurnID]int{}
	for _, e := range h.events() {
		if e.Kind != swarm.ActionStarted {
			continue
		}
		s, err := swarm.Body[swarm.ActionStart](&e)
		h.check(err)
		if starts[e.Turn]++; starts[e.Turn] != s.Start {
			h.t.Errorf("crash at append %d: start %d of the action of %s calls itself %d", at, starts[e.Turn], e.Turn, s.Start)
		}
	}
	for _, turn := range h.called {
		calls := 0
		for _, other := range h.called {
			if other == turn {
				calls++
			}
		}
		if starts[turn] < calls {
			h.t.Errorf("crash at append %d: the tool of %s was called %d times, and the log has %d starts", at, turn, calls, starts[turn])
		}
	}
	for turn, n := range starts {
		agent, number := plan.OfTurn(turn)
		next := strings.Join(h.team.asked[swarm.NewTurnID(agent, number+1, 1)], "")
		_, line, _ := strings.Cut(next, fmt.Sprintf("\n- Iteration %d: ", number))
		line, _, _ = strings.Cut(line, "\n")
		if told := strings.Contains(line, prompt.RanTwice); told != (n > 1) {
			h.t.Errorf("crash at append %d: the action of %s has %d starts, and the next prompt tells it: %v", at, turn, n, told)
		}
	}
}

// A swarm continues after a crash at any append as if there was none: the same agents, the same
// actions, the same answer, and no turn that is committed twice.
func swarmCrashes(t *testing.T, run Subject) {
	clean := newSwarmHarness(t, run, swarm.Budget{})
	if r, err := clean.driveTeam(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	first, second, third, helper := station.Name(runID, 0), station.Name(runID, 1), station.Name(runID, 2), station.Name(runID, 3)
	for _, line := range []string{"action_ended " + first + " " + first + "/2/1", "turn_ended " + second + " " + second + "/1/2", "agent_ended " + third, "agent_ended " + helper, "turn_ended supervisor supervisor/2/1", "agent_ended " + station.Name(runID, 4), "agent_ended " + station.Name(runID, 5), "turn_ended supervisor supervisor/3/1"} {
		if !slices.Contains(want, line) {
			t.Fatalf("%q did not happen:\n%s", line, strings.Join(want, "\n"))
		}
	}
	if !strings.Contains(strings.Join(clean.team.asked[swarm.NewTurnID(third, 1, 1)], ""), "80 %") {
		t.Errorf("a finding does not stand in the prompt of a teammate:\n%s", clean.team.asked[swarm.NewTurnID(third, 1, 1)])
	}
	if got := clean.received(first); len(got) != 1 || !strings.Contains(got[0], helper+" has joined the team") {
		t.Errorf("the agent that asked for help was told %q", got)
	}
	if asked := strings.Join(clean.team.asked[swarm.NewTurnID(helper, 2, 1)], ""); !strings.Contains(asked, "**"+helper+` (you)**: "Look at the law"`) {
		t.Errorf("the helper's prompt does not show it in the team:\n%s", asked)
	}
	if asked := strings.Join(clean.team.asked["supervisor/2/1"], ""); !strings.Contains(asked, "Europe is missing") || !strings.Contains(asked, "- us: \"The US\" (not finished, by "+first+": 3 actions in a row used no tool; report: "+first+"-report.md): publishes on findings: 80 %") ||
		!strings.Contains(asked, "- jp: \"Japan\" (done by "+second+"): Edge AI.") || strings.Count(asked, "- t5: ") != 1 {
		t.Errorf("the supervisor planned anew by:\n%s", asked)
	}
	clean.checkMail(0)
	clean.checkActions(0)
	again := 0
	run.atEveryAppend(t, 20, func(at int, committed bool) bool {
		b := newSwarmHarness(t, run, swarm.Budget{})
		if !crash(t, at, committed, b.driveTeam) {
			return false
		}
		b.checkHistory(at, committed, want)
		b.checkMail(at)
		b.checkActions(at)
		again += len(b.called) - len(clean.called)
		return true
	})
	if again == 0 && run.Step <= 1 && !testing.Short() {
		t.Error("no crash has cut a tool")
	}
}

// swarmBudgetCrashes gives a swarm a budget that is spent before its work is done. Whenever it
// crashes, it uses no more than that, and it answers. A crash in the turn that makes the answer uses
// up what is held back for it, so the results are listed then.
func swarmBudgetCrashes(t *testing.T, run Subject) {
	held := swarm.Usage{Calls: 1, InputTokens: swarm.EstimateTokens(prompt.MaxSynthesis(swarmQuery, 10, false)), OutputTokens: plan.WantAnswer.MaxTokens()}
	for _, budget := range []swarm.Budget{{Calls: 4, Held: held}, {Tokens: held.Tokens() + 4_700, Held: held}} {
		clean := newSwarmHarness(t, run, budget)
		if r, err := clean.driveTeam(0, false); err != nil || r.Kind != swarm.OverBudget {
			t.Fatalf("without a crash: %+v, %v", r, err)
		}
		if got := clean.checkSpent(0, budget); got != "The answer." {
			t.Errorf("without a crash the answer is %q", got)
		}
		run.atEveryAppend(t, 20, func(at int, committed bool) bool {
			b := newSwarmHarness(t, run, budget)
			_, err := b.driveTeam(at, committed)
			if err == nil {
				return false
			}
			if r, err := b.driveTeam(0, false); err != nil || r.Kind != swarm.OverBudget {
				t.Fatalf("resumed after a crash at append %d: %+v, %v", at, r, err)
			}
			b.checkSpent(at, budget)
			return true
		})
	}
}

// checkSpent returns the answer of a swarm. If it has done anything, there must be one, within the
// budget.
func (h *harness) checkSpent(at int, budget swarm.Budget) string {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadOnly)
	h.check(err)
	defer log.Close()
	end, _, err := swarm.FindBody[swarm.RunEnd](log, string(swarm.RunEnded))
	h.check(err)
	if n := int64(h.team.calls()); budget.Calls > 0 && n > budget.Calls || budget.Tokens > 0 && end.Usage.Tokens() > budget.Tokens {
		h.t.Errorf("crash at append %d: %d calls, %d tokens of %+v", at, n, end.Usage.Tokens(), budget)
	}
	again := int64(0) // starts that replaced one that the crash cut
	for e, err := range swarm.Events(log, 0) {
		h.check(err)
		if e.Kind == swarm.TurnStarted && e.Key != swarm.StartKey(e.Turn, 1) {
			again++
		}
	}
	if end.Usage.CutCalls < again {
		h.t.Errorf("crash at append %d: %d starts were cut, and the end of the run counts %+v", at, again, end.Usage)
	}
	if end.Usage.Calls == end.Usage.CutCalls { // a crash in the division has used up what there was for it, and no work was done
		return ""
	}
	answer, ok, err := swarm.FindBody[swarm.CallEnd](log, swarm.EndKey(string(end.Answer)))
	h.check(err)
	if !ok || answer.Output == "" {
		h.t.Errorf("crash at append %d: the run has no answer: %+v", at, end)
		return ""
	}
	text, err := log.Body(answer.Output)
	h.check(err)
	return string(text)
}
