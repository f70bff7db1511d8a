package sqlite

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"swarm"
)

// Two things tell which process owns a run: a lock and a lease.
//
// The lock is on the .owner file. The system frees it when the process dies, and then the run can
// be taken at once.
//
// The lease is for a process that was stopped and so keeps its lock. When the lease is over, the
// run can be taken. The new owner then has the lease alone, until the old owner's lock is free.
//
// The fence grows with each new owner and is checked in every commit. So a stopped owner that wakes
// up can write nothing.

// A holder is the row of the owner.
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

// owner returns the row in its public form. A log in a file belongs to one machine, and so does its
// owner.
func (h holder) owner() swarm.Owner {
	host, _ := os.Hostname() // Without a name it is still this machine.
	return swarm.Owner{Engine: "local", Host: host, PID: int(h.pid), Fence: h.fence, Until: time.UnixMicro(h.until).UTC(),
		Gone: h.pid != 0 && errors.Is(syscall.Kill(int(h.pid), 0), syscall.ESRCH)}
}

// lingering is how long a lock may outlive its process. A child that a killed process was just
// starting has its parent's locks until it executes its own program.
const lingering = 250 * time.Millisecond

// Own takes the run, see [swarm.Owned]. It waits in two cases: an owner that was just killed may
// keep its lock for an instant, and another process may have the lock and be about to write that it
// owns the run.
func (l *Log) Own(ctx context.Context, loops string, lease time.Duration) (swarm.Ownership, error) {
	for patience := time.Now().Add(10 * lingering); ; time.Sleep(time.Millisecond) {
		o, err := l.ownOrKill(ctx, loops, lease)
		var owned *swarm.OwnedError
		if !errors.As(err, &owned) || !owned.Owner.Gone || time.Now().After(patience) {
			return o, err
		}
	}
}

// ownOrKill takes the run. It kills an owner that was stopped in the middle of a commit, if its
// lease is over: such an owner keeps the write lock, so no other process could write.
func (l *Log) ownOrKill(ctx context.Context, loops string, lease time.Duration) (swarm.Ownership, error) {
	o, err := l.own(ctx, loops, lease)
	if !errors.Is(err, errBusy) {
		return o, err
	}
	h, readErr := l.readHolder()
	if readErr != nil || h.until > time.Now().UnixMicro() || !h.kill() {
		return o, err
	}
	return l.own(ctx, loops, lease)
}

func (l *Log) own(ctx context.Context, loops string, lease time.Duration) (o swarm.Ownership, err error) {
	l.omu.Lock()
	defer l.omu.Unlock()
	held, err := l.lockOwner()
	if err != nil {
		return o, err
	}
	pid := os.Getpid()
	start, err := processStart(pid)
	if err != nil {
		return o, storage(l.path, "this process's start time cannot be read", err)
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
		o = swarm.Ownership{PID: pid, Fence: h.fence + 1, Lived: h.lived(lease, t)}
		if err := t.w.exec(sqlOwn, loops, int64(pid), start, o.Fence, t.now+lease.Microseconds(), bit(held)); err != nil {
			return err
		}
		t.fence = o.Fence
		return nil
	})
	if err != nil {
		l.unlockOwner()
		return swarm.Ownership{}, err
	}
	return o, nil
}

// lived returns when an owner last lived, as far as the file knows: it took or renewed its lease, or
// the newest event was written before the lease ended. A later event is of a process that owned
// nothing. The zero time means that there was no owner. One that gave up the run has no lease, and
// the newest event tells of it.
func (h holder) lived(lease time.Duration, t *tx) time.Time {
	if h.fence == 0 {
		return time.Time{}
	}
	at := h.until - lease.Microseconds()
	if h.until == 0 || t.newest <= h.until {
		at = max(at, t.newest)
	}
	return time.UnixMicro(min(at, t.now)).UTC()
}

// Renew extends the lease, see [swarm.Owned].
func (l *Log) Renew(ctx context.Context, fence int64, lease time.Duration) error {
	l.omu.Lock()
	defer l.omu.Unlock()
	held, err := l.lockOwner() // An owner that took the run from a stopped process gets the lock when that process is gone.
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

// Disown gives up the run, see [swarm.Owned].
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

// Owner returns the owner of the run, see [swarm.Owned]. It takes no lock that could keep another
// process from owning the run. It waits for the lock of an owner that was just killed.
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

// leaseholder is Owner for a caller that holds the owner's lock. Only an owner without the lock can
// still drive the run then: one that took it from a stopped process.
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

// ownerLocked reports whether an owner has the lock. It tries a shared lock and releases it at
// once. lockOwner can tell a shared lock from an owner's.
func (l *Log) ownerLocked() bool {
	f, err := openNow(l.path + ".owner")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer f.Close()
	return flock(f, syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// lockOwner tries to get the owner's lock. It succeeds if this log has the lock already.
func (l *Log) lockOwner() (bool, error) {
	switch {
	case l.readOnly:
		return false, l.errReadOnly()
	case l.queue.IsClosed():
		return false, l.errClosed() // Otherwise the lock would outlive the log.
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
		_ = flock(l.owner, syscall.LOCK_UN) // Other processes only check whether an owner is alive. Their locks are gone in a moment.
		if time.Now().After(end) {
			return false, nil
		}
		time.Sleep(time.Millisecond)
	}
}

// shared reports whether a shared lock is possible: then no process has the lock exclusively.
func (l *Log) shared() bool { return flock(l.owner, syscall.LOCK_SH|syscall.LOCK_NB) == nil }

func (l *Log) unlockOwner() {
	if l.owner != nil {
		l.owner.Close() // Closing frees the lock.
		l.owner = nil
	}
}

// kill ends the process, if it is still the one in the row: a pid may be reused.
func (h holder) kill() bool {
	if h.pid <= 1 || h.pid == int64(os.Getpid()) {
		return false
	}
	start, err := processStart(int(h.pid))
	return err == nil && start == h.start && syscall.Kill(int(h.pid), syscall.SIGKILL) == nil
}

// change runs f in a transaction.
func (l *Log) change(ctx context.Context, f func(*tx) error) error {
	if l.readOnly {
		return l.errReadOnly()
	}
	return l.queue.Submit(ctx, &request{Change: f})
}

func bit(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
