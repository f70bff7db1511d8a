package compose

import (
	"cmp"
	"fmt"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// HoldAnswer makes the forecast of a swarm, and holds back its answer in the budget. A budget that
// cannot pay for the smallest swarm is an error, before anything starts.
func (b *Bundle) HoldAnswer(query string) (*Forecast, error) {
	p := &b.Plan
	f := &Forecast{Pipeline: p.Name, MaxParallel: p.MaxParallel, Budget: p.Budget, Steps: []ForecastStep{}}
	workers := append([]swarm.Agent{p.Swarm.Worker}, p.Swarm.Roles...)
	var first swarm.Usage // the smallest swarm: a division, an iteration and an answer
	if len(p.Swarm.Subtasks) == 0 {
		roles := make([]string, len(p.Swarm.Roles))
		for i, r := range p.Swarm.Roles {
			roles[i] = r.Name
		}
		made := prompt.BuildDivision(&prompt.Division{Query: query, Most: p.Team.MaxAgents, AtOnce: p.Swarm.Workers, Roles: roles})
		first = first.Plus(f.addSwarm(p, 1, "divide", plan.WantSubtasks, p.Agents[:1], 1, 1, int64(len(made.Text))))
	}
	f.addSwarm(p, 2, "work", plan.WantAction, workers, p.Team.MaxAgents, p.Swarm.Iterations, prompt.MaxIteration)
	held := f.addSwarm(p, 3, "answer", plan.WantAnswer, p.Agents[:1], 1, 1, prompt.MaxSynthesis(query, p.Team.MaxAgents))
	p.Swarm.Most = f.most()
	if !p.Budget.LimitsUse() {
		return f, nil
	}
	made := prompt.BuildIteration(&prompt.Iteration{Task: query, Number: 1, Of: p.Swarm.Iterations})
	least := first.Plus(held).Plus((&Forecast{}).addSwarm(p, 2, "work", plan.WantAction, workers[:1], 1, 1, int64(len(made.Text))))
	if err := checkLeast(p.Budget, least); err != nil {
		return nil, err
	}
	p.Budget.Held = held
	f.Budget = p.Budget
	return f, nil
}

// most is the most that a swarm can use within its budget.
func (f *Forecast) most() swarm.Usage {
	u := swarm.Usage{Calls: int64(f.MaxTurns), InputTokens: f.MaxInput, OutputTokens: f.MaxOutput, USD: f.MaxUSD}
	if b := f.Budget; b.Calls > 0 {
		u.Calls = min(u.Calls, b.Calls)
	}
	if b := f.Budget; b.Tokens > 0 && u.Tokens() > b.Tokens {
		u.OutputTokens = min(u.OutputTokens, b.Tokens)
		u.InputTokens = b.Tokens - u.OutputTokens
	}
	if b := f.Budget; b.USD > 0 {
		u.USD = min(u.USD, b.USD)
	}
	return u
}

// addSwarm adds a step of a swarm, and returns what one turn of it needs at most. Of several agents
// that may do it, the dearest counts.
func (f *Forecast) addSwarm(p *swarm.Plan, stage int, task string, want plan.Want, of []swarm.Agent, agents, iterations int, bytes int64) swarm.Usage {
	spec, model, need := &swarm.ProviderSpec{}, "", swarm.Usage{USD: -1}
	step := ForecastStep{Stage: stage, Task: task, Agents: agents, Iterations: iterations, MaxPrompt: bytes}
	for _, ag := range of {
		for i := range p.Providers {
			s := &p.Providers[i]
			if s.Name != ag.Provider {
				continue
			}
			on := s.ModelFor(&swarm.Task{}, &ag)
			if n := providerkind.Bound(s, on, bytes, want.MaxTokens()); n.USD > need.USD {
				spec, model, need = s, on, n
				step.Agent, step.Provider, step.Model = ag.Name, s.Name, cmp.Or(on, ag.Tier)
			}
		}
	}
	f.add(spec, model, step, agents*iterations, want.MaxTokens())
	return need
}

// checkLeast returns an error if a budget is smaller than what the smallest swarm may need.
func checkLeast(b swarm.Budget, least swarm.Usage) error {
	key, has, needs := "", "", ""
	switch {
	case b.Calls > 0 && b.Calls < least.Calls:
		key, has, needs = "calls", fmt.Sprint(b.Calls), fmt.Sprint(least.Calls)
	case b.Tokens > 0 && b.Tokens < least.Tokens():
		key, has, needs = "tokens", fmt.Sprint(b.Tokens), fmt.Sprint(least.Tokens())
	case b.USD > 0 && b.USD < least.USD:
		key, has, needs = "usd", fmt.Sprintf("%.4g", b.USD), fmt.Sprintf("%.2f", least.USD+0.005)
	default:
		return nil
	}
	return swarm.Errorf(swarm.BadInput, "the budget has %s: %s, and the smallest swarm may need %s, for one division, one iteration and the answer", key, has, needs).
		WithHint("raise it: --set budget.%s=%s", key, needs)
}
