package plan

import (
	"math"
	"testing"

	"swarm"
)

// The bound of a swarm counts everything that its settings allow, and each part of a budget cuts all
// of its figures.
func TestBoundSwarm(t *testing.T) {
	cost := func(in, out int64) swarm.CallCost { // $1 per million tokens of prompts, $10 of answers
		return swarm.CallCost{Use: swarm.Usage{Calls: 1, InputTokens: in, OutputTokens: out, USD: float64(in+10*out) / 1e6}, AnswerUSD: float64(10*out) / 1e6}
	}
	usual := swarm.SwarmCosts{Division: cost(1000, 4000), Iteration: cost(100_000, 2000), Usual: cost(5000, 2000), Replan: cost(100_000, 4000), Answer: cost(15_000, 4000)}
	for _, c := range []struct {
		name    string
		agents  int
		change  func(*swarm.Swarm, *swarm.Team, *swarm.Budget)
		planned int64 // calls
		calls   int64
		tokens  int64
		usd     float64
		joining int
	}{
		{"one agent, nobody joins", 1, func(s *swarm.Swarm, m *swarm.Team, _ *swarm.Budget) { m.MaxAgents, s.Replan = 1, false }, 11, 3 + 20 + 3, 3*5000 + 20*102_000 + 3*19_000,
			3*0.041 + 20*0.12 + 3*0.055, 0},
		{"others join", 1, func(s *swarm.Swarm, m *swarm.Team, _ *swarm.Budget) { m.MaxAgents, s.Replan = 3, false }, 11, 3 + 60 + 3, 3*5000 + 60*102_000 + 3*19_000,
			3*0.041 + 60*0.12 + 3*0.055, 2},
		{"agents write to the supervisor", 2, func(_ *swarm.Swarm, m *swarm.Team, _ *swarm.Budget) { m.MaxAgents = 2 }, 22, 3 + 40 + (1+2*5)*3 + 3,
			3*5000 + 40*102_000 + 33*104_000 + 3*19_000, 3*0.041 + 40*0.12 + 33*0.14 + 3*0.055, 0},
		{"a message in each iteration", 2, func(s *swarm.Swarm, m *swarm.Team, _ *swarm.Budget) { m.MaxAgents, s.Messages = 2, 50 }, 22, 3 + 40 + (1+2*10)*3 + 3,
			3*5000 + 40*102_000 + 63*104_000 + 3*19_000, 3*0.041 + 40*0.12 + 63*0.14 + 3*0.055, 0},
		{"no retries", 1, func(s *swarm.Swarm, m *swarm.Team, _ *swarm.Budget) {
			m.MaxAgents, m.Retries, s.Replan = 1, new(int), false
		}, 11, 1 + 20 + 1, 5000 + 20*102_000 + 19_000,
			0.041 + 20*0.12 + 0.055, 0},
		{"a budget of calls", 3, func(s *swarm.Swarm, _ *swarm.Team, b *swarm.Budget) { s.Replan, b.Calls = false, 3 }, 3, 3, 3 * 102_000, 3 * 0.12, 7},
		{"a budget of tokens", 3, func(s *swarm.Swarm, _ *swarm.Team, b *swarm.Budget) { s.Replan, b.Tokens = false, 30_000 }, 32, 3 + 200 + 3, 30_000, 0.3, 7},
		{"a budget of dollars", 3, func(s *swarm.Swarm, _ *swarm.Team, b *swarm.Budget) { s.Replan, b.USD = false, 0.2 }, 32, 3 + 200 + 3, 200_000, 0.2, 7},
		{"programs use any number of tokens", 1, func(s *swarm.Swarm, m *swarm.Team, b *swarm.Budget) {
			m.MaxAgents, s.Replan, s.Costs.Iteration.Open, s.Costs.Usual.Open, b.USD = 1, false, true, true, 2
		}, 11, 3 + 20 + 3, 0, 2, 0},
		{"huge numbers", 3, func(s *swarm.Swarm, _ *swarm.Team, _ *swarm.Budget) {
			s.Iterations, s.Messages = math.MaxInt, math.MaxInt
		}, math.MaxInt64, math.MaxInt64, math.MaxInt64,
			math.Inf(1), 7},
	} {
		costs := usual
		rules, team, budget := swarm.Swarm{Iterations: 10, Messages: 5, Replan: true, Costs: &costs}, swarm.Team{MaxAgents: 10}, swarm.Budget{}
		c.change(&rules, &team, &budget)
		got := BoundSwarm(&rules, &team, budget, c.agents)
		near := math.IsInf(c.usd, 1) && got.Most.USD > 1e12 || math.Abs(got.Most.USD-c.usd) < 1e-4
		if got.Planned.Calls != c.planned || got.Most.Calls != c.calls || got.Most.Tokens() != c.tokens || !near || got.Joining != c.joining {
			t.Errorf("%s: %+v; want %d planned and %d calls, %d tokens, $%.4f, %d joining", c.name, got, c.planned, c.calls, c.tokens, c.usd, c.joining)
		}
		if got.Planned.Tokens() > got.Most.Tokens() || got.Planned.USD > got.Most.USD+1e-9 || got.Planned.Calls > got.Most.Calls {
			t.Errorf("%s: more is planned than the most: %+v", c.name, got)
		}
	}
}
