package sqlite

import (
	"time"

	"swarm"
	"swarm/internal/logbase"
)

// The events of a log form a chain of checksums (logbase.Sum). The checksums of pages (vfs.go) find
// most damage before. The chain finds what they cannot: a page that the disk never wrote, so that an older version of the page, with a correct checksum, stands
// in its place.

// A query is a statement in two forms: for logs whose events have checksums, and for older logs.
type query struct{ summed, plain string }

func (c *conn) query(q query) string {
	if c.sums {
		return q.summed
	}
	return q.plain
}

const columns = "SELECT seq, time, kind, agent, task, turn, rcv, key, data"

// These statements have no LIMIT. A reader takes as many rows as it needs and resets the statement.
// With a LIMIT as an argument, SQLite would compile the statement again each time.
var (
	queryAfter = query{columns + ", sum FROM ev WHERE seq>=? ORDER BY seq", columns + " FROM ev WHERE seq>? ORDER BY seq"}
	queryKey   = query{columns + ", sum FROM ev WHERE key=?", columns + " FROM ev WHERE key=?"}
	queryLast  = query{"SELECT seq, time, sum FROM ev ORDER BY seq DESC LIMIT 1", "SELECT seq, time FROM ev ORDER BY seq DESC LIMIT 1"}
	insert     = query{"INSERT INTO ev VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
		"INSERT INTO ev VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"}
)

// A row is an event in SQLite's memory. Its texts are valid until the next step.
type row struct {
	seq, micros int64
	fields      [6][]byte // kind, agent, task, turn, receiver, key
	data        []byte
	sum         uint32 // as it is stored
}

func (s *stmt) row(r *row) {
	r.seq, r.micros = s.int64(0), s.int64(1)
	for i := range r.fields {
		r.fields[i] = s.view(int32(2 + i))
	}
	r.data = s.view(8)
	if s.c.sums {
		r.sum = uint32(s.int64(9))
	}
}

// event returns a row as an event without its data.
func (c *conn) event(r *row) swarm.Event {
	f := &r.fields
	e := swarm.Event{Seq: r.seq, Time: time.UnixMicro(r.micros).UTC(), Kind: swarm.EventKind(c.name(f[0])),
		Agent: c.name(f[1]), Task: c.name(f[2]), Turn: swarm.TurnID(f[3]), To: c.name(f[4]), Key: string(f[5])}
	e.UseCurrentNames()
	return e
}

// fullEvent returns a row as an event with a copy of its data.
func (c *conn) fullEvent(r *row) swarm.Event {
	e := c.event(r)
	e.Data = append([]byte(nil), r.data...)
	return e
}

// walk calls f with up to page events after a number, in order, until f returns false. It checks
// every event that it passes, so no reader may let SQL leave some out. It returns the number of the
// last one, and whether there may be more.
func (c *conn) walk(after int64, f func(*row) bool) (last int64, more bool, err error) {
	s, err := c.prepare(c.query(queryAfter))
	if err != nil {
		return after, false, err
	}
	defer s.done()
	if err := s.bind(after); err != nil {
		return after, false, err
	}
	last = max(after, 0)
	sum := uint32(0)
	if c.sums && last > 0 {
		ok, err := s.next() // the event before the first one that is asked for
		if err == nil && ok && s.int64(0) != last {
			err = c.damaged(damage{event: last})
		}
		if err != nil || !ok {
			return after, false, err
		}
		sum = uint32(s.int64(9))
	}
	var r row
	for range page {
		ok, err := s.next()
		if err != nil || !ok {
			return last, false, err
		}
		s.row(&r)
		if c.sums {
			sum = logbase.Sum(&c.fields, sum, r.seq, r.micros, &r.fields, r.data)
			if r.seq != last+1 || r.sum != sum {
				return last, false, c.damaged(damage{event: last + 1})
			}
		}
		last = r.seq
		if !f(&r) {
			return last, false, nil
		}
	}
	return last, true, nil
}

// find returns the event with a key. It is checked against the event before it.
func (c *conn) find(key string) (e swarm.Event, ok bool, err error) {
	s, err := c.prepare(c.query(queryKey))
	if err != nil {
		return e, false, err
	}
	defer s.done()
	if err := s.bind(key); err != nil {
		return e, false, err
	}
	if ok, err = s.next(); err != nil || !ok {
		return e, false, err
	}
	var r row
	s.row(&r)
	if c.sums {
		before, there, err := c.number("SELECT sum FROM ev WHERE seq=?", r.seq-1)
		if err != nil {
			return e, false, err
		}
		if there != (r.seq > 1) || r.sum != logbase.Sum(&c.fields, uint32(before), r.seq, r.micros, &r.fields, r.data) || string(r.fields[5]) != key {
			return e, false, c.damaged(damage{event: r.seq})
		}
	}
	return c.fullEvent(&r), true, nil
}
