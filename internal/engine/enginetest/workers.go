package enginetest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
	"swarm/internal/provider"
)

// work drives the run for its owner, with a log of its own, as another process does.
func (h *harness) work(run engine.Engine, fence int64) <-chan error {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadWrite)
	h.check(err)
	done := make(chan error, 1)
	go func() {
		defer log.Close()
		r, err := run(h.t.Context(), h.adapters(log), rootCall(fence))
		if err == nil && r.Status != swarm.CallOK {
			err = swarm.Errorf(swarm.Other, "the run ended as %s: %s", r.Status, r.Reason)
		}
		done <- err
	}()
	return done
}

// owned makes a run that has an owner.
func ownedHarness(t *testing.T, run Subject, p swarm.Plan, a *team) (h *harness, fence int64) {
	h = newHarness(t, run, p, a)
	log, err := h.store.Open(t.Context(), runID, swarm.ReadWrite)
	h.check(err)
	t.Cleanup(func() { log.Close() })
	owner, err := log.Own(t.Context(), flow.Version, leaseForTests)
	h.check(err)
	return h, owner.Fence
}

// workTogether has two processes work for one run. No turn is done twice.
func workTogether(t *testing.T, run Subject) {
	if !run.Workers {
		t.Skip("one process drives a run")
	}
	clean := newHarness(t, run, diamond(), newTeam(work))
	_, err := clean.drive(0, false)
	clean.check(err)
	want, _ := clean.history()
	h, fence := ownedHarness(t, run, diamond(), newTeam(work))
	first, second := h.work(h.run, fence), h.work(h.run, fence)
	h.check(<-first)
	h.check(<-second)
	h.checkHistory(0, false, want)
	for turn, prompts := range h.team.asked {
		if len(prompts) != 1 {
			t.Errorf("the turn %s was done %d times", turn, len(prompts))
		}
	}
	if a, b := slices.Sorted(maps.Keys(h.team.asked)), slices.Sorted(maps.Keys(clean.team.asked)); !slices.Equal(a, b) {
		t.Errorf("two workers did %v, and one did %v", a, b)
	}
}

// replaced has a process hang in a turn, so that the engine gives the turn to another. There is a
// second start, which is another one than the first. When the process that hung goes on, it can end
// nothing.
func replaced(t *testing.T, run Subject) {
	if run.Hanging == nil {
		t.Skip("no other process gets a turn while the first one lives")
	}
	hangs, other := run.Hanging(t)
	began, finish, calls := make(chan struct{}), make(chan struct{}), 0
	a := newTeam(nil)
	a.answer = func(context.Context, provider.Request) (string, error) {
		a.mu.Lock()
		calls++
		first := calls == 1
		a.mu.Unlock()
		if !first {
			return "good", nil
		}
		close(began)
		<-finish
		return "late", nil
	}
	h, fence := ownedHarness(t, run, alone("a"), a)
	first := h.work(hangs, fence)
	select {
	case <-began:
	case err := <-first:
		t.Fatalf("the first process ended before its turn: %v", err)
	}
	err := <-h.work(other, fence)
	close(finish)
	h.check(err)
	h.check(<-first)
	var starts []swarm.TurnStart
	var end swarm.CallEnd
	for _, e := range h.events() {
		switch e.Kind {
		case swarm.TurnStarted:
			s, err := swarm.Body[swarm.TurnStart](&e)
			h.check(err)
			starts = append(starts, s)
		case swarm.TurnEnded:
			end, err = swarm.Body[swarm.CallEnd](&e)
			h.check(err)
		}
	}
	if len(starts) != 2 || starts[0].By == starts[1].By || starts[1].Start != 2 {
		t.Errorf("the starts are %+v, want two that differ", starts)
	}
	if end.Output != swarm.HashOf([]byte("good")) {
		t.Errorf("the turn ended as %+v", end)
	}
	if _, ends := h.history(); ends["a/1/1"] != 1 {
		t.Errorf("the turn has %d ends", ends["a/1/1"])
	}
}
