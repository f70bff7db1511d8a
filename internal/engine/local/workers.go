package local

import (
	"context"
	"sync"
)

// maxResting is how many idle goroutines are kept. The stacks of more would be wasted memory.
const maxResting = 16

// workers run the calls of loops, each in a goroutine. A goroutine that has done a call waits for
// the next one. Its stack has grown to what a turn needs, and a new goroutine's would have to grow
// again.
type workers struct {
	ctx  context.Context // when it ends, idle goroutines end
	next chan func()     // unbuffered: a send succeeds only if an idle goroutine receives
	rest chan struct{}   // a semaphore of maxResting idle goroutines
	all  sync.WaitGroup
}

func newWorkers(ctx context.Context) *workers {
	return &workers{ctx: ctx, next: make(chan func()), rest: make(chan struct{}, maxResting)}
}

// do runs a call in an idle goroutine, or in a new one. It never waits, so calls cannot deadlock on
// each other.
func (w *workers) do(call func()) {
	select {
	case w.next <- call:
	default:
		w.all.Go(func() { w.work(call) })
	}
}

// work runs calls, until enough other goroutines are idle.
func (w *workers) work(call func()) {
	for {
		call()
		call = nil // An idle goroutine must not keep the last call's memory alive.
		select {
		case w.rest <- struct{}{}:
		default: // Enough are idle.
			return
		}
		select {
		case call = <-w.next:
			<-w.rest
		case <-w.ctx.Done():
			return
		}
	}
}
