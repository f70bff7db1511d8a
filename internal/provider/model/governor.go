package model

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A governor lets the questions of all turns of a provider through. When the server has had too many, all of them wait for as
// long as it says, and then fewer are under way at a time, half as many as there were; each one that is answered makes room for
// one more. So a team slows down together instead of failing together. As long as no server complains it bounds nothing.
type governor struct {
	mu    sync.Mutex
	until time.Time // nobody goes before
	room  int       // how many may be under way at a time; 0 = any number
	busy  int       // how many are
	age   int       // how often room has shrunk
	line  []chan struct{}
}

// A pass is one question under way.
type pass struct{ age int }

// enter waits for a pass.
func (g *governor) enter(ctx context.Context) (pass, error) {
	for {
		g.mu.Lock()
		if wait := time.Until(g.until); wait > 0 {
			g.mu.Unlock()
			if err := sleep(ctx, wait); err != nil {
				return pass{}, err
			}
			continue
		}
		if g.room == 0 || g.busy < g.room {
			g.busy++
			p := pass{g.age}
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
			return pass{}, context.Cause(ctx)
		}
	}
}

// give gives a place in the line up; one that was called meanwhile calls the next.
func (g *governor) give(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.line, turn); at >= 0 {
		g.line = slices.Delete(g.line, at, at+1)
		return
	}
	g.call()
}

// leave gives a pass back. throttled says that the server has had too many, and for how long it wants none.
func (g *governor) leave(p pass, answered, throttled bool, wait time.Duration) {
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
func (g *governor) call() {
	for n := g.room - g.busy; n > 0 && len(g.line) > 0; n-- {
		close(g.line[0])
		g.line = g.line[1:]
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
