package provider

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"swarm"
)

// After a rate limit no request is sent until the server allows it, and then fewer at a time.
func TestAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Pace{}
		var passes []Pass
		for range 8 {
			p, err := g.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			passes = append(passes, p)
		}
		start := time.Now()
		g.Leave(passes[0], false, true, time.Minute)
		g.Leave(passes[1], false, true, time.Second) // of the same crowd: it makes nothing worse
		if g.room != 4 {
			t.Errorf("there is room for %d", g.room)
		}
		done := make(chan Pass)
		for range 3 {
			go func() {
				p, _ := g.Enter(t.Context())
				done <- p
			}()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-done:
			t.Error("somebody went where there is no room")
		default:
		}
		g.Leave(passes[2], true, false, 0) // 5 of 5 are under way
		g.Leave(passes[3], true, false, 0) // and here 4 of 6
		p := <-done
		<-done
		if time.Since(start) < time.Minute {
			t.Error("somebody did not wait")
		}
		g.Leave(p, false, true, time.Minute) // of a later crowd
		if g.room != 3 {
			t.Errorf("there is room for %d", g.room)
		}
		ctx, cut := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cut(why)
		if _, err := g.Enter(ctx); err != why {
			t.Errorf("who was cut is told %v", err)
		}
		for _, p := range passes[4:] {
			g.Leave(p, true, false, 0)
		}
		<-done
	})
}

// A request that leaves the queue when it is called passes the call on.
func TestAPaceCallsTheNext(t *testing.T) {
	g := &Pace{room: 1}
	first, _ := g.Enter(t.Context())
	called := make(chan struct{})
	g.line = append(g.line, called)
	next := make(chan error)
	go func() {
		_, err := g.Enter(t.Context())
		next <- err
	}()
	for {
		g.mu.Lock()
		n := len(g.line)
		g.mu.Unlock()
		if n == 2 {
			break
		}
	}
	g.Leave(first, false, false, 0)
	<-called
	g.giveUp(called)
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// A limit that resets soon is waited for in the turn, unless that would take the time that the turn
// has.
func TestAShortLimitIsWaitedFor(t *testing.T) {
	for what, c := range map[string]struct {
		after, timeout time.Duration
		waits          bool
	}{
		"soon":                     {50 * time.Second, time.Hour, true},
		"in some minutes":          {2 * time.Minute, time.Hour, false},
		"after the turn's timeout": {50 * time.Second, 40 * time.Second, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pace Pace
				ctx, stop := context.WithTimeout(t.Context(), c.timeout)
				defer stop()
				began, limit := time.Now(), Refused(429, "used up", "")
				limit.After = c.after
				asked := 0
				err := pace.Ask(ctx, Tries, FirstWait, func(string) {}, func() error {
					if asked++; asked > 1 {
						return nil
					}
					return limit
				})
				e, _ := errors.AsType[*swarm.Error](err)
				switch {
				case c.waits && (err != nil || time.Since(began) != c.after):
					t.Errorf("it took %s: %v", time.Since(began), err)
				case !c.waits && (e == nil || !e.Until.Equal(began.Add(c.after)) || time.Since(began) != 0):
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// A limit that lasts longer than a request may wait ends the turn, and holds no other request back: a
// person may end the wait before the limit resets.
func TestALimitHoldsNoRequestBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pace Pace
		began := time.Now()
		ask := func(err error) error {
			return pace.Ask(t.Context(), Tries, FirstWait, func(string) {}, func() error { return err })
		}
		limit := Refused(429, "used up", "")
		limit.After = time.Hour
		e, ok := errors.AsType[*swarm.Error](ask(limit))
		if !ok || !e.Until.Equal(began.Add(time.Hour)) {
			t.Errorf("%v until %s, want %s", e, e.Until, began.Add(time.Hour))
		}
		if err := ask(nil); err != nil || time.Since(began) != 0 {
			t.Errorf("the next request took %s: %v", time.Since(began), err)
		}
	})
}
