package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"swarm"
)

// A Moment is when a connection breaks.
type Moment string

// The moments of a commit.
const (
	BeforeCommit Moment = "before"
	InCommit     Moment = "in"    // the server got it, and perhaps has done it
	AfterCommit  Moment = "after" // the server has done it, and its answer is lost
)

// Faults is a log with the faults that can happen to its store. A fault that cannot is nil.
type Faults struct {
	Open Opener
	// Shorten takes the newest event away, behind the store's back.
	Shorten func(t *testing.T)
	// Cut breaks the connection of a log's next commit.
	Cut func(t *testing.T, s Store, when Moment)
	// Skew moves the store's clock against the clocks of its writers.
	Skew func(t *testing.T, by time.Duration)
}

// RunFaults runs the tests of a store that is disturbed. new makes an empty log.
func RunFaults(t *testing.T, new func(t *testing.T) Faults) {
	t.Run("a log that has become shorter is refused", func(t *testing.T) { shorter(t, new(t)) })
	for _, when := range []Moment{BeforeCommit, InCommit, AfterCommit} {
		t.Run("the connection breaks "+string(when)+" a commit", func(t *testing.T) {
			f := new(t)
			if f.Cut == nil {
				t.Skip("this store has no connection")
			}
			cut(t, f, when)
		})
	}
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprintf("a writer's clock is off by %s", by), func(t *testing.T) {
			f := new(t)
			if f.Skew == nil {
				t.Skip("the store's clock is the writers'")
			}
			f.Skew(t, by)
			skewed(t, f, by)
		})
	}
}

func shorter(t *testing.T, f Faults) {
	l := f.Open(t)
	add(t, l, events("a", "b", "c"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	open := open(t, f.Open)
	want(t, "before", count(t, open), 3)
	f.Shorten(t)
	if es, err := open.Read(3, 9); !errors.Is(err, swarm.ErrDamaged) {
		t.Errorf("a log that was open reads %v, %v", es, err)
	}
	if seqs, err := open.Append(context.Background(), events("d")); f.Cut != nil && !errors.Is(err, swarm.ErrDamaged) {
		t.Errorf("a log that was open appends %v, %v", seqs, err)
	}
}

// cut sends events without a key, which a second writing would double, from an owner that is replaced
// meanwhile in one of the rounds.
func cut(t *testing.T, f Faults, when Moment) {
	l, other := open(t, f.Open), open(t, f.Open)
	fence := own(t, l)
	add(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("first")}})
	for i := range 5 {
		f.Cut(t, l, when)
		b := swarm.Batch{Fence: fence, Events: []swarm.Event{notice(fmt.Sprint(i)), keyed(fmt.Sprint("k", i), "x")}, Bodies: [][]byte{fmt.Append(nil, "text ", i)}}
		want(t, "numbers", add(t, l, b), []int64{int64(2*i + 2), int64(2*i + 3)})
	}
	want(t, "another reads", texts(read(t, other)), "[first 0 x 1 x 2 x 3 x 4 x]")
	want(t, "the writer reads", texts(read(t, l)), "[first 0 x 1 x 2 x 3 x 4 x]")
	f.Cut(t, l, when)
	if err := l.Renew(context.Background(), fence, long); err != nil {
		t.Errorf("renew: %v", err)
	}
	f.Cut(t, l, when)
	refused(t, l, swarm.Batch{Events: []swarm.Event{keyed("k0", "y")}}, swarm.ErrConflict)
	f.Cut(t, l, when)
	if err := l.Disown(context.Background(), fence); err != nil {
		t.Errorf("disown: %v", err)
	}
	f.Cut(t, l, when)
	own(t, l)
}

func skewed(t *testing.T, f Faults, by time.Duration) {
	l, other := open(t, f.Open), open(t, f.Open)
	store := time.Now().Add(by)
	o, err := l.Own(context.Background(), loops, long)
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, swarm.Batch{Fence: o.Fence, Events: []swarm.Event{notice("a")}})
	if at := read(t, other)[0].Time; at.Before(store.Add(-time.Minute)) || at.After(store.Add(time.Minute)) {
		t.Errorf("the event has the time %s, and the store's clock says %s", at, store)
	}
	if who, driven := drives(t, other); !driven || who.Until.Before(store.Add(long/2)) {
		t.Errorf("it is driven by %+v, %v", who, driven)
	}
	var owned *swarm.OwnedError
	if _, err := other.Own(context.Background(), loops, long); !errors.As(err, &owned) {
		t.Errorf("another owns it: %v", err)
	}
	if err := l.Disown(context.Background(), o.Fence); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Own(context.Background(), loops, short); err != nil {
		t.Fatal(err)
	}
	takes(t, other, long) // when the lease is over, and neither an hour later nor at once
}

// ManyLogs opens many logs in one process and watches all of them, while another process appends.
// open opens the store as another process would.
func ManyLogs(t *testing.T, open func(t *testing.T) swarm.Store) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	ours, others := open(t), open(t)
	id := func(i int) swarm.RunID {
		return swarm.RunID(fmt.Sprintf("many-%s-%04d", time.Now().Format("150405"), i))
	}
	ids, logs, wakes := make([]swarm.RunID, n), make([]swarm.RunLog, n), make([]<-chan struct{}, n)
	for i := range n {
		ids[i] = id(i)
		l, err := ours.Create(t.Context(), ids[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		logs[i] = l
		wake, off := l.Watch()
		t.Cleanup(off)
		wakes[i] = wake
	}
	for i := range n {
		l, err := others.Open(t.Context(), ids[i], swarm.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, events(fmt.Sprint(i)))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		comes(t, fmt.Sprintf("log %d is woken", i), wakes[i])
		es, err := logs[i].Read(0, 9)
		if err != nil || texts(es) != fmt.Sprintf("[%d]", i) {
			t.Fatalf("log %d reads %s, %v", i, texts(es), err)
		}
	}
}
