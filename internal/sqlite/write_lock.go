package sqlite

import (
	"errors"
	"os"
	"syscall"
	"time"

	"swarm"
)

// errBusy says that another process kept the write lock for too long: it was stopped in the middle
// of a commit.
var errBusy = errors.New("another process keeps the log from being written")

// A writeLock is the right to write, among processes. It is an flock: the kernel wakes the next
// waiter at once, and frees the lock when its holder dies.
type writeLock struct {
	f    *os.File
	mark mark
	wait chan error // the result of an flock call that is under way, if there is one
}

func (l *writeLock) open(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return storage(path, "the log cannot be opened for writing", err)
	}
	if err := l.mark.open(f); err != nil {
		f.Close()
		return storage(path, "the log cannot be opened for writing", err)
	}
	l.f = f
	return nil
}

// lock waits for the lock, or returns errBusy. An abandoned wait continues in the background,
// because nothing can interrupt it. The next call of lock finds its result.
func (l *writeLock) lock(limit time.Duration) error {
	if l.wait == nil {
		err := flock(l.f, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		l.wait = make(chan error, 1)
		go func(f *os.File, answer chan error) { answer <- flock(f, syscall.LOCK_EX) }(l.f, l.wait)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-l.wait:
		l.wait = nil
		return err
	case <-timer.C:
		return &swarm.Error{Kind: swarm.Storage, File: l.f.Name(), Err: errBusy,
			Hint: "look for a stopped swarm process that has this file open, and end it"}
	}
}

// notify tells listening processes that a commit can be read. SQLite's own files cannot tell it,
// because they are written before that. A read of the first byte of this file tells it. Unlike a
// write, a read leaves nothing for the file system's journal, for which the next sync would have to
// wait.
func (l *writeLock) notify() {
	var b [1]byte
	_, _ = l.f.ReadAt(b[:], 0)
}

func (l *writeLock) unlock() error { return flock(l.f, syscall.LOCK_UN) }

func (l *writeLock) close() error {
	err := l.mark.close()
	switch {
	case l.f == nil:
		return err
	case l.wait == nil:
		return errors.Join(err, l.f.Close())
	}
	go func(f *os.File, answer chan error) {
		<-answer
		f.Close()
	}(l.f, l.wait)
	return err
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
