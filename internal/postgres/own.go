package postgres

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"swarm"
)

// A holder is the part of a run's row that tells who owns the run, and the store's clock.
type holder struct {
	loops   string
	fence   int64
	host    string
	place   string
	pid     int64
	session []byte
	held    bool
	until   int64 // the lease's end, in microseconds
	now     int64
}

const holderColumns = "loops, fence, host, place, pid, session, held, until, swarm.clock()"

func (h *holder) fields() []any {
	return []any{&h.loops, &h.fence, &h.host, &h.place, &h.pid, &h.session, &h.held, &h.until, &h.now}
}

// drives reports whether the owner drives the run.
func (h *holder) drives() bool { return h.pid != 0 && h.held && h.until > h.now && !h.gone() }

// gone reports whether the owner's process is known to be dead. Of other machines' processes nothing
// is known. A pid that was used again hides a death until the lease is over.
func (h *holder) gone() bool {
	return h.pid != 0 && h.place != "" && h.place == here() && errors.Is(syscall.Kill(int(h.pid), 0), syscall.ESRCH)
}

// away reports whether the owner is a process of another machine, as far as is known.
func (h *holder) away() bool { return h.place == "" || h.place != here() }

func (h *holder) owner() swarm.Owner {
	return swarm.Owner{Engine: "local", Host: h.host, PID: int(h.pid), Fence: h.fence, Until: time.UnixMicro(h.until).UTC(), Gone: h.gone(), Away: h.away()}
}

// here identifies the system whose process numbers this process sees: the boot, and the namespace of
// process numbers. Where the system does not tell, it is "", and leases alone decide.
var here = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, err2 := os.Readlink("/proc/self/ns/pid")
	if err != nil || err2 != nil || len(boot) < 36 {
		return ""
	}
	return string(boot[:36]) + " " + space
})

// Own takes the run, see [swarm.Owned].
func (l *Log) Own(ctx context.Context, loops string, lease time.Duration) (o swarm.Ownership, err error) {
	pid := os.Getpid()
	host, _ := os.Hostname() // A machine without a name has none in messages.
	err = l.change(ctx, func(t *tx) error {
		h := &t.holder
		if h.loops != "" && h.loops != loops {
			return (&swarm.Error{Kind: swarm.BadInput, File: l.store.file(l.run),
				Msg: "this run was begun with version " + h.loops + " of the loops, and this program has version " + loops}).
				WithHint("resume it with the version of swarm that began it")
		}
		if h.drives() && string(h.session) != string(l.session) {
			return &swarm.OwnedError{Owner: h.owner()}
		}
		o = swarm.Ownership{PID: pid, Host: host, Fence: h.fence + 1, Lived: h.lived(lease, t)}
		h.fence, h.loops, h.host, h.place, h.pid, h.session = o.Fence, loops, host, here(), int64(pid), l.session
		h.held, h.until = true, h.now+lease.Microseconds()
		t.exec(`UPDATE swarm.run SET loops = $2, fence = $3, host = $4, place = $5, pid = $6, session = $7, held = true, until = $8 WHERE num = $1`,
			l.num, h.loops, h.fence, h.host, h.place, h.pid, h.session, h.until)
		return nil
	})
	if err != nil {
		return swarm.Ownership{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fence = o.Fence
	return o, nil
}

// lived returns when an owner last lived, as far as the store knows: it took or renewed its lease, or
// the newest event was written before the lease ended. A later event is of a process that owned
// nothing. The zero time means that there was no owner. One that gave up the run has no lease, and
// the newest event tells of it.
func (h *holder) lived(lease time.Duration, t *tx) time.Time {
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
	return l.change(ctx, func(t *tx) error {
		h := &t.holder
		if h.fence != fence {
			return swarm.ErrFenced
		}
		h.held, h.until = true, h.now+lease.Microseconds()
		t.exec("UPDATE swarm.run SET held = true, until = $2 WHERE num = $1", l.num, h.until)
		return nil
	})
}

// Disown gives up the run, see [swarm.Owned].
func (l *Log) Disown(ctx context.Context, fence int64) error {
	return l.change(ctx, func(t *tx) error {
		h := &t.holder
		if h.fence != fence {
			return swarm.ErrFenced
		}
		h.pid, h.until, h.held = 0, 0, false
		t.exec("UPDATE swarm.run SET pid = 0, until = 0, held = false WHERE num = $1", l.num)
		return nil
	})
}

// Owner returns the owner of the run, see [swarm.Owned].
func (l *Log) Owner(ctx context.Context) (who swarm.Owner, driven bool, err error) {
	var h holder
	err = l.reading(ctx, func(ctx context.Context, c *pgx.Conn) error {
		err := c.QueryRow(ctx, "SELECT "+holderColumns+" FROM swarm.run WHERE num = $1", l.num).Scan(h.fields()...)
		if errors.Is(err, pgx.ErrNoRows) {
			return l.errGone()
		}
		return err
	})
	if err != nil {
		return swarm.Owner{}, false, err
	}
	return h.owner(), h.drives(), nil
}

// change runs f in a transaction.
func (l *Log) change(ctx context.Context, f func(*tx) error) error {
	if l.readOnly {
		return l.errReadOnly()
	}
	return l.queue.Submit(ctx, &request{Change: f})
}
