package provider

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Pace lets the questions of all turns of a provider through. When the server has had too many, all of them wait for as
// long as it says, and then fewer are under way at a time, half as many as there were; each one that is answered makes room for
// one more. So a team slows down together instead of failing together. As long as no server complains it bounds nothing.
type Pace struct {
	mu    sync.Mutex
	until time.Time // nobody goes before
	room  int       // how many may be under way at a time; 0 = any number
	busy  int       // how many are
	age   int       // how often room has shrunk
	line  []chan struct{}
}

// A Pass is one question under way.
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
			g.give(turn)
			return Pass{}, context.Cause(ctx)
		}
	}
}

// give gives a place in the line up; one that was called meanwhile calls the next.
func (g *Pace) give(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.line, turn); at >= 0 {
		g.line = slices.Delete(g.line, at, at+1)
		return
	}
	g.call()
}

// Leave gives a pass back. throttled says that the server has had too many, and for how long it wants none.
func (g *Pace) Leave(p Pass, answered, throttled bool, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case throttled:
		if until := time.Now().Add(wait); until.After(g.until) {
			g.until = until
		}
		if p.age == g.age { // those that were under way together complain of the same crowd
			g.room = max(1, g.busy/2)
			g.age++
		}
	case answered && g.room > 0:
		g.room++
	}
	g.busy--
	g.call()
}

// call calls those who fit from the line. They look again whether they may go.
func (g *Pace) call() {
	for n := g.room - g.busy; n > 0 && len(g.line) > 0; n-- {
		close(g.line[0])
		g.line = g.line[1:]
	}
}

// Sleep waits for a time, or until ctx ends: then it returns why.
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

// longestWait is the longest that is waited before somebody is asked again who does not say when.
const longestWait = 30 * time.Second

// Backoff is how long to wait after so many tries: each time twice as long as the first, and never as long as others do.
func Backoff(first time.Duration, tries int) time.Duration {
	wait := min(first<<min(tries-1, 20), longestWait)
	return wait/2 + rand.N(wait/2+1)
}

// RetryAfter is how long a server wants to be left alone.
func RetryAfter(h http.Header) time.Duration {
	const most = 365 * 24 * 60 * 60
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(min(ms, most*1e3) * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
		return time.Duration(min(s, most) * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
