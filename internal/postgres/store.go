// Package postgres keeps the logs of runs in a PostgreSQL database, which several machines share.
//
// # Writing
//
// Batches wait in a queue, and one caller writes all that wait as one transaction
// ([logbase.Queue]). A transaction is two trips: the first locks the run's row and reads the newest
// number, the fence, the clock and the keys in question. The second inserts the events and commits.
// Numbers have no gaps, because the row's lock is held from one to the other. Every commit is
// synchronous, lazy and early ones too.
//
// A connection may break after the server has committed and before the client is told. So each
// commit of an open log has a number, which the transaction stores. A log tries again by itself for
// half a minute. Under the lock of the run's row it first looks whether the try before was committed:
// the answers of that try are true then, whatever has become of fences and keys since.
//
// # Reading
//
// Readers that follow the log are served from memory ([logbase.Tail]). One watcher for all logs of a
// store looks for events of other processes: after a commit its process sends a notification, which
// is never part of the commit, because notifications would serialize all commits of the database. A
// notification may be lost, so the watcher also polls.
//
// # Ownership
//
// The lease is by the database's clock. An owner that closed its log, and an owner on this machine
// whose process is gone, are replaced at once. All others are replaced when their lease is over.
package postgres

import (
	"context"
	"crypto/rand"
	_ "embed" // for the schema
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"swarm"
)

const (
	format        = 1                // version of the schema; a higher number is refused
	maxConns      = 10               // connections of one store, beside the watcher's
	patience      = 30 * time.Second // how long a log waits for a server that cannot be reached
	firstPatience = 5 * time.Second  // the same for its first use: its address may be wrong
	noPatience    = time.Second      // the same after one has waited in vain: a process that stops must not wait again and again
	attempt       = 20 * time.Second // how long one try may take; a network may lose packets without a word
	removal       = 10 * time.Minute // the same for the removal of a run
)

//go:embed schema.sql
var schema string

// A Store is a database of logs. See [swarm.Store].
type Store struct {
	pool    *pgxpool.Pool
	name    string // the address for messages, without a password
	id      string // tells the notifications of this store from others'
	watcher watcher
	nudger  nudger

	preparing chan struct{} // holds a value while a call makes the schema

	mu    sync.Mutex
	ready bool // the schema is there
	lost  bool // the last one who waited for the server did so in vain
}

// NewStore returns the store at an address: postgres://user@host:port/database. It connects when it
// is first used. A password comes from the address, from PGPASSWORD or from a password file.
func NewStore(address string) (*Store, error) { return newStore(address, nil) }

// newStore is NewStore with the way to connect, nil for the usual one.
func newStore(address string, dial pgconn.DialFunc) (*Store, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil { // its text has parts of the address, and so of a password
		return nil, swarm.Errorf(swarm.BadInput, "the address of the store cannot be read").
			WithHint("write it as postgres://user@host:port/database, and look at the values after ? in it; " +
				"a password with one of / ? # : @ %% belongs in PGPASSWORD")
	}
	config.MaxConns = maxConns
	c := config.ConnConfig
	c.ConnectTimeout = min(max(c.ConnectTimeout, time.Second), 10*time.Second)
	c.RuntimeParams["application_name"] = "swarm"
	// A client that is gone must not keep the lock of a run.
	c.RuntimeParams["idle_in_transaction_session_timeout"] = "15000"
	c.RuntimeParams["tcp_keepalives_idle"] = "10" // nor the lock of a session, see Lock
	c.RuntimeParams["tcp_keepalives_interval"] = "5"
	c.RuntimeParams["tcp_keepalives_count"] = "3"
	c.RuntimeParams["synchronous_commit"] = "on" // whatever the server's default: an acknowledged event is on disk
	if c.ValidateConnect == nil {                // a standby's answers are old
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	if c.DialFunc = dial; dial == nil {
		c.DialFunc = (&net.Dialer{KeepAlive: 10 * time.Second}).DialContext
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, swarm.Errorf(swarm.Storage, "the store cannot be used: %w", err)
	}
	s := &Store{pool: pool, name: fmt.Sprintf("postgres://%s/%s", net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), c.Database), id: hex.EncodeToString(random(8)), preparing: make(chan struct{}, 1)}
	s.watcher.store, s.nudger.store = s, s
	return s, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// Close releases the connections. The logs of the store must be closed before.
func (s *Store) Close() error {
	s.nudger.wait()
	s.watcher.close()
	s.pool.Close()
	return nil
}

// storage makes an error of a failed statement. A log that other programs have changed is damaged;
// everything else is the store's.
func (s *Store) storage(run swarm.RunID, err error) error {
	var own *swarm.Error
	var owned *swarm.OwnedError
	if errors.As(err, &own) || errors.As(err, &owned) {
		return err
	}
	for _, refusal := range []error{swarm.ErrFenced, swarm.ErrStale, swarm.ErrConflict, swarm.ErrNoBody, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, refusal) {
			return err
		}
	}
	e := &swarm.Error{Kind: swarm.Storage, File: s.file(run), Msg: "the store cannot be used", Err: err}
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
		e.Msg, e.Hint = "the store cannot be reached", "look whether the database runs: psql "+s.name
		if op, ok := errors.AsType[*net.OpError](err); ok { // pgx says it once for each address and way, in lines
			e.Err = op
		}
	case pg.Code == "28P01" || pg.Code == "28000":
		e.Err, e.Hint = pg, "put the password in PGPASSWORD, in ~/.pgpass, or in SWARM_STORE"
	default:
		e.Err = pg
	}
	return e
}

// file names a run's log as errors do.
func (s *Store) file(run swarm.RunID) string {
	if run == "" {
		return s.name
	}
	return s.name + "#" + string(run)
}

// transient reports whether the same statement may succeed later: the connection broke, or the
// server restarts, is full or had a deadlock.
func transient(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		var own *swarm.Error
		var owned *swarm.OwnedError
		for _, final := range []error{pgx.ErrNoRows, swarm.ErrFenced, swarm.ErrStale, swarm.ErrConflict, swarm.ErrNoBody} {
			if errors.Is(err, final) {
				return false
			}
		}
		return !errors.As(err, &own) && !errors.As(err, &owned)
	}
	switch pg.Code {
	case "57P01", "57P02", "57P03", "40001", "40P01", "53300", "25P03", "25006":
		return true // it shuts down, it crashed, it starts; a conflict, a deadlock; full; too slow; a standby
	}
	return len(pg.Code) == 5 && pg.Code[:2] == "08" // the connection
}

// do runs f on a connection. While the server cannot be reached it tries again, for as long as
// patience or ctx lasts.
func (s *Store) do(ctx context.Context, patience time.Duration, f func(context.Context, *pgx.Conn) error) error {
	return s.try(ctx, ctx, patience, attempt, f)
}

// A noAnswer is the end of one try's own time. It is no end of the caller's context, so it wraps none.
type noAnswer string

func (e noAnswer) Error() string { return string(e) }

// try is do for calls that must not be cut: the end of the second context ends the tries, and never
// one of them. Each try may take as long as attempt.
func (s *Store) try(ctx, giveUp context.Context, patience, attempt time.Duration, f func(context.Context, *pgx.Conn) error) error {
	reached, lost := s.reached()
	long := !reached || patience > firstPatience // a call that waits a short time learns nothing of a long outage
	switch {
	case lost:
		patience = min(patience, noPatience)
	case !reached:
		patience = min(patience, firstPatience)
	}
	end := time.Now().Add(patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		err := s.once(ctx, attempt, f)
		if err != nil && ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
			err = noAnswer(err.Error())
		}
		waits := err != nil && transient(err)
		over := time.Now().Add(pause).After(end)
		if !waits || over && long {
			s.note(waits)
		}
		if !waits || over || giveUp.Err() != nil {
			return err
		}
		s.pool.Reset() // The other idle connections are broken as well.
		select {
		case <-giveUp.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// reached reports whether this process has used the store before, and whether it has lost it since.
func (s *Store) reached() (reached, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready, s.lost
}

// note notes whether a call has waited for the server in vain.
func (s *Store) note(lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = lost
}

func (s *Store) once(ctx context.Context, attempt time.Duration, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release() // A connection inside a transaction, or a broken one, is closed.
	if err := s.prepare(ctx, c.Conn()); err != nil {
		return err
	}
	return f(ctx, c.Conn())
}

// prepare makes the schema, once for each database. One call asks the server, and the others wait for it as
// long as their contexts last.
func (s *Store) prepare(ctx context.Context, c *pgx.Conn) error {
	if ready, _ := s.reached(); ready {
		return nil
	}
	select {
	case s.preparing <- struct{}{}:
		defer func() { <-s.preparing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if ready, _ := s.reached(); ready {
		return nil
	}
	version := 0
	look := func() error {
		err := c.QueryRow(ctx, "SELECT version FROM swarm.format").Scan(&version)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && (pg.Code == "42P01" || pg.Code == "3F000") { // no such table, no such schema
			return nil
		}
		return err
	}
	if err := look(); err != nil {
		return err
	}
	if version == 0 {
		const lock = 0x7377726d // "swrm"
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", lock); err != nil {
				return err
			}
			there := false
			if err := tx.QueryRow(ctx, "SELECT to_regclass('swarm.format') IS NOT NULL").Scan(&there); err != nil || there {
				return err
			}
			_, err := tx.Exec(ctx, schema)
			return err
		})
		if err == nil {
			err = look()
		}
		if err != nil {
			return err
		}
	}
	if version > format {
		return &swarm.Error{Kind: swarm.BadInput, File: s.name,
			Msg:  fmt.Sprintf("this store has format %d, and this program knows formats up to %d", version, format),
			Hint: "use the version of swarm that wrote it, or a newer one"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = true
	return nil
}

func checkID(run swarm.RunID) error {
	if !swarm.IsRunID(string(run)) {
		return swarm.Errorf(swarm.BadInput, "%s is not a run's id", swarm.Quote(string(run))).
			WithHint("write an id as `swarm ls` shows it")
	}
	return nil
}

// Create makes the log of a new run. A first try may have been written before its connection broke,
// so a row that nobody has used is taken for that one if it is this call's.
func (s *Store) Create(ctx context.Context, run swarm.RunID) (swarm.RunLog, error) {
	if err := checkID(run); err != nil {
		return nil, err
	}
	l := s.newLog(run)
	err := s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `INSERT INTO swarm.run (id, session) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id WHERE run.session = excluded.session RETURNING num`, string(run), l.session).Scan(&l.num)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &swarm.Error{Kind: swarm.BadInput, File: s.file(run), Msg: "there is a run with this id already"}
	}
	if err != nil {
		return nil, s.storage(run, err)
	}
	l.tail.Start(0)
	return l, nil
}

// Open opens the log of a run. It compares the run's row with the newest event, so that a log that
// lost its end is refused.
func (s *Store) Open(ctx context.Context, run swarm.RunID, access swarm.Access) (swarm.RunLog, error) {
	if err := checkID(run); err != nil {
		return nil, err
	}
	l := s.newLog(run)
	l.readOnly = access == swarm.ReadOnly
	err := s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
		var last, sum, there int64
		err := c.QueryRow(ctx, `SELECT num, last, run.sum, coalesce(e.sum, -1) FROM swarm.run LEFT JOIN swarm.event e ON e.run = num AND seq = last
			WHERE id = $1`, string(run)).Scan(&l.num, &last, &sum, &there)
		if err == nil && last > 0 && there != sum {
			return l.damaged(fmt.Sprintf("event %d was acknowledged, and is not there as it was written", last))
		}
		l.known.seq, l.known.sum = last, uint32(sum)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &swarm.Error{Kind: swarm.NotFound, File: s.file(run), Msg: "there is no such run"}
	}
	if err != nil {
		return nil, s.storage(run, err)
	}
	return l, nil
}

// Runs lists runs, newest first, a page at a time.
func (s *Store) Runs(ctx context.Context, q swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	const page = 200
	return func(yield func(swarm.RunEntry, error) bool) {
		for before := string(q.Before); ; {
			var entries []swarm.RunEntry
			err := s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
				entries = nil
				rows, err := c.Query(ctx, `SELECT id, data, swarm.clock() - greatest(created, newest) FROM swarm.run LEFT JOIN swarm.summary ON run = num
					WHERE ($1 = '' OR id < $1) AND ($2 = '' OR id = $2) AND starts_with(id, $3) ORDER BY id DESC LIMIT $4`, before, string(q.ID), q.Prefix, page)
				if err != nil {
					return err
				}
				var id string
				var data []byte
				var age int64 // by the database's clock, in microseconds
				_, err = pgx.ForEachRow(rows, []any{&id, &data, &age}, func() error {
					e := swarm.RunEntry{RunSummary: swarm.RunSummary{ID: swarm.RunID(id)}}
					var sum swarm.RunSummary
					if json.Unmarshal(data, &sum) == nil && sum.ID == e.ID && sum.Status != "" {
						e = swarm.RunEntry{RunSummary: sum, Saved: true}
					}
					e.Changed = time.Now().Add(-time.Duration(age) * time.Microsecond).UTC() // by this machine's clock, as the times of files are
					entries = append(entries, e)
					return nil
				})
				return err
			})
			if err != nil {
				yield(swarm.RunEntry{}, s.storage("", err))
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
				before = string(e.ID)
			}
			if len(entries) < page {
				return
			}
		}
	}
}

// Save stores a run's summary. It does not wait for the server's disk.
func (s *Store) Save(ctx context.Context, sum swarm.RunSummary) error {
	err := s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
		var b pgx.Batch
		b.Queue("BEGIN")
		b.Queue("SET LOCAL synchronous_commit = off")
		b.Queue(`INSERT INTO swarm.summary SELECT num, $2 FROM swarm.run WHERE id = $1
			ON CONFLICT (run) DO UPDATE SET data = excluded.data`, string(sum.ID), swarm.Encode(sum))
		b.Queue("COMMIT")
		return c.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return s.storage(sum.ID, err)
	}
	return nil
}

// Remove deletes a run in one transaction, under the lock of its row.
func (s *Store) Remove(ctx context.Context, run swarm.RunID, o swarm.RemoveOptions) (done swarm.Removed, err error) {
	if err := checkID(run); err != nil {
		return done, err
	}
	err = s.try(ctx, ctx, patience, removal, func(ctx context.Context, c *pgx.Conn) error {
		done = swarm.Removed{}
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var num int64
			var h holder
			err := tx.QueryRow(ctx, "SELECT num, "+holderColumns+" FROM swarm.run WHERE id = $1 FOR UPDATE", string(run)).Scan(append([]any{&num}, h.fields()...)...)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return nil
			case err != nil:
				return err
			case h.drives():
				return &swarm.OwnedError{Owner: h.owner()}
			case o.Fence != swarm.AnyFence && o.Fence != h.fence:
				return swarm.ErrFenced
			}
			done.Files = 1
			if err := tx.QueryRow(ctx, `SELECT coalesce((SELECT sum(pg_column_size(e)) FROM swarm.event e WHERE run = $1), 0)::bigint
				+ coalesce((SELECT sum(pg_column_size(t)) FROM swarm.text t WHERE run = $1), 0)::bigint`, num).Scan(&done.Bytes); err != nil || o.DryRun {
				return err
			}
			for _, table := range []string{"event", "text", "fold", "summary", "writer"} {
				if _, err := tx.Exec(ctx, "DELETE FROM swarm."+table+" WHERE run = $1", num); err != nil {
					return err
				}
			}
			if _, err := tx.Exec(ctx, "DELETE FROM swarm.run WHERE num = $1", num); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "INSERT INTO swarm.removed (id) VALUES ($1) ON CONFLICT DO NOTHING", string(run))
			return err
		})
	})
	if err != nil {
		return swarm.Removed{}, s.storage(run, err)
	}
	return done, nil
}

// Removed returns those of the runs that were removed from this store, see [swarm.SharedStore].
func (s *Store) Removed(ctx context.Context, runs []swarm.RunID) (removed []swarm.RunID, err error) {
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = string(run)
	}
	err = s.do(ctx, patience, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, "SELECT id FROM swarm.removed WHERE id = ANY($1) AND id NOT IN (SELECT id FROM swarm.run WHERE id = ANY($1))", ids)
		if err == nil {
			removed, err = pgx.CollectRows(rows, pgx.RowTo[swarm.RunID])
		}
		return err
	})
	if err != nil {
		return nil, s.storage("", err)
	}
	return removed, nil
}
