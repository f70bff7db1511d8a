package enginetest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/station"
)

const swarmQuery = "Compare two markets"

// divideAndAnswer is the work of a swarm of three agents. The first one publishes, writes to the
// second, which answers once what cannot be read, and asks for help. Its helper asks for help in vain:
// there may be four agents.
func divideAndAnswer(_ context.Context, r provider.Request) (string, error) {
	other := station.Name(runID, 1)
	says := map[string]string{
		"supervisor/1/1": `{"subtasks": [{"id": "us", "description": "The US"}, {"id": "jp", "description": "Japan"}, {"id": "both", "description": "Both", "depends_on": ["us", "jp"]}]}`,
		"us/1/1":         `{"action": "publish_data", "topic": "findings", "data": "80 %"}`,
		"us/2/1":         `{"action": "send_message", "to": "` + other + `", "payload": {"message": "Look at edge AI"}}`,
		"us/3/1":         `{"action": "request_help", "help_description": "Look at the law"}`,
		"us/4/1":         `{"action": "done", "response": "The US leads."}`,
		"help-us/1/1":    `{"action": "request_help", "help_description": "Look at Europe"}`,
		"help-us/2/1":    `{"action": "done", "response": "The law is new."}`,
		"jp/1/1":         "I shall look into it.",
		"jp/1/2":         `{"action": "tool_call", "tool": "nosuch", "tool_params": {}}`,
		"jp/2/1":         `{"action": "done", "response": "Edge AI."}`,
		"both/1/1":       `{"action": "done", "response": "Both grow."}`,
		"supervisor/2/1": "The answer.",
	}
	_, rest, _ := strings.Cut(string(r.Turn), "/")
	say, ok := says[r.Task+"/"+rest]
	if !ok {
		return "", swarm.Errorf(swarm.Exited, "nothing to say in %s", r.Turn)
	}
	return say, nil
}

func swarmPlan() swarm.Plan {
	return swarm.Plan{Kind: swarm.SwarmRun, MaxParallel: 1, Approvals: swarm.Approvals{Spawn: "auto"}, Team: &swarm.Team{Lead: swarm.Supervisor, Mode: swarm.AutoMode, MaxAgents: 4},
		Providers: []swarm.ProviderSpec{{Name: "team", Kind: providerkind.Script}},
		Agents:    []swarm.Agent{{Name: swarm.Supervisor, Provider: "team"}},
		Swarm:     &swarm.Swarm{Query: swarm.HashOf([]byte(swarmQuery)), Workers: 3, Iterations: 5, Messages: 20, Worker: swarm.Agent{Provider: "team", Tools: []string{"look", "broken"}}}}
}

func newSwarmHarness(t *testing.T, run Subject) *harness {
	b := newHarness(t, run, swarmPlan(), newTeam(divideAndAnswer))
	b.append(swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "the query is stored"}), [][]byte{[]byte(swarmQuery)})
	return b
}

// A swarm continues after a crash at any append as if there was none: the same agents, the same
// actions, the same answer, and no turn that is committed twice.
func swarmCrashes(t *testing.T, run Subject) {
	clean := newSwarmHarness(t, run)
	if r, err := clean.driveTeam(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	first, second, third, helper := station.Name(runID, 0), station.Name(runID, 1), station.Name(runID, 2), station.Name(runID, 3)
	for _, line := range []string{"action_ended " + first + " " + first + "/2/1", "turn_ended " + second + " " + second + "/1/2", "agent_ended " + third, "agent_ended " + helper, "turn_ended supervisor supervisor/2/1"} {
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
	if asked := strings.Join(clean.team.asked[swarm.NewTurnID(helper, 2, 1)], ""); !strings.Contains(asked, "the swarm is full: it has had 4 agents, and may have 4 in all") ||
		!strings.Contains(asked, "**"+helper+` (you)**: "Look at the law"`) {
		t.Errorf("the helper, which asked for help in vain, was told:\n%s", asked)
	}
	clean.checkMail(0)
	run.atEveryAppend(t, 20, func(at int, committed bool) bool {
		b := newSwarmHarness(t, run)
		if !crash(t, at, committed, b.driveTeam) {
			return false
		}
		got, ends := b.history()
		if !slices.Equal(got, want) {
			t.Errorf("crash at append %d, committed: %v: the log tells\n%s\nwant\n%s", at, committed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for turn, n := range ends {
			if n != 1 {
				t.Errorf("crash at append %d: the turn %s ended %d times", at, turn, n)
			}
		}
		b.checkMail(at)
		return true
	})
}
