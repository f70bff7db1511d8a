package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"swarm"
)

// lockEvery is the polling interval for a lock that another process holds.
const lockEvery = 20 * time.Millisecond

// Lock is a mutex between all processes that use the store, see [swarm.SharedStore]. It has a
// connection of its own: holders and waiters that took those of the pool could wait for each other.
func (s *Store) Lock(ctx context.Context, what string) (swarm.StoreLock, error) {
	key := sha256.Sum256([]byte("swarm lock " + what))
	id := int64(0)
	for _, b := range key[:8] {
		id = id<<8 | int64(b)
	}
	for {
		l := &lock{store: s}
		err := s.do(ctx, patience, func(ctx context.Context, _ *pgx.Conn) (err error) {
			l.conn, err = pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
			return err
		})
		if err == nil {
			if err = l.take(ctx, id); err == nil {
				return l, nil
			}
			l.Unlock()
		}
		switch cause := context.Cause(ctx); {
		case cause != nil:
			return nil, cause
		case l.conn == nil || !transient(err):
			return nil, s.storage("", err)
		}
		// The connection broke while another process had the lock.
		time.Sleep(lockEvery)
	}
}

// A lock is a lock of the database, which the session of a connection holds. The server frees it when
// the session ends.
type lock struct {
	store *Store
	conn  *pgx.Conn
}

// take waits for the lock.
func (l *lock) take(ctx context.Context, id int64) error {
	for {
		held := false
		if err := l.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", id).Scan(&held); err != nil || held {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockEvery):
		}
	}
}

// Held reports whether the session still lives, see [swarm.StoreLock]: then it has had the lock all the
// time.
func (l *lock) Held(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	err := l.conn.Ping(soon)
	if err == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &swarm.Error{Kind: swarm.Storage, File: l.store.name, Msg: "the connection broke, and another machine may have begun the same meanwhile",
		Err: noAnswer(err.Error()), Hint: "try it again"}
}

// Unlock frees the lock. If the server cannot be told, the end of the session frees it a moment later.
func (l *lock) Unlock() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = l.conn.Exec(ctx, "SELECT pg_advisory_unlock_all()")
	_ = l.conn.Close(ctx)
}

// Name returns the address of the store, without a user and a password.
func (s *Store) Name() string { return s.name }

// Examine asks the server how it is, see [swarm.SharedStore].
func (s *Store) Examine(ctx context.Context) (h swarm.StoreHealth, err error) {
	h.Name = s.name
	var fsync, pages, commit string
	err = s.do(ctx, firstPatience, func(ctx context.Context, c *pgx.Conn) error {
		h.RoundTrip = math.MaxInt64
		for range 5 {
			var now int64
			asked := time.Now()
			if err := c.QueryRow(ctx, "SELECT swarm.clock()").Scan(&now); err != nil {
				return err
			}
			took := time.Since(asked)
			if took < h.RoundTrip {
				h.RoundTrip, h.Ahead = took, time.UnixMicro(now).Sub(asked.Add(took/2))
			}
		}
		return c.QueryRow(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
			(SELECT count(*) FROM swarm.run), (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
			WHERE nspname = 'swarm' AND relkind = 'r')`).Scan(&h.Server, &fsync, &pages, &commit, &h.Runs, &h.Bytes)
	})
	if err != nil {
		return h, s.storage("", err)
	}
	switch {
	case fsync != "on":
		h.Risk, h.Hint = "its server does not wait for its disk (fsync = off): a power loss can destroy the database", "set fsync = on in postgresql.conf"
	case pages != "on":
		h.Risk, h.Hint = "a power loss can damage its pages (full_page_writes = off)", "set full_page_writes = on in postgresql.conf"
	case commit == "off":
		h.Risk, h.Hint = "its server acknowledges before its disk has it (synchronous_commit = off)", "do not set synchronous_commit in the address"
	}
	return h, nil
}

// Check reads all of a log, see [swarm.Recoverer]. PostgreSQL checks its own pages.
func (s *Store) Check(ctx context.Context, run swarm.RunID, progress func(part string, done, total int64)) (check swarm.LogCheck, err error) {
	check = swarm.LogCheck{Run: run, File: s.file(run)}
	if progress == nil {
		progress = func(string, int64, int64) {}
	}
	opened, err := s.Open(ctx, run, swarm.ReadOnly)
	l, _ := opened.(*Log)
	if err != nil { // a log that has lost its end is still read, to say how much of it is intact
		if swarm.KindOf(err) == swarm.NotFound || !isDamage(err) {
			return check, err
		}
		l = s.newLog(run)
		l.readOnly = true
		num := s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
			return c.QueryRow(ctx, "SELECT num FROM swarm.run WHERE id = $1", string(run)).Scan(&l.num)
		})
		if num != nil {
			return check, s.storage(run, num)
		}
		check.Parts = append(check.Parts, swarm.LogPart{Part: "end", Checked: 1, Damaged: 1, Note: err.Error()})
	} else {
		check.Parts = append(check.Parts, swarm.LogPart{Part: "end", Checked: 1})
	}
	defer l.Close()
	events, err := s.checkEvents(ctx, l, &check, progress)
	if err != nil {
		return check, err
	}
	texts, err := s.checkTexts(ctx, l, progress)
	if err != nil {
		return check, err
	}
	check.Parts = append(check.Parts, events, texts)
	for _, p := range check.Parts {
		check.Damaged = check.Damaged || p.Damaged > 0
	}
	return check, nil
}

// checkEvents checks the chain of a log's events.
func (s *Store) checkEvents(ctx context.Context, l *Log, check *swarm.LogCheck, progress func(string, int64, int64)) (p swarm.LogPart, err error) {
	p.Part = "events"
	for more := true; more; {
		var es []swarm.Event
		es, more, err = l.page(ctx, check.Intact)
		if isDamage(err) {
			intact, err := s.intactUpto(ctx, l, check.Intact)
			if err != nil {
				return p, err
			}
			check.Intact, p.Checked, p.Damaged = intact, intact, 1
			p.Note = fmt.Sprintf("event %d is not what was written", intact+1)
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if len(es) > 0 {
			check.Intact = es[len(es)-1].Seq
		}
		p.Checked = check.Intact
		progress("events", p.Checked, 0)
	}
	return p, nil
}

// intactUpto returns the last intact event of a page that has a damaged one.
func (s *Store) intactUpto(ctx context.Context, l *Log, after int64) (last int64, err error) {
	err = s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
		last = after
		rows, err := c.Query(ctx, "SELECT "+columns+" FROM swarm.event WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3", l.num, after, page+1)
		if err != nil {
			return err
		}
		defer rows.Close()
		var scratch []byte
		var sum uint32
		for rows.Next() {
			var r row
			if err := rows.Scan(r.scan()...); err != nil {
				return err
			}
			switch {
			case r.event.Seq == after:
				sum = uint32(r.sum)
				continue
			case r.event.Seq != last+1 || !r.follows(&scratch, sum):
				return nil
			}
			last, sum = r.event.Seq, uint32(r.sum)
		}
		return rows.Err()
	})
	if err != nil {
		return 0, s.storage(l.run, err)
	}
	return last, nil
}

// checkTexts checks the hashes of a log's texts.
func (s *Store) checkTexts(ctx context.Context, l *Log, progress func(string, int64, int64)) (p swarm.LogPart, err error) {
	p.Part = "texts"
	for after := []byte{}; ; {
		var hashes []string
		err := s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
			const some = 100 // hashes are small, and texts are read one at a time
			rows, err := c.Query(ctx, "SELECT encode(hash, 'hex') FROM swarm.text WHERE run = $1 AND hash > $2 ORDER BY hash LIMIT $3", l.num, after, some)
			if err == nil {
				hashes, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		})
		if err != nil {
			return p, s.storage(l.run, err)
		}
		if len(hashes) == 0 {
			return p, nil
		}
		for _, h := range hashes {
			_, err := l.Body(swarm.Hash(h))
			switch p.Checked++; {
			case isDamage(err):
				p.Damaged++
				p.Note = "the text " + h + " is not what was written"
			case err != nil:
				return p, err
			}
			progress("texts", p.Checked, 0)
		}
		if after, err = hex.DecodeString(hashes[len(hashes)-1]); err != nil {
			return p, s.storage(l.run, err)
		}
	}
}

// Recover refuses: what was lost in a database comes back from its backup.
func (s *Store) Recover(_ context.Context, run swarm.RunID) (swarm.LogRecovery, error) {
	return swarm.LogRecovery{}, &swarm.Error{Kind: swarm.BadInput, File: s.file(run), Msg: "swarm recovers no logs in PostgreSQL",
		Hint: "restore the database from a backup; swarm export and swarm record save what can be read"}
}
