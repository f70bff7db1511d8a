package compose

import (
	"fmt"
	"strings"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// HoldAnswer finds out what the turns of a swarm cost, and holds back its answer in the budget. A
// budget that cannot pay for the smallest swarm is an error, before anything starts.
func (b *Bundle) HoldAnswer(query string) error {
	p := &b.Plan
	p.Swarm.Costs = swarmCosts(p, query)
	if !p.Budget.LimitsUse() {
		return nil
	}
	if err := b.CheckLeast(query, p.Budget, "", ""); err != nil {
		return err
	}
	p.Budget.Held = p.Swarm.Costs.Answer.Use
	return nil
}

// CheckLeast returns an error if a budget is smaller than what the smallest swarm may need. It is the
// budget of a task or an agent with a name; without one it is that of the run. HoldAnswer comes first.
func (b *Bundle) CheckLeast(query string, budget swarm.Budget, what, name string) error {
	p := &b.Plan
	made := prompt.BuildIteration(&prompt.Iteration{Task: query, Number: 1, Of: p.Swarm.Iterations})
	first := costOf(p, plan.WantAction, []swarm.Agent{p.Swarm.Worker}, int64(len(made.Text)))
	least := p.Swarm.Costs.Division.Use.Plus(p.Swarm.Costs.Answer.Use).Plus(first.Use)
	key, has, needs := "", "", ""
	switch b := budget; {
	case b.Calls > 0 && b.Calls < least.Calls:
		key, has, needs = "calls", fmt.Sprint(b.Calls), fmt.Sprint(least.Calls)
	case b.Tokens > 0 && b.Tokens < least.Tokens():
		key, has, needs = "tokens", fmt.Sprint(b.Tokens), fmt.Sprint(least.Tokens())
	case b.USD > 0 && b.USD < least.USD:
		key, has, needs = "usd", fmt.Sprintf("%.4g", b.USD), fmt.Sprintf("%.2f", least.USD+0.005)
	default:
		return nil
	}
	whose, path := "the budget", "budget."+key
	if name != "" {
		whose, path = fmt.Sprintf("the budget of the %s %q", what, name), what+"s."+name+"."+path
	}
	return swarm.Errorf(swarm.BadInput, "%s has %s: %s, and the smallest swarm may need %s, for one division, one iteration and the answer", whose, key, has, needs).
		WithHint("raise it: --set %s=%s", path, needs)
}

// swarmCosts returns what the turns of a swarm cost.
func swarmCosts(p *swarm.Plan, query string) *swarm.SwarmCosts {
	workers, supervisor := append([]swarm.Agent{p.Swarm.Worker}, p.Swarm.Roles...), p.Agents[:1]
	roles := make([]string, len(p.Swarm.Roles))
	for i, r := range p.Swarm.Roles {
		roles[i] = r.Name
	}
	c := &swarm.SwarmCosts{
		Iteration: costOf(p, plan.WantAction, workers, prompt.MaxIteration),
		Usual:     costOf(p, plan.WantAction, workers, usualPrompt(query, p.Swarm.Iterations)),
		Replan:    costOf(p, plan.WantReplan, supervisor, prompt.MaxReplan(query, roles, p.Team.MaxAgents+plan.MaxTasks)),
		Answer:    costOf(p, plan.WantAnswer, supervisor, prompt.MaxSynthesis(query, p.Team.MaxAgents, p.Swarm.IsCouncil())),
	}
	if len(p.Swarm.Subtasks) == 0 {
		made := prompt.BuildDivision(&prompt.Division{Query: query, Most: p.Team.MaxAgents, AtOnce: p.Swarm.Workers, Roles: roles})
		c.Division = costOf(p, plan.WantSubtasks, supervisor, int64(len(made.Text)))
	}
	if p.Swarm.IsCouncil() {
		c.Review = costOf(p, plan.WantReview, workers, prompt.MaxReview(query, p.Team.MaxAgents-1))
	}
	return c
}

// usualPrompt is the size of a prompt in the middle of an agent's work: half of its iterations are
// behind it, each with as long a result as a prompt shows.
func usualPrompt(query string, iterations int) int64 {
	it := &prompt.Iteration{Task: query, Number: 1, Of: iterations}
	for range min(iterations/2, 1000) {
		it.History = append(it.History, prompt.Step{Action: string(swarm.ActToolCall), Result: strings.Repeat("x", prompt.RecentChars)})
	}
	return int64(len(prompt.BuildIteration(it).Text))
}

// costOf returns what one turn costs at most whose prompt has so many bytes. Of several agents that
// may have it, the dearest counts.
func costOf(p *swarm.Plan, want plan.Want, of []swarm.Agent, bytes int64) (c swarm.CallCost) {
	for _, ag := range of {
		for i := range p.Providers {
			s := &p.Providers[i]
			if s.Name != ag.Provider {
				continue
			}
			model := s.ModelFor(&swarm.Task{}, &ag)
			use := providerkind.Bound(s, model, bytes, want.MaxTokens())
			c.AnswerUSD = max(c.AnswerUSD, providerkind.Bound(s, model, 0, want.MaxTokens()).USD)
			c.Use.InputTokens, c.Use.OutputTokens = max(c.Use.InputTokens, use.InputTokens), max(c.Use.OutputTokens, use.OutputTokens)
			c.Use.Calls, c.Use.USD = 1, max(c.Use.USD, use.USD)
			c.Open = c.Open || providerkind.Of(s.Kind).Tools != providerkind.InProcess
		}
	}
	return c
}
