package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"swarm"
	"swarm/internal/logbase"
)

const (
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
	if l.r == nil && l.borrowed < mostBorrowed && l.queue.TryLead() {
		l.borrowed++
		defer l.queue.Release()
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

// mayLack reports whether another process may have acknowledged an event that the tail lacks. It
// reads the mark, so that an agent's every look at its mail need not be a transaction. A process of
// an older build raises no mark: its events come with the next poll.
func (l *Log) mayLack() bool {
	upto, ok := l.tail.Position()
	return !ok || l.readOnly || !l.writeLock.mark.covers(upto)
}

// follow brings the tail up to date with the file.
func (l *Log) follow() error { return l.reading(l.catchUp) }

func (l *Log) catchUp(r *conn) error {
	version, _, err := r.number(sqlVersion) // The version is read before the events, so a commit in between is found the next time.
	if err != nil {
		return err
	}
	t := &l.tail
	upto, ok := t.Position()
	if !ok {
		last, _, err := r.number(r.query(queryLast))
		if err != nil {
			return err
		}
		t.Start(last)
		l.seen = version
		return nil
	}
	if version == l.seen {
		return nil
	}
	last, _, err := r.number(r.query(queryLast))
	if err == nil && last < upto { // The file was changed by another program.
		err = r.damaged(damage{what: fmt.Sprintf("it ends at event %d, and %d were acknowledged", last, upto)})
	}
	if err != nil {
		return err
	}
	for more := true; more; {
		var es []swarm.Event
		upto, more, err = r.walk(upto, func(row *row) bool {
			es = append(es, r.fullEvent(row))
			return true
		})
		if err != nil {
			return err
		}
		if len(es) > 0 {
			if err := l.secure(upto); err != nil {
				return err
			}
			t.Deliver(es)
		}
	}
	l.seen = version
	return nil
}

// Read returns up to limit events after a number, see [swarm.Log]. It sees all events of this
// process. While something is watched, events of other processes may come a poll later, but never
// behind an empty answer: an agent that asks for its mail after another process was told that a
// message is stored gets that message. Loops wait for their watch instead of asking.
func (l *Log) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	es, err := l.read(after, limit, to)
	toLoop := logbase.ToLoop(to)
	if err == nil && len(es) == 0 && !toLoop && l.mayLack() {
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
	if !l.tail.Fresh() {
		if err := l.follow(); err != nil {
			return nil, err
		}
	}
	if es, ok := l.tail.Read(after, limit, to); ok {
		return es, nil
	}
	var es []swarm.Event
	err := l.reading(func(r *conn) (err error) {
		if len(to) > 0 {
			if err := l.tail.Backfill(after, r.walker); err != nil {
				return err
			}
			var ok bool
			if es, ok = l.tail.Read(after, limit, to); ok {
				return nil
			}
		}
		for more := true; more && err == nil; {
			after, more, err = r.walk(after, func(row *row) bool {
				if len(to) == 0 || logbase.Addressed(r.name(row.fields[4]), to) {
					es = append(es, r.fullEvent(row))
				}
				return len(es) < limit
			})
		}
		return err
	})
	return es, err
}

// walker is [conn.walk] for the tail.
func (c *conn) walker(after int64, f func(seq int64, to string, full func() swarm.Event) bool) (last int64, more bool, err error) {
	var now *row
	full := func() swarm.Event { return c.fullEvent(now) }
	return c.walk(after, func(r *row) bool {
		now = r
		return f(r.seq, c.name(r.fields[4]), full)
	})
}

// Scan calls f with every event after a number, in order. It is the fast way through a long log:
// the event and its data are valid only until f returns.
func (l *Log) Scan(after int64, f func(*swarm.Event) error) error {
	es := make([]swarm.Event, 0, page)
	var data []byte
	for more := true; more; {
		es, data = es[:0], data[:0]
		err := l.reading(func(r *conn) (err error) {
			after, more, err = r.walk(after, func(row *row) bool {
				e := r.event(row)
				if n := len(row.data); n > 0 {
					data = append(data, row.data...)
					e.Data = data[len(data)-n : len(data) : len(data)]
				}
				es = append(es, e)
				return true
			})
			return err
		})
		if err == nil && len(es) > 0 {
			err = l.secure(after)
		}
		if err != nil {
			return err
		}
		for i := range es {
			if err := f(&es[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find returns the event with this idempotency key.
func (l *Log) Find(key string) (e swarm.Event, ok bool, err error) {
	if key == "" {
		return e, false, nil
	}
	err = l.reading(func(r *conn) (err error) {
		e, ok, err = r.find(key)
		return err
	})
	if err == nil && ok {
		err = l.secure(e.Seq)
	}
	return e, ok, err
}

// Keys returns the keys that begin with a text, those of the newest events first. Find checks their
// events.
func (l *Log) Keys(prefix string) (keys []string, err error) {
	if prefix == "" {
		return nil, nil
	}
	last := len(prefix) - 1
	end := prefix[:last] + string([]byte{prefix[last] + 1}) // every key that begins so is less; a key is ASCII up to here
	err = l.reading(func(r *conn) error {
		s, err := r.prepare("SELECT key FROM ev WHERE key>=? AND key<? ORDER BY seq DESC")
		if err != nil {
			return err
		}
		defer s.done()
		if err := s.bind(prefix, end); err != nil {
			return err
		}
		for {
			ok, err := s.next()
			if err != nil || !ok {
				return err
			}
			keys = append(keys, s.text(0))
		}
	})
	return keys, err
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
		if sha256.Sum256(data) != [sha256.Size]byte(sum) {
			data = nil
			return r.damaged(damage{what: "the text " + string(h) + " is not what was written"})
		}
		return nil
	})
	return data, err
}
