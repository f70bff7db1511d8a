package enginetest

import (
	"context"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/provider"
)

// judgeAndVote is the work of a council of three. The first member uses a tool, and its first review
// cannot be read. No review of the last one can.
func judgeAndVote(_ context.Context, r provider.Request) (string, error) {
	_, rest, _ := strings.Cut(string(r.Turn), "/")
	says := map[string]string{
		"m1/1/1":         `{"action": "tool_call", "tool": "look", "tool_params": {}}`,
		"m1/2/1":         `{"action": "done", "response": "20 m"}`,
		"m2/1/1":         `{"action": "done", "response": "40 m"}`,
		"m3/1/1":         `{"action": "publish_data", "topic": "findings", "data": "80 %"}`,
		"m3/2/1":         `{"action": "done", "response": "about 40 m"}`,
		"m1/3/1":         "All are fine.",
		"m1/3/2":         `{"critiques": [{"answer": "B", "critique": "It is vague."}], "ranking": ["A", "B"]}`,
		"m2/2/1":         `{"ranking": ["A", "B"]}`,
		"m3/3/1":         "All are fine.",
		"m3/3/2":         `{"ranking": ["A"]}`,
		"supervisor/1/1": "The answer.",
	}
	say, ok := says[r.Task+"/"+rest]
	if !ok {
		return "", swarm.Errorf(swarm.Exited, "nothing to say in %s", r.Turn)
	}
	return say, nil
}

func newCouncilHarness(t *testing.T, run Subject) *harness {
	p := swarmPlan()
	p.Swarm.Strategy = swarm.CouncilStrategy
	growth.PlanCouncil(&p, runID, swarmQuery)
	b := newHarness(t, run, p, newTeam(judgeAndVote))
	b.append(swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "the query is stored"}), [][]byte{[]byte(swarmQuery)})
	return b
}

// A council continues after a crash at any append as if there was none: the same answers, reviews and
// votes, and the same prompt for the answer.
func councilCrashes(t *testing.T, run Subject) {
	clean := newCouncilHarness(t, run)
	if r, err := clean.driveTeam(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	asked := strings.Join(clean.team.asked["supervisor/1/1"], "")
	for _, part := range []string{"; no vote of ", "It is vague.", "## Vote\n", " 1 of 1, ", " 1 of 2, "} {
		if !strings.Contains(asked, part) {
			t.Errorf("the supervisor is not told %q:\n%s", part, asked)
		}
	}
	run.atEveryAppend(t, 15, func(at int, committed bool) bool {
		b := newCouncilHarness(t, run)
		if !crash(t, at, committed, b.driveTeam) {
			return false
		}
		b.checkHistory(at, committed, want)
		if again := strings.Join(b.team.asked["supervisor/1/1"][:1], ""); again != asked {
			t.Errorf("crash at append %d, committed: %v: the supervisor was asked\n%s\nwant\n%s", at, committed, again, asked)
		}
		return true
	})
}
