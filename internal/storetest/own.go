package storetest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"swarm"
)

const (
	loops = "1"
	long  = time.Hour             // a lease that no test outlives
	short = 30 * time.Millisecond // a lease that a test waits for to expire
)

// own takes the run, which must be free.
func own(t *testing.T, l swarm.Owned) int64 {
	t.Helper()
	fence, err := l.Own(context.Background(), loops, long)
	if err != nil {
		t.Fatalf("own: %v", err)
	}
	return fence
}

// takes retries Own until it succeeds.
func takes(t *testing.T, l swarm.Owned, lease time.Duration) (fence int64) {
	t.Helper()
	becomes(t, "the run is taken", func() bool {
		f, err := l.Own(context.Background(), loops, lease)
		fence = f
		return err == nil
	})
	return fence
}

func drives(t *testing.T, l swarm.Owned) (swarm.Owner, bool) {
	t.Helper()
	o, ok, err := l.Owner(context.Background())
	if err != nil {
		t.Fatalf("owner: %v", err)
	}
	return o, ok
}

var ownTests = []test{
	{"a new run has no owner", func(t *testing.T, o Opener) {
		if who, ok := drives(t, open(t, o)); ok {
			t.Errorf("it has %+v", who)
		}
	}},
	{"one owner, whom everybody sees", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		fence := own(t, l)
		for range 20 { // Looking does not disturb the owner.
			who, ok := drives(t, other)
			if !ok || who.PID != os.Getpid() || who.Fence != fence || time.Until(who.Until) < long/2 {
				t.Fatalf("the other sees %+v, %v", who, ok)
			}
		}
		_, err := other.Own(context.Background(), loops, long)
		var owned *swarm.OwnedError
		if !errors.As(err, &owned) || owned.Owner.PID != os.Getpid() {
			t.Errorf("the other's Own: %v", err)
		}
		if err := l.Renew(context.Background(), fence, long); err != nil {
			t.Errorf("renew: %v", err)
		}
		add(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("a")}})
		add(t, other, events("anybody may append without a fence"))
	}},
	{"a dead owner is replaced at once", func(t *testing.T, o Opener) {
		l := o(t)
		old := own(t, l)
		l.Close() // without giving up the run, as a process that dies
		l = open(t, o)
		if who, ok := drives(t, l); ok {
			t.Errorf("the dead owner %+v is shown as alive", who)
		}
		if fence := own(t, l); fence <= old {
			t.Errorf("the fence went from %d to %d", old, fence)
		}
	}},
	{"looking does not keep anybody from owning", func(t *testing.T, o Opener) {
		for range 20 {
			l := o(t)
			own(t, l)
			l.Close()
			next := open(t, o)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range 4 {
				looker := open(t, o)
				wg.Go(func() {
					for {
						select {
						case <-stop:
							looker.Close()
							return
						default:
							looker.Owner(context.Background())
						}
					}
				})
			}
			own(t, next)
			close(stop)
			wg.Wait()
			next.Close()
		}
	}},
	{"an owner that gives up is replaced at once", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		fence := own(t, l)
		if err := l.Disown(context.Background(), fence); err != nil {
			t.Fatal(err)
		}
		if who, ok := drives(t, other); ok {
			t.Errorf("%+v still drives it", who)
		}
		own(t, other)
		refused(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("late")}}, swarm.ErrFenced)
		if err := l.Disown(context.Background(), fence); !is(err, swarm.ErrFenced) {
			t.Errorf("it gives up a second time: %v", err)
		}
		if _, ok := drives(t, l); !ok {
			t.Error("the new owner was disowned by the old one")
		}
	}},
	{"a silent owner is replaced when its lease is over, and never comes back", func(t *testing.T, o Opener) {
		l, other, third := open(t, o), open(t, o), open(t, o)
		old, err := l.Own(context.Background(), loops, short)
		if err != nil {
			t.Fatal(err)
		}
		fence := takes(t, other, long) // The first owner is silent, but alive: it still has the locks that end with its process.
		if fence <= old {
			t.Errorf("the fence went from %d to %d", old, fence)
		}
		// No key guards these writes, so only the fence can refuse them.
		refused(t, l, swarm.Batch{Fence: old, Events: []swarm.Event{notice("a late tick")}}, swarm.ErrFenced)
		refused(t, l, swarm.Batch{Fence: old, Events: []swarm.Event{to("inbox", "a late send")}}, swarm.ErrFenced)
		if err := l.Renew(context.Background(), old, long); !is(err, swarm.ErrFenced) {
			t.Errorf("the old owner renews: %v", err)
		}
		if who, ok := drives(t, third); !ok || who.Fence != fence {
			t.Errorf("a third sees %+v, %v", who, ok)
		}
		var owned *swarm.OwnedError
		if _, err := third.Own(context.Background(), loops, long); !errors.As(err, &owned) {
			t.Errorf("a third owns: %v", err)
		}
		if err := other.Renew(context.Background(), fence, long); err != nil {
			t.Errorf("the new owner renews: %v", err)
		}
		add(t, other, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("a")}})
		other.Close() // It dies. It renewed after the old owner let go, so it has the lock, and its death is seen at once.
		own(t, third)
	}},
	{"a lease that is over but not taken is kept by renewing", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		fence, err := l.Own(context.Background(), loops, time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		becomes(t, "the lease is over", func() bool { _, ok := drives(t, other); return !ok })
		if err := l.Renew(context.Background(), fence, long); err != nil {
			t.Fatal(err)
		}
		var owned *swarm.OwnedError
		if _, err := other.Own(context.Background(), loops, long); !errors.As(err, &owned) {
			t.Errorf("another owns: %v", err)
		}
	}},
	{"another version of the loops is refused", func(t *testing.T, o Opener) {
		l := open(t, o)
		if err := l.Disown(context.Background(), own(t, l)); err != nil {
			t.Fatal(err)
		}
		_, err := l.Own(context.Background(), "2", long)
		if swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("own with other loops: %v", err)
		}
		own(t, l)
	}},
}
