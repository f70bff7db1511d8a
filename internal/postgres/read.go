package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"swarm"
	"swarm/internal/logbase"
)

const (
	page    = 512 // events read at once
	columns = "seq, time, kind, agent, task, turn, rcv, coalesce(key, ''), data, sum"
)

// A row is an event as it is stored.
type row struct {
	event  swarm.Event
	micros int64
	fields [6]string
	sum    int64
}

func (r *row) scan() []any {
	f := &r.fields
	return []any{&r.event.Seq, &r.micros, &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], (*[]byte)(&r.event.Data), &r.sum}
}

// follows reports whether the row is what was written behind an event with this checksum.
func (r *row) follows(scratch *[]byte, before uint32) bool {
	return r.sum == int64(logbase.Sum(scratch, before, r.event.Seq, r.micros, &r.fields, r.event.Data))
}

func (r *row) get() swarm.Event {
	e, f := r.event, &r.fields
	e.Time, e.Kind, e.Agent, e.Task = time.UnixMicro(r.micros).UTC(), swarm.EventKind(f[0]), f[1], f[2]
	e.Turn, e.To, e.Key = swarm.TurnID(f[3]), f[4], f[5]
	if len(e.Data) == 0 {
		e.Data = nil
	}
	e.UseCurrentNames()
	return e
}

// page returns up to page events after a number. It checks every event against the one before it, and
// the end of the log against what this log has seen.
func (l *Log) page(ctx context.Context, after int64) (es []swarm.Event, more bool, err error) {
	known := l.seen()
	after = max(after, 0)
	var end mark
	err = l.reading(ctx, func(ctx context.Context, c *pgx.Conn) error {
		es = es[:0]
		rows, err := c.Query(ctx, "SELECT "+columns+" FROM swarm.event WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3", l.num, after, page+1)
		if err != nil {
			return err
		}
		defer rows.Close()
		var scratch []byte
		end = mark{seq: after}
		first := after > 0 // The first row is the event before those that are asked for.
		for rows.Next() {
			var r row
			if err := rows.Scan(r.scan()...); err != nil {
				return err
			}
			if first && r.event.Seq == after {
				first, end.sum = false, uint32(r.sum)
				continue
			}
			if first || r.event.Seq != end.seq+1 || !r.follows(&scratch, end.sum) {
				return l.damaged(fmt.Sprintf("event %d is not what was written", end.seq+1))
			}
			end = mark{r.event.Seq, uint32(r.sum)}
			es = append(es, r.get())
		}
		return rows.Err()
	})
	if err != nil {
		return nil, false, err
	}
	more = len(es) >= page
	if !more && end.seq < known.seq {
		return nil, false, l.damaged(fmt.Sprintf("it ends at event %d, and %d were acknowledged", end.seq, known.seq))
	}
	if len(es) > 0 {
		l.see(end)
	}
	return es, more, nil
}

// follow brings the tail up to date.
func (l *Log) follow(ctx context.Context) error {
	l.follows.Lock()
	defer l.follows.Unlock()
	known := l.seen()
	var last, sum, there int64
	err := l.reading(ctx, func(ctx context.Context, c *pgx.Conn) error {
		err := c.QueryRow(ctx, "SELECT last, sum, coalesce((SELECT e.sum FROM swarm.event e WHERE e.run = $1 AND seq = $2), -1) FROM swarm.run WHERE num = $1",
			l.num, known.seq).Scan(&last, &sum, &there)
		if errors.Is(err, pgx.ErrNoRows) {
			return l.errGone()
		}
		return err
	})
	if err == nil {
		err = l.checkEnd(known, last, there)
	}
	if err != nil {
		return err
	}
	l.see(mark{last, uint32(sum)})
	upto, ok := l.tail.Position()
	if !ok {
		l.tail.Start(last)
		return nil
	}
	for upto < last {
		es, _, err := l.page(ctx, upto)
		if err != nil {
			return err
		}
		if len(es) == 0 {
			return l.damaged(fmt.Sprintf("it ends at event %d, and %d were acknowledged", upto, last))
		}
		l.tail.Deliver(es)
		upto = es[len(es)-1].Seq
	}
	return nil
}

// Read returns up to limit events after a number, see [swarm.Log]. An empty answer costs a trip to
// the server, except for loops, which wait for their watch instead of asking.
func (l *Log) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	if l.queue.IsClosed() {
		return nil, l.errClosed()
	}
	if limit <= 0 {
		return nil, nil
	}
	ctx := context.Background()
	followed := !l.tail.Fresh()
	if followed {
		if err := l.follow(ctx); err != nil {
			return nil, err
		}
	}
	es, err := l.read(ctx, after, limit, to)
	if err == nil && len(es) == 0 && !followed && !logbase.ToLoop(to) {
		if err = l.follow(ctx); err == nil {
			es, err = l.read(ctx, after, limit, to)
		}
	}
	if err != nil || len(es) == 0 {
		return nil, err
	}
	return es, nil
}

func (l *Log) read(ctx context.Context, after int64, limit int, to []string) ([]swarm.Event, error) {
	if es, ok := l.tail.Read(after, limit, to); ok {
		return es, nil
	}
	if len(to) > 0 {
		if err := l.tail.Backfill(after, l.walker(ctx)); err != nil {
			return nil, err
		}
		if es, ok := l.tail.Read(after, limit, to); ok {
			return es, nil
		}
	}
	var found []swarm.Event
	for more := true; more && len(found) < limit; {
		var es []swarm.Event
		var err error
		if es, more, err = l.page(ctx, after); err != nil {
			return nil, err
		}
		for i := range es {
			after = es[i].Seq
			if len(found) < limit && (len(to) == 0 || logbase.Addressed(es[i].To, to)) {
				found = append(found, es[i])
			}
		}
	}
	return found, nil
}

// walker is page for the tail.
func (l *Log) walker(ctx context.Context) logbase.Walker {
	return func(after int64, f func(seq int64, to string, full func() swarm.Event) bool) (last int64, more bool, err error) {
		es, more, err := l.page(ctx, after)
		if err != nil {
			return after, false, err
		}
		for i := range es {
			after = es[i].Seq
			if !f(after, es[i].To, func() swarm.Event { return es[i] }) {
				return after, false, nil
			}
		}
		return after, more, nil
	}
}

// Scan calls f with every event after a number, in order.
func (l *Log) Scan(after int64, f func(*swarm.Event) error) error {
	for more := true; more; {
		var es []swarm.Event
		var err error
		if es, more, err = l.page(context.Background(), after); err != nil {
			return err
		}
		for i := range es {
			after = es[i].Seq
			if err := f(&es[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find returns the event with this idempotency key. It is checked against the event before it.
func (l *Log) Find(key string) (e swarm.Event, ok bool, err error) {
	if key == "" || !isText(key) { // no event has such a key
		return e, false, nil
	}
	err = l.reading(context.Background(), func(ctx context.Context, c *pgx.Conn) error {
		var r row
		var before int64
		err := c.QueryRow(ctx, "SELECT "+columns+`, CASE WHEN seq = 1 THEN 0 ELSE coalesce((SELECT p.sum FROM swarm.event p WHERE p.run = e.run AND p.seq = e.seq - 1), -1) END
			FROM swarm.event e WHERE run = $1 AND key = $2`, l.num, key).Scan(append(r.scan(), &before)...)
		if ok = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var scratch []byte
		if before < 0 || r.fields[5] != key || !r.follows(&scratch, uint32(before)) { // a damaged index may lead to another event
			return l.damaged(fmt.Sprintf("event %d is not what was written", r.event.Seq))
		}
		e = r.get()
		return nil
	})
	if err != nil {
		return swarm.Event{}, false, err
	}
	return e, ok, nil
}

// Keys returns the keys that begin with a text, those of the newest events first.
func (l *Log) Keys(prefix string) (keys []string, err error) {
	if prefix == "" {
		return nil, nil
	}
	last := len(prefix) - 1
	end := prefix[:last] + string([]byte{prefix[last] + 1}) // every key that begins so is less; a key is ASCII up to here
	if !isText(prefix) || !isText(end) {                    // no event has such a key
		return nil, nil
	}
	err = l.reading(context.Background(), func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT key FROM swarm.event WHERE run = $1 AND key >= $2 AND key < $3 ORDER BY seq DESC", l.num, prefix, end)
		if err == nil {
			keys, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return keys, err
}

// Body returns the text with this hash.
func (l *Log) Body(h swarm.Hash) (data []byte, err error) {
	if h == swarm.NoText {
		return []byte{}, nil
	}
	sum, err := hex.DecodeString(string(h))
	if err != nil || len(sum) != sha256.Size {
		return nil, swarm.ErrNoBody
	}
	err = l.reading(context.Background(), func(ctx context.Context, c *pgx.Conn) error {
		err := c.QueryRow(ctx, "SELECT data FROM swarm.text WHERE run = $1 AND hash = $2", l.num, sum).Scan(&data)
		if errors.Is(err, pgx.ErrNoRows) {
			return swarm.ErrNoBody
		}
		if err == nil && sha256.Sum256(data) != [sha256.Size]byte(sum) {
			return l.damaged("the text " + string(h) + " is not what was written")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// SaveFold keeps a fold of the log up to an event. It does not wait for the server's disk: a fold may
// be lost at any time.
func (l *Log) SaveFold(name, version string, seq int64, data []byte) error {
	if l.readOnly {
		return l.errReadOnly()
	}
	return l.reading(context.Background(), func(ctx context.Context, c *pgx.Conn) error {
		var b pgx.Batch
		b.Queue("BEGIN")
		b.Queue("SET LOCAL synchronous_commit = off")
		b.Queue(`INSERT INTO swarm.fold VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (run, name) DO UPDATE SET version = excluded.version, seq = excluded.seq, data = excluded.data`, l.num, name, version, seq, append([]byte{}, data...))
		b.Queue("COMMIT")
		return c.SendBatch(ctx, &b).Close()
	})
}

// LoadFold returns the fold with this name, if the same version of its reader saved it.
func (l *Log) LoadFold(name, version string) (seq int64, data []byte, ok bool) {
	err := l.reading(context.Background(), func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT seq, data FROM swarm.fold WHERE run = $1 AND name = $2 AND version = $3", l.num, name, version).Scan(&seq, &data)
	})
	return seq, data, err == nil // A fold that cannot be read counts as missing: the reader computes it again.
}
