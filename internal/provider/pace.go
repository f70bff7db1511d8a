package provider

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A Pace limits the requests of all turns of a provider together. After a rate limit all of them
// wait as long as the server says. Then half as many as before may be in progress at a time, and
// each answer makes room for one more. So a team slows down together instead of failing together.
// Without a rate limit it limits nothing.
type Pace struct {
	mu    sync.Mutex
	until time.Time // no request starts before
	room  int       // requests in progress at a time; 0 = no limit
	busy  int       // requests in progress
	age   int       // how often room has shrunk
	line  []chan struct{}
}

// A Pass is one request in progress.
type Pass struct{ age int }

// Enter waits for a pass.
func (g *Pace) Enter(ctx context.Context) (Pass, error) {
	for {
		g.mu.Lock()
		if wait := time.Until(g.until); wait > 0 {
			g.mu.Unlock()
			if err := Sleep(ctx, wait); err != nil {
				return Pass{}, err
			}
			continue
		}
		if g.room == 0 || g.busy < g.room {
			g.busy++
			p := Pass{g.age}
			g.mu.Unlock()
			return p, nil
		}
		turn := make(chan struct{})
		g.line = append(g.line, turn)
		g.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			g.giveUp(turn)
			return Pass{}, context.Cause(ctx)
		}
	}
}

// giveUp gives up a place in the queue. If the place was called in the meantime, the call goes to
// the next one.
func (g *Pace) giveUp(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.line, turn); at >= 0 {
		g.line = slices.Delete(g.line, at, at+1)
		return
	}
	g.callNext()
}

// Leave returns a pass. throttled says that the server reported a rate limit, and wait how long it
// wants no request.
func (g *Pace) Leave(p Pass, answered, throttled bool, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case throttled:
		if until := time.Now().Add(wait); until.After(g.until) {
			g.until = until
		}
		if p.age == g.age { // requests in progress together report the same rate limit
			g.room = max(1, g.busy/2)
			g.age++
		}
	case answered && g.room > 0:
		g.room++
	}
	g.busy--
	g.callNext()
}

// callNext wakes the requests in the queue that have room. They check again whether they may start.
func (g *Pace) callNext() {
	for n := g.room - g.busy; n > 0 && len(g.line) > 0; n-- {
		close(g.line[0])
		g.line = g.line[1:]
	}
}

// Sleep waits for a time, or until ctx ends. Then it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// longestWait is the longest wait before a retry, if the server does not say how long.
const longestWait = 30 * time.Second

// Backoff returns the wait after so many tries. It doubles each time, with jitter, so that retries
// of many turns do not coincide.
func Backoff(first time.Duration, tries int) time.Duration {
	wait := min(first<<min(tries-1, 20), longestWait)
	return wait/2 + rand.N(wait/2+1)
}
