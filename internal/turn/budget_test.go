package turn_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/sqlite"
)

// newBudget makes the log of a run with tasks t1, t2, … and a budget. Each prompt has about 30
// tokens.
func newBudget(t *testing.T, tasks int, budget swarm.Budget, change ...func(*swarm.Plan)) (b *bench, path string) {
	path = filepath.Join(t.TempDir(), "run.db")
	log, err := sqlite.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	b = &bench{t, log}
	text, _, err := prompt.Parse(prompt.Source{File: "t.md", Text: []byte("Work.")}, nil)
	b.check(err)
	plan := swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "team", Kind: "acp"}}, Groups: []swarm.Group{{Iterations: 1}}, Budget: budget}
	for n := range tasks {
		name := fmt.Sprint("t", n+1)
		plan.Agents = append(plan.Agents, swarm.Agent{Name: name, Provider: "team"})
		plan.Tasks = append(plan.Tasks, swarm.Task{Name: name, Agent: name, Prompt: swarm.HashOf(text.Marshal())})
	}
	for _, change := range change {
		change(&plan)
	}
	b.append(text.Marshal(), swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: call.Ref, Data: b.json(plan)})
	return b, path
}

// task is the turn of a task.
func task(n int) flow.Call {
	name := fmt.Sprint("t", n)
	return flow.Call{ID: name + "/1/1", Kind: flow.KindTurn, Task: name, Agent: name, Iteration: 1, Of: 1, Attempt: 1, Ref: call.Ref}
}

// says returns an agent that answers and reports this usage.
func says(tokens int64) agent {
	return func(context.Context, provider.Request) (provider.Reply, error) {
		return provider.Reply{Output: []byte("done"), Usage: swarm.Usage{InputTokens: tokens}}, nil
	}
}

// ended compares a turn's end with the expected one.
func (b *bench) ended(r flow.Result, err error, kind swarm.ErrorKind) {
	b.Helper()
	if err != nil || r.Kind != kind {
		b.Errorf("the turn %s ended as %q (%s), %v; want %q", r.ID, r.Kind, r.Reason, err, kind)
	}
}

// One budget holds for all workers of a run: the order of their starts in the log decides.
func TestThreeWorkersKeepOneBudget(t *testing.T) {
	b, path := newBudget(t, 9, swarm.Budget{Calls: 3})
	owner, err := b.log.Own(t.Context(), flow.Version, time.Minute)
	b.check(err)
	line := &sync.WaitGroup{}
	line.Add(9)
	var calls atomic.Int64
	type end struct {
		flow.Result
		err error
	}
	ends := make(chan end, 9)
	for n := range 3 {
		log, err := sqlite.Open(path)
		b.check(err)
		defer log.Close()
		w := worker{b.runner(startLine{log, line}, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
			calls.Add(1)
			return says(10)(ctx, r)
		}), owner.Fence}
		for turn := range 3 {
			go func() {
				r, err := w.Do(t.Context(), "root", task(3*n+turn+1))
				ends <- end{r, err}
			}()
		}
	}
	kinds := map[swarm.ErrorKind]int{}
	for range 9 {
		e := <-ends
		b.check(e.err)
		kinds[e.Kind]++
	}
	if calls.Load() != 3 || kinds[""] != 3 || kinds[swarm.OverBudget] != 6 {
		t.Errorf("the provider was called %d times, and the turns ended as %v", calls.Load(), kinds)
	}
}

// A reservationLine is a log that holds back reservations until a number of them have come.
type reservationLine struct {
	swarm.Log
	line *sync.WaitGroup
}

func (s reservationLine) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if b.Events[0].Kind == swarm.TurnReserved {
		s.line.Done()
		s.line.Wait()
	}
	return s.Log.Append(ctx, b)
}

// A model that calls tools needs more with each request. If two turns need all that is left at the
// same moment, one gets it.
func TestReservationsOfTwoWorkersKeepOneBudget(t *testing.T) {
	b, _ := newBudget(t, 2, swarm.Budget{Tokens: 1000})
	line, both := &sync.WaitGroup{}, &sync.WaitGroup{}
	line.Add(2)
	both.Add(2)
	asks := func(_ context.Context, r provider.Request) (provider.Reply, error) {
		if err := r.Reserve(swarm.Usage{InputTokens: 5}); err != nil { // its start has reserved more
			return provider.Reply{}, err
		}
		both.Done()
		both.Wait()
		if err := r.Reserve(swarm.Usage{InputTokens: 700, OutputTokens: 90}); err != nil {
			return provider.Reply{Usage: swarm.Usage{InputTokens: 90}}, err
		}
		return provider.Reply{Output: []byte("done"), Usage: swarm.Usage{InputTokens: 800}}, nil
	}
	log := reservationLine{b.log, line}
	first := b.owner(log, asks)
	ends := make(chan swarm.ErrorKind, 2)
	for n, w := range []worker{first, {b.runner(log, asks), first.fence}} {
		go func() {
			r, err := w.Do(t.Context(), "root", task(n+1))
			if err != nil {
				t.Error(err)
			}
			ends <- r.Kind
		}()
	}
	if one, other := <-ends, <-ends; one == other || one+other != swarm.OverBudget {
		t.Errorf("the turns ended as %q and %q", one, other)
	}
}

// A turn that has asked nothing yet may wait for the room that another one has reserved.
func TestAFirstRequestWithoutRoomMayWait(t *testing.T) {
	b, _ := newBudget(t, 2, swarm.Budget{Tokens: 1000})
	reserved, end := make(chan bool), make(chan bool)
	w := b.owner(b.log, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		if r.Task == "t2" {
			return provider.Reply{Free: true}, r.Reserve(swarm.Usage{InputTokens: 400})
		}
		b.check(r.Reserve(swarm.Usage{InputTokens: 800}))
		close(reserved)
		<-end
		return says(10)(ctx, r)
	})
	ended := make(chan error)
	go func() {
		_, err := w.Do(t.Context(), "root", task(1))
		ended <- err
	}()
	<-reserved
	r, err := w.Do(t.Context(), "root", task(2))
	close(end)
	b.check(<-ended)
	b.ended(r, err, swarm.OverBudget)
	if !r.Crowded || r.Usage != (swarm.Usage{}) {
		t.Errorf("the turn ended as %+v", r.CallEnd)
	}
}

// The end of a swarm's turn says how long the turn waited for the budget of the run whose task the
// swarm does.
func TestAWaitForTheParentsBudgetIsTold(t *testing.T) {
	var crowded error
	parent, _ := newBudget(t, 2, swarm.Budget{Tokens: 1000})
	var w worker
	w = parent.owner(parent.log, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		if r.Task == "t2" {
			crowded = r.Reserve(swarm.Usage{InputTokens: 400})
			return provider.Reply{Free: true}, crowded
		}
		parent.check(r.Reserve(swarm.Usage{InputTokens: 800}))
		_, err := w.Do(t.Context(), "root", task(2))
		parent.check(err)
		return says(10)(ctx, r)
	})
	_, err := w.Do(t.Context(), "root", task(1))
	parent.check(err)
	child, _ := newBudget(t, 1, swarm.Budget{Tokens: 1000})
	c := child.owner(child.log, says(10))
	c.Parent = func(swarm.Usage) error { return crowded }
	c.ParentRoom = func(context.Context, swarm.Usage) error {
		<-time.After(2 * time.Millisecond)
		return nil
	}
	r, err := c.Do(t.Context(), "root", task(1))
	child.ended(r, err, "")
	if r.Waited < time.Millisecond {
		t.Errorf("the turn ended as %+v", r.CallEnd)
	}
}

// A run that is resumed after a crash has the budget that its log leaves. A cut start counts once,
// with its reservation.
func TestABudgetOutlivesItsWorkers(t *testing.T) {
	b, _ := newBudget(t, 4, swarm.Budget{Calls: 3, Tokens: 2000})
	ctx, kill := context.WithCancelCause(t.Context())
	if _, err := b.owner(b.log, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		b.check(r.Reserve(swarm.Usage{InputTokens: 900}))
		kill(errors.New("killed"))
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}).Do(ctx, "root", task(1)); err == nil {
		t.Fatal("the killed turn has ended")
	}
	r, err := b.owner(b.log, says(500)).Do(t.Context(), "root", task(1))
	b.ended(r, err, "")
	// A provider that was not reached costs nothing, not even a call.
	r, err = b.owner(b.log, func(context.Context, provider.Request) (provider.Reply, error) {
		return provider.Reply{Free: true}, swarm.Errorf(swarm.NotFound, "no such program")
	}).Do(t.Context(), "root", task(2))
	b.ended(r, err, swarm.NotFound)
	r, err = b.owner(b.log, func(_ context.Context, r provider.Request) (provider.Reply, error) {
		if err := r.Reserve(swarm.Usage{InputTokens: 700}); swarm.KindOf(err) != swarm.OverBudget {
			t.Errorf("900 tokens were cut and 500 used of 2000: 700 more got %v", err)
		}
		return says(600)(nil, r)
	}).Do(t.Context(), "root", task(3))
	b.ended(r, err, "")
	r, err = b.owner(b.log, says(1)).Do(t.Context(), "root", task(4))
	b.ended(r, err, swarm.OverBudget)
	if starts := b.starts(); len(starts) != 4 {
		t.Errorf("the log has %d starts; the turn for which nothing was left needs none", len(starts))
	}
}

// A swarm that does a task goes on after a crash. What it has reserved in all counts once, before and
// after, and it gives back what it does not need any more.
func TestASwarmReservesItsCallsOnce(t *testing.T) {
	b, _ := newBudget(t, 2, swarm.Budget{Calls: 8}, func(p *swarm.Plan) { p.Tasks[0].Swarm = &swarm.SwarmTask{} })
	ctx, kill := context.WithCancelCause(t.Context())
	if _, err := b.owner(b.log, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		if err := r.Reserve(swarm.Usage{Calls: 9}); swarm.KindOf(err) != swarm.OverBudget {
			t.Errorf("nine calls of eight: %v", err)
		}
		b.check(r.Reserve(swarm.Usage{Calls: 8}))
		kill(errors.New("killed"))
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}).Do(ctx, "root", task(1)); err == nil {
		t.Fatal("the killed turn has ended")
	}
	again := task(1)
	again.Again = true
	var w worker
	w = b.owner(b.log, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		beside := worker{b.runner(b.log, says(1)), w.fence}
		other, err := beside.Do(t.Context(), "root", task(2))
		b.ended(other, err, swarm.OverBudget)
		b.check(r.Reserve(swarm.Usage{Calls: 8}))
		b.check(r.Reserve(swarm.Usage{Calls: 6}))
		next := task(2)
		next.ID, next.Attempt = "t2/1/2", 2
		other, err = beside.Do(t.Context(), "root", next)
		b.ended(other, err, "")
		return provider.Reply{Free: true, Output: []byte("done"), Usage: swarm.Usage{Calls: 7}}, nil
	})
	r, err := w.Do(t.Context(), "root", again)
	b.ended(r, err, "")
}

// A swarm whose turn is cut ends by itself. Until then its turns reserve what they need.
func TestASwarmReservesAfterACut(t *testing.T) {
	b, _ := newBudget(t, 1, swarm.Budget{Calls: 8}, func(p *swarm.Plan) { p.Tasks[0].Swarm = &swarm.SwarmTask{} })
	r, err := b.owner(b.log, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		b.append(nil, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: b.json(swarm.ControlCommand{Command: swarm.CommandCancel, Target: "t1"})})
		<-ctx.Done()
		b.check(r.Reserve(swarm.Usage{Calls: 5}))
		return provider.Reply{Free: true, Usage: swarm.Usage{Calls: 5}}, context.Cause(ctx)
	}).Do(t.Context(), "root", task(1))
	b.ended(r, err, swarm.CutByCancel)
	if r.Usage.Calls != 5 {
		t.Errorf("the cut swarm used %+v", r.Usage)
	}
}

// A turn that cannot be started again was started before: its cut call stays used.
func TestARefusedTurnGivesNothingBack(t *testing.T) {
	b, _ := newBudget(t, 2, swarm.Budget{Calls: 2})
	for n := range 2 {
		ctx, kill := context.WithCancelCause(t.Context())
		var asked string
		if _, err := b.owner(b.log, dies(kill, &asked)).Do(ctx, "root", task(n+1)); err == nil {
			t.Fatal("the killed turn has ended")
		}
	}
	for n := range 2 {
		r, err := b.owner(b.log, says(1)).Do(t.Context(), "root", task(n+1))
		b.ended(r, err, swarm.OverBudget)
	}
}

// The same holds for a turn that was cancelled while no worker ran it.
func TestACancelledTurnGivesNothingBack(t *testing.T) {
	b, _ := newBudget(t, 2, swarm.Budget{Calls: 1})
	ctx, kill := context.WithCancelCause(t.Context())
	var asked string
	if _, err := b.owner(b.log, dies(kill, &asked)).Do(ctx, "root", task(1)); err == nil {
		t.Fatal("the killed turn has ended")
	}
	b.append(nil, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: b.json(swarm.ControlCommand{Command: swarm.CommandCancel, Target: "t1"})})
	r, err := b.owner(b.log, says(1)).Do(t.Context(), "root", task(1))
	b.ended(r, err, swarm.CutByCancel)
	r, err = b.owner(b.log, says(1)).Do(t.Context(), "root", task(2))
	b.ended(r, err, swarm.OverBudget)
}

// A quitter is a log whose process ends during the append of a start.
type quitter struct {
	swarm.Log
	quit context.CancelFunc
}

func (q quitter) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if b.Events[0].Kind == swarm.TurnStarted {
		q.quit()
		return nil, ctx.Err()
	}
	return q.Log.Append(ctx, b)
}

// A process that ends before a turn's start does not cancel the turn.
func TestATurnIsNotRefusedByTheEndOfItsProcess(t *testing.T) {
	b := newBench(t)
	b.tells("tell/1/1", `{"n": 21}`)
	ctx, quit := context.WithCancel(t.Context())
	if _, err := b.owner(quitter{b.log, quit}, nil).Do(ctx, "root", call); !errors.Is(err, context.Canceled) {
		t.Errorf("the process stops with %v", err)
	}
	if e, ended, err := b.log.Find(swarm.EndKey(call.ID)); ended || err != nil {
		t.Errorf("the turn has ended: %s, %v", e.Data, err)
	}
}

// A run without a budget makes no reservations.
func TestNoBudgetCostsNothing(t *testing.T) {
	b, _ := newBudget(t, 1, swarm.Budget{Wall: time.Hour})
	r, err := b.owner(b.log, func(_ context.Context, r provider.Request) (provider.Reply, error) {
		if r.Reserve != nil {
			t.Error("the provider is to reserve something")
		}
		return says(1)(nil, r)
	}).Do(t.Context(), "root", task(1))
	b.ended(r, err, "")
	if start := b.starts()[0]; start.Reserves != (swarm.Usage{}) {
		t.Errorf("the start reserves %+v", start.Reserves)
	}
}
