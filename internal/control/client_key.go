package control

import (
	"context"
	"fmt"
	"strings"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A ClientKey is what an MCP client may do that drives runs. Each run that it begins carries the
// key's name. So the client steers its own runs only, and its budget holds over all of them, also
// after the client or this program starts again.
type ClientKey struct {
	Name       string
	Budget     swarm.Budget // of all runs of the key together; it has no wall time
	MayApprove bool         // it may answer what agents ask a person for
}

// NewClientKey checks the name of a key.
func NewClientKey(name string) (*ClientKey, error) {
	if err := swarm.CheckTaskName(name); err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "%s cannot be the name of a key", swarm.Quote(name)).
			WithHint("write letters from a to z, digits, - and _: --key claude")
	}
	return &ClientKey{Name: name}, nil
}

// steer refuses runs that were not begun with the key.
func (k *ClientKey) steer(h *statedir.Home, id swarm.RunID) error {
	start, err := run.ReadStart(h, id)
	if err == nil && start.Key == k.Name {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "run %s was not begun with the key %s, so this client may only read it", id, k.Name).
		WithHint("a person can steer it; list_runs with mine = true lists yours")
}

// lockKeys is the lock under which a run of a key begins or goes on, so that two cannot take the
// same rest of the budget.
const lockKeys = "client-keys"

// allot gives a run that is about to begin its part of the key's budget: what the request names, and
// at most what is left. The caller holds the rest until unlock.
func (c *Control) allot(ctx context.Context, r *Request) (unlock func(), err error) {
	k := c.Caller.Key
	if k == nil || !k.Budget.LimitsUse() {
		return func() {}, nil
	}
	if r.Lock, err = c.Home.LockStore(ctx, lockKeys); err != nil {
		return nil, err
	}
	left, err := c.left("")
	if err != nil {
		r.Lock.Unlock()
		return nil, err
	}
	r.Budget = r.Budget.Within(left)
	return r.Lock.Unlock, nil
}

// allotAgain is allot for a run of the key that goes on. A cancelled run needs nothing: it only ends.
// Without a budget there is no lock.
func (c *Control) allotAgain(ctx context.Context, id swarm.RunID) (lock swarm.StoreLock, err error) {
	k := c.Caller.Key
	if k == nil || !k.Budget.LimitsUse() {
		return nil, nil
	}
	if cancelled, err := run.CancelWanted(c.Home, id); err != nil || cancelled {
		return nil, err
	}
	if lock, err = c.Home.LockStore(ctx, lockKeys); err != nil {
		return nil, err
	}
	left, err := c.left(id)
	p, readErr := c.Picture(id)
	if err == nil {
		err = readErr
	}
	if rest := p.Budget.Minus(p.Usage, 0); err == nil && rest != rest.Within(left) {
		err = swarm.Errorf(swarm.OverBudget, "run %s may still use %s, and the key %s has less left: %s", id, budgetText(rest), k.Name, budgetText(left)).
			WithHint("a person raises it: swarm mcp --drive --budget …")
	}
	if err != nil {
		lock.Unlock()
		return nil, err
	}
	return lock, nil
}

// left returns what is left of the key's budget: less what its runs have used, and what those that
// go on may still use. The run besides does not count as going on.
func (c *Control) left(besides swarm.RunID) (swarm.Budget, error) {
	k := c.Caller.Key
	var used, held swarm.Usage
	var holders []string
	for s, err := range c.Home.Runs("", true, "") {
		if err != nil {
			return swarm.Budget{}, err
		}
		if s.Key != k.Name {
			continue
		}
		if err := c.Home.Uncertain(s); err != nil { // it may go on, and use more
			return swarm.Budget{}, err
		}
		s = run.Current(c.Home, s)
		if s.Status.Ended() || s.Problem != "" {
			used = used.Plus(s.Usage)
			continue
		}
		p, err := c.Picture(s.ID) // if the process was killed, the summary is older than the log
		if err != nil {
			return swarm.Budget{}, err
		}
		used = used.Plus(p.Usage)
		if s.ID == besides || p.Status == swarm.Interrupted {
			continue
		}
		holders = append(holders, string(s.ID))
		held = held.Plus(swarm.Usage{Calls: max(0, p.Budget.Calls-p.Usage.Calls), InputTokens: max(0, p.Budget.Tokens-p.Usage.Tokens()), USD: max(0, p.Budget.USD-p.Usage.USD)})
	}
	b, all := k.Budget, used.Plus(held)
	for _, part := range []struct {
		has         bool
		used, spent bool
		name        string
	}{
		{b.USD > 0, used.USD >= b.USD, all.USD >= b.USD, fmt.Sprintf("usd %g", b.USD)},
		{b.Tokens > 0, used.Tokens() >= b.Tokens, all.Tokens() >= b.Tokens, fmt.Sprintf("tokens %d", b.Tokens)},
		{b.Calls > 0, used.Calls >= b.Calls, all.Calls >= b.Calls, fmt.Sprintf("calls %d", b.Calls)},
	} {
		switch {
		case part.has && part.used:
			return b, swarm.Errorf(swarm.OverBudget, "the budget of the key %s is spent: %s", k.Name, part.name).
				WithHint("a person raises it, or begins a new key: swarm mcp --drive --key %s-2 --budget …", k.Name)
		case part.has && part.spent:
			return b, swarm.Errorf(swarm.OverBudget, "the budget of the key %s is taken by runs that go on (%s): %s", k.Name, strings.Join(holders, ", "), part.name).
				WithHint("wait for them, or begin each run with a budget of its own")
		}
	}
	return b.Minus(all, 0), nil
}

// budgetText names the parts of a budget.
func budgetText(b swarm.Budget) string {
	var parts []string
	if b.USD > 0 {
		parts = append(parts, fmt.Sprintf("usd %.4g", b.USD))
	}
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("tokens %d", b.Tokens))
	}
	if b.Calls > 0 {
		parts = append(parts, fmt.Sprintf("calls %d", b.Calls))
	}
	return strings.Join(parts, ", ")
}
