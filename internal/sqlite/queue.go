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
	lazyDelay = 10 * time.Millisecond // how long a lazy batch waits for another batch to be written with
	maxLazy   = 1 << 10               // so many waiting lazy batches are written at once
	maxQueue  = 1 << 13               // backpressure: beyond this even a lazy append waits
	maxGroup  = 1 << 9                // batches of one transaction
	maxBytes  = 8 << 20               // of one transaction, roughly
)

// A request is something to be written: a batch, or a change of one of the small tables.
type request struct {
	batch  swarm.Batch
	sums   [][sha256.Size]byte // the hashes of the batch's bodies
	change func(*tx) error
	lazy   bool // no caller waits
	noSync bool // no caller needs it to be durable
	bytes  int

	seqs []int64
	err  error

	done   chan bool // true: lead the queue now; false: answered
	taken  bool      // a writer has it: it will be answered, and can no longer be withdrawn
	leads  bool      // it was made the leader
	answer bool      // it has been answered
}

// A queue holds the requests that wait to be written, in order. It has no goroutine of its own. One
// of the waiting callers is the leader: it writes for all, until its own request is answered. At
// most one goroutine leads, and only the leader uses the writing connection.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	led     bool
	closed  bool
	idle    sync.Cond // signals that no goroutine leads
	soon    *time.Timer
	armed   bool
}

// submit adds a request and waits for its answer. A lazy request does not wait.
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
			runtime.Gosched() // Callers that were just answered are about to append again. The more of them wait, the fewer commits.
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

// lead writes groups until mine is answered. If mine is nil, it writes one group, or all of them if
// the log is being closed.
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

// handOver makes the first waiting caller the leader. The caller holds the queue's mutex.
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

// flushSoon makes sure that lazy requests do not wait forever to be written, or to be synced. The
// caller holds the queue's mutex.
func (l *Log) flushSoon() {
	q := &l.queue
	switch {
	case q.armed || q.led || q.closed:
		return // The leader will write them.
	case q.soon == nil:
		q.soon = time.AfterFunc(lazyDelay, l.flush)
	default:
		q.soon.Reset(lazyDelay)
	}
	q.armed = true
}

// flush writes lazy requests that no other request came for, and syncs them.
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
	_ = l.settle() // It runs beside the queue, so no append waits for it. The next append gets its error.
}

// Flush writes the lazy batches that wait, see [swarm.Log]. They are synced with the next batch
// that has a waiting caller, or after a moment. If an append is under way, Flush waits for it and
// for all requests before this one: the leader may have taken the lazy batches.
func (l *Log) Flush() {
	q := &l.queue
	q.mu.Lock()
	idle := len(q.waiting) == 0 && !q.led
	q.mu.Unlock()
	if !idle { // The next append gets the error.
		_ = l.submit(context.Background(), &request{noSync: true, done: make(chan bool, 1)})
	}
}

// writeWaiting writes the waiting requests. If there is a leader, the leader does it.
func (l *Log) writeWaiting() {
	q := &l.queue
	q.mu.Lock()
	idle := len(q.waiting) == 0
	q.mu.Unlock()
	if !idle && q.tryLead() {
		l.lead(nil)
	}
}

// tryLead makes the caller the leader, if there is none. It returns false if there is one, or if
// the queue is closed.
func (q *queue) tryLead() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led || q.closed {
		return false
	}
	q.led = true
	return true
}

// release ends the lead that tryLead began.
func (l *Log) release() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.handOver()
}

// take removes the next group from the queue.
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

// close lets no more requests in, waits until no goroutine leads, and leads. It returns false if
// the queue was closed before.
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
