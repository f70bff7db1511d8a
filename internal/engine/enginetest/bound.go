package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/plan"
	"swarm/internal/provider"
	"swarm/internal/turn"
)

// bounded runs swarms that use as much as they can: answers that cannot be read, requests for help,
// entries of the task list, and messages upon which the supervisor plans anew. Some are councils. None
// uses more than the bound that stands with its plan.
func bounded(t *testing.T, run Subject) {
	closest := 0.0
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		p := swarmPlan()
		p.Team.MaxAgents, p.Swarm.Iterations, p.Swarm.Messages, p.Swarm.Replan = 1+rnd.IntN(3), 2+rnd.IntN(4), 1+rnd.IntN(4), seed%4 != 3
		cost := func(in, out int64) swarm.CallCost {
			return swarm.CallCost{Use: swarm.Usage{Calls: 1, InputTokens: in, OutputTokens: out}}
		}
		p.Swarm.Costs = &swarm.SwarmCosts{Division: cost(2000, 4096), Iteration: cost(6000, 2048), Usual: cost(6000, 2048), Replan: cost(6000, 4096), Answer: cost(14_000, 4096)}
		if seed%3 == 2 { // a council: nothing is divided or added, and each member judges the others
			p.Swarm.Strategy, p.Team.MaxAgents = swarm.CouncilStrategy, 2+rnd.IntN(2)
			p.Swarm.Costs.Division, p.Swarm.Costs.Review = swarm.CallCost{}, cost(8000, 2048)
			growth.PlanCouncil(&p, runID, swarmQuery)
		}
		waster := &waster{rnd: rnd, always: seed%2 == 0}
		h := newHarness(t, run, p, newTeam(waster.answer))
		h.tools = func(*swarm.Agent, swarm.TurnID) (turn.Toolbox, error) { return aBox{}, nil }
		h.append(swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "the query is stored"}), [][]byte{[]byte(swarmQuery)})
		if _, err := h.driveTeam(0, false); err != nil {
			t.Fatalf("swarm %d: %v", seed, err)
		}
		used, agents := swarm.Usage{}, 0
		for _, e := range h.events() {
			switch e.Kind {
			case swarm.PlanAdded:
				p, err := swarm.Body[swarm.Plan](&e)
				h.check(err)
				if agents == 0 && p.Swarm != nil {
					agents = len(p.Swarm.Subtasks)
				}
			case swarm.TurnStarted:
				used.Calls++
			case swarm.TurnEnded:
				end, err := swarm.Body[swarm.CallEnd](&e)
				h.check(err)
				end.Usage.Calls = 0
				used = used.Plus(end.Usage)
			}
		}
		most := plan.BoundSwarm(p.Swarm, p.Team, p.Budget, agents).Most
		if used.Calls > most.Calls || used.Tokens() > most.Tokens() {
			t.Errorf("swarm %d, with at most %d agents, %d iterations and %d messages, used %d calls and %d tokens; its bound is %d and %d",
				seed, p.Team.MaxAgents, p.Swarm.Iterations, p.Swarm.Messages, used.Calls, used.Tokens(), most.Calls, most.Tokens())
		}
		closest = max(closest, float64(used.Calls)/float64(most.Calls))
	}
	if closest < 0.5 {
		t.Errorf("the swarm that came closest used %.0f %% of the calls of its bound: the bound is too large, or the agents waste too little", 100*closest)
	}
}

// A waster answers for all agents of a swarm.
type waster struct {
	mu     sync.Mutex
	rnd    *rand.Rand
	always bool // it never gives an answer that can be read before it must
	added  int
}

func (w *waster) answer(_ context.Context, r provider.Request) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, rest, _ := strings.Cut(string(r.Turn), "/")
	var iteration, attempt int
	if _, err := fmt.Sscanf(rest, "%d/%d", &iteration, &attempt); err != nil {
		return "", err
	}
	supervises := strings.HasPrefix(string(r.Turn), swarm.Supervisor)
	last := 2
	if supervises {
		last = 1 + plan.DefaultRetries
	}
	if attempt < last && (w.always || w.rnd.IntN(2) == 0) {
		return "", swarm.Errorf(swarm.Unexpected, "the answer cannot be read")
	}
	w.added++
	switch {
	case strings.Contains(r.Prompt, "Divide the query."):
		return `{"subtasks": [{"id": "a", "description": "A"}]}`, nil
	case strings.Contains(r.Prompt, "Decide what else") && !strings.Contains(r.Prompt, "may be added: 0"):
		return fmt.Sprintf(`{"subtasks": [{"id": "s%d", "description": "More"}], "messages": []}`, w.added), nil
	case strings.Contains(r.Prompt, "Decide what else"):
		return `{"subtasks": [], "messages": []}`, nil
	case strings.Contains(r.Prompt, `"ranking"`):
		return `{"ranking": ["A", "B"]}`, nil
	case supervises:
		return "The answer.", nil
	}
	switch n := w.rnd.IntN(8); {
	case iteration%3 == 0: // so that it does not converge
		return fmt.Sprintf(`{"action": "tool_call", "tool": "look", "tool_params": {"at": %d}}`, w.added), nil
	case n == 0:
		return `{"action": "request_help", "help_description": "Help"}`, nil
	case n == 1:
		return fmt.Sprintf(`{"action": "tool_call", "tool": "task_add", "tool_params": {"description": "Entry %d"}}`, w.added), nil
	}
	return message(swarm.Supervisor, w.added), nil
}
