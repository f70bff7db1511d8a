package provider

import (
	"cmp"
	"sync"
	"time"
)

// Idle has the programs that wait for their agents' next turns. One that waits for too long is ended.
type Idle[P any] struct {
	End func(P)       // ends a program, and returns when nothing of it is left
	For time.Duration // that one may wait; 0 = KeepIdle

	mu      sync.Mutex
	waiting map[string]*waiting[P] // by run and agent
	closed  bool
}

type waiting[P any] struct {
	program P
	late    *time.Timer
}

func idleKey(r Request) string { return string(r.Run) + "\x00" + r.Agent }

// Take is the program that waits for an agent, if there is one. It waits no longer.
func (i *Idle[P]) Take(r Request) (p P, ok bool) {
	key := idleKey(r)
	i.mu.Lock()
	defer i.mu.Unlock()
	w, ok := i.waiting[key]
	if ok {
		delete(i.waiting, key)
		w.late.Stop()
		p = w.program
	}
	return p, ok
}

// Keep lets a program wait. It is ended at once if the agent has another already, or nobody will come any more.
func (i *Idle[P]) Keep(r Request, p P) {
	key := idleKey(r)
	i.mu.Lock()
	kept := i.waiting[key] == nil && !i.closed
	if kept {
		if i.waiting == nil {
			i.waiting = map[string]*waiting[P]{}
		}
		w := &waiting[P]{program: p}
		w.late = time.AfterFunc(cmp.Or(i.For, KeepIdle), func() { i.drop(key, w) })
		i.waiting[key] = w
	}
	i.mu.Unlock()
	if !kept {
		i.End(p)
	}
}

// drop ends a program that still waits.
func (i *Idle[P]) drop(key string, w *waiting[P]) {
	i.mu.Lock()
	late := i.waiting[key] == w
	if late {
		delete(i.waiting, key)
	}
	i.mu.Unlock()
	if late {
		i.End(w.program)
	}
}

// Closed says that nobody will come any more.
func (i *Idle[P]) Closed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// Close ends all that wait, and whatever would wait later.
func (i *Idle[P]) Close() error {
	i.mu.Lock()
	i.closed = true
	all := i.waiting
	i.waiting = nil
	i.mu.Unlock()
	var ending sync.WaitGroup
	for _, w := range all {
		w.late.Stop()
		ending.Go(func() { i.End(w.program) })
	}
	ending.Wait()
	return nil
}
