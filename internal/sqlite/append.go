package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	lib "modernc.org/sqlite/lib"

	"swarm"
	"swarm/internal/logbase"
)

// Append writes a batch, see [logbase.Queue.Append].
func (l *Log) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if l.readOnly {
		return nil, l.errReadOnly()
	}
	return l.queue.Append(ctx, b)
}

// Flush writes the lazy batches that wait, see [logbase.Queue.Flush].
func (l *Log) Flush() { l.queue.Flush() }

// Err returns the error of a lazy batch that could not be written, if there was one.
func (l *Log) Err() error { return l.queue.Err() }

// A request is what the queue of this store holds.
type request = logbase.Request[*tx]

// commit writes a group as one transaction.
func (l *Log) commit(group []*request) {
	sync, early, bytes := false, false, 0
	for _, r := range group {
		sync, early = sync || !r.NoSync, early || r.Batch.Early
		bytes += r.Bytes
	}
	t := tx{l: l, w: l.w}
	l.wrote = l.wrote[:0]
	err := l.write(&t, group, sync, early, l.mode(sync, bytes))
	for _, r := range group {
		if err != nil {
			r.Seqs, r.Err = nil, err
		}
		if r.Lazy && r.Err != nil {
			l.queue.Lose(r)
		}
	}
	if err == nil && l.tail.Push(t.first, l.wrote) {
		_ = l.follow() // Other processes wrote in between. A failure shows at the next read.
	}
}

// write makes the transaction. If it returns an error, nothing of the group is written, or the disk
// failed and the state of the disk is unknown.
func (l *Log) write(t *tx, group []*request, sync, early bool, mode string) (err error) {
	if broken := l.broken.Load(); broken != nil {
		return broken
	}
	if err := l.writeLock.lock(l.busyLimit); err != nil {
		return err
	}
	defer func() {
		if err == nil && t.changed {
			l.writeLock.notify()
		}
		_ = l.writeLock.unlock()
	}()
	l.writes.Add(1)
	if err := l.setMode(mode); err != nil {
		return err
	}
	if err := t.begin(); err != nil {
		return err
	}
	for _, r := range group {
		refusal, failure := t.apply(r)
		if failure != nil {
			_ = t.w.exec("ROLLBACK")
			return failure
		}
		if r.Err = refusal; refusal != nil && r.Lazy {
			l.queue.Lose(r)
		}
	}
	l.makeRoom()
	if err := l.end(t, sync, early); err != nil {
		return err
	}
	l.fresh = false
	return l.setMode(syncNormal) // Otherwise closing the log would move events without a sync.
}

// end commits the transaction and, if sync is true, syncs it. smu is held for both, so a reader
// that has seen one of its events waits in secure until the sync is done.
func (l *Log) end(t *tx, sync, early bool) error {
	l.smu.Lock()
	defer l.smu.Unlock()
	if err := t.w.exec("COMMIT"); err != nil {
		_ = t.w.exec("ROLLBACK")
		return l.judge(err)
	}
	if !t.changed && !t.repeats {
		return nil
	}
	l.last = max(l.last, t.last)
	l.owed.Store(true) // An event that was there already may be of a lazy batch, even of another process, and not durable yet.
	l.early = l.early || early
	switch {
	case sync:
		return l.sync()
	case !l.early && t.first <= l.durable.Load(): // Lazy events follow from durable ones: a run that loses them decides them again.
		l.durable.Store(t.last)
	}
	return nil
}

// The syncs of SQLite itself. This package syncs commits, with one call for all commits before it.
const (
	syncOff    = "PRAGMA synchronous=OFF"    // nothing
	syncNormal = "PRAGMA synchronous=NORMAL" // checkpoints: the move of events from one file to the other, in the right order
)

// keepInMemory keeps a transaction in memory until it is committed. Otherwise SQLite may write a
// frame of a large transaction twice, and correct the checksums of the frames after it only at the
// end. Reads in between would find them damaged.
const keepInMemory = "PRAGMA cache_spill=OFF"

// maxFirst is the largest first commit that is synced once. SQLite makes a checkpoint when a commit
// brings the write-ahead log to 1,000 pages, and must sync both files then.
const maxFirst = 1 << 20

// mode returns the syncs that the next commit needs. In a new log, SQLite would first sync the
// empty write-ahead log and the folder. The folder is durable already, and the sync of the commit
// covers the rest.
func (l *Log) mode(sync bool, bytes int) string {
	if sync && l.fresh && bytes < maxFirst {
		return syncOff
	}
	return syncNormal
}

func (l *Log) setMode(mode string) error {
	if mode == l.synchronous {
		return nil
	}
	err := l.w.once(mode)
	if err == nil {
		l.synchronous = mode
	}
	return err
}

// judge classifies a failed commit. A full disk does no harm: nothing was written, and there may be
// room later. A failed sync breaks the log for good: the kernel forgets the pages that it could not
// write, so a later commit would build on missing data.
func (l *Log) judge(err error) error {
	var e *sqliteError
	if errors.As(err, &e) && (e.code == lib.SQLITE_IOERR_FSYNC || e.code == lib.SQLITE_IOERR_DIR_FSYNC) {
		return l.breaks(e)
	}
	return err
}

func (l *Log) breaks(cause error) error {
	e := &swarm.Error{Kind: swarm.Storage, File: l.path, Msg: "the disk failed, and nothing more is written", Err: cause,
		Hint: "look at the disk, then resume the run"}
	l.broken.Store(e)
	return e
}

// settle syncs the commits that were not synced, if there are any. Any goroutine may call it,
// beside the writer. When it returns, no such sync is under way.
func (l *Log) settle() error {
	l.smu.Lock()
	defer l.smu.Unlock()
	if !l.owed.Load() {
		return nil
	}
	return l.sync()
}

// secure makes an event durable before a reader gets it. Its commit may still wait for a sync, in
// this process or in another one.
func (l *Log) secure(seq int64) error {
	if seq <= l.durable.Load() {
		return nil
	}
	l.smu.Lock()
	defer l.smu.Unlock()
	if seq <= l.durable.Load() {
		return nil
	}
	l.last = max(l.last, seq)
	return l.sync()
}

// sync syncs all commits. The caller holds smu.
func (l *Log) sync() error {
	wal := l.wal
	if l.readOnly {
		f, err := os.Open(l.path + "-wal")
		if errors.Is(err, fs.ErrNotExist) { // The process that closed the log has moved everything into the file.
			l.durable.Store(l.last)
			return nil
		}
		if err != nil {
			return storage(l.path, "the log cannot be read", err)
		}
		defer f.Close()
		wal = f
	}
	if err := wal.Sync(); err != nil {
		return l.breaks(err)
	}
	if !l.readOnly { // before a reader gets the events: a crash in between would leave the mark too low
		if err := l.writeLock.mark.raise(l.last); err != nil {
			return l.breaks(err)
		}
	}
	l.owed.Store(false)
	l.early = false
	l.durable.Store(l.last)
	return nil
}

// A tx is one transaction. It belongs to the leader of the queue.
type tx struct {
	l           *Log
	w           *conn
	first, last int64  // the log's last number before the transaction, and now
	sum         uint32 // the last event's checksum
	now         int64
	newest      int64 // the time of the last event before the transaction; 0 = there is none
	fence       int64 // the owner's fence; -1 = not read yet
	changed     bool  // something was written
	repeats     bool  // something was there already
}

const (
	sqlFence = "SELECT fence FROM run"
	sqlKey   = "SELECT seq, kind, data FROM ev WHERE key=?"
	sqlUndo  = "DELETE FROM ev WHERE seq>?"
	sqlBody  = "INSERT INTO body VALUES(?,?) ON CONFLICT DO NOTHING"
)

func (t *tx) begin() error {
	if err := t.w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	s, err := t.w.prepare(t.w.query(queryLast))
	if err != nil {
		_ = t.w.exec("ROLLBACK")
		return err
	}
	defer s.done()
	t.fence, t.now = -1, time.Now().UnixMicro()
	ok, err := s.next()
	if err != nil {
		s.done()
		_ = t.w.exec("ROLLBACK")
		return err
	}
	if ok {
		t.first = s.int64(0)
		t.newest = s.int64(1)
		t.now = max(t.now, t.newest) // The time of a log never runs backwards.
		if t.w.sums {
			t.sum = uint32(s.int64(2))
		}
	}
	t.last = t.first
	return nil
}

// apply does what one request asks for. A refusal concerns this request, and has written nothing. A
// failure concerns the whole group.
func (t *tx) apply(r *request) (refusal, failure error) {
	if r.Change != nil {
		err := r.Change(t)
		var e *sqliteError
		if errors.As(err, &e) {
			return nil, err
		}
		t.changed = t.changed || err == nil
		return err, nil
	}
	if refusal, failure = t.admit(&r.Batch); refusal != nil || failure != nil {
		return refusal, failure
	}
	first, sum, wrote := t.last, t.sum, len(t.l.wrote)
	r.Seqs = make([]int64, len(r.Batch.Events))
	for i := range r.Batch.Events {
		seq, err := t.insert(&r.Batch.Events[i])
		if errors.Is(err, swarm.ErrConflict) {
			r.Seqs, t.last, t.sum, t.l.wrote = nil, first, sum, t.l.wrote[:wrote]
			return err, t.w.exec(sqlUndo, first)
		}
		if err != nil {
			return nil, err
		}
		r.Seqs[i] = seq
	}
	for i, text := range r.Batch.Bodies {
		if err := t.w.exec(sqlBody, r.Sums[i][:], text); err != nil {
			return nil, err
		}
		t.note(t.w.changed() > 0)
	}
	return nil, nil
}

func (t *tx) note(written bool) {
	t.changed = t.changed || written
	t.repeats = t.repeats || !written
}

// admit checks the conditions of a batch.
func (t *tx) admit(b *swarm.Batch) (refusal, failure error) {
	if b.Fence != 0 {
		fence, err := t.owner()
		if err != nil {
			return nil, err
		}
		if fence != b.Fence {
			return swarm.ErrFenced, nil
		}
		if err := t.l.queue.Lost(b.Fence); err != nil {
			return err, nil
		}
	}
	for _, key := range b.Absent {
		_, there, err := t.w.number(sqlKey, key)
		if err != nil {
			return nil, err
		}
		if there {
			return swarm.ErrStale, nil
		}
	}
	return nil, nil
}

func (t *tx) owner() (int64, error) {
	if t.fence < 0 {
		fence, _, err := t.w.number(sqlFence)
		if err != nil {
			return 0, err
		}
		t.fence = fence
	}
	return t.fence, nil
}

// insert writes one event, or finds it by its idempotency key.
func (t *tx) insert(e *swarm.Event) (int64, error) {
	fields := [6]string{string(e.Kind), e.Agent, e.Task, string(e.Turn), e.To, e.Key}
	args := [10]any{t.last + 1, t.now, fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], text(e.Data)}
	n, sum := 9, t.sum
	if t.w.sums {
		sum = logbase.Sum(&t.w.fields, sum, t.last+1, t.now, &fields, e.Data)
		args[9], n = int64(sum), 10
	}
	if err := t.w.exec(t.w.query(insert), args[:n]...); err != nil {
		return 0, err
	}
	written := e.Key == "" || t.w.changed() > 0
	t.note(written)
	if !written {
		return t.find(e)
	}
	t.last++
	t.sum = sum
	t.l.wrote = append(t.l.wrote, *e)
	w := &t.l.wrote[len(t.l.wrote)-1]
	w.Seq, w.Time = t.last, time.UnixMicro(t.now).UTC()
	return t.last, nil
}

// find returns the number of an event that was written before. An event with the same key and
// another content is a conflict.
func (t *tx) find(e *swarm.Event) (int64, error) {
	s, err := t.w.prepare(sqlKey)
	if err != nil {
		return 0, err
	}
	defer s.done()
	if err := s.bind(e.Key); err != nil {
		return 0, err
	}
	ok, err := s.next()
	switch {
	case err != nil:
		return 0, err
	case !ok || string(s.view(1)) != string(e.Kind) || !bytes.Equal(s.view(2), e.Data):
		return 0, fmt.Errorf("%w: %s", swarm.ErrConflict, e.Key)
	}
	return s.int64(0), nil
}
