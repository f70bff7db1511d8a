package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/provider"
)

// claims sends messages, uses tools, and gives an output.
func claims(output string, to []string, uses ...swarm.ToolUse) liveAgent {
	return func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		for _, name := range to {
			if _, err := r.Call(ctx, "send_handoff", json.RawMessage(`{"to":"`+name+`","message":"m"}`)); err != nil {
				return provider.Reply{}, err
			}
		}
		for i := range uses {
			u := uses[i]
			u.ID = fmt.Sprint(i)
			live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &u})
			live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &u})
		}
		return provider.Reply{Output: []byte(output), Bytes: int64(len(output))}, nil
	}
}

func teamOf(t *testing.T) *team {
	b := newTeam(t, "script", swarm.Approvals{})
	plan := swarm.Plan{Kind: swarm.TeamRun, Team: &swarm.Team{Lead: "planner", Mode: swarm.AutoMode}, Providers: []swarm.ProviderSpec{{Name: "team", Kind: "script"}},
		Agents: []swarm.Agent{{Name: "planner", Provider: "team"}, {Name: "coder", Provider: "team"}}, Edges: []swarm.Edge{{From: "planner", To: "coder", Both: true}}}
	b.append(nil, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: b.json(plan)})
	return b
}

func inTeam(agent string, turn int) flow.Call {
	c := ask(agent, turn, 1)
	c.Ref = "plan:2"
	return c
}

// The end of a turn lists the messages that it claims and did not send.
func TestWhatIsSaidAndNotSent(t *testing.T) {
	b := teamOf(t)
	for i, c := range []struct {
		says string
		to   []string
		want string
	}{
		{"I sent the plan to coder.", []string{"coder"}, ""},
		{"I sent the plan to coder, as I said.", nil, ""}, // in its last turn
		{"I sent the plan to @coder. It begins now.", nil, "unsent coder I sent the plan to @coder"},
		{"I will send the plan to coder.", nil, ""},
	} {
		r := b.do(inTeam("planner", i+1), claims(c.says, c.to))
		var got []string
		for _, f := range r.Findings {
			got = append(got, fmt.Sprint(f.Kind, " ", f.About, " ", f.Evidence))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%q: %q, want %q", c.says, got, c.want)
		}
	}
	if r := b.do(ask("planner", 9, 1), claims("I sent it to coder.", nil)); len(r.Findings) != 0 {
		t.Errorf("outside of a team nobody acts on it: %+v", r.Findings)
	}
}

// An agent that repeats the same call with the same result is warned once while it works. The
// turn's end reports it, too.
func TestTheSameAgainAndAgain(t *testing.T) {
	b := teamOf(t)
	use := func(name, input, output string) swarm.ToolUse {
		return swarm.ToolUse{Name: name, Input: json.RawMessage(input), Output: output}
	}
	repeat := func(n int, u swarm.ToolUse) (all []swarm.ToolUse) {
		for range n {
			all = append(all, u)
		}
		return all
	}
	var different []swarm.ToolUse
	for i := range 30 {
		different = append(different, use("poll", `{"of":"job"}`, fmt.Sprint(i, " of 30")))
	}
	for i, c := range []struct {
		uses   []swarm.ToolUse
		times  int
		nudged bool
	}{
		{nil, 0, false},
		{repeat(1, use("ls", `{}`, "x")), 1, false},
		{append(repeat(9, use("ls", `{}`, "x")), use("cat", `{}`, "x")), 0, false},
		{append(repeat(25, use("go test", `{"pkg":"."}`, "FAIL")), use("cat", `{}`, "x")), 25, true},
		{different, 0, false},
	} {
		before := len(b.events(swarm.HandoffStored))
		r := b.do(inTeam("coder", i+1), claims("done", nil, c.uses...))
		times := 0
		if len(r.Findings) == 1 && r.Findings[0].Kind == swarm.SameAction {
			times = r.Findings[0].Times
		}
		if times != c.times {
			t.Errorf("case %d: %+v", i, r.Findings)
		}
		after := b.events(swarm.HandoffStored)
		if nudged := len(after) - before; nudged != map[bool]int{true: 1}[c.nudged] {
			t.Errorf("case %d: it was told %d times", i, nudged)
		} else if c.nudged && !strings.Contains(string(after[before].Data), `You have made the same call 10 times in a row, with the same result: go test {\"pkg\":\".\"}`) {
			t.Errorf("it was told %s", after[before].Data)
		}
	}
}
