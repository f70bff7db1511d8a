package sqlite

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"swarm"
)

// Who drives a run is told by two things. A lock on the .owner file, which the system frees when the process dies: then the run is
// taken at once. And a lease, for a process that was stopped and keeps its lock: the run is taken when the lease is over, and
// from then on the new owner has the lease alone until the old one's lock is free. The fence grows with each change of hands
// and is checked in every commit, so a stopped owner that wakes up can write nothing.

// A holder is the row of who drives the run.
type holder struct {
	loops      string
	pid, start int64
	fence      int64
	until      int64 // the lease's end, in microseconds
	held       bool  // it has the lock
}

const (
	sqlHolder = "SELECT loops, pid, start, fence, until, held FROM run"
	sqlOwn    = "UPDATE run SET loops=?, pid=?, start=?, fence=?, until=?, held=?"
	sqlRenew  = "UPDATE run SET until=?, held=?"
	sqlDisown = "UPDATE run SET pid=0, start=0, until=0, held=0"
)

func (c *conn) holder() (h holder, err error) {
	s, err := c.prepare(sqlHolder)
	if err != nil {
		return h, err
	}
	defer s.done()
	if _, err := s.next(); err != nil {
		return h, err
	}
	return holder{s.text(0), s.int64(1), s.int64(2), s.int64(3), s.int64(4), s.int64(5) != 0}, nil
}

// owner is the row as everybody sees it. A log in a file is one machine's, and so is its owner.
func (h holder) owner() swarm.Owner {
	host, _ := os.Hostname() // without a name it is still this machine
	return swarm.Owner{Engine: "local", Host: host, PID: int(h.pid), Fence: h.fence, Until: time.UnixMicro(h.until).UTC(),
		Gone: h.pid != 0 && errors.Is(syscall.Kill(int(h.pid), 0), syscall.ESRCH)}
}

// lingering is how long a lock may outlive its process. A child that a killed process was just starting has its parent's locks
// until it becomes another program.
const lingering = 250 * time.Millisecond

// Own takes the run, see [swarm.Owned]. An owner that was just killed may keep its lock for an instant, or another process has
// the lock and is about to write that it took the run: both are waited for.
func (l *Log) Own(ctx context.Context, loops string, lease time.Duration) (int64, error) {
	for patience := time.Now().Add(10 * lingering); ; time.Sleep(time.Millisecond) {
		fence, err := l.ownOrKill(ctx, loops, lease)
		var owned *swarm.OwnedError
		if !errors.As(err, &owned) || !owned.Owner.Gone || time.Now().After(patience) {
			return fence, err
		}
	}
}

// ownOrKill takes the run. An owner that was stopped in the middle of a commit, and whose lease is over, is killed: nobody could
// write otherwise.
func (l *Log) ownOrKill(ctx context.Context, loops string, lease time.Duration) (int64, error) {
	fence, err := l.own(ctx, loops, lease)
	if !errors.Is(err, errBusy) {
		return fence, err
	}
	h, readErr := l.readHolder()
	if readErr != nil || h.until > time.Now().UnixMicro() || !h.kill() {
		return 0, err
	}
	return l.own(ctx, loops, lease)
}

func (l *Log) own(ctx context.Context, loops string, lease time.Duration) (fence int64, err error) {
	l.omu.Lock()
	defer l.omu.Unlock()
	held, err := l.lockOwner()
	if err != nil {
		return 0, err
	}
	pid := os.Getpid()
	start, err := processStart(pid)
	if err != nil {
		return 0, storage(l.path, "this process's start time cannot be read", err)
	}
	err = l.change(ctx, func(t *tx) error {
		h, err := t.w.holder()
		if err != nil {
			return err
		}
		if h.loops != "" && h.loops != loops {
			return (&swarm.Error{Kind: swarm.BadInput, File: l.path,
				Msg: "this run was begun with version " + h.loops + " of the loops, and this program has version " + loops}).
				WithHint("resume it with the version of swarm that began it")
		}
		if h.until > t.now && !(h.held && held) {
			return &swarm.OwnedError{Owner: h.owner()}
		}
		fence = h.fence + 1
		if err := t.w.exec(sqlOwn, loops, int64(pid), start, fence, t.now+lease.Microseconds(), bit(held)); err != nil {
			return err
		}
		t.fence = fence
		return nil
	})
	if err != nil {
		l.unlockOwner()
		return 0, err
	}
	return fence, nil
}

// Renew keeps the lease, see [swarm.Owned].
func (l *Log) Renew(ctx context.Context, fence int64, lease time.Duration) error {
	l.omu.Lock()
	defer l.omu.Unlock()
	held, err := l.lockOwner() // an owner that came after a stopped one gets the lock when that one is gone
	if err != nil {
		return err
	}
	err = l.change(ctx, func(t *tx) error {
		if now, err := t.owner(); err != nil || now != fence {
			return errors.Join(swarm.ErrFenced, err)
		}
		return t.w.exec(sqlRenew, t.now+lease.Microseconds(), bit(held))
	})
	if errors.Is(err, swarm.ErrFenced) {
		l.unlockOwner()
	}
	return err
}

// Disown gives the run up, see [swarm.Owned].
func (l *Log) Disown(ctx context.Context, fence int64) error {
	l.omu.Lock()
	defer l.omu.Unlock()
	err := l.change(ctx, func(t *tx) error {
		if now, err := t.owner(); err != nil || now != fence {
			return errors.Join(swarm.ErrFenced, err)
		}
		return t.w.exec(sqlDisown)
	})
	if err == nil || errors.Is(err, swarm.ErrFenced) {
		l.unlockOwner()
	}
	return err
}

// Owner says who drives the run, see [swarm.Owned]. It looks without taking anything: it may be asked while another process owns,
// or is about to. The lock of an owner that was just killed is waited for.
func (l *Log) Owner(context.Context) (who swarm.Owner, driven bool, err error) {
	for patience := time.Now().Add(lingering); ; time.Sleep(time.Millisecond) {
		h, err := l.readHolder()
		if err != nil || h.pid == 0 {
			return h.owner(), false, err
		}
		who = h.owner()
		driven = h.until > time.Now().UnixMicro() && (!h.held || l.ownerLocked())
		if !driven || !who.Gone || time.Now().After(patience) {
			return who, driven, nil
		}
	}
}

// leaseholder is Owner for a caller that holds the owner's lock: only an owner that never got the lock, because it took the run
// from a stopped process, can still drive it.
func (l *Log) leaseholder() (who swarm.Owner, driven bool, err error) {
	h, err := l.readHolder()
	return h.owner(), err == nil && h.pid != 0 && !h.held && h.until > time.Now().UnixMicro(), err
}

func (l *Log) readHolder() (h holder, err error) {
	err = l.reading(func(r *conn) (err error) {
		h, err = r.holder()
		return err
	})
	return h, err
}

// ownerLocked says whether an owner has the lock. A shared lock, given back at once, tells, and lockOwner knows it from an owner's.
func (l *Log) ownerLocked() bool {
	f, err := os.Open(l.path + ".owner")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	return flock(f, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// lockOwner tries to get the owner's lock, or finds that this log has it.
func (l *Log) lockOwner() (bool, error) {
	switch {
	case l.readOnly:
		return false, l.errReadOnly()
	case l.queue.isClosed():
		return false, l.errClosed() // or the lock would outlive the log
	case l.owner == nil:
		f, err := os.OpenFile(l.path+".owner", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return false, storage(l.path, "the run cannot be owned", err)
		}
		l.owner = f
	}
	for end := time.Now().Add(l.busyLimit); ; {
		err := flock(l.owner, syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return false, storage(l.path, "the run cannot be owned", err)
		case !l.shared():
			return false, nil // an owner has it
		}
		_ = flock(l.owner, syscall.LOCK_UN) // others only look whether an owner lives; they are gone in a moment
		if time.Now().After(end) {
			return false, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// shared says whether the lock can be had together with others: then nobody has it alone.
func (l *Log) shared() bool { return flock(l.owner, syscall.LOCK_SH|syscall.LOCK_NB) == nil }

func (l *Log) unlockOwner() {
	if l.owner != nil {
		l.owner.Close() // which frees the lock
		l.owner = nil
	}
}

// kill ends the process, if it is still the one that was written down.
func (h holder) kill() bool {
	if h.pid <= 1 || h.pid == int64(os.Getpid()) {
		return false
	}
	start, err := processStart(int(h.pid))
	return err == nil && start == h.start && syscall.Kill(int(h.pid), syscall.SIGKILL) == nil
}

// change has f done in a transaction.
func (l *Log) change(ctx context.Context, f func(*tx) error) error {
	return l.submit(ctx, &request{change: f, done: make(chan bool, 1)})
}

func bit(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
