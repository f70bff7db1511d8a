// Package sqlite keeps the log of one run in one SQLite file.
//
// # Writing
//
// An append is acknowledged when it is durable. There is no writer goroutine. A caller that appends
// while no other caller writes becomes the leader: it writes all batches that wait into one
// transaction, so that many callers share one sync. When its own batch is answered, it hands over
// to the next. Between processes an flock hands over the write lock, because SQLite's own waiting
// sleeps.
//
// A lazy batch is written with the next batch that has a waiting caller, or after a moment without
// a sync of its own. The next sync covers it, so the log never has a hole.
//
// An early batch is committed at once, and synced in the same way. Its events are handed out when
// they are known to be durable. The loop to which they are addressed gets them before. A reader
// that meets a newer event syncs first, whichever process wrote it.
//
// The write-ahead log has room ahead of need, so that a sync writes events and no file system
// metadata.
//
// The store's clock is this machine's, read inside the transaction. If the clock is set back, the
// log's time stands still until the clock has caught up.
//
// # Reading
//
// Readers that follow the log are served from memory. Events of this process are there at once.
// Events of other processes are polled for while a follower watches. A commit rings, by a byte read
// from the .lock file, so that a follower at rest need not poll. All older events are read from the
// file.
//
// # Files
//
// Beside the file are SQLite's own -wal and -shm, and two files that carry locks: .lock is the
// write lock, and has the number of the last durable event (mark.go). The lock on .owner is free when the process that drives the run is dead.
package sqlite

import (
	_ "embed" // for the empty log
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"swarm"
	"swarm/internal/logbase"
)

const (
	format        = 2          // version of the file; a file with a higher number is refused
	formatChecked = 2          // from this version on, pages and events have checksums
	appID         = 0x7377726d // "swrm": marks an SQLite file as a log of ours
	pageSize      = 4096
)

// empty is a log without events, as schema.sql makes it. A new log is a copy: running the schema
// would cost more than the first append does.
//
//go:embed empty.db
var empty []byte

// A Log is the open log of one run. Its methods may be used by many goroutines at once.
type Log struct {
	path     string
	readOnly bool
	scrap    string // a folder to be removed when the log is closed

	queue logbase.Queue[*tx] // the batches that wait to be written

	// The fields up to the next blank line belong to the leader of the queue, so they have no
	// mutex.
	w           *conn
	wal         *os.File      // the write-ahead log, for syncs and for room in it
	writeLock   writeLock     // the write lock between processes
	fresh       bool          // nothing was ever written
	synchronous string        // what the writing connection syncs; "" = SQLite's default, everything
	wrote       []swarm.Event // the events of the transaction under way

	writes  atomic.Int64 // how many commits this process has begun
	smu     sync.Mutex   // guards commits and syncs, one at a time
	last    int64        // the newest event that is known to be committed
	early   bool         // an early event is among those that no sync has covered
	owed    atomic.Bool  // commits of this process wait for a sync
	durable atomic.Int64 // the newest event that may be handed out: durable, or lazy and behind a durable one

	broken atomic.Pointer[swarm.Error] // a failed sync: the state of the disk is unknown

	rmu      sync.Mutex // guards the reading connection, which is opened when it is first needed
	r        *conn
	borrowed int   // how many reads used the writing connection instead
	seen     int64 // the data version that the tail has caught up with

	tail logbase.Tail  // the newest events, in memory for followers
	stop chan struct{} // ends the poll; guarded by the tail

	omu   sync.Mutex // guards owner
	owner *os.File   // its lock says that the owner is alive

	busyLimit time.Duration // how long another process may keep the write lock
}

// Create makes the log of a new run. The file must not exist.
func Create(path string) (*Log, error) {
	if err := writeEmpty(path); err != nil {
		return nil, err
	}
	l, err := open(path)
	if err != nil {
		return nil, err
	}
	l.fresh = true
	l.tail.Start(0) // there is nothing to catch up with
	return l, nil
}

// writeEmpty puts an empty log on disk, so that the existence of the run is as durable as its first
// event.
func writeEmpty(path string) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "there is a run with this id already"}
	}
	if err != nil {
		return storage(path, "the run's log cannot be made", err)
	}
	defer func() {
		if err != nil {
			_ = Remove(path)
			err = storage(path, "the run's log cannot be made", err)
		}
	}()
	_, err = f.Write(empty)
	// These files come before the sync. Later each of them would need a sync of its own.
	err = errors.Join(err, writeRoom(path+"-wal"), writeZeros(path+"-shm", 0), writeZeros(path+".lock", lockSize))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeZeros(path string, n int) error { return os.WriteFile(path, zeros[:n], 0o600) }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open opens the log of a run that exists.
func Open(path string) (*Log, error) {
	if err := inspect(path); err != nil {
		return nil, err
	}
	return open(path)
}

func open(path string) (*Log, error) {
	w, err := connect(path, lib.SQLITE_OPEN_READWRITE)
	if err != nil {
		return nil, err
	}
	l := newLog(path)
	l.w = w
	err = w.once(keepInMemory)
	if err == nil {
		err = l.writeLock.open(path + ".lock")
	}
	if err == nil {
		seq, _ := l.writeLock.mark.read()
		err = w.checkEnd(seq)
	}
	if err == nil {
		l.wal, err = openRoom(path)
	}
	if err != nil {
		w.close()
		l.writeLock.close()
		return nil, err
	}
	return l, nil
}

func newLog(path string) *Log {
	l := &Log{path: path, busyLimit: 5 * time.Second}
	l.queue.Commit, l.queue.Owed, l.queue.Closed = l.commit, l.owed.Load, l.errClosed
	l.queue.Settle = func() { _ = l.settle() }
	return l
}

// inspect checks, without writing, that a file is a log and that this program knows its version. It
// reads through SQLite: closing a file that SQLite has open elsewhere in this process would drop
// SQLite's locks.
func inspect(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(path)
	case err != nil:
		return storage(path, "the log cannot be opened", err)
	case !st.Mode().IsRegular():
		return noLog(path, nil)
	}
	name := path
	if !pending(path) {
		name = immutable(path)
	}
	id, version, err := identify(name)
	if err != nil && name != path && pending(path) { // another process has just begun to write
		id, version, err = identify(path)
	}
	switch {
	case swarm.KindOf(err) == swarm.BadInput:
		return noLog(path, err)
	case err != nil:
		return at(path, err)
	case id != appID || version < 1:
		return noLog(path, nil)
	case version > format:
		return &swarm.Error{Kind: swarm.BadInput, File: path,
			Msg:  fmt.Sprintf("this log has format %d, and this program knows formats up to %d", version, format),
			Hint: "use the version of swarm that wrote it, or a newer one"}
	case st.Size()%pageSize != 0 && !pending(path): // SQLite would read zeros for the missing part.
		return damagedError(path, damage{what: "the file ends in the middle of a page"})
	}
	return nil
}

// noLog says that a file is no log. If it has a mark, it was one, and so it is damaged.
func noLog(path string, cause error) error {
	if mark, err := readMark(path); err == nil && mark > 0 {
		return damagedError(path, damage{what: fmt.Sprintf("the file is no log any more, and %d events were acknowledged", mark)})
	}
	if cause != nil {
		return at(path, cause)
	}
	return &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "this is no log of a run"}
}

// missing says that there is no such run. If the log has a mark, its file was deleted.
func missing(path string) error {
	if mark, err := readMark(path); err == nil && mark > 0 {
		return unrecoverable(path, fmt.Sprintf("its file is gone, and %d events were acknowledged", mark))
	}
	return &swarm.Error{Kind: swarm.NotFound, File: path, Msg: "there is no such run"}
}

// identify reads the application id and the version of a file.
func identify(name string) (id, version int64, err error) {
	c, err := connect(name, lib.SQLITE_OPEN_READONLY|lib.SQLITE_OPEN_URI)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if id, _, err = c.number("PRAGMA application_id"); err == nil {
		version, _, err = c.number("PRAGMA user_version")
	}
	return id, version, err
}

// pending reports whether the write-ahead log has events that are not in the file yet. The file
// cannot be read alone then.
func pending(path string) bool {
	st, err := os.Stat(path + "-wal")
	return err == nil && st.Size() > 0
}

// immutable returns the address by which SQLite reads a file without locks and without files beside
// it, as if it could not change.
func immutable(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?immutable=1"
}

// Path returns the path of the file.
func (l *Log) Path() string { return l.path }

// Close writes the batches that still wait and closes the log. Later appends are refused.
func (l *Log) Close() error {
	if l.readOnly {
		return l.closeReader()
	}
	if !l.queue.Close() {
		return nil // another goroutine closed it
	}
	l.queue.Lead(nil)
	err := errors.Join(l.settle(), l.closeReader(), l.w.close(), l.wal.Close(), l.writeLock.close())
	l.omu.Lock()
	defer l.omu.Unlock()
	l.unlockOwner()
	return err
}

// Remove deletes a run's log and all files beside it. The caller makes sure that no process drives
// the run.
func Remove(path string) error {
	for _, side := range []string{"-wal", "-shm", ".lock", ".owner"} {
		if err := os.Remove(path + side); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return storage(path, "the run's log cannot be removed", err)
		}
	}
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &swarm.Error{Kind: swarm.NotFound, File: path, Msg: "there is no such run"}
	}
	if err != nil {
		return storage(path, "the run's log cannot be removed", err)
	}
	return nil
}

func (l *Log) errClosed() error {
	return &swarm.Error{Kind: swarm.Stopped, File: l.path, Msg: "the log is closed"}
}

func storage(path, msg string, err error) error {
	return &swarm.Error{Kind: swarm.Storage, File: path, Msg: msg, Err: err}
}

// at names the file as the user knows it.
func at(path string, err error) error {
	var e *swarm.Error
	if errors.As(err, &e) {
		if errors.Is(err, swarm.ErrDamaged) && (e.File != path || e.Hint == "") {
			e.Hint = hintDamaged(path) // not that of the copy, which was read in the log's place
		}
		e.File = path
	}
	return err
}
