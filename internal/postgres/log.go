package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"swarm"
	"swarm/internal/logbase"
)

// A Log is the open log of one run. Its methods may be used by many goroutines at once.
type Log struct {
	store    *Store
	run      swarm.RunID
	num      int64  // the run's number in the database
	session  []byte // tells this open log from others
	readOnly bool

	queue logbase.Queue[*tx] // the batches that wait to be written
	n     int64              // the number of the last commit; the leader's
	tail  logbase.Tail       // the newest events, in memory for followers

	follows sync.Mutex // one goroutine at a time brings the tail up to date

	mu    sync.Mutex // guards the fields below
	known mark
	fence int64 // of this log's ownership; 0 = none
}

// A mark is an event that this log has seen, with its checksum. The log never ends before it.
type mark struct {
	seq int64
	sum uint32
}

func (s *Store) newLog(run swarm.RunID) *Log {
	l := &Log{store: s, run: run, session: random(16)}
	l.queue.Commit, l.queue.Closed = l.commit, l.errClosed
	l.queue.Owed, l.queue.Settle = func() bool { return false }, func() {} // every commit is synchronous
	return l
}

func (l *Log) seen() mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

func (l *Log) see(m mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.seq > l.known.seq {
		l.known = m
	}
}

// checkEnd refuses a log that has become shorter, or whose numbers were used again: a server that was
// set back to an older state would take back events that were acknowledged. there is the stored
// checksum of the known event, -1 if it is gone.
func (l *Log) checkEnd(known mark, last, there int64) error {
	switch {
	case last < known.seq:
		return l.damaged(fmt.Sprintf("it ends at event %d, and %d were acknowledged", last, known.seq))
	case known.seq > 0 && there != int64(known.sum):
		return l.damaged(fmt.Sprintf("event %d is not what was written", known.seq))
	}
	return nil
}

func (l *Log) damaged(what string) error {
	return &swarm.Error{Kind: swarm.Storage, File: l.store.file(l.run), Err: fmt.Errorf("%w: %s", swarm.ErrDamaged, what),
		Hint: "nothing was changed; restore the database from a backup"}
}

func (l *Log) errClosed() error {
	return &swarm.Error{Kind: swarm.Stopped, File: l.store.file(l.run), Msg: "the log is closed"}
}

func (l *Log) errReadOnly() error {
	return &swarm.Error{Kind: swarm.BadInput, File: l.store.file(l.run), Msg: "this log is open for reading only"}
}

func (l *Log) errGone() error {
	return &swarm.Error{Kind: swarm.NotFound, File: l.store.file(l.run), Msg: "there is no such run"}
}

// reading runs f on a connection, unless the log is closed.
func (l *Log) reading(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	if l.queue.IsClosed() {
		return l.errClosed()
	}
	err := l.store.do(ctx, patience, f)
	if err != nil {
		return l.store.storage(l.run, err)
	}
	return nil
}

// Flush writes the lazy batches that wait, see [logbase.Queue.Flush].
func (l *Log) Flush() { l.queue.Flush() }

// Err returns the error of a lazy batch that could not be written, if there was one.
func (l *Log) Err() error { return l.queue.Err() }

// Close writes the batches that still wait. An owner that closes its log drives the run no more. Its
// lease stays in the row: the next owner learns from it when this one last lived.
func (l *Log) Close() error {
	if !l.queue.Close() {
		return nil // another goroutine closed it
	}
	l.queue.Lead(nil)
	l.store.nudger.wait()
	l.mu.Lock()
	fence := l.fence
	l.mu.Unlock()
	if l.n == 0 && fence == 0 {
		return nil
	}
	const soon = 2 * time.Second // without an answer the lease ends by itself
	err := l.store.do(context.Background(), soon, func(ctx context.Context, c *pgx.Conn) error {
		var b pgx.Batch
		b.Queue("DELETE FROM swarm.writer WHERE run = $1 AND session = $2", l.num, l.session)
		if fence != 0 {
			b.Queue("UPDATE swarm.run SET held = false WHERE num = $1 AND fence = $2 AND session = $3", l.num, fence, l.session)
		}
		return c.SendBatch(ctx, &b).Close()
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return l.store.storage(l.run, err)
	}
	return nil
}

// isDamage reports whether an error says that a log is not what was written.
func isDamage(err error) bool { return errors.Is(err, swarm.ErrDamaged) }
