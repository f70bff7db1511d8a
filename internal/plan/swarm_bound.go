package plan

import (
	"cmp"
	"math"
	"slices"

	"swarm"
)

// DefaultRetries is how often a failed turn of a team is retried, if its rules do not say.
const DefaultRetries = 2

// answersPerIteration is how often a model is asked in one iteration: an answer that cannot be read
// is asked for again, once.
const answersPerIteration = 2

// A Bound is what a swarm may use, cut by its budget. Calls that fail for a reason that passes, such
// as a rate limit, are not in it: they give no answer. Neither is what people add: turns that they
// cut, agents that they start again, and their messages to the supervisor.
type Bound struct {
	Planned swarm.Usage `json:"planned,omitzero"` // about: each agent of the plan has all its iterations, and each answer can be read
	Most    swarm.Usage `json:"most,omitzero"`    // the most: all agents join that may, and everything that can be asked for again is
	Joining int         `json:"joining,omitempty"`
}

// Bound returns what the swarm may use, with the agents that it has now. Agents that a person does not
// want to work keep their places, so they count for the most.
func (t *Team) Bound() Bound {
	s, agents := t.Swarm, t.workers()
	if s == nil || s.Rules.Costs == nil {
		return Bound{}
	}
	b := BoundSwarm(&s.Rules, &t.Rules, s.Budget, agents)
	if n := t.unwanted(); n > 0 {
		b.Planned = BoundSwarm(&s.Rules, &t.Rules, s.Budget, agents-n).Planned
	}
	return b
}

// BoundSwarm returns what a swarm may use that has so many agents now. This is the only place that
// counts the turns of a swarm: what [Team.summon] and [Team.replans] want must be in it.
func BoundSwarm(rules *swarm.Swarm, team *swarm.Team, budget swarm.Budget, agents int) Bound {
	costs, attempts := rules.Costs, 1+int64(Retries(team))
	most, each := int64(max(team.MaxAgents, agents)), int64(rules.Iterations)
	replans := int64(0)
	if rules.Replan { // for each agent that was not done while another may join, and each message to the supervisor
		replans = plus(most-1, times(most, min(int64(rules.Messages), costs.MessagesPerAgent(each))))
	}
	answers := int64(1) // the result of one agent is the answer
	if agents <= 1 {
		answers = 0
	}
	divisions := min(1, costs.Division.Use.Calls)
	reviews := int64(0)
	if rules.IsCouncil() {
		reviews = most
	}
	return Bound{
		Planned: cut(budget, []part{{costs.Division, divisions}, {costs.Usual, times(int64(agents), each)}, {costs.Review, reviews}, {costs.Answer, answers}}),
		Most: cut(budget, []part{{costs.Division, divisions * attempts}, {costs.Iteration, times(times(most, each), answersPerIteration)},
			{costs.Review, times(reviews, attempts)}, {costs.Replan, times(replans, attempts)}, {costs.Answer, attempts}}),
		Joining: int(most) - agents,
	}
}

// Retries is how often a failed turn of a team is retried.
func Retries(rules *swarm.Team) int {
	if rules.Retries != nil {
		return *rules.Retries
	}
	return DefaultRetries
}

// A part is a number of calls that cost the same at most.
type part struct {
	cost  swarm.CallCost
	calls int64
}

// cut returns the most that calls can use within a budget. If a budget limits one figure, the others
// follow: as many of the largest calls as there may be, the dearest tokens that fit, or the cheapest
// ones that the money buys.
func cut(b swarm.Budget, parts []part) swarm.Usage {
	var u swarm.Usage
	for _, p := range parts {
		u.Calls = plus(u.Calls, p.calls)
	}
	left := u.Calls
	if b.Calls > 0 {
		left = min(left, b.Calls)
	}
	u.Calls = left
	known := !slices.ContainsFunc(parts, func(p part) bool { return p.calls > 0 && p.cost.Open })
	for _, by := range []func(swarm.Usage) float64{func(v swarm.Usage) float64 { return v.USD }, func(v swarm.Usage) float64 { return float64(v.Tokens()) }} {
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(by(b.cost.Use), by(a.cost.Use)) })
		sum, rest := swarm.Usage{}, left
		for _, p := range parts {
			n := min(p.calls, rest)
			rest -= n
			sum.InputTokens = plus(sum.InputTokens, times(p.cost.Use.InputTokens, n))
			sum.OutputTokens = plus(sum.OutputTokens, times(p.cost.Use.OutputTokens, n))
			sum.USD += p.cost.Use.USD * float64(n)
		}
		u.InputTokens, u.OutputTokens, u.USD = sum.InputTokens, sum.OutputTokens, max(u.USD, sum.USD)
	}
	if !known { // a program may use any number of tokens in a turn
		u.InputTokens, u.OutputTokens, u.USD = b.Tokens, 0, b.USD
		return u
	}
	prices := tokenPrices(parts)
	if b.USD > 0 && u.USD > b.USD {
		u.USD = b.USD
		u.InputTokens, u.OutputTokens = limitTokens(u, buy(prices, b.USD))
	}
	if b.Tokens > 0 && u.Tokens() > b.Tokens {
		u.InputTokens, u.OutputTokens = limitTokens(u, b.Tokens)
		slices.Reverse(prices)
		u.USD = min(u.USD, spend(prices, b.Tokens))
	}
	return u
}

// limitTokens returns input and output tokens that come to a limit at most.
func limitTokens(u swarm.Usage, limit int64) (in, out int64) {
	in = min(u.InputTokens, limit)
	return in, min(u.OutputTokens, limit-in)
}

// A tokenPrice is a number of tokens that cost the same.
type tokenPrice struct {
	tokens int64
	usd    float64 // of one
}

// tokenPrices returns what the tokens of the calls cost, the cheapest first.
func tokenPrices(parts []part) (all []tokenPrice) {
	for _, p := range parts {
		in, out := times(p.cost.Use.InputTokens, p.calls), times(p.cost.Use.OutputTokens, p.calls)
		if in > 0 {
			all = append(all, tokenPrice{in, (p.cost.Use.USD - p.cost.AnswerUSD) / float64(p.cost.Use.InputTokens)})
		}
		if out > 0 {
			all = append(all, tokenPrice{out, p.cost.AnswerUSD / float64(p.cost.Use.OutputTokens)})
		}
	}
	slices.SortStableFunc(all, func(a, b tokenPrice) int { return cmp.Compare(a.usd, b.usd) })
	return all
}

// buy returns how many tokens the money buys.
func buy(prices []tokenPrice, usd float64) (tokens int64) {
	for _, p := range prices {
		n := p.tokens
		if cost := p.usd * float64(n); cost > usd {
			n = int64(math.Round(usd / p.usd))
		}
		tokens, usd = plus(tokens, n), usd-p.usd*float64(n)
		if usd <= 0 {
			break
		}
	}
	return tokens
}

// spend returns what so many tokens cost.
func spend(prices []tokenPrice, tokens int64) (usd float64) {
	for _, p := range prices {
		n := min(p.tokens, tokens)
		usd, tokens = usd+p.usd*float64(n), tokens-n
	}
	return usd
}

// plus and times compute with counts from 0 on, and give the largest number instead of overflowing.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
