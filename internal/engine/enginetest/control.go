package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/provider"
	"swarm/internal/storetest"
)

func alone(names ...string) swarm.Plan {
	var p swarm.Plan
	for i, n := range names {
		p.Tasks = append(p.Tasks, swarm.Task{Name: n, Group: i})
		p.Groups = append(p.Groups, swarm.Group{Iterations: 1})
	}
	return p
}

func growAcrossCrash(t *testing.T, run Subject) {
	p := alone("l1")
	p.Open = true
	b := newHarness(t, run, p, newTeam(work))
	line := func(n int, after string) {
		grown := alone(fmt.Sprint("l", n))
		grown.Tasks[0].DependsOn = []swarm.Dependency{{Task: after, Condition: swarm.OnSuccess}}
		bodies := b.fill(&grown)
		b.append(swarm.Event{Kind: swarm.PlanAdded, Key: fmt.Sprint("plan:", n), To: swarm.ToLoop("root"), Data: swarm.Encode(grown)}, bodies)
	}
	line(2, "l1")
	if _, err := b.drive(5, true); !errors.Is(err, storetest.ErrCrash) {
		t.Fatalf("got %v, want a crash", err)
	}
	line(3, "l2")
	b.control(swarm.CommandClose, "")
	if r, err := b.drive(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("resumed: %+v, %v", r, err)
	}
	if _, ends := b.history(); len(ends) != 3 {
		t.Errorf("turns ended: %v, want those of three lines", ends)
	}
}

// A lazyLog keeps lazy batches until the next append or flush. They are never written by a timer.
type lazyLog struct {
	swarm.Log
	mu      sync.Mutex
	pending []swarm.Batch
	fails   error
}

func (p *lazyLog) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.Lazy {
		p.pending = append(p.pending, b)
		return nil, p.fails
	}
	p.write(ctx)
	return p.Log.Append(ctx, b)
}

func (p *lazyLog) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(context.Background())
}

func (p *lazyLog) write(ctx context.Context) {
	for _, b := range p.pending {
		b.Lazy = false
		_, err := p.Log.Append(ctx, b)
		p.fails = errors.Join(p.fails, err)
	}
	p.pending = nil
}

// idleTells lets a loop come to rest with a plan that may still grow. Its facts must be in the log
// by then: a session waits for them before it reads the next line.
func idleTells(t *testing.T, run Subject) {
	plan := alone("l1")
	plan.Open = true
	b := newHarness(t, run, plan, newTeam(work))
	log, err := b.store.Open(t.Context(), runID, swarm.ReadWrite)
	b.check(err)
	defer log.Close()
	owner, err := log.Own(t.Context(), flow.Version, leaseForTests)
	b.check(err)
	done := make(chan error, 1)
	go func() {
		_, err := b.run(t.Context(), b.adapters(&lazyLog{Log: log}), rootCall(owner.Fence))
		done <- err
	}()
	woken, stop := log.Watch()
	defer stop()
	for {
		events, err := log.Read(0, 1000)
		b.check(err)
		if slices.ContainsFunc(events, func(e swarm.Event) bool { return e.Kind == swarm.TaskCompleted }) {
			break
		}
		select {
		case <-woken:
		case err := <-done:
			t.Fatalf("the loop has ended: %v", err)
		case <-time.After(20 * time.Second):
			t.Fatal("the loop waits, and nobody is told that its task is completed")
		}
	}
	b.control(swarm.CommandClose, "")
	b.check(<-done)
}

// until returns the work of an agent that reports its turn, and then works until it is cancelled.
func until(started chan<- swarm.TurnID) func(context.Context, provider.Request) (string, error) {
	return func(ctx context.Context, r provider.Request) (string, error) {
		started <- r.Turn
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
}

func cancelCuts(t *testing.T, run Subject) {
	started := make(chan swarm.TurnID, 10)
	b := newHarness(t, run, alone("a", "b"), newTeam(until(started)))
	done := make(chan error, 1)
	go func() {
		r, err := b.drive(0, false)
		if err == nil && r.Status != swarm.CallFailed {
			err = fmt.Errorf("a cancelled run has ended as %+v", r)
		}
		done <- err
	}()
	<-started
	<-started
	b.control(swarm.CommandCancel, "a") // from another process, while this one drives
	b.control(swarm.CommandCancel, "")
	b.check(<-done)
	history, ends := b.history()
	if len(ends) != 2 || !strings.Contains(strings.Join(history, "\n"), "task_cancelled a") || !strings.Contains(strings.Join(history, "\n"), "task_cancelled b") {
		t.Errorf("the log tells\n%s", strings.Join(history, "\n"))
	}
}

func cancelBeforeResume(t *testing.T, run Subject) {
	b := newHarness(t, run, alone("a"), newTeam(work))
	if _, err := b.drive(2, true); !errors.Is(err, storetest.ErrCrash) {
		t.Fatalf("got %v, want a crash", err)
	}
	asked := len(b.team.asked["a/1/1"])
	b.control(swarm.CommandCancel, "")
	if r, err := b.drive(0, false); err != nil || r.Kind != swarm.CutByCancel {
		t.Fatalf("resumed: %+v, %v", r, err)
	}
	if again := len(b.team.asked["a/1/1"]) - asked; again != 0 {
		t.Errorf("the agent was asked %d times after the run was cancelled", again)
	}
}

func pauseOutlives(t *testing.T, run Subject) {
	b := newHarness(t, run, alone("x"), newTeam(work))
	b.control(swarm.CommandPause, "")
	if _, err := b.drive(2, true); !errors.Is(err, storetest.ErrCrash) {
		t.Fatalf("got %v, want a crash", err)
	}
	b.control(swarm.CommandResume, "")
	if r, err := b.drive(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("resumed: %+v, %v", r, err)
	}
}

// lateOwner tests a process that loses its run in the middle of a turn. Its output, its facts and
// its ticks must all be refused. The idempotency keys alone would not do that.
func lateOwner(t *testing.T, run Subject) {
	started, finish := make(chan swarm.TurnID, 10), make(chan struct{})
	b := newHarness(t, run, alone("a"), newTeam(func(_ context.Context, r provider.Request) (string, error) {
		started <- r.Turn
		<-finish
		return "late", nil
	}))
	log, err := b.store.Open(b.t.Context(), runID, swarm.ReadWrite)
	b.check(err)
	defer log.Close()
	owner, err := log.Own(t.Context(), flow.Version, time.Nanosecond) // The lease is over at once.
	b.check(err)
	done := make(chan error, 1)
	go func() {
		_, err := b.run(t.Context(), b.adapters(log), rootCall(owner.Fence))
		done <- err
	}()
	<-started
	other, err := b.store.Open(b.t.Context(), runID, swarm.ReadWrite)
	b.check(err)
	defer other.Close()
	newer, err := other.Own(t.Context(), flow.Version, time.Minute)
	b.check(err)
	if newer.Fence <= owner.Fence {
		t.Fatalf("the fence did not grow: %d, then %d", owner.Fence, newer.Fence)
	}
	close(finish)
	if err := <-done; !errors.Is(err, swarm.ErrFenced) {
		t.Fatalf("the late owner ended with %v", err)
	}
	for _, e := range []swarm.Event{{Kind: swarm.Tick, To: swarm.ToLoop("root")}, {Kind: swarm.TaskCompleted, Key: "task_ended:a/1", Task: "a"}} {
		if _, err := log.Append(t.Context(), swarm.Batch{Fence: owner.Fence, Events: []swarm.Event{e}}); !errors.Is(err, swarm.ErrFenced) {
			t.Errorf("a late %s was answered with %v", e.Kind, err)
		}
	}
	if _, ends := b.history(); len(ends) != 0 {
		t.Errorf("a late end was written: %v", ends)
	}
}

func otherVersion(t *testing.T, run Subject) {
	b := newHarness(t, run, alone("a"), newTeam(work))
	if _, err := b.drive(3, true); !errors.Is(err, storetest.ErrCrash) {
		t.Fatalf("got %v, want a crash", err)
	}
	log, err := b.store.Open(b.t.Context(), runID, swarm.ReadWrite)
	b.check(err)
	defer log.Close()
	if _, err := log.Own(t.Context(), flow.Version+"x", time.Minute); err == nil {
		t.Error("loops of another version took the run")
	}
}
