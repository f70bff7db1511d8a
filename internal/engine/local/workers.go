package local

import (
	"context"
	"sync"
)

// maxResting is how many goroutines wait for the next call. The stacks of more would be memory that nobody uses.
const maxResting = 16

// workers do the calls of loops beside them. A goroutine that has done a call waits for the next one: its stack has grown to what
// a turn needs, and that of a new one would have to grow again.
type workers struct {
	ctx  context.Context // when it ends, those that wait leave
	next chan func()     // somebody who receives from it is waiting
	rest chan struct{}   // has room for those that may wait
	all  sync.WaitGroup
}

func newWorkers(ctx context.Context) *workers {
	return &workers{ctx: ctx, next: make(chan func()), rest: make(chan struct{}, maxResting)}
}

// do has a call done. It never waits.
func (w *workers) do(call func()) {
	select {
	case w.next <- call:
	default:
		w.all.Go(func() { w.work(call) })
	}
}

func (w *workers) work(call func()) {
	for {
		call()
		call = nil // what it held is given back while this goroutine waits
		select {
		case w.rest <- struct{}{}:
		default: // enough wait
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
