package logbase

import (
	"context"
	"errors"
	"testing"
	"time"

	"swarm"
)

// A list is a queue whose batches are written to memory.
type list struct {
	Queue[struct{}]
	written []swarm.Event
}

func newList() *list {
	l := &list{}
	l.Commit = func(group []*Request[struct{}]) {
		for _, r := range group {
			l.written = append(l.written, r.Batch.Events...)
		}
	}
	l.Owed = func() bool { return false }
	l.Settle = func() {}
	l.Closed = func() error { return errors.New("closed") }
	return l
}

var small = swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice}}}

// occupy makes the queue look as if a goroutine led it.
func occupy(l *list) {
	l.mu.Lock()
	l.led = true
	l.mu.Unlock()
}

func release(l *list) {
	l.mu.Lock()
	l.handOver()
	l.mu.Unlock()
}

// queued waits until so many requests wait.
func queued(t *testing.T, l *list, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		l.mu.Lock()
		got := len(l.waiting)
		l.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait, want %d", got, n)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// appending appends in the background.
func appending(ctx context.Context, l *list, b swarm.Batch) chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := l.Append(ctx, b)
		answer <- err
	}()
	return answer
}

func TestABatchThatIsBeingWrittenCannotBeTakenBack(t *testing.T) {
	l := newList()
	occupy(l)
	ctx, cancel := context.WithCancel(context.Background())
	answer := appending(ctx, l, small)
	queued(t, l, 1)
	group, _ := l.take()
	cancel()
	l.Commit(group)
	group[0].done <- false
	if err := <-answer; err != nil {
		t.Errorf("it was written, and says %v", err)
	}
	release(l)
	if len(l.written) != 1 {
		t.Errorf("the log has %v", l.written)
	}
}

func TestABatchThatWaitsCanBeTakenBack(t *testing.T) {
	l := newList()
	occupy(l)
	ctx, cancel := context.WithCancel(context.Background())
	answer := appending(ctx, l, small)
	queued(t, l, 1)
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	release(l)
	if len(l.written) != 0 {
		t.Errorf("the log has %v", l.written)
	}
}

func TestOneThatGivesUpWhileItIsToldToLeadHandsOver(t *testing.T) {
	l := newList()
	for range 100 {
		occupy(l)
		ctx, cancel := context.WithCancel(context.Background())
		first := appending(ctx, l, small)
		queued(t, l, 1)
		second := appending(context.Background(), l, small)
		queued(t, l, 2)
		l.mu.Lock()
		cancel()
		l.handOver()
		l.mu.Unlock()
		<-first
		select {
		case err := <-second:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("nobody leads")
		}
	}
}
