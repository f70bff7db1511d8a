package sqlite

import "context"

// SaveFold keeps a fold of the log up to an event: a state that a reader computed, so that the next
// reader need not read the whole log. A fold may be lost at any time, so it is not synced. It
// replaces the fold with the same name.
func (l *Log) SaveFold(name, version string, seq int64, data []byte) error {
	if l.readOnly {
		return l.errReadOnly()
	}
	return l.queue.Submit(context.Background(), &request{
		Change: func(t *tx) error {
			return t.w.exec("REPLACE INTO fold VALUES(?,?,?,?)", name, version, seq, data)
		},
		NoSync: true,
		Bytes:  len(data),
	})
}

// LoadFold returns the fold with this name, if the same version of its reader saved it.
func (l *Log) LoadFold(name, version string) (seq int64, data []byte, ok bool) {
	_ = l.reading(func(r *conn) error { // A fold that cannot be read counts as missing: the reader computes it again.
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
