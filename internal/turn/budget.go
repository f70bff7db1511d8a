package turn

import (
	"bytes"
	"context"
	"fmt"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/providerkind"
)

// An account is the budget of a run, with the usage and the reservations that the log records. It
// is a fold of the log: all workers that have read the log up to a record reach the same verdict on
// that record. So one budget holds for all workers without a lock between them. A start or
// reservation that exceeds the budget reserves nothing.
type account struct {
	budget   swarm.Budget                 // the same in every plan of the run
	used     swarm.Usage                  // by turns that have ended, and by starts that a crash cut
	reserved map[swarm.TurnID]swarm.Usage // by running turns
	all      swarm.Usage                  // the sum of reserved, added up in log order, because float addition is not associative
	refused  map[int64]error              // by sequence number: records that exceeded the budget, and the error
	answer   swarm.TurnID                 // the turn that makes the answer of a swarm: it may use what is held back

	pending map[swarm.TurnID]swarm.Usage // needs of this worker's starts that are not in the log yet
}

// reserves is a key that only the start of a turn with a budget contains, and answers a pair that only
// the start of a swarm's answer does. Searching for their bytes avoids decoding every start of a long
// log.
var (
	reserves = []byte(`"reserves":`)
	answers  = []byte(`"want":"answer"`)
)

// begin applies the start of a turn.
func (a *account) begin(e *swarm.Event) error {
	if !a.budget.LimitsUse() {
		return nil
	}
	delete(a.pending, e.Turn)
	need := swarm.Usage{Calls: 1}
	if bytes.Contains(e.Data, reserves) {
		start, err := swarm.Body[swarm.TurnStart](e)
		if err != nil {
			return err
		}
		need = start.Reserves
	}
	if bytes.Contains(e.Data, answers) {
		a.answer = e.Turn
	}
	a.cut(e)
	return a.judge(e, need)
}

// cut counts the reservation of an earlier start as used. A crash cut that start, so its real usage
// is unknown.
func (a *account) cut(e *swarm.Event) {
	a.used = a.used.Plus(a.reserved[e.Turn])
	a.reserve(e, swarm.Usage{})
}

// raise applies a further reservation of a running turn. It covers the turn's whole usage so far
// and what it needs next, so it replaces the reservation before.
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

// end replaces a turn's reservation by its real usage.
func (a *account) end(e *swarm.Event, r swarm.CallEnd) {
	if !a.budget.LimitsUse() {
		return
	}
	if r.Unbegun { // the reservation belongs to a start that a crash cut
		a.cut(e)
	}
	a.reserve(e, swarm.Usage{})
	a.used = a.used.Plus(r.Usage)
}

func (a *account) judge(e *swarm.Event, need swarm.Usage) error {
	if err := a.room(a.used.Plus(a.all).Minus(a.reserved[e.Turn]), need, e.Turn == a.answer); err != nil {
		if a.refused == nil {
			a.refused = map[int64]error{}
		}
		a.refused[e.Seq] = err
		return nil
	}
	a.reserve(e, need)
	return nil
}

// reserve replaces the reservation of a turn.
func (a *account) reserve(e *swarm.Event, need swarm.Usage) {
	a.all = a.all.Minus(a.reserved[e.Turn]).Plus(need)
	if need == (swarm.Usage{}) {
		delete(a.reserved, e.Turn)
	} else {
		put(&a.reserved, e.Turn, need)
	}
}

// room returns an error if the budget, less the usage of the others, does not cover need. What is
// held back is there for the answer only.
func (a *account) room(others, need swarm.Usage, answer bool) error {
	held, also := a.budget.Held, func(string, ...any) string { return "" }
	if answer {
		held = swarm.Usage{}
	}
	if held != (swarm.Usage{}) {
		also = fmt.Sprintf
	}
	after := others.Plus(need).Plus(held)
	switch b := a.budget; {
	case b.Calls > 0 && after.Calls > b.Calls:
		return swarm.Errorf(swarm.OverBudget, "all %d calls of the budget are used%s", b.Calls, also(", except for %d that is held back for the answer", held.Calls))
	case b.Tokens > 0 && after.Tokens() > b.Tokens:
		return swarm.Errorf(swarm.OverBudget, "the budget has %d tokens: other turns have used or reserved %d, %sand this one comes to %d", b.Tokens, others.Tokens(),
			also("%d are held back for the answer, ", held.Tokens()), need.Tokens())
	case b.USD > 0 && after.USD > b.USD:
		return swarm.Errorf(swarm.OverBudget, "the budget has $%.4g: other turns have used or reserved $%.4g, %sand this one comes to $%.4g", b.USD, others.USD,
			also("$%.4g is held back for the answer, ", held.USD), need.USD)
	}
	return nil
}

// reserve computes what the turn's start must reserve. It refuses early if this worker already
// knows that the budget is used up, so the log gets no start. The verdict on the appended start
// decides.
func (r *Runner) reserve(w *work) error {
	if !w.plan.Budget.LimitsUse() {
		return nil
	}
	size := int64(len(w.made.Text))
	if w.history != nil {
		size = int64(len(w.sent))
		for i := range w.history {
			size += w.history[i].Size()
		}
	}
	need := providerkind.Bound(&w.spec, w.model, size, w.c.Want.MaxTokens())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	a := &r.fold.account
	others := a.used.Plus(a.all)
	for _, u := range a.pending {
		others = others.Plus(u)
	}
	if err := a.room(others, need, w.c.Want == plan.WantAnswer); err != nil {
		return err
	}
	w.need = need
	put(&a.pending, w.turn, need)
	return nil
}

// verdict returns the error of a start or reservation that exceeded the budget when it was
// appended.
func (r *Runner) verdict(seq int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	return r.fold.account.refused[seq]
}

// clearPending removes a start that is in the log now, or will not get there.
func (r *Runner) clearPending(w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fold.account.pending, w.turn)
}

// reserver returns the function by which a provider reserves more for its turn before each request
// to its model. A reservation covers the usage so far and that request. A turn counts as one call,
// so a budget of calls alone needs no further reservations.
func (r *Runner) reserver(ctx context.Context, w *work) func(swarm.Usage) error {
	if w.plan.Budget.Tokens == 0 && w.plan.Budget.USD == 0 {
		return nil
	}
	has := w.need
	return func(need swarm.Usage) error {
		need.Calls = 1
		if need.USD == 0 {
			need.USD = w.spec.Price.Of(need)
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
