package turn

import (
	"bytes"
	"context"

	"swarm"
	"swarm/internal/providerkind"
)

// An account is the budget of a run and what the log says of it: what was used, and what running turns have reserved. It is a
// fold. All workers that have read the log up to a record give the same verdict on that record, so one budget holds for all of
// them. A start and a reservation that leave no room for what they ask for take nothing.
type account struct {
	budget   swarm.Budget                 // of every plan of the run
	used     swarm.Usage                  // by turns that have ended, and by starts that a crash has cut
	reserved map[swarm.TurnID]swarm.Usage // by running turn: reserved
	all      swarm.Usage                  // the sum of held, in the order of the log: a sum of dollars depends on it
	refused  map[int64]error              // by number: the records that left no room, and why

	asking map[swarm.TurnID]swarm.Usage // by turn: needs of this worker's starts that are on their way into the log
}

// reserves stands in the start of a turn that has a budget, as we write it: a long log is not read word by word.
var reserves = []byte(`"reserves":`)

// begin takes the start of a turn.
func (a *account) begin(e *swarm.Event) error {
	if !a.budget.LimitsUse() {
		return nil
	}
	delete(a.asking, e.Turn)
	need := swarm.Usage{Calls: 1}
	if bytes.Contains(e.Data, reserves) {
		start, err := swarm.Body[swarm.TurnStart](e)
		if err != nil {
			return err
		}
		need = start.Reserves
	}
	a.cut(e)
	return a.judge(e, need)
}

// cut counts what a start had reserved as used. A crash has cut it, so nobody will tell what it really used.
func (a *account) cut(e *swarm.Event) {
	a.used = a.used.Plus(a.reserved[e.Turn])
	a.reserve(e, swarm.Usage{})
}

// raise takes a reservation of a running turn. It stands for all that the turn has used and needs, so it replaces the one before.
func (a *account) raise(e *swarm.Event) error {
	if !a.budget.LimitsUse() {
		return nil
	}
	need, err := swarm.Body[swarm.Usage](e)
	if err != nil {
		return err
	}
	return a.judge(e, need)
}

// end puts what a turn really used in the place of what it had reserved.
func (a *account) end(e *swarm.Event, r swarm.CallEnd) {
	if !a.budget.LimitsUse() {
		return
	}
	if r.Unbegun { // so what is reserved is a start's that was cut
		a.cut(e)
	}
	a.reserve(e, swarm.Usage{})
	a.used = a.used.Plus(r.Usage)
}

func (a *account) judge(e *swarm.Event, need swarm.Usage) error {
	if err := a.room(a.used.Plus(a.all).Minus(a.reserved[e.Turn]), need); err != nil {
		if a.refused == nil {
			a.refused = map[int64]error{}
		}
		a.refused[e.Seq] = err
		return nil
	}
	a.reserve(e, need)
	return nil
}

// hold reserves so much for a turn, instead of what it had.
func (a *account) reserve(e *swarm.Event, need swarm.Usage) {
	a.all = a.all.Minus(a.reserved[e.Turn]).Plus(need)
	if need == (swarm.Usage{}) {
		delete(a.reserved, e.Turn)
	} else {
		put(&a.reserved, e.Turn, need)
	}
}

// room says what is used up, if others leave less than a turn needs.
func (a *account) room(others, need swarm.Usage) error {
	after := others.Plus(need)
	switch b := a.budget; {
	case b.Calls > 0 && after.Calls > b.Calls:
		return swarm.Errorf(swarm.OverBudget, "all %d calls of the budget are used", b.Calls)
	case b.Tokens > 0 && after.Tokens() > b.Tokens:
		return swarm.Errorf(swarm.OverBudget, "the budget has %d tokens: other turns have used or reserved %d, and this one comes to %d", b.Tokens, others.Tokens(), need.Tokens())
	case b.USD > 0 && after.USD > b.USD:
		return swarm.Errorf(swarm.OverBudget, "the budget has $%.4g: other turns have used or reserved $%.4g, and this one comes to $%.4g", b.USD, others.USD, need.USD)
	}
	return nil
}

// reserve finds what the turn's start has to reserve. It refuses a turn for which nothing is left as far as this worker knows, so
// that the log has no start of it; what counts is the verdict on the start.
func (r *Runner) reserve(w *work) error {
	if !w.plan.Budget.LimitsUse() {
		return nil
	}
	need := swarm.Usage{Calls: 1, InputTokens: swarm.EstimateTokens(int64(len(w.made.Text)))}
	if need.USD = cost(w.spec.Price, need); w.spec.Price == (swarm.Price{}) && w.kind().ListPrices {
		need.USD = providerkind.Cost(w.model, providerkind.Tokens{In: need.InputTokens})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	a := &r.fold.account
	others := a.used.Plus(a.all)
	for _, u := range a.asking {
		others = others.Plus(u)
	}
	if err := a.room(others, need); err != nil {
		return err
	}
	w.need = need
	put(&a.asking, w.turn, need)
	return nil
}

// verdict says whether the records before a start or a reservation left room for it.
func (r *Runner) verdict(seq int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	return r.fold.account.refused[seq]
}

// unask forgets a start that is not on its way into the log any more.
func (r *Runner) unask(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fold.account.asking, w.turn)
}

// reserver lets a provider reserve more for its turn, before each question that it asks: what the turn has used so far and what the
// question takes. A turn is one call, however many questions it asks, so a budget of calls needs no reservations.
func (r *Runner) reserver(ctx context.Context, w *work) func(swarm.Usage) error {
	if w.plan.Budget.Tokens == 0 && w.plan.Budget.USD == 0 {
		return nil
	}
	has := w.need
	return func(need swarm.Usage) error {
		need.Calls = 1
		if need.USD == 0 {
			need.USD = cost(w.spec.Price, need)
		}
		if need.Tokens() <= has.Tokens() && need.USD <= has.USD {
			return nil
		}
		seqs, err := r.Log.Append(ctx, swarm.Batch{Fence: w.c.Fence, Absent: []string{w.nextStart()},
			Events: []swarm.Event{{Kind: swarm.TurnReserved, Task: w.c.Task, Agent: w.c.Agent, Turn: w.turn, Data: swarm.Encode(need)}}})
		if err == nil {
			err = r.verdict(seqs[0])
		}
		if err == nil {
			has = need
		}
		return err
	}
}
