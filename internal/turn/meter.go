package turn

import (
	"swarm"
	"swarm/internal/flow"
)

// A meter holds the run's use against its budget. What a turn will use is reserved before its provider is called.
type meter struct {
	budget swarm.Budget
	used   swarm.Usage
	held   map[string]swarm.Usage // by turn
	all    swarm.Usage            // all of them together
}

// openMeter makes the meter when it is first needed, with what the log says was used before.
func (h *Hand) openMeter(c flow.Call) (*meter, error) {
	if h.meter != nil {
		return h.meter, nil
	}
	p, err := h.plan(c.Ref)
	if err != nil {
		return nil, err
	}
	h.meter = &meter{budget: p.Budget, held: map[string]swarm.Usage{}}
	if p.Budget == (swarm.Budget{}) {
		return h.meter, nil
	}
	if err := h.ledger.follow(h.Log); err != nil {
		return nil, err
	}
	h.meter.used = h.ledger.usage
	return h.meter, nil
}

// reserve takes what a turn needs, with what it has used, out of what is left, or says what is used up. What was reserved for it
// before is forgotten.
func (m *meter) reserve(turn string, need swarm.Usage) error {
	if m.budget == (swarm.Budget{}) {
		return nil
	}
	need.Calls = 1
	m.release(turn)
	others := m.used.Plus(m.all)
	after := others.Plus(need)
	switch b := m.budget; {
	case b.Calls > 0 && after.Calls > b.Calls:
		return swarm.Errorf(swarm.OverBudget, "all %d calls of the budget are used", b.Calls)
	case b.Tokens > 0 && after.Tokens() > b.Tokens:
		return swarm.Errorf(swarm.OverBudget, "the budget has %d tokens: other turns have used or reserved %d, and this one comes to %d", b.Tokens, others.Tokens(), need.Tokens())
	case b.USD > 0 && after.USD > b.USD:
		return swarm.Errorf(swarm.OverBudget, "the budget has $%.4g: other turns have used or reserved $%.4g, and this one comes to $%.4g", b.USD, others.USD, need.USD)
	}
	m.held[turn] = need
	m.all = m.all.Plus(need)
	return nil
}

// release gives back what was reserved for a turn.
func (m *meter) release(turn string) {
	if u, ok := m.held[turn]; ok {
		delete(m.held, turn)
		m.all = m.all.Minus(u)
	}
}

// settle puts what a turn really used in the place of what was reserved for it.
func (m *meter) settle(turn string, u swarm.Usage) {
	m.release(turn)
	m.used = m.used.Plus(u)
}

// reserver lets a provider reserve more for its turn, before each question that it asks: what the turn has used so far and what the
// question takes.
func (h *Hand) reserver(w *work) func(swarm.Usage) error {
	return func(need swarm.Usage) error {
		if need.USD == 0 {
			need.USD = cost(w.spec.Price, need)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.meter.reserve(w.c.ID, need)
	}
}
