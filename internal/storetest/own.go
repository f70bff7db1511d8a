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
	owner, err := l.Own(context.Background(), loops, long)
	if err != nil {
		t.Fatalf("own: %v", err)
	}
	return owner.Fence
}

// takes retries Own until it succeeds.
func takes(t *testing.T, l swarm.Owned, lease time.Duration) (fence int64) {
	t.Helper()
	becomes(t, "the run is taken", func() bool {
		o, err := l.Own(context.Background(), loops, lease)
		fence = o.Fence
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
		if fence <= old.Fence {
			t.Errorf("the fence went from %d to %d", old.Fence, fence)
		}
		// No key guards these writes, so only the fence can refuse them.
		refused(t, l, swarm.Batch{Fence: old.Fence, Events: []swarm.Event{notice("a late tick")}}, swarm.ErrFenced)
		refused(t, l, swarm.Batch{Fence: old.Fence, Events: []swarm.Event{to("inbox", "a late send")}}, swarm.ErrFenced)
		if err := l.Renew(context.Background(), old.Fence, long); !is(err, swarm.ErrFenced) {
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
		owner, err := l.Own(context.Background(), loops, time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		becomes(t, "the lease is over", func() bool { _, ok := drives(t, other); return !ok })
		if err := l.Renew(context.Background(), owner.Fence, long); err != nil {
			t.Fatal(err)
		}
		var owned *swarm.OwnedError
		if _, err := other.Own(context.Background(), loops, long); !errors.As(err, &owned) {
			t.Errorf("another owns: %v", err)
		}
	}},
	{"a new owner learns when the one before it last lived", func(t *testing.T, o Opener) {
		// dies has an owner do something and die, and returns what the next one learns.
		dies := func(lease time.Duration, do func(l Store, fence int64)) time.Time {
			t.Helper()
			l := o(t)
			owner, err := l.Own(context.Background(), loops, lease)
			if err != nil {
				t.Fatal(err)
			}
			do(l, owner.Fence)
			l.Close()
			l = open(t, o)
			next, err := l.Own(context.Background(), loops, lease)
			if err == nil {
				err = l.Disown(context.Background(), next.Fence)
			}
			if err != nil {
				t.Fatal(err)
			}
			return next.Lived
		}
		newest := func() time.Time { all := read(t, open(t, o)); return all[len(all)-1].Time }
		l := o(t)
		first, err := l.Own(context.Background(), loops, long)
		if err != nil || first.PID != os.Getpid() || !first.Lived.IsZero() {
			t.Fatalf("the first owner gets %+v, %v", first, err)
		}
		l.Close()
		lived := dies(long, func(l Store, fence int64) {
			add(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("it works")}})
		})
		if !lived.Equal(newest()) {
			t.Errorf("it wrote at %s, and is said to have lived at %s", newest(), lived)
		}
		lived = dies(long, func(l Store, fence int64) {
			becomes(t, "the clock goes on", func() bool { return time.Now().After(newest().Add(time.Millisecond)) })
			if err := l.Renew(context.Background(), fence, long); err != nil {
				t.Fatal(err)
			}
		})
		if !lived.After(newest()) || lived.After(time.Now()) {
			t.Errorf("it renewed its lease after %s, and is said to have lived at %s", newest(), lived)
		}
		var over time.Time
		lived = dies(short, func(l Store, fence int64) {
			over = time.Now().Add(2 * short)
			l.Close() // it is dead, and others write
			becomes(t, "its lease is over", func() bool { add(t, open(t, o), events("mail")); return newest().After(over) })
		})
		if lived.After(over) {
			t.Errorf("its lease was over at %s, and it is said to have lived at %s", over, lived)
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
