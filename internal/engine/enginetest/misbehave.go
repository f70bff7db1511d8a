package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/provider"
	"swarm/internal/turn"
)

// misbehaviours are ways in which an agent of a swarm does not come to an end by itself, and how the
// swarm ends it. Each function returns the agent's answer in an iteration.
var misbehaviours = []struct {
	name    string
	act     func(iteration int, mates []string) string
	outcome swarm.Outcome
	reason  string
}{
	{"never done", func(n int, _ []string) string {
		return fmt.Sprintf(`{"action": "tool_call", "tool": "look", "tool_params": {"at": %d}}`, n)
	}, swarm.OutcomeForced, "iterations are used up"},
	{"loops on a failing tool", func(n int, _ []string) string {
		return fmt.Sprintf(`{"action": "tool_call", "tool": "broken", "tool_params": {"at": %d}}`, n)
	}, swarm.OutcomeAborted, "3 actions in a row failed"},
	{"plays ping-pong", func(n int, mates []string) string { return message(mate(mates, 0), n) }, swarm.OutcomeConverged, "3 actions in a row used no tool"},
	{"publishes only", func(n int, _ []string) string {
		return fmt.Sprintf(`{"action": "publish_data", "topic": "findings", "data": "finding %d"}`, n)
	}, swarm.OutcomeConverged, "3 actions in a row used no tool"},
	{"floods the mailbox", func(n int, mates []string) string {
		if n%3 == 0 { // so that it does not converge
			return fmt.Sprintf(`{"action": "tool_call", "tool": "look", "tool_params": {"at": %d}}`, n)
		}
		return message(mate(mates, n), n)
	}, swarm.OutcomeForced, "iterations are used up"},
	{"answers with words", func(int, []string) string { return "I am going to look into it." }, swarm.OutcomeAborted, "3 actions in a row failed"},
	{"asks for a tool that is not there", func(n int, _ []string) string {
		return fmt.Sprintf(`{"action": "tool_call", "tool": "missing%d"}`, n)
	}, swarm.OutcomeAborted, "3 actions in a row failed"},
	{"invents actions", func(n int, _ []string) string { return fmt.Sprintf(`{"action": "think%d"}`, n) }, swarm.OutcomeAborted, "3 actions in a row failed"},
	{"writes to nobody", func(n int, _ []string) string { return message("nobody", n) }, swarm.OutcomeConverged, "3 actions in a row used no tool"},
}

// mate returns the n-th teammate. A member of a council has none, and writes to nobody.
func mate(mates []string, n int) string {
	if len(mates) == 0 {
		return "nobody"
	}
	return mates[n%len(mates)]
}

func message(to string, n int) string {
	return fmt.Sprintf(`{"action": "send_message", "to": %q, "payload": {"message": "message %d"}}`, to, n)
}

// aBox has a tool that works and one that does not.
type aBox struct{}

func (aBox) Specs(context.Context) ([]swarm.ToolSpec, error) {
	return []swarm.ToolSpec{{Name: "look"}, {Name: "broken"}}, nil
}

func (aBox) Call(_ context.Context, tool string, args json.RawMessage) (string, error) {
	if tool == "look" {
		return "seen " + string(args), nil
	}
	return "", swarm.Errorf(swarm.Denied, "the tool %s does not work", tool)
}

// misbehave runs swarms of agents that do not come to an end by themselves. Some are councils, in which
// they do not judge each other either. Each swarm ends, and each agent with the reason that fits.
func misbehave(t *testing.T, run Subject) {
	teams := 2 * len(misbehaviours)
	switch {
	case run.Step > 1 || testing.Short():
		teams = len(misbehaviours)
	case os.Getenv("SWARM_TEST_LONG") != "":
		teams = 100
	}
	for seed := range teams {
		rnd := rand.New(rand.NewPCG(uint64(seed), 11))
		how := map[string]int{} // by subtask
		p := swarmPlan()
		n, name := 2+rnd.IntN(3), "part"
		if seed%4 == 3 {
			n, name = min(n, p.Swarm.Workers), "m" // as a council calls them
			p.Swarm.Strategy, p.Swarm.Workers = swarm.CouncilStrategy, n
			growth.PlanCouncil(&p, runID, swarmQuery)
		}
		var subtasks []swarm.Subtask
		for i := range n {
			s := swarm.Subtask{ID: fmt.Sprint(name, i+1), Description: "Look"}
			how[s.ID] = rnd.IntN(len(misbehaviours))
			subtasks = append(subtasks, s)
		}
		how[name+"1"] = seed % len(misbehaviours) // so that each is there
		if good := misbehaviours[how[name+"1"]].outcome.Good(); !good {
			how[name+"2"] = 2 // so that there is something to answer with
		}
		runSwarm(t, run, seed, p, subtasks, how)
	}
}

func runSwarm(t *testing.T, run Subject, seed int, p swarm.Plan, subtasks []swarm.Subtask, how map[string]int) {
	t.Helper()
	names := map[string]string{} // agents by subtask
	answer := func(_ context.Context, r provider.Request) (string, error) {
		_, rest, _ := strings.Cut(string(r.Turn), "/")
		switch {
		case strings.HasPrefix(string(r.Turn), swarm.Supervisor+"/1/") && !p.Swarm.IsCouncil():
			return string(swarm.Encode(map[string]any{"subtasks": subtasks})), nil
		case strings.HasPrefix(string(r.Turn), swarm.Supervisor):
			return "The answer.", nil
		}
		var n int
		_, err := fmt.Sscanf(rest, "%d/", &n)
		return misbehaviours[how[r.Task]].act(n, matesIn(r.Prompt)), err
	}
	h := newHarness(t, run, p, newTeam(answer))
	h.tools = func(*swarm.Agent, swarm.TurnID) (turn.Toolbox, error) { return aBox{}, nil }
	h.append(swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "the query is stored"}), [][]byte{[]byte(swarmQuery)})
	if r, err := h.driveTeam(0, false); err != nil || r.Status != swarm.CallOK {
		t.Errorf("swarm %d: %+v, %v", seed, r, err)
		return
	}
	events := h.events()
	for _, e := range events {
		if e.Kind == swarm.PlanAdded {
			p, err := swarm.Body[swarm.Plan](&e)
			h.check(err)
			for i := 0; p.Swarm != nil && i < len(p.Swarm.Subtasks); i++ {
				names[p.Swarm.Subtasks[i].ID] = p.Swarm.Subtasks[i].Agent
			}
		}
	}
	ends := map[string]swarm.AgentEnd{}
	for _, e := range events {
		if e.Kind == swarm.AgentEnded {
			end, err := swarm.Body[swarm.AgentEnd](&e)
			h.check(err)
			ends[e.Agent] = end
		}
	}
	for id, i := range how {
		want, got := misbehaviours[i], ends[names[id]]
		if got.Outcome != want.outcome || !strings.Contains(got.Reason, want.reason) {
			t.Errorf("swarm %d: an agent that %s ended with %q, %q; want %q, %q", seed, want.name, got.Outcome, got.Reason, want.outcome, want.reason)
		}
	}
}

// matesIn returns the teammates that a prompt lists.
func matesIn(prompt string) (mates []string) {
	_, list, _ := strings.Cut(prompt, "## Your Team")
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "- "), ":"); ok && strings.HasPrefix(line, "- ") && !strings.Contains(name, "(you)") {
			mates = append(mates, name)
		}
	}
	return mates
}
