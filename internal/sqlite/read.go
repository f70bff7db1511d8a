package sqlite

import (
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"swarm"
)

// These statements have no LIMIT. A reader takes as many rows as it needs and resets the statement.
// With a LIMIT as an argument, SQLite would compile the statement again each time.
const (
	sqlEvents  = "SELECT seq, time, kind, agent, task, turn, rcv, key, data FROM ev WHERE "
	sqlAfter   = sqlEvents + "seq>? ORDER BY seq"
	sqlForSome = sqlEvents + "seq>? AND seq<=? AND rcv IS NOT NULL ORDER BY seq"
	sqlByKey   = sqlEvents + "key=?"
	sqlVersion = "PRAGMA data_version"

	page = 512 // events read at once: a reader must not hold a transaction open for long

	mostBorrowed = 32 // reads that use the writing connection
)

func (l *Log) closeReader() error {
	l.rmu.Lock()
	defer l.rmu.Unlock()
	if l.r == nil || l.r.db == 0 {
		l.r = &conn{}
		return nil
	}
	err := l.r.close()
	l.r = &conn{} // closed for good
	if l.scrap != "" {
		err = errors.Join(err, os.RemoveAll(l.scrap))
	}
	return err
}

// reading runs f on the reading connection. A second connection costs more than most commands read.
// So the first reads borrow the writing connection while no goroutine writes.
func (l *Log) reading(f func(*conn) error) error {
	l.rmu.Lock()
	defer l.rmu.Unlock()
	if l.r == nil && l.borrowed < mostBorrowed && l.queue.tryLead() {
		l.borrowed++
		defer l.release()
		return f(l.w)
	}
	if l.r == nil {
		r, err := connectReader(l.path, 0)
		if err != nil {
			return err
		}
		l.r, l.seen = r, -1 // Each connection counts versions for itself.
	}
	if l.r.db == 0 {
		return l.errClosed()
	}
	return f(l.r)
}

// follow brings the tail up to date with the file.
func (l *Log) follow() error { return l.reading(l.catchUp) }

func (l *Log) catchUp(r *conn) error {
	version, _, err := r.number(sqlVersion) // The version is read before the events, so a commit in between is found the next time.
	if err != nil {
		return err
	}
	t := &l.tail
	upto, ok := t.position()
	if !ok {
		last, _, err := r.number(sqlLast)
		if err != nil {
			return err
		}
		t.start(last)
		l.seen = version
		return nil
	}
	if version == l.seen {
		return nil
	}
	for {
		es, err := r.events(nil, page, sqlAfter, upto)
		if err != nil {
			return err
		}
		if len(es) > 0 {
			upto = es[len(es)-1].Seq
			if err := l.secure(upto); err != nil {
				return err
			}
			t.mu.Lock()
			t.deliver(es)
			t.mu.Unlock()
		}
		if len(es) < page {
			l.seen = version
			return nil
		}
	}
}

// Read returns up to limit events after a number, see [swarm.Log]. It sees all events of this
// process. While something is watched, events of other processes may come a poll later, but never
// behind an empty answer: an agent that asks for its mail after another process was told that a
// message is stored gets that message. Loops wait for their watch instead of asking.
func (l *Log) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	es, err := l.read(after, limit, to)
	toLoop := slices.ContainsFunc(to, func(to string) bool { return strings.HasPrefix(to, swarm.ToLoop("")) })
	if err == nil && len(es) == 0 && !toLoop {
		if err = l.follow(); err == nil {
			es, err = l.read(after, limit, to)
		}
	}
	if err != nil || len(es) == 0 {
		return nil, err
	}
	if toLoop {
		return es, nil // A decision of the loop is durable only together with the events that the loop has read, so no sync is needed here.
	}
	return es, l.secure(es[len(es)-1].Seq)
}

func (l *Log) read(after int64, limit int, to []string) ([]swarm.Event, error) {
	if limit <= 0 {
		return nil, nil
	}
	if !l.tail.fresh() {
		if err := l.follow(); err != nil {
			return nil, err
		}
	}
	if es, ok := l.tail.read(after, limit, to); ok {
		return es, nil
	}
	var es []swarm.Event
	err := l.reading(func(r *conn) (err error) {
		if len(to) == 0 {
			es, err = r.events(nil, limit, sqlAfter, after)
			return err
		}
		if err := l.backfill(r, after); err != nil {
			return err
		}
		var ok bool
		if es, ok = l.tail.read(after, limit, to); ok {
			return nil
		}
		args := []any{after}
		for _, to := range to {
			args = append(args, to)
		}
		some := "rcv IN (?" + strings.Repeat(",?", len(to)-1) + ")"
		if slices.Contains(to, swarm.ToAgents) {
			some = "(" + some + " OR rcv GLOB '" + swarm.ToAgents + "*')"
		}
		sql := sqlEvents + "seq>? AND " + some + " ORDER BY seq"
		es, err = r.events(nil, limit, sql, args...)
		return err
	})
	return es, err
}

// backfill reads the file after a number into memory, for all receivers at once. There is no index
// by receiver, and one scan serves every inbox and loop of a resumed run.
func (l *Log) backfill(r *conn, after int64) error {
	t := &l.tail
	t.mu.Lock()
	base := t.base
	t.mu.Unlock()
	if after >= base {
		return nil
	}
	boxes := map[string]*box{}
	var es []swarm.Event
	for from := after; ; {
		var err error
		if es, err = r.events(es[:0], page, sqlForSome, from, base); err != nil {
			return err
		}
		for _, e := range es {
			for _, to := range receivers(e.To) {
				if boxes[to] == nil {
					boxes[to] = &box{floor: after}
				}
				boxes[to].add(e)
			}
			from = e.Seq
		}
		if len(es) < page {
			t.extend(after, boxes)
			return nil
		}
	}
}

// events reads rows into es.
func (c *conn) events(es []swarm.Event, limit int, sql string, args ...any) ([]swarm.Event, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	defer s.done()
	if err := s.bind(args...); err != nil {
		return nil, err
	}
	for len(es) < limit {
		ok, err := s.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		var e swarm.Event
		s.event(&e)
		if data := s.view(8); data != nil {
			e.Data = append([]byte(nil), data...)
		}
		es = append(es, e)
	}
	return es, nil
}

// event reads a row without its data.
func (s *stmt) event(e *swarm.Event) {
	e.Seq = s.int64(0)
	e.Time = time.UnixMicro(s.int64(1)).UTC()
	e.Kind = swarm.EventKind(s.name(2))
	e.Agent, e.Task, e.Turn = s.name(3), s.name(4), swarm.TurnID(s.text(5))
	e.To, e.Key = s.name(6), s.text(7)
}

// Scan calls f with every event after a number, in order. It is the fast way through a long log:
// the event and its data are valid only until f returns.
func (l *Log) Scan(after int64, f func(*swarm.Event) error) error {
	es := make([]swarm.Event, 0, page)
	var data []byte
	for {
		err := l.reading(func(r *conn) (err error) {
			es, data, err = r.fill(es[:0], data[:0], after)
			return err
		})
		if err == nil && len(es) > 0 {
			err = l.secure(es[len(es)-1].Seq)
		}
		if err != nil {
			return err
		}
		for i := range es {
			after = es[i].Seq
			if err := f(&es[i]); err != nil {
				return err
			}
		}
		if len(es) < page {
			return nil
		}
	}
}

// fill reads one page into memory that is reused.
func (c *conn) fill(es []swarm.Event, data []byte, after int64) ([]swarm.Event, []byte, error) {
	s, err := c.prepare(sqlAfter)
	if err != nil {
		return es, data, err
	}
	defer s.done()
	if err := s.bind(after); err != nil {
		return es, data, err
	}
	for len(es) < page {
		ok, err := s.next()
		if err != nil || !ok {
			return es, data, err
		}
		es = append(es, swarm.Event{})
		e := &es[len(es)-1]
		s.event(e)
		if b := s.view(8); b != nil {
			data = append(data, b...)
			e.Data = data[len(data)-len(b) : len(data) : len(data)]
		}
	}
	return es, data, nil
}

// Find returns the event with this idempotency key.
func (l *Log) Find(key string) (e swarm.Event, ok bool, err error) {
	if key == "" {
		return e, false, nil
	}
	err = l.reading(func(r *conn) error {
		es, err := r.events(nil, 1, sqlByKey, key)
		if len(es) > 0 {
			e, ok = es[0], true
		}
		return err
	})
	if err == nil && ok {
		err = l.secure(e.Seq)
	}
	return e, ok, err
}

// Body returns the text with this hash.
func (l *Log) Body(h swarm.Hash) (data []byte, err error) {
	if h == swarm.NoText {
		return []byte{}, nil
	}
	sum, err := hex.DecodeString(string(h))
	if err != nil || len(sum) != 32 {
		return nil, swarm.ErrNoBody
	}
	err = l.reading(func(r *conn) error {
		s, err := r.prepare("SELECT data FROM body WHERE hash=?")
		if err != nil {
			return err
		}
		defer s.done()
		if err := s.bind(sum); err != nil {
			return err
		}
		ok, err := s.next()
		if err != nil {
			return err
		}
		if !ok {
			return swarm.ErrNoBody
		}
		data = append([]byte{}, s.view(0)...)
		return nil
	})
	return data, err
}
