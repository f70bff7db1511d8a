package turn_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// A startLine is a log that holds back starts of turns until a number of them have come. All
// workers have read the log by then, and none has seen another's start.
type startLine struct {
	swarm.Log
	line *sync.WaitGroup
}

func (s startLine) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if slices.ContainsFunc(b.Events, func(e swarm.Event) bool { return e.Kind == swarm.TurnStarted }) {
		s.line.Done()
		s.line.Wait()
	}
	return s.Log.Append(ctx, b)
}

// The workers of one owner share its fence. If an engine asks two of them for the same turn at
// once, one runs it.
func TestTwoWorkersStartATurnOnce(t *testing.T) {
	b := newBench(t)
	b.tells("tell/1/1", `{"n": 21}`)
	line := &sync.WaitGroup{}
	line.Add(2)
	asked, finish := make(chan string, 2), make(chan struct{})
	answers := func(_ context.Context, r provider.Request) (provider.Reply, error) {
		asked <- r.Prompt
		<-finish
		return provider.Reply{Output: []byte("42")}, nil
	}
	first := b.owner(startLine{b.log, line}, answers)
	second := worker{b.runner(startLine{b.log, line}, answers), first.fence}
	results := make(chan error, 2)
	for _, w := range []worker{first, second} {
		go func() {
			_, err := w.Do(t.Context(), "root", call)
			results <- err
		}()
	}
	<-asked
	select {
	case err := <-results: // while the other one works
		if !errors.Is(err, swarm.ErrStale) {
			t.Errorf("the worker that came second was told %v", err)
		}
	case <-asked:
		t.Error("both workers have called the provider")
	}
	close(finish)
	if err := <-results; err != nil {
		t.Errorf("the worker that came first ended with %v", err)
	}
	if starts := b.starts(); len(starts) != 1 {
		t.Errorf("the log has %d starts", len(starts))
	}
}

// A worker that dies leaves a start. The next worker of the same owner finds it and appends
// another.
func TestAStartAfterAKilledWorkerIsMarked(t *testing.T) {
	b := newBench(t)
	b.tells("tell/1/1", `{"n": 21}`)
	var first string
	ctx, kill := context.WithCancelCause(t.Context())
	killed := b.owner(b.log, dies(kill, &first))
	if _, err := killed.Do(ctx, "root", call); err == nil {
		t.Fatal("the killed worker has ended the turn")
	}
	asked := 0
	next := b.runner(b.log, func(context.Context, provider.Request) (provider.Reply, error) {
		asked++
		return provider.Reply{Output: []byte("42")}, nil
	})
	again := call
	again.Fence, again.Again = killed.fence, true
	r, err := next.Do(t.Context(), "root", again)
	if err != nil || r.Status != swarm.CallOK {
		t.Fatalf("the second worker: %+v, %v", r, err)
	}
	starts := b.starts()
	if len(starts) != 2 || starts[1].Start != 2 || starts[0].Owner != starts[1].Owner || starts[0].By == "" || starts[0].By == starts[1].By {
		t.Errorf("the starts are %+v", starts)
	}
	// The end is in the log: the turn does not run again.
	more, err := next.Do(t.Context(), "root", again)
	if err != nil || more.Seq != r.Seq || asked != 1 || len(b.starts()) != 2 {
		t.Errorf("asked again, the turn ended as %+v, %v after %d calls and %d starts", more, err, asked, len(b.starts()))
	}
}

// A worker does not end a turn as refused while another runs it.
func TestARefusalYieldsToAStart(t *testing.T) {
	b := newBench(t)
	b.tells("tell/1/1", "no number") // so this worker cannot make the prompt
	owner := b.owner(b.log, nil)
	b.append(nil, swarm.Event{Kind: swarm.TurnStarted, Key: swarm.StartKey(swarm.TurnID(call.ID), 1), Turn: swarm.TurnID(call.ID), Data: b.json(swarm.TurnStart{Start: 1, Owner: owner.fence, By: "another"})})
	if _, err := owner.Do(t.Context(), "root", call); !errors.Is(err, swarm.ErrStale) {
		t.Errorf("the worker was told %v", err)
	}
	if _, ended, err := b.log.Find(swarm.EndKey(call.ID)); ended || err != nil {
		t.Errorf("the other worker's turn was ended: %v", err)
	}
}

// starts returns the starts in the log.
func (b *bench) starts() (all []swarm.TurnStart) {
	b.Helper()
	events, err := b.log.Read(0, 1000)
	b.check(err)
	for _, e := range events {
		if e.Kind == swarm.TurnStarted {
			start, err := swarm.Body[swarm.TurnStart](&e)
			b.check(err)
			all = append(all, start)
		}
	}
	return all
}

// A worker whose turn another worker has started again asks no questions.
func TestAReplacedStartAsksNobody(t *testing.T) {
	b := newBench(t)
	b.tells("tell/1/1", `{"n": 21}`)
	ctx, stop := context.WithCancelCause(t.Context())
	var refused error
	_, err := b.owner(pollster{b.log, stop}, func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		b.append(nil, swarm.Event{Kind: swarm.TurnStarted, Key: swarm.StartKey(swarm.TurnID(call.ID), 2), Turn: swarm.TurnID(call.ID), Data: b.json(swarm.TurnStart{Start: 2, By: "another"})})
		_, _, refused = r.Ask(ctx, swarm.Approval{ID: call.ID + "/1", What: "write"})
		return provider.Reply{}, refused
	}).Do(ctx, "root", call)
	if !errors.Is(refused, swarm.ErrStale) || !errors.Is(err, swarm.ErrStale) {
		t.Errorf("the agent was told %v, and the worker %v", refused, err)
	}
}

// A pollster is a log that stops its worker once a question is appended.
type pollster struct {
	swarm.Log
	stop context.CancelCauseFunc
}

func (p pollster) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	seqs, err := p.Log.Append(ctx, b)
	if err == nil && b.Events[0].Kind == swarm.ApprovalAsked {
		p.stop(errors.New("a person was asked"))
	}
	return seqs, err
}
