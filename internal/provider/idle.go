package provider

import (
	"cmp"
	"sync"
	"time"
)

// Idle keeps the programs that wait for their agents' next turns, and ends those that wait for too
// long. A program is either here or in a turn, never both: Take removes it.
type Idle[P any] struct {
	End func(P)       // ends a program, and returns when its processes are gone
	For time.Duration // how long a program may wait; 0 = KeepIdle

	mu      sync.Mutex
	waiting map[string]*waiting[P] // by run and agent
	closed  bool
}

// A waiting program has a timer that ends it.
type waiting[P any] struct {
	program P
	late    *time.Timer
}

// idleKey identifies the agent of a turn. Names cannot contain a NUL.
func idleKey(r Request) string { return string(r.Run) + "\x00" + r.Agent }

// Take removes and returns the program that waits for an agent, if there is one.
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

// Keep lets a program wait. It is ended at once if the agent already has another one, or if Close
// was called.
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

// drop ends a program whose time is over, unless a turn has taken it in the meantime.
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

// Closed says whether Close was called.
func (i *Idle[P]) Closed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// Close ends all programs that wait. Programs that Keep gets later are ended too.
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
