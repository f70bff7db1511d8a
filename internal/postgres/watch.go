package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"swarm"
)

const (
	channel   = "swarm"                // of notifications
	pollEvery = 250 * time.Millisecond // notifications may be lost
	mostRuns  = 300                    // in one notification, whose text has less than 8,000 bytes
)

// Watch returns a channel that holds a value soon after an event for one of the receivers was
// appended, see [swarm.Log].
func (l *Log) Watch(to ...string) (<-chan struct{}, func()) {
	if _, ok := l.tail.Position(); !ok {
		_ = l.follow(context.Background()) // A failure shows at the next read.
	}
	w := &l.store.watcher
	begun := false
	c, end := l.tail.Watch(to, func() { begun = true; w.add(l) }, func() { w.remove(l) })
	if begun {
		_ = l.follow(context.Background()) // A notification that came before the watcher knew of this log told it nothing.
	}
	return c, end
}

// look brings the tail up to date. If that fails, those who wait read, and get the error.
func (l *Log) look(ctx context.Context) {
	if err := l.follow(ctx); err != nil && ctx.Err() == nil && swarm.KindOf(err) != swarm.Stopped {
		l.tail.WakeAll()
	}
}

// A watcher looks for events of other processes, for all logs of a store that are watched. It has one
// goroutine and one connection, as long as something is watched.
type watcher struct {
	store *Store

	mu   sync.Mutex
	logs map[*Log]bool
	stop context.CancelFunc // nil while nothing is watched
	over sync.WaitGroup
}

func (w *watcher) add(l *Log) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logs == nil {
		w.logs = map[*Log]bool{}
	}
	w.logs[l] = true
	if w.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w.stop = cancel
		w.over.Go(func() { w.run(ctx) })
	}
}

func (w *watcher) remove(l *Log) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.logs, l); len(w.logs) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

func (w *watcher) close() {
	w.mu.Lock()
	clear(w.logs)
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.mu.Unlock()
	w.over.Wait()
}

// watched returns the watched logs of some runs, or of all runs if runs is nil.
func (w *watcher) watched(runs map[int64]bool) (logs []*Log) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l := range w.logs {
		if runs == nil || runs[l.num] {
			logs = append(logs, l)
		}
	}
	return logs
}

// run listens until ctx ends. When the connection breaks it makes another.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = w.listen(ctx) // Readers meet the same error, and report it.
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

func (w *watcher) listen(ctx context.Context) error {
	c, err := pgx.ConnectConfig(ctx, w.store.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	for {
		if err := w.poll(ctx, c); err != nil {
			return err
		}
		if err := w.hear(ctx, c, time.Now().Add(pollEvery)); err != nil {
			return err
		}
	}
}

// hear reads notifications until it is time to poll.
func (w *watcher) hear(ctx context.Context, c *pgx.Conn, until time.Time) error {
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		n, err := c.WaitForNotification(wait)
		if err != nil {
			if ctx.Err() == nil && pgconn.Timeout(err) && !c.IsClosed() {
				return nil
			}
			return err
		}
		from, text, _ := strings.Cut(n.Payload, ":")
		if from == w.store.id { // the nudger has told the logs of this process
			continue
		}
		runs := map[int64]bool{}
		for _, num := range strings.Split(text, ",") {
			if n, err := strconv.ParseInt(num, 10, 64); err == nil {
				runs[n] = true
			}
		}
		for _, l := range w.watched(runs) {
			l.look(ctx)
		}
	}
}

// poll asks with one statement which of the watched logs have grown.
func (w *watcher) poll(ctx context.Context, c *pgx.Conn) error {
	logs := w.watched(nil)
	nums, seen := make([]int64, len(logs)), make([]int64, len(logs))
	for i, l := range logs {
		nums[i] = l.num
		seen[i], _ = l.tail.Position()
	}
	rows, err := c.Query(ctx, "SELECT r.num FROM unnest($1::bigint[], $2::bigint[]) AS w(num, seen) JOIN swarm.run r USING (num) WHERE r.last <> w.seen", nums, seen)
	if err != nil {
		return err
	}
	grown, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	runs := map[int64]bool{}
	for _, num := range grown {
		runs[num] = true
	}
	for _, l := range w.watched(runs) {
		l.look(ctx)
	}
	return nil
}

// A nudger notifies other processes of commits, after them and beside them, and other logs of the same
// run in this process. While one notification is under way, the next ones are collected.
type nudger struct {
	store *Store

	mu   sync.Mutex
	runs map[int64]*Log // by number, with the log that wrote; nil = several did
	idle chan struct{}  // closed when all were sent; nil while nothing is sent
}

func (n *nudger) nudge(l *Log) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs == nil {
		n.runs = map[int64]*Log{}
	}
	if other, ok := n.runs[l.num]; ok && other != l {
		n.runs[l.num] = nil
	} else {
		n.runs[l.num] = l
	}
	if n.idle == nil {
		n.idle = make(chan struct{})
		go n.send()
	}
}

func (n *nudger) send() {
	for {
		text, wrote := n.take()
		if text == "" {
			return
		}
		runs := map[int64]bool{}
		for num := range wrote {
			runs[num] = true
		}
		for _, l := range n.store.watcher.watched(runs) {
			if wrote[l.num] != l { // what a log wrote is in its tail
				l.look(context.Background())
			}
		}
		_ = n.store.once(context.Background(), attempt, func(ctx context.Context, c *pgx.Conn) error { // A lost one is made up for by the poll.
			_, err := c.Exec(ctx, "SELECT pg_notify($1, $2)", channel, text)
			return err
		})
	}
}

// take returns the text of the next notification, "" if there is none.
func (n *nudger) take() (text string, wrote map[int64]*Log) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.runs) == 0 {
		close(n.idle)
		n.idle = nil
		return "", nil
	}
	wrote = map[int64]*Log{}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", n.store.id)
	count := 0
	for run, l := range n.runs {
		if count++; count > mostRuns {
			break
		}
		fmt.Fprintf(&b, "%d,", run)
		wrote[run] = l
		delete(n.runs, run)
	}
	return b.String(), wrote
}

// wait returns when all notifications were sent, or after a moment: others may go on writing.
func (n *nudger) wait() {
	n.mu.Lock()
	idle := n.idle
	n.mu.Unlock()
	if idle != nil {
		select {
		case <-idle:
		case <-time.After(pollEvery):
		}
	}
}
