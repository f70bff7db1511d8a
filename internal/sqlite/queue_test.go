package sqlite

import (
	"context"
	"testing"
	"time"

	"swarm"
)

// occupy makes the queue look as if a goroutine led it.
func occupy(l *Log) { l.queue.TryLead() }

func release(l *Log) { l.queue.Release() }

// unsynced keeps the sync from coming that follows by itself.
func unsynced(l *Log) {
	l.queue.Owed = func() bool { return false }
	l.queue.Settle = func() {}
}

func TestALazyBatchThatCameWhileSomebodyWroteIsWritten(t *testing.T) {
	l, _ := create(t)
	woken, stop := l.Watch()
	defer stop()
	occupy(l)
	b := small(1)
	b.Lazy = true
	_, err := l.Append(context.Background(), b)
	must(t, err)
	b.Events[0].Kind = swarm.Notice // the slice is the caller's again
	release(l)
	select {
	case <-woken:
	case <-time.After(20 * time.Second):
		t.Fatal("it is not written")
	}
	if es, err := l.Read(0, 9); err != nil || len(es) != 1 || es[0].Kind != swarm.TurnEnded {
		t.Errorf("the log has %v, %v", es, err)
	}
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	later := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	must(t, l.w.exec("UPDATE ev SET time=?", later.UnixMicro())) // by a clock that was wrong
	_, err = l.Append(context.Background(), small(2))
	must(t, err)
	es, err := l.Read(1, 9)
	must(t, err)
	if !es[0].Time.Equal(later) {
		t.Errorf("after %v comes %v", later, es[0].Time)
	}
}

func TestOwnEventsAreReadEvenIfTheTailMissedThem(t *testing.T) {
	first, path := create(t)
	first.Close()
	l, err := Open(path)
	must(t, err)
	defer l.Close()
	_, err = l.Append(context.Background(), small(1))
	must(t, err)
	l.tail.Start(0) // as if it had begun to follow before the append
	_, stop := l.Watch()
	defer stop()
	if es, err := l.Read(0, 9); err != nil || len(es) != 1 {
		t.Errorf("it reads %v, %v", es, err)
	}
}

func TestARepeatedEventIsOnDiskEvenIfItWasLazy(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	occupy(l)
	b := small(2)
	b.Lazy = true
	_, err = l.Append(context.Background(), b)
	must(t, err)
	l.queue.Lead(nil) // writes it, without a sync
	if !l.owed.Load() {
		t.Fatal("a lazy event was synced")
	}
	seqs, err := l.Append(context.Background(), small(2))
	must(t, err)
	if seqs[0] != 2 || l.owed.Load() {
		t.Errorf("it is event %d; still to be synced: %v", seqs[0], l.owed.Load())
	}
}

func TestFlushWritesLazyBatchesAndTheirSyncFollows(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	woken, stop := l.Watch()
	defer stop()
	b := small(2)
	b.Lazy = true
	_, err = l.Append(context.Background(), b)
	must(t, err)
	l.Flush()
	select {
	case <-woken:
	default:
		t.Error("nobody is woken")
	}
	if es, err := l.Read(1, 9); err != nil || len(es) != 1 {
		t.Errorf("the log has %v, %v", es, err)
	}
	for end := time.Now().Add(20 * time.Second); l.owed.Load(); {
		if time.Now().After(end) {
			t.Fatal("it is never synced")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// The first reads of a log need no connection of their own, unless a writer is active. Events of
// other processes are seen on both.
func TestTheFirstReadsBorrowTheWritersConnection(t *testing.T) {
	l, path := create(t)
	other, err := Open(path)
	must(t, err)
	defer other.Close()
	_, stop := l.Watch()
	defer stop()
	connected := func() bool {
		l.rmu.Lock()
		defer l.rmu.Unlock()
		return l.r != nil
	}
	n := 0
	sees := func(how string) {
		t.Helper()
		_, err := other.Append(context.Background(), small(n))
		must(t, err)
		n++
		must(t, l.follow())
		if es, err := l.Read(0, 999); err != nil || len(es) != n {
			t.Fatalf("%s it reads %d of %d events, %v", how, len(es), n, err)
		}
	}
	sees("at first")
	if connected() {
		t.Error("it has a second connection")
	}
	_, err = l.Append(context.Background(), small(n))
	must(t, err)
	n++
	sees("after an append of its own")
	occupy(l)
	sees("beside a writer")
	release(l)
	if !connected() {
		t.Error("it has no second connection")
	}
	sees("at last")
}
