package sqlite

import (
	"context"
	"crypto/sha256"
	"runtime"
	"slices"
	"sync"
	"time"

	"swarm"
)

const (
	lazyDelay = 10 * time.Millisecond // how long a lazy batch waits for company
	maxLazy   = 1 << 10               // so many that wait are written at once
	maxQueue  = 1 << 13               // beyond this even a lazy append waits
	maxGroup  = 1 << 9                // batches of one transaction
	maxBytes  = 8 << 20               // of one transaction, roughly
)

// A request is something to be written: a batch, or a change of one of the small tables.
type request struct {
	batch  swarm.Batch
	sums   [][sha256.Size]byte // the hashes of the batch's bodies
	change func(*tx) error
	lazy   bool // nobody waits
	noSync bool // nobody needs it on disk
	bytes  int

	seqs []int64
	err  error

	done   chan bool // true: lead the queue now; false: answered
	taken  bool      // a writer has it: it will be answered, and cannot be withdrawn any more
	leads  bool      // it was told to lead
	answer bool      // it has been answered
}

// A queue is what waits to be written, in order. It has no goroutine of its own: one of those who wait leads it, that is, it writes
// for all of them, until its own request is answered.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	led     bool
	closed  bool
	idle    sync.Cond // nobody leads
	soon    *time.Timer
	armed   bool
}

// submit returns when the request is answered; a lazy one at once.
func (l *Log) submit(ctx context.Context, r *request) error {
	if l.readOnly {
		return l.errReadOnly()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q := &l.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return l.errClosed()
	}
	q.waiting = append(q.waiting, r)
	r.lazy = r.lazy && len(q.waiting) < maxQueue
	switch {
	case !q.led && (!r.lazy || len(q.waiting) >= maxLazy):
		q.led = true
		q.mu.Unlock()
		l.lead(r)
		return r.err
	case r.lazy:
		l.flushSoon()
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	select {
	case lead := <-r.done:
		if lead {
			runtime.Gosched() // those who were just answered are about to come again: the more of them, the fewer commits
			l.lead(r)
		}
		return r.err
	case <-ctx.Done():
		return l.withdraw(ctx, r)
	}
}

// withdraw takes a request back, unless a writer has it.
func (l *Log) withdraw(ctx context.Context, r *request) error {
	q := &l.queue
	q.mu.Lock()
	if r.taken {
		q.mu.Unlock()
		<-r.done
		return r.err
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(other *request) bool { return other == r })
	if r.leads {
		l.handOver()
	}
	q.mu.Unlock()
	return ctx.Err()
}

// lead writes what waits until mine is answered; nil: one group, or everything when the log is being closed.
func (l *Log) lead(mine *request) {
	q := &l.queue
	for more := true; more; {
		group, closing := q.take()
		if len(group) == 0 {
			break
		}
		l.commit(group)
		for _, r := range group {
			r.answer = true
			if r != mine && !r.lazy {
				r.done <- false
			}
		}
		more = closing || mine != nil && !mine.answer
	}
	q.mu.Lock()
	l.handOver()
	q.mu.Unlock()
}

// handOver makes the first that waits the leader. The queue is locked.
func (l *Log) handOver() {
	q := &l.queue
	for _, r := range q.waiting {
		if !r.lazy {
			r.leads = true
			r.done <- true
			return
		}
	}
	q.led = false
	q.idle.Broadcast()
	if len(q.waiting) > 0 || l.owed.Load() {
		l.flushSoon()
	}
}

// flushSoon sees to it that lazy requests do not wait for company, or for their sync, for ever. The queue is locked.
func (l *Log) flushSoon() {
	q := &l.queue
	switch {
	case q.armed || q.led || q.closed:
		return // who leads will look after them
	case q.soon == nil:
		q.soon = time.AfterFunc(lazyDelay, l.flush)
	default:
		q.soon.Reset(lazyDelay)
	}
	q.armed = true
}

// flush writes lazy requests that had no company, and syncs them.
func (l *Log) flush() {
	q := &l.queue
	q.mu.Lock()
	q.armed = false
	closed := q.closed
	q.mu.Unlock()
	if closed {
		return
	}
	l.writeWaiting()
	_ = l.settle() // beside the queue: it is nobody's latency; a failure is told to the next append
}

// Flush writes the lazy batches that wait, see [swarm.Log]. They are synced with the next batch that somebody waits for, or
// after a moment. If an append is under way, they go with it or soon after it.
func (l *Log) Flush() { l.writeWaiting() }

// writeWaiting writes what waits, unless somebody leads, who does that.
func (l *Log) writeWaiting() {
	q := &l.queue
	q.mu.Lock()
	idle := len(q.waiting) == 0
	q.mu.Unlock()
	if !idle && q.tryLead() {
		l.lead(nil)
	}
}

// tryLead makes the caller the leader, if there is none. It says false if there is one, or if the queue is closed.
func (q *queue) tryLead() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led || q.closed {
		return false
	}
	q.led = true
	return true
}

// release ends what tryLead began.
func (l *Log) release() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.handOver()
}

// take takes the next group.
func (q *queue) take() (group []*request, closing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.waiting) && n < maxGroup && (n == 0 || bytes+q.waiting[n].bytes <= maxBytes) {
		bytes += q.waiting[n].bytes
		q.waiting[n].taken = true
		n++
	}
	if n == len(q.waiting) {
		group, q.waiting = q.waiting, nil
	} else {
		group = slices.Clone(q.waiting[:n])
		q.waiting = append(q.waiting[:0], q.waiting[n:]...)
	}
	return group, q.closed
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// close lets nothing more in, waits until nobody leads, and leads. It says false when the queue was closed before.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	for q.led {
		q.idle.Wait()
	}
	q.led = true
	return true
}
