package sqlite

import (
	"context"
	"testing"
	"time"

	"swarm"
)

// The end of a turn becomes durable with the next turn's start. Only the loop that makes this start
// gets the end before.
func TestAnEarlyEventIsOnDiskBeforeAnybodyButItsLoopReadsIt(t *testing.T) {
	early := swarm.Batch{Early: true, Events: []swarm.Event{{Kind: swarm.TurnEnded, Key: "end", To: swarm.ToLoop("root")}}}
	for how, read := range map[string]func(l *Log) (*swarm.Event, *Log){
		"read": func(l *Log) (*swarm.Event, *Log) {
			es, err := l.Read(1, 9)
			must(t, err)
			return &es[0], l
		},
		"found": func(l *Log) (*swarm.Event, *Log) {
			e, _, err := l.Find("end")
			must(t, err)
			return &e, l
		},
		"scanned": func(l *Log) (e *swarm.Event, _ *Log) {
			must(t, l.Scan(1, func(it *swarm.Event) error {
				e = it
				return nil
			}))
			return e, l
		},
		"read by another process": func(l *Log) (*swarm.Event, *Log) {
			other, err := Open(l.path)
			must(t, err)
			t.Cleanup(func() { other.Close() })
			es, err := other.Read(1, 9)
			must(t, err)
			return &es[0], other
		},
		"read by one that only reads": func(l *Log) (*swarm.Event, *Log) {
			other, err := OpenReadOnly(l.path)
			must(t, err)
			t.Cleanup(func() { other.Close() })
			es, err := other.Read(1, 9)
			must(t, err)
			return &es[0], other
		},
	} {
		l, _ := create(t)
		_, err := l.Append(context.Background(), small(1))
		must(t, err)
		unsynced(l)
		seqs, err := l.Append(context.Background(), early)
		must(t, err)
		es, err := l.Read(1, 9, swarm.ToLoop("root"), swarm.ToControl)
		must(t, err)
		if seqs[0] != 2 || len(es) != 1 || !l.owed.Load() || l.durable.Load() != 1 {
			t.Errorf("its number is %v, the loop reads %v, %d events are on disk", seqs, es, l.durable.Load())
		}
		if e, by := read(l); e.Seq != 2 || by.durable.Load() != 2 {
			t.Errorf("%s, it is event %d; on disk are %d", how, e.Seq, by.durable.Load())
		}
	}
}

func TestAnEarlyEventGoesToDiskByItself(t *testing.T) {
	l, _ := create(t)
	b := small(1)
	b.Early = true
	_, err := l.Append(context.Background(), b)
	must(t, err)
	for end := time.Now().Add(20 * time.Second); l.owed.Load(); {
		if time.Now().After(end) {
			t.Fatal("it is never synced")
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// A lazy event follows from the events before it. A reader does not wait for the disk to get it,
// unless one of those is not durable yet.
func TestALazyEventIsReadWithoutASync(t *testing.T) {
	l, _ := create(t)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	unsynced(l)
	lazily := func(n int) {
		b := small(n)
		b.Lazy = true
		_, err := l.Append(context.Background(), b)
		must(t, err)
		l.Flush()
	}
	lazily(2)
	if es, err := l.Read(0, 9); err != nil || len(es) != 2 || !l.owed.Load() {
		t.Errorf("behind what is on disk: %d events, %v, synced %v", len(es), err, !l.owed.Load())
	}
	early := small(3)
	early.Early = true
	_, err = l.Append(context.Background(), early)
	must(t, err)
	lazily(4)
	if es, err := l.Read(3, 9); err != nil || len(es) != 1 || l.owed.Load() {
		t.Errorf("behind an early one: %d events, %v, synced %v", len(es), err, !l.owed.Load())
	}
}
