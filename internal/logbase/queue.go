package logbase

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"swarm"
)

const maxText = 64 << 20 // bytes of one body, or of one event's data

const (
	lazyDelay = 10 * time.Millisecond // how long a lazy batch waits for another batch to be written with
	maxLazy   = 1 << 10               // so many waiting lazy batches are written at once
	maxQueue  = 1 << 13               // backpressure: beyond this even a lazy append waits
	maxGroup  = 1 << 9                // batches of one transaction
	maxBytes  = 8 << 20               // of one transaction, roughly
)

// A Request is something to be written: a batch, or a change of one of the small tables. T is the
// store's transaction.
type Request[T any] struct {
	Batch  swarm.Batch
	Sums   [][sha256.Size]byte // the hashes of the batch's bodies
	Change func(T) error
	Lazy   bool // no caller waits
	NoSync bool // no caller needs it to be durable
	Bytes  int

	Context context.Context // of the caller; set by the queue

	Seqs []int64
	Err  error

	done   chan bool // true: lead the queue now; false: answered
	taken  bool      // a writer has it: it will be answered, and can no longer be withdrawn
	leads  bool      // it was made the leader
	answer bool      // it has been answered
}

// A Queue holds the requests that wait to be written, in order. It has no goroutine of its own. One
// of the waiting callers is the leader: it writes for all, until its own request is answered. At
// most one goroutine leads, and only the leader uses the writing connection.
//
// The store sets the exported fields before the first request.
type Queue[T any] struct {
	Commit func(group []*Request[T]) // writes a group as one transaction, and sets each request's Seqs and Err
	Owed   func() bool               // commits wait for a sync
	Settle func()                    // syncs them
	Closed func() error              // the error of requests that come too late

	mu      sync.Mutex
	waiting []*Request[T]
	led     bool
	closed  bool
	idle    sync.Cond // signals that no goroutine leads
	soon    *time.Timer
	armed   bool

	lost atomic.Pointer[lostBatch] // a lazy batch that was not written
}

// A lostBatch is a lazy batch that was not written.
type lostBatch struct {
	fence int64
	err   error
}

// Err returns the error of a lazy batch that could not be written, if there was one.
func (q *Queue[T]) Err() error {
	if lost := q.lost.Load(); lost != nil {
		return lost.err
	}
	return nil
}

// Lost returns the error of a lazy batch with this fence that was not written. Every later batch
// with the fence gets it and writes nothing, so that the log has no hole.
func (q *Queue[T]) Lost(fence int64) error {
	if lost := q.lost.Load(); lost != nil && lost.fence == fence {
		return lost.err
	}
	return nil
}

// Lose notes that a lazy batch was not written. The store calls it inside the group, so that a batch
// behind it in the same group is refused too.
func (q *Queue[T]) Lose(r *Request[T]) {
	err := LostError(r.Err)
	if lost := q.lost.Load(); lost == nil || lost.fence != r.Batch.Fence {
		q.lost.Store(&lostBatch{r.Batch.Fence, err})
	}
}

// LostError is the error of every batch behind a lazy one that was not written.
func LostError(cause error) error {
	return fmt.Errorf("an event that nobody waited for was not written: %w", cause)
}

// Append writes a batch, see [swarm.Log]. The caller must not change the batch afterwards. If the
// context ends while the batch waits in the queue, the batch is withdrawn. Once a writer has the
// batch, Append waits for the result, so that its answer is true.
//
// A lazy batch has no caller to report a refusal to. If it has a fence, every later batch with the
// same fence gets the error and writes nothing, so that the log has no hole. A new fence starts
// afresh. Err returns the error too.
func (q *Queue[T]) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	r := &Request[T]{Batch: b, Lazy: b.Lazy, NoSync: b.Lazy || b.Early}
	for i := range b.Events {
		n := len(b.Events[i].Data)
		if n > maxText {
			return nil, swarm.Errorf(swarm.BadInput, "an event's data has %d bytes; %d are allowed", n, maxText)
		}
		r.Bytes += 200 + n
	}
	for _, text := range b.Bodies {
		if len(text) > maxText {
			return nil, swarm.Errorf(swarm.BadInput, "a text has %d bytes; %d are allowed", len(text), maxText)
		}
		r.Bytes += len(text)
		r.Sums = append(r.Sums, sha256.Sum256(text))
	}
	if b.Lazy {
		r.Batch.Events = slices.Clone(b.Events)
		return nil, q.Submit(ctx, r)
	}
	err := q.Submit(ctx, r)
	return r.Seqs, err
}

// Submit adds a request and waits for its answer. A lazy request does not wait.
func (q *Queue[T]) Submit(ctx context.Context, r *Request[T]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Context, r.done = ctx, make(chan bool, 1)
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return q.Closed()
	}
	q.waiting = append(q.waiting, r)
	r.Lazy = r.Lazy && len(q.waiting) < maxQueue
	switch {
	case !q.led && (!r.Lazy || len(q.waiting) >= maxLazy):
		q.led = true
		q.mu.Unlock()
		q.Lead(r)
		return r.Err
	case r.Lazy:
		q.flushSoon()
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	select {
	case lead := <-r.done:
		if lead {
			runtime.Gosched() // Callers that were just answered are about to append again. The more of them wait, the fewer commits.
			q.Lead(r)
		}
		return r.Err
	case <-ctx.Done():
		return q.withdraw(ctx, r)
	}
}

// withdraw takes a request back, unless a writer has it.
func (q *Queue[T]) withdraw(ctx context.Context, r *Request[T]) error {
	q.mu.Lock()
	if r.taken {
		q.mu.Unlock()
		<-r.done
		return r.Err
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(other *Request[T]) bool { return other == r })
	if r.leads {
		q.handOver()
	}
	q.mu.Unlock()
	return ctx.Err()
}

// Lead writes groups until mine is answered. If mine is nil, it writes one group, or all of them if
// the queue is being closed.
func (q *Queue[T]) Lead(mine *Request[T]) {
	for more := true; more; {
		group, closing := q.take()
		if len(group) == 0 {
			break
		}
		q.Commit(group)
		for _, r := range group {
			r.answer = true
			if r != mine && !r.Lazy {
				r.done <- false
			}
		}
		more = closing || mine != nil && !mine.answer
	}
	q.mu.Lock()
	q.handOver()
	q.mu.Unlock()
}

// handOver makes the first waiting caller the leader. The caller holds the queue's mutex.
func (q *Queue[T]) handOver() {
	for _, r := range q.waiting {
		if !r.Lazy {
			r.leads = true
			r.done <- true
			return
		}
	}
	q.led = false
	q.idle.Broadcast()
	if len(q.waiting) > 0 || q.Owed() {
		q.flushSoon()
	}
}

// flushSoon makes sure that lazy requests do not wait forever to be written, or to be synced. The
// caller holds the queue's mutex.
func (q *Queue[T]) flushSoon() {
	switch {
	case q.armed || q.led || q.closed:
		return // The leader will write them.
	case q.soon == nil:
		q.soon = time.AfterFunc(lazyDelay, q.flush)
	default:
		q.soon.Reset(lazyDelay)
	}
	q.armed = true
}

// flush writes lazy requests that no other request came for, and syncs them.
func (q *Queue[T]) flush() {
	q.mu.Lock()
	q.armed = false
	closed := q.closed
	q.mu.Unlock()
	if closed {
		return
	}
	q.writeWaiting()
	q.Settle() // It runs beside the queue, so no append waits for it. The next append gets its error.
}

// Flush writes the lazy batches that wait, see [swarm.Log]. They are synced with the next batch
// that has a waiting caller, or after a moment. If an append is under way, Flush waits for it and
// for all requests before this one: the leader may have taken the lazy batches.
func (q *Queue[T]) Flush() {
	q.mu.Lock()
	idle := len(q.waiting) == 0 && !q.led
	q.mu.Unlock()
	if !idle { // The next append gets the error.
		_ = q.Submit(context.Background(), &Request[T]{NoSync: true})
	}
}

// writeWaiting writes the waiting requests. If there is a leader, the leader does it.
func (q *Queue[T]) writeWaiting() {
	q.mu.Lock()
	idle := len(q.waiting) == 0
	q.mu.Unlock()
	if !idle && q.TryLead() {
		q.Lead(nil)
	}
}

// TryLead makes the caller the leader, if there is none. It returns false if there is one, or if
// the queue is closed.
func (q *Queue[T]) TryLead() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led || q.closed {
		return false
	}
	q.led = true
	return true
}

// Release ends the lead that TryLead began.
func (q *Queue[T]) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handOver()
}

// take removes the next group from the queue.
func (q *Queue[T]) take() (group []*Request[T], closing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.waiting) && n < maxGroup && (n == 0 || bytes+q.waiting[n].Bytes <= maxBytes) {
		bytes += q.waiting[n].Bytes
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

// IsClosed reports whether the queue takes no more requests.
func (q *Queue[T]) IsClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// Close lets no more requests in, waits until no goroutine leads, and leads. It returns false if
// the queue was closed before.
func (q *Queue[T]) Close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	q.idle.L = &q.mu
	for q.led {
		q.idle.Wait()
	}
	q.led = true
	return true
}
