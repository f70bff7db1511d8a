package enginetest

import (
	"context"
	"errors"
	"testing"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/storetest"
)

// budgetCrashes gives six parallel tasks a budget of three calls. A crash at any append never leads
// to more calls. It may lead to fewer: a start counts even if its process crashed before it called
// the provider.
func budgetCrashes(t *testing.T, run Subject) {
	begin := func() *harness {
		p := alone("a", "b", "c", "d", "e", "f")
		p.Budget = swarm.Budget{Calls: 3}
		return newHarness(t, run, p, newTeam(func(_ context.Context, r provider.Request) (string, error) { return "out of " + string(r.Turn), nil }))
	}
	clean := begin()
	if r, err := clean.drive(0, false); err != nil || r.Kind != swarm.OverBudget {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	if calls := clean.team.calls(); calls != 3 {
		t.Fatalf("without a crash %d calls were made", calls)
	}
	for _, committed := range []bool{false, true} {
		for at := 1; ; at++ {
			b := begin()
			_, err := b.drive(at, committed)
			if err == nil {
				break
			}
			if !errors.Is(err, storetest.ErrCrash) {
				t.Fatalf("crash at append %d: %v", at, err)
			}
			if r, err := b.drive(0, false); err != nil || r.Kind != swarm.OverBudget {
				t.Fatalf("resumed after a crash at append %d: %+v, %v", at, r, err)
			}
			if calls := b.team.calls(); calls > 3 {
				t.Errorf("crash at append %d, committed: %v: %d calls were made", at, committed, calls)
			}
		}
	}
}

// calls returns how many times an agent was called.
func (a *team) calls() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, prompts := range a.asked {
		n += len(prompts)
	}
	return n
}
