package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/providerkind"
)

// An account is the budgets of a run, of its agents and of its tasks, with the usage and the
// reservations that the log records. It is a fold of the log: all workers that have read the log up
// to a record reach the same verdict on that record. So one budget holds for all workers without a
// lock between them. A start or reservation that exceeds a budget reserves nothing.
type account struct {
	run      share
	own      map[owner]*share             // of agents and tasks that have a budget
	swarms   map[string]bool              // tasks that a swarm does, whose reservations the swarm makes
	reserved map[swarm.TurnID]swarm.Usage // by running turns
	lost     map[swarm.TurnID]swarm.Usage // by running turns: the reservations of their starts that a crash cut
	refused  map[int64]error              // by sequence number: records that exceeded a budget, and the error
	answer   swarm.TurnID                 // the turn that makes the answer of a swarm: it may use what is held back

	pending map[swarm.TurnID]pendingStart // of this worker: starts that are not in the log yet
}

// An owner is an agent or a task that has a budget of its own.
type owner struct {
	what string // agent or task
	name string
}

// A share is a budget and what its turns have used and reserved of it.
type share struct {
	owner
	budget swarm.Budget // of the run: the same in every plan
	used   swarm.Usage  // by turns that have ended, and by starts that a crash cut
	all    swarm.Usage  // the sum of what is reserved, added up in log order, because float addition is not associative
}

// A pendingStart is a start that is not in the log yet, and what it needs.
type pendingStart struct {
	agent, task string
	need        swarm.Usage
}

// limits says whether a turn can exceed any budget.
func (a *account) limits() bool { return a.run.budget.LimitsUse() || len(a.own) > 0 }

// sharesOf returns the budgets against which a turn counts.
func (a *account) sharesOf(agent, task string) []*share {
	all := []*share{&a.run}
	for _, o := range []owner{{"agent", agent}, {"task", task}} {
		if s := a.own[o]; s != nil {
			all = append(all, s)
		}
	}
	return all
}

// learn takes the budgets of agents and tasks from a plan. Copies share the budget of what they are
// copies of, and agents of a swarm that of the agent that they are like.
func (a *account) learn(p *swarm.Plan) {
	add := func(o owner, base string, b swarm.Budget) {
		if !b.LimitsUse() || a.own[o] != nil {
			return
		}
		shared := owner{o.what, cmp.Or(base, o.name)}
		if a.own[shared] == nil {
			put(&a.own, shared, &share{owner: shared, budget: b})
		}
		a.own[o] = a.own[shared]
	}
	for i := range p.Agents {
		add(owner{"agent", p.Agents[i].Name}, cmp.Or(p.Agents[i].Base, p.Agents[i].Like), p.Agents[i].Budget)
	}
	for i := range p.Tasks {
		add(owner{"task", p.Tasks[i].Name}, p.Tasks[i].Base, p.Tasks[i].Budget)
		if p.Tasks[i].Swarm != nil {
			put(&a.swarms, p.Tasks[i].Name, true)
		}
	}
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
	if !a.limits() {
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
	if !a.swarms[e.Task] { // a swarm continues after a crash, and its next reservation covers its usage so far
		a.cut(e)
	}
	return a.judge(e, need)
}

// cut counts the reservation of an earlier start as used. A crash cut that start, so its real usage
// is unknown.
func (a *account) cut(e *swarm.Event) {
	for _, s := range a.sharesOf(e.Agent, e.Task) {
		s.used = s.used.Plus(a.reserved[e.Turn])
	}
	if u := a.reserved[e.Turn]; u != (swarm.Usage{}) {
		put(&a.lost, e.Turn, a.lost[e.Turn].Plus(u.AsCut()))
	}
	a.reserve(e, swarm.Usage{})
}

// raise applies a further reservation of a running turn. It covers the turn's whole usage so far
// and what it needs next, so it replaces the reservation before.
func (a *account) raise(e *swarm.Event) error {
	if !a.limits() {
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
	if !a.limits() {
		return
	}
	if r.Unbegun { // the reservation belongs to a start that a crash cut
		a.cut(e)
	}
	a.reserve(e, swarm.Usage{})
	delete(a.lost, e.Turn)
	for _, s := range a.sharesOf(e.Agent, e.Task) {
		s.used = s.used.Plus(r.Usage)
	}
}

func (a *account) judge(e *swarm.Event, need swarm.Usage) error {
	for _, s := range a.sharesOf(e.Agent, e.Task) {
		if err := s.room(s.all.Minus(a.reserved[e.Turn]), need, e.Turn == a.answer); err != nil {
			if a.refused == nil {
				a.refused = map[int64]error{}
			}
			a.refused[e.Seq] = err
			return nil
		}
	}
	a.reserve(e, need)
	return nil
}

// reserve replaces the reservation of a turn.
func (a *account) reserve(e *swarm.Event, need swarm.Usage) {
	for _, s := range a.sharesOf(e.Agent, e.Task) {
		s.all = s.all.Minus(a.reserved[e.Turn]).Plus(need)
	}
	if need == (swarm.Usage{}) {
		delete(a.reserved, e.Turn)
	} else {
		put(&a.reserved, e.Turn, need)
	}
}

// A crowdedError refuses a turn that may fit later: there will be room if the running turns use
// less than they have reserved.
type crowdedError struct{ error }

func (e crowdedError) Unwrap() error { return e.error }

// room returns an error if the budget does not cover need beside the usage so far and the
// reservations of other turns. A reserved call counts as used, so waiting does not free it.
func (s *share) room(reserved, need swarm.Usage, answer bool) error {
	err := s.covers(s.used.Plus(reserved), need, answer)
	if err != nil && s.covers(s.used.Plus(swarm.Usage{Calls: reserved.Calls}), need, answer) == nil {
		return crowdedError{err}
	}
	return err
}

// covers returns an error if the budget, less the usage of the others, does not cover need. What is
// held back is there for the answer only.
func (s *share) covers(others, need swarm.Usage, answer bool) error {
	held, also := s.budget.Held, func(string, ...any) string { return "" }
	if answer {
		held = swarm.Usage{}
	}
	if held != (swarm.Usage{}) {
		also = fmt.Sprintf
	}
	kind, whose := swarm.OverBudget, "the budget"
	if s.what != "" {
		kind, whose = swarm.OverShare, fmt.Sprintf("the budget of the %s %q", s.what, s.name)
	}
	after := others.Plus(need).Plus(held)
	switch b := s.budget; {
	case b.Calls > 0 && after.Calls > b.Calls:
		return swarm.Errorf(kind, "all %d calls of %s are used%s", b.Calls, whose, also(", except for %d that is held back for the answer", held.Calls))
	case b.Tokens > 0 && after.Tokens() > b.Tokens:
		return swarm.Errorf(kind, "%s has %d tokens: other turns have used or reserved %d, %sand this one comes to %d", whose, b.Tokens, others.Tokens(),
			also("%d are held back for the answer, ", held.Tokens()), need.Tokens())
	case b.USD > 0 && after.USD > b.USD:
		return swarm.Errorf(kind, "%s has $%.4g: other turns have used or reserved $%.4g, %sand this one comes to $%.4g", whose, b.USD, others.USD,
			also("$%.4g is held back for the answer, ", held.USD), need.USD)
	}
	return nil
}

// limited returns the budgets that hold for a turn.
func (w *work) limited() []swarm.Budget {
	return []swarm.Budget{w.plan.Budget, w.agent.Budget, w.task.Budget}
}

// reserve computes what the turn's start must reserve. It refuses early if this worker already
// knows that a budget is used up, so the log gets no start. The verdict on the appended start
// decides.
func (r *Runner) reserve(ctx context.Context, w *work) error {
	if r.Parent != nil { // the lock keeps the totals in order on their way to the parent
		began := time.Now()
		r.parent.Lock()
		defer r.parent.Unlock()
		defer func() { w.waited = time.Since(began).Truncate(time.Millisecond) }()
	}
	total, err := r.reserveOwn(w)
	if err == nil && r.Parent != nil && total != (swarm.Usage{}) {
		err = r.Parent(total)
		if _, crowded := errors.AsType[crowdedError](err); crowded && r.ParentRoom != nil && r.runsAlone(w) {
			err = r.awaitParent(ctx, w, total, err)
		}
		if err != nil {
			r.clearPending(w)
		}
	}
	return err
}

// runsAlone says whether no other turn of this run has reserved anything. If one has, its end makes
// room, and the loop waits for that.
func (r *Runner) runsAlone(w *work) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for turn := range r.fold.account.pending {
		if turn != w.turn {
			return false
		}
	}
	for turn := range r.fold.account.reserved {
		if turn != w.turn { // after a crash, a start of this turn may be there that was cut
			return false
		}
	}
	return true
}

// awaitParent waits until the budget of the parent run has room for this run, and reserves it. It
// returns the error of the refusal if there is no hope, or if the turn's time is over.
func (r *Runner) awaitParent(ctx context.Context, w *work, total swarm.Usage, refused error) error {
	if w.c.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.c.Timeout, refused)
		defer stop()
	}
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer r.watch(&controlled{c: w.c, cut: cut, read: w.c.Since, onlyCancel: true})() // the turn has not begun
	return r.ParentRoom(ctx, total)
}

// roomAwaiter returns the function by which a swarm that does the turn waits until the budget has room
// for it, and reserves it. It waits only while another turn that has reserved something goes on.
// Other swarms that wait make no room. The last one that begins to wait, or is left waiting, is refused
// instead: it ends with an answer of what it has, and that makes room for the others.
func (r *Runner) roomAwaiter(w *work, reserve func(swarm.Usage) error) func(context.Context, swarm.Usage) error {
	if w.task.Swarm == nil || reserve == nil {
		return nil
	}
	return func(ctx context.Context, need swarm.Usage) error {
		changed, leave := r.Log.Watch()
		defer leave()
		for {
			wait, err := r.mayGetRoom(w, need)
			if err != nil {
				return err
			}
			if !wait {
				return reserve(need) // the verdict on the record decides
			}
			select {
			case <-changed:
			case <-ctx.Done():
				r.mu.Lock()
				delete(r.crowd, w.turn)
				r.mu.Unlock()
				return context.Cause(ctx)
			}
		}
	}
}

// mayGetRoom says whether a swarm that does a turn has to wait for room: there is none, and another turn
// may make some.
func (r *Runner) mayGetRoom(w *work, need swarm.Usage) (wait bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return false, err
	}
	a := &r.fold.account
	delete(r.crowd, w.turn)
	fits := true
	for _, s := range a.sharesOf(w.c.Agent, w.c.Task) {
		fits = fits && s.room(s.all.Minus(a.reserved[w.turn]), need, false) == nil
	}
	for turn := range a.reserved {
		wait = wait || turn != w.turn && !r.crowd[turn]
	}
	if wait = wait && !fits; wait {
		put(&r.crowd, w.turn, true)
	}
	return wait, nil
}

// reserveOwn reserves in the budget of this run. It returns the total of what the run has used,
// reserved and held back for the answer.
func (r *Runner) reserveOwn(w *work) (total swarm.Usage, err error) {
	if !slices.ContainsFunc(w.limited(), swarm.Budget.LimitsUse) {
		return total, nil
	}
	size := int64(len(w.made.Text))
	if w.history != nil {
		size = int64(len(w.sent))
		for i := range w.history {
			size += w.history[i].Size()
		}
	}
	size += r.toolSize(w)
	need := providerkind.Bound(&w.spec, w.model, size, w.c.Want.MaxTokens())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return total, err
	}
	a, answer := &r.fold.account, w.c.Want == plan.WantAnswer
	var before swarm.Usage // the reservation of an earlier start that a crash cut, and whose swarm continues
	if a.swarms[w.c.Task] {
		if before = a.reserved[w.turn]; before != (swarm.Usage{}) {
			need = before
		}
	}
	for _, s := range a.sharesOf(w.c.Agent, w.c.Task) {
		reserved := s.all.Minus(before)
		for _, p := range a.pending {
			if slices.Contains(a.sharesOf(p.agent, p.task), s) {
				reserved = reserved.Plus(p.need)
			}
		}
		if err := s.room(reserved, need, answer); err != nil {
			return total, err
		}
		if s == &a.run {
			total = s.used.Plus(reserved).Plus(need)
		}
	}
	if !answer {
		total = total.Plus(a.run.budget.Held)
	}
	w.need = need
	put(&a.pending, w.turn, pendingStart{w.c.Agent, w.c.Task, need})
	return total, nil
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

// lostBefore returns what earlier starts of a turn had reserved that a crash cut. If the turn ends
// without a start of its own, the last of them is counted only then.
func (r *Runner) lostBefore(turn swarm.TurnID, unbegun bool) (swarm.Usage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return swarm.Usage{}, err
	}
	lost := r.fold.account.lost[turn]
	if unbegun {
		lost = lost.Plus(r.fold.account.reserved[turn].AsCut())
	}
	return lost, nil
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
//
// A swarm that does the turn counts its calls, and reserves less again when its turns have ended, so
// that others have the room. After a cut of the turn it still reserves: it ends by itself, and a
// failed reservation would stop it before it has counted what it used.
func (r *Runner) reserver(ctx context.Context, w *work) func(swarm.Usage) error {
	bySwarm := w.task.Swarm != nil
	if !slices.ContainsFunc(w.limited(), func(b swarm.Budget) bool { return b.Tokens > 0 || b.USD > 0 || bySwarm && b.Calls > 0 }) {
		return nil
	}
	if bySwarm {
		ctx = context.WithoutCancel(ctx)
	}
	has := w.need
	return func(need swarm.Usage) error {
		if !bySwarm {
			need.Calls = 1
		}
		if need.USD == 0 {
			need.USD = w.spec.Price.Of(need)
		}
		if !bySwarm && need.Tokens() <= has.Tokens() && need.USD <= has.USD || need == has {
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
