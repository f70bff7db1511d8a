package sqlite

import "context"

// SaveFold keeps a fold of the log up to an event: what somebody made of it, so that the next one need not read it all. It may be
// thrown away at any time, so it waits for no disk. Another fold with this name is replaced.
func (l *Log) SaveFold(name, version string, seq int64, data []byte) error {
	return l.submit(context.Background(), &request{
		change: func(t *tx) error {
			return t.w.exec("REPLACE INTO fold VALUES(?,?,?,?)", name, version, seq, data)
		},
		noSync: true,
		bytes:  len(data),
		done:   make(chan bool, 1),
	})
}

// LoadFold returns the fold with this name, if one was saved by the same version of whoever makes it.
func (l *Log) LoadFold(name, version string) (seq int64, data []byte, ok bool) {
	_ = l.reading(func(r *conn) error { // what cannot be read is not there: it will be made again
		s, err := r.prepare("SELECT seq, data FROM fold WHERE name=? AND version=?")
		if err != nil {
			return err
		}
		defer s.done()
		if err := s.bind(name, version); err != nil {
			return err
		}
		if ok, err = s.next(); ok {
			seq, data = s.int64(0), append([]byte{}, s.view(1)...)
		}
		return err
	})
	return seq, data, ok
}
