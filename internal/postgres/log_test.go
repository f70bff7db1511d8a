package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"swarm"
	"swarm/internal/postgrestest"
	"swarm/internal/storetest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openStore opens the store as another process would. A cutter breaks its connections.
func openStore(t testing.TB, cut *cutter) *Store {
	t.Helper()
	s, err := newStore(postgrestest.Address(t), cut.dial)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

var runs atomic.Int64

func newRun() swarm.RunID {
	return swarm.RunID(fmt.Sprintf("%s-%d", strings.ToLower(string(swarm.NewRunID(time.Now()))), runs.Add(1)))
}

// subject is a log that two processes open in turn.
func subject(t *testing.T) (f storetest.Faults, cut *cutter, run swarm.RunID) {
	cut, run = &cutter{}, newRun()
	stores := []*Store{openStore(t, cut), openStore(t, cut)}
	first, err := stores[0].Create(t.Context(), run)
	must(t, err)
	n := 0
	f.Open = func(t *testing.T) storetest.Store {
		n++
		if l := first; l != nil {
			first = nil
			return l
		}
		l, err := stores[n%2].Open(context.Background(), run, swarm.ReadWrite)
		must(t, err)
		return l
	}
	return f, cut, run
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		f, _, _ := subject(t)
		return f.Open
	})
}

func TestFaults(t *testing.T) {
	storetest.RunFaults(t, func(t *testing.T) storetest.Faults {
		f, cut, run := subject(t)
		f.Shorten = func(t *testing.T) {
			execute(t, "DELETE FROM swarm.event e USING swarm.run r WHERE e.run = num AND seq = last AND id = $1", string(run))
			execute(t, "UPDATE swarm.run SET last = last - 1 WHERE id = $1", string(run))
		}
		wanted := 0
		f.Cut = func(_ *testing.T, s storetest.Store, when storetest.Moment) {
			cut.next(s.(*Log).session, when)
			wanted++
		}
		t.Cleanup(func() {
			if cut.cuts < wanted-1 { // The commit of a refused batch sends nothing.
				t.Errorf("of %d connections %d were cut", wanted, cut.cuts)
			}
		})
		f.Skew = func(t *testing.T, by time.Duration) {
			clock := func(by time.Duration) {
				execute(t, fmt.Sprintf("CREATE OR REPLACE FUNCTION swarm.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + %d $$", by.Microseconds()))
			}
			clock(by)
			t.Cleanup(func() { clock(0) })
		}
		return f
	})
}

func TestManyLogs(t *testing.T) {
	var stores []*Store
	storetest.ManyLogs(t, func(t *testing.T) swarm.Store {
		s := openStore(t, &cutter{})
		stores = append(stores, s)
		return s
	})
	if n := stores[0].pool.Stat().TotalConns(); n > maxConns {
		t.Errorf("its logs have %d connections", n)
	}
}

// execute runs a statement behind the store's back.
func execute(t testing.TB, sql string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), postgrestest.Address(t))
	must(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(context.Background(), sql, args...)
	must(t, err)
}

// A cutter breaks a connection in the commit of a log. Only the second trip of a transaction has the
// log's session in it, until a try has failed.
type cutter struct {
	mu      sync.Mutex
	session []byte
	when    storetest.Moment
	cuts    int
}

func (c *cutter) next(session []byte, when storetest.Moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.when = session, when
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, cutter: c}, nil
}

type cutConn struct {
	net.Conn
	cutter *cutter
}

func (c *cutConn) Write(b []byte) (int, error) {
	when := c.cutter.take(b)
	switch when {
	case "":
		return c.Conn.Write(b)
	case storetest.BeforeCommit:
	default:
		if n, err := c.Conn.Write(b); err != nil {
			return n, err
		}
	}
	if when == storetest.AfterCommit {
		_, _ = c.Conn.Read(make([]byte, 1<<16)) // The server answers when it has done everything.
	}
	c.Conn.Close()
	return 0, errors.New("the connection was cut")
}

// take returns when the connection breaks, "" if it does not.
func (c *cutter) take(b []byte) (when storetest.Moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session != nil && bytes.Contains(b, c.session) {
		when, c.session = c.when, nil
		c.cuts++
	}
	return when
}

// A changed event is refused by every way of reading.
func TestADamagedEventIsNeverServed(t *testing.T) {
	for column, value := range map[string]string{"data": "'other'", "kind": "'turn_ended'", "key": "'k9'", "time": "time + 1", "rcv": "'x'", "sum": "e.sum # 1"} {
		s, run := openStore(t, &cutter{}), newRun()
		l, err := s.Create(t.Context(), run)
		must(t, err)
		for i := range 5 {
			_, err := l.Append(t.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice, Key: fmt.Sprint("k", i), To: "inbox", Data: []byte("{}")}}})
			must(t, err)
		}
		must(t, l.Close())
		execute(t, "UPDATE swarm.event e SET "+column+" = "+value+" FROM swarm.run r WHERE e.run = num AND seq = 3 AND id = $1", string(run))
		for how, read := range map[string]func(swarm.RunLog) error{
			"read":  func(l swarm.RunLog) error { _, err := l.Read(0, 9); return err },
			"inbox": func(l swarm.RunLog) error { _, err := l.Read(0, 9, "inbox"); return err },
			"scan":  func(l swarm.RunLog) error { return l.Scan(0, func(*swarm.Event) error { return nil }) },
			"from the middle": func(l swarm.RunLog) error {
				return l.Scan(2, func(*swarm.Event) error { return nil })
			},
			"find": func(l swarm.RunLog) error {
				key := "k2"
				if column == "key" {
					key = "k9"
				}
				_, _, err := l.Find(key)
				return err
			},
		} {
			l, err := s.Open(t.Context(), run, swarm.ReadOnly)
			must(t, err)
			if err := read(l); !errors.Is(err, swarm.ErrDamaged) {
				t.Errorf("%s of another %s: %v", how, column, err)
			}
			must(t, l.Close())
		}
	}
}

func TestADamagedTextIsNeverServed(t *testing.T) {
	s, run := openStore(t, &cutter{}), newRun()
	l, err := s.Create(t.Context(), run)
	must(t, err)
	defer l.Close()
	_, err = l.Append(t.Context(), swarm.Batch{Bodies: [][]byte{[]byte("right")}})
	must(t, err)
	execute(t, "UPDATE swarm.text SET data = 'wrong' FROM swarm.run WHERE run = num AND id = $1", string(run))
	if got, err := l.Body(swarm.HashOf([]byte("right"))); !errors.Is(err, swarm.ErrDamaged) {
		t.Errorf("it is served as %q, %v", got, err)
	}
}

func TestRunsAndTheirRemoval(t *testing.T) {
	s, run := openStore(t, &cutter{}), newRun()
	if _, err := s.Open(t.Context(), run, swarm.ReadOnly); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("a run that is not there: %v", err)
	}
	l, err := s.Create(t.Context(), run)
	must(t, err)
	if _, err := s.Create(t.Context(), run); swarm.KindOf(err) != swarm.BadInput {
		t.Errorf("a second one with its id: %v", err)
	}
	must(t, s.Save(t.Context(), swarm.RunSummary{ID: run, Status: swarm.Running, Name: "saved"}))
	found := 0
	for e, err := range s.Runs(t.Context(), swarm.RunQuery{Prefix: string(run[:8])}) {
		must(t, err)
		if e.ID == run && e.Saved && e.Name == "saved" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("it is listed %d times", found)
	}
	owner, err := l.Own(t.Context(), "1", time.Minute)
	must(t, err)
	var owned *swarm.OwnedError
	if _, err := s.Remove(t.Context(), run, swarm.RemoveOptions{Fence: owner.Fence}); !errors.As(err, &owned) {
		t.Errorf("removed while it is driven: %v", err)
	}
	must(t, l.Close())
	if _, err := s.Remove(t.Context(), run, swarm.RemoveOptions{Fence: owner.Fence - 1}); !errors.Is(err, swarm.ErrFenced) {
		t.Errorf("driven since the caller looked: %v", err)
	}
	_, err = s.Remove(t.Context(), run, swarm.RemoveOptions{Fence: owner.Fence})
	must(t, err)
	for e := range s.Runs(t.Context(), swarm.RunQuery{ID: run}) {
		t.Errorf("it is still there: %+v", e)
	}
}

// The age of a run is right if the database's clock is wrong.
func TestTheAgeOfARunIsByTheDatabasesClock(t *testing.T) {
	name := "skew-" + string(newRun())
	exec := func(s *Store, sql string) {
		t.Helper()
		must(t, s.do(t.Context(), patience, func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, sql)
			return err
		}))
	}
	exec(openStore(t, &cutter{}), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	address, err := url.Parse(postgrestest.Address(t))
	must(t, err)
	address.Path = "/" + name
	s, err := NewStore(address.String())
	must(t, err)
	defer s.Close()
	exec(s, `CREATE OR REPLACE FUNCTION swarm.clock() RETURNS bigint LANGUAGE sql VOLATILE
		AS $$ SELECT ((extract(epoch FROM clock_timestamp()) - 86400) * 1000000)::bigint $$`)
	l, err := s.Create(t.Context(), newRun())
	must(t, err)
	must(t, l.Close())
	for e, err := range s.Runs(t.Context(), swarm.RunQuery{}) {
		must(t, err)
		if age := time.Since(e.Changed); age > 12*time.Hour {
			t.Errorf("a new run is %v old", age)
		}
	}
}

// A machine that is gone sends no word. Its sessions, and so their locks, must end soon.
func TestTheServerLooksWhetherAClientIsThere(t *testing.T) {
	var idle, interval, count string
	must(t, openStore(t, &cutter{}).do(t.Context(), patience, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
			current_setting('tcp_keepalives_count')`).Scan(&idle, &interval, &count)
	}))
	if idle != "10" || interval != "5" || count != "3" {
		t.Errorf("after %s seconds, every %s, %s times", idle, interval, count)
	}
}

// Only a run that was here and was removed is a removed one.
func TestRemovedRunsAreRemembered(t *testing.T) {
	s, kept, removed := openStore(t, &cutter{}), newRun(), newRun()
	for _, run := range []swarm.RunID{kept, removed} {
		l, err := s.Create(t.Context(), run)
		must(t, err)
		must(t, l.Close())
	}
	_, err := s.Remove(t.Context(), removed, swarm.RemoveOptions{DryRun: true})
	must(t, err)
	asked := []swarm.RunID{kept, removed, "unknown"}
	if got, err := s.Removed(t.Context(), asked); err != nil || len(got) != 0 {
		t.Errorf("before the removal: %v, %v", got, err)
	}
	_, err = s.Remove(t.Context(), removed, swarm.RemoveOptions{})
	must(t, err)
	_, err = s.Remove(t.Context(), "unknown", swarm.RemoveOptions{})
	must(t, err)
	if got, err := openStore(t, &cutter{}).Removed(t.Context(), asked); err != nil || len(got) != 1 || got[0] != removed {
		t.Errorf("after it: %v, %v", got, err)
	}
}

// Two stores behave like two machines.
func TestALockIsOnesAtATime(t *testing.T) {
	a, b := openStore(t, &cutter{}), openStore(t, &cutter{})
	take := func(s *Store, what string) swarm.StoreLock {
		t.Helper()
		l, err := s.Lock(t.Context(), what)
		must(t, err)
		return l
	}
	first := take(a, "x")
	take(b, "y").Unlock()
	short, stop := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("no time"))
	defer stop()
	if _, err := b.Lock(short, "x"); err == nil || err.Error() != "no time" {
		t.Errorf("two have the lock: %v", err)
	}
	must(t, first.Held(t.Context()))
	first.Unlock()

	// A session that ends loses its lock. Its holder finds out, and the next one has it.
	second := take(b, "x")
	execute(t, "SELECT pg_terminate_backend($1)", second.(*lock).conn.PgConn().PID())
	third := take(a, "x")
	must(t, third.Held(t.Context()))
	if err := second.Held(t.Context()); swarm.KindOf(err) != swarm.Storage || swarm.HintOf(err) != "try it again" {
		t.Errorf("a lost lock: %v", err)
	}
	second.Unlock()
	third.Unlock()
}

// A lock waits for a server that is away for a moment, as a log does.
func TestALockWaitsForTheServer(t *testing.T) {
	var tries atomic.Int64
	s, err := newStore(postgrestest.Address(t), func(ctx context.Context, network, address string) (net.Conn, error) {
		if tries.Add(1) <= 5 {
			return nil, errors.New("the network is away")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	must(t, err)
	defer s.Close()
	l, err := s.Lock(t.Context(), "waits")
	must(t, err)
	l.Unlock()
}

// A check finds what was changed, and says how much is intact.
func TestACheckFindsDamage(t *testing.T) {
	for what, test := range map[string]struct {
		sql    string
		intact int64
	}{
		"nothing": {"SELECT $1::text", 5},
		"event":   {"UPDATE swarm.event e SET data = 'other' FROM swarm.run r WHERE e.run = num AND seq = 3 AND id = $1", 2},
		"gap":     {"DELETE FROM swarm.event e USING swarm.run r WHERE e.run = num AND seq = 2 AND id = $1", 1},
		"end":     {"DELETE FROM swarm.event e USING swarm.run r WHERE e.run = num AND seq = 5 AND id = $1", 4},
		"text":    {"UPDATE swarm.text SET data = 'wrong' FROM swarm.run WHERE run = num AND id = $1", 5},
	} {
		s, run := openStore(t, &cutter{}), newRun()
		l, err := s.Create(t.Context(), run)
		must(t, err)
		for range 5 {
			_, err := l.Append(t.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice, Data: []byte("{}")}}, Bodies: [][]byte{[]byte("right")}})
			must(t, err)
		}
		must(t, l.Close())
		execute(t, test.sql, string(run))
		check, err := s.Check(t.Context(), run, nil)
		if err != nil || check.Damaged != (what != "nothing") || check.Intact != test.intact {
			t.Errorf("%s: %+v, %v", what, check, err)
		}
	}
	if _, err := openStore(t, &cutter{}).Check(t.Context(), newRun(), nil); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("a run that is not there: %v", err)
	}
}

// An error never tells the password, nor a part of it.
func TestThePasswordIsNowhereInErrors(t *testing.T) {
	noise, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer noise.Close()
	go func() {
		for {
			conn, err := noise.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("no database\n"))
			conn.Close()
		}
	}()
	for _, address := range []string{
		"postgres://me:very-secret@127.0.0.1:1/x?connect_timeout=1",
		"postgres://me:very-secret@" + noise.Addr().String() + "/x",
		"postgres://me:very-secret@127.0.0.1:x/x",
		"postgres://me:very-secret@%zz/",
		"postgres://me@host/db?password=very-secret&sslmode=bogus",
		"postgres://me:very-secret/more@host/db",
		"postgres://me:very-secret:more%zz@host/db",
	} {
		s, err := NewStore(address)
		if err == nil {
			defer s.Close()
			s.lost = true // it waits for a second only
			_, err = s.Open(t.Context(), "run", swarm.ReadOnly)
		}
		if err == nil || strings.Contains(err.Error()+swarm.HintOf(err), "very-secret") || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A log that is closed during an outage waits a short time only. It tells the others nothing.
func TestAShortWaitInVainLeavesOthersTheirPatience(t *testing.T) {
	s, err := newStore("postgres://me@127.0.0.1:1/x", func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("the network is away")
	})
	must(t, err)
	defer s.Close()
	s.ready = true // it was used before
	if err := s.do(t.Context(), 10*time.Millisecond, nil); err == nil {
		t.Fatal("a store without a network was reached")
	}
	if _, lost := s.reached(); lost {
		t.Error("the store counts as lost after a short wait")
	}
}

func BenchmarkAppend(b *testing.B) {
	s := openStore(b, &cutter{})
	l, err := s.Create(b.Context(), newRun())
	must(b, err)
	defer l.Close()
	data := []byte(`{"text":"` + strings.Repeat("x", 280) + `"}`)
	for i := 0; b.Loop(); i++ {
		_, err := l.Append(b.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.Notice, Key: fmt.Sprint("k", i), To: "inbox", Data: data}}})
		must(b, err)
	}
}
