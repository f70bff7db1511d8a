// Package sqlite keeps the log of one run in one SQLite file.
//
// An append is acknowledged when it is on disk. Whoever appends while nobody does becomes the writer: it takes every batch that
// waits by then into one transaction, so that many callers share one sync, and hands the work over when its own batch is
// answered. Between processes an flock hands the write lock over, because SQLite's own waiting sleeps. A lazy batch is written
// with the next one that somebody waits for, or after a moment without a sync of its own; the next sync covers it, so the log
// never has a hole. An early batch is committed, and synced in the same way. Its events are handed out when they are known to be
// on disk, except to the loop that they are addressed to: a reader that meets a newer one syncs first, whichever process wrote it.
// The write-ahead log has room ahead of need, so that a sync writes events and no file system metadata.
//
// The store's clock is this machine's, read inside the transaction; after a clock that was set back, time stands still until it
// has caught up.
//
// Readers that follow the log are served from memory: what this process appended is there at once, what others appended is
// looked for while somebody watches. A commit rings, by a byte read from the .lock file, so that a follower at rest need not
// poll. Everything older is read from the file.
//
// Beside the file lie SQLite's own -wal and -shm and two files that carry locks: .lock for the write lock, and .owner, whose
// lock is free when the process that drives the run is dead.
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
)

const (
	format   = 1          // of the file; one with a higher number is left alone
	appID    = 0x7377726d // "swrm": what makes an SQLite file a log of ours
	pageSize = 4096
)

// empty is a log without events, as schema.sql makes it. A new log is a copy: running the schema would cost more than the
// first append does.
//
//go:embed empty.db
var empty []byte

// A Log is one run's log, opened. All its methods may be used by many goroutines at once.
type Log struct {
	path     string
	readOnly bool
	scrap    string // a folder to be removed when the log is closed

	queue queue // what waits to be written

	// What follows up to the next blank line belongs to whoever leads the queue.
	w           *conn
	wal         *os.File      // the write-ahead log, for syncs and for room in it
	writeLock   writeLock     // the write lock among processes
	fresh       bool          // nothing was ever written
	synchronous string        // what the writing connection syncs; "" = as SQLite has it at first, everything
	wrote       []swarm.Event // by the transaction under way

	writes  atomic.Int64 // how many commits this process has begun
	smu     sync.Mutex   // commits and syncs, one at a time
	last    int64        // the newest event that is known to be committed
	early   bool         // one of the events that no sync has covered is no lazy one
	owed    atomic.Bool  // there are commits of ours that no sync has covered yet
	durable atomic.Int64 // the newest event that may be handed out: on disk, or lazy and behind one that is

	broken atomic.Pointer[swarm.Error] // a failed sync: what is on disk is not known any more
	lost   atomic.Pointer[lostBatch]   // a lazy batch that was not written

	rmu      sync.Mutex // the reading connection, opened when it is first needed
	r        *conn
	borrowed int   // how many reads were done without it
	seen     int64 // the data version that the tail has caught up with

	tail tail // what followers are served from

	omu   sync.Mutex // ownership
	owner *os.File   // the file whose lock says that the owner lives

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
	l.tail.start(0) // there is nothing to catch up with
	return l, nil
}

// writeEmpty puts an empty log on disk, so that the run's existence is as durable as its first event.
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
	// Before the sync: later each of them would have to reach the disk by itself.
	err = errors.Join(err, writeRoom(path+"-wal"), touch(path+"-shm"), touch(path+".lock"))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

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
	_, _, err = w.number(sqlFence)
	if err == nil {
		err = l.writeLock.open(path + ".lock")
	}
	if err == nil {
		l.wal, err = openRoom(path)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return l, nil
}

func newLog(path string) *Log {
	l := &Log{path: path, busyLimit: 5 * time.Second}
	l.tail.init()
	l.queue.idle.L = &l.queue.mu
	return l
}

// inspect looks at a file without touching it: whether it is a log, and one that this program knows. It goes through SQLite,
// because closing a file that SQLite has open elsewhere in this process would drop its locks.
func inspect(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &swarm.Error{Kind: swarm.NotFound, File: path, Msg: "there is no such run"}
	case err != nil:
		return storage(path, "the log cannot be opened", err)
	case !st.Mode().IsRegular():
		return &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "this is no log of a run"}
	}
	name := path
	if !pending(path) {
		name = immutable(path)
	}
	id, version, err := identify(name)
	if err != nil && name != path && pending(path) { // somebody has begun to write just now
		id, version, err = identify(path)
	}
	switch {
	case err != nil:
		return at(path, err)
	case id != appID || version < 1:
		return &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "this is no log of a run"}
	case version > format:
		return &swarm.Error{Kind: swarm.BadInput, File: path,
			Msg:  fmt.Sprintf("this log has format %d, and this program knows formats up to %d", version, format),
			Hint: "use the version of swarm that wrote it, or a newer one"}
	case st.Size()%pageSize != 0 && !pending(path): // SQLite would read zeros for what is cut off
		return &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the log is damaged: it ends in the middle of a page", Hint: hintDamaged}
	}
	return nil
}

// identify reads what a file says that it is.
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

// pending says whether a log has events that have not been moved from the write-ahead log into the file, which then cannot be
// read alone.
func pending(path string) bool {
	st, err := os.Stat(path + "-wal")
	return err == nil && st.Size() > 0
}

// immutable is the address by which SQLite reads a file as if nobody could write it: no locks, no files beside it.
func immutable(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?immutable=1"
}

// Path is the file.
func (l *Log) Path() string { return l.path }

// Close writes what still waits and closes the log. Appends that come later are refused.
func (l *Log) Close() error {
	if l.readOnly {
		return l.closeReader()
	}
	if !l.queue.close() {
		return nil // somebody else closed it
	}
	l.lead(nil)
	err := errors.Join(l.settle(), l.closeReader(), l.w.close(), l.wal.Close(), l.writeLock.close())
	l.omu.Lock()
	defer l.omu.Unlock()
	l.unlockOwner()
	return err
}

// Remove deletes a run's log and everything beside it. That nobody drives the run is the caller's care.
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
		e.File = path
	}
	return err
}
