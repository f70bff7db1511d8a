package desk

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"swarm"
)

// Defaults of a [StatusReader].
const (
	// DefaultPatience is how long a status.json that cannot be read may stay as it is. A writer that
	// is still at it changes the file, which begins this time again.
	DefaultPatience = 5 * time.Second
	// DefaultConfirm is the time between the two readings that a final state takes.
	DefaultConfirm = 20 * time.Millisecond
)

// A Reading is what a [StatusReader] knows.
type Reading struct {
	Status    Status       // the last good one; its state is never one that the worker did not write
	Writing   bool         // the file is being written, or cannot be read yet
	Unread    *swarm.Error // why not, if it cannot; nothing follows from it
	Violation *swarm.Error // the worker broke the protocol; nil = it did not
}

// A StatusReader reads the status.json of one desk again and again. A worker may write the file in any
// way: in place, byte by byte, by deleting and making it, and it may be killed in the middle. So a file
// that cannot be read is not an error: the last good status counts. It becomes a violation when it
// has not changed for Patience.
//
// A state that has consequences, one that is final or not allowed, counts when two readings have it
// with Confirm between them. While a file is rewritten in place, its bytes may be a mixture of the old
// and the new text, which by chance is a good one.
//
// A StatusReader has no clock: callers say what time it is. It is used by one goroutine.
type StatusReader struct {
	Patience time.Duration
	Confirm  time.Duration

	desk       *Desk
	last       Status
	unread     fingerprint // of the file that cannot be read
	unreadable time.Time   // since when it is so; zero = it can be read
	doubt      State       // has consequences, and was read once
	doubted    time.Time   // when
}

// NewStatusReader returns a reader. last is the status that the caller knows of, by which it judges the
// next one; the zero Status takes any.
func NewStatusReader(d *Desk, last Status) *StatusReader {
	return &StatusReader{desk: d, last: last, Patience: DefaultPatience, Confirm: DefaultConfirm}
}

// A fingerprint changes when a file changes. Its zero value is a missing file.
type fingerprint struct {
	inode   uint64
	mode    fs.FileMode
	size    int64
	changed time.Time
}

func fingerprintOf(info fs.FileInfo) fingerprint {
	f := fingerprint{mode: info.Mode(), size: info.Size(), changed: info.ModTime()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		f.inode = s.Ino
	}
	return f
}

// stat returns the fingerprint of status.json without opening it.
func (d *Desk) stat() fingerprint {
	info, err := d.root.Lstat(StatusFile)
	if err != nil {
		return fingerprint{}
	}
	return fingerprintOf(info)
}

// readStatus reads status.json once. The fingerprint is of the file that was read.
func (d *Desk) readStatus() (Status, fingerprint, error) {
	f, info, err := openRegular(d.root, StatusFile)
	if err != nil {
		if info != nil {
			return Status{}, fingerprintOf(info), err
		}
		return Status{}, fingerprint{}, err
	}
	defer f.Close()
	seen := fingerprintOf(info)
	text, err := readAll(f, info, MaxState)
	if err != nil {
		return Status{}, seen, err
	}
	if after, err := f.Stat(); err != nil || fingerprintOf(after) != seen {
		return Status{}, seen, errors.Join(err, errReplaced)
	}
	s, err := ReadStatus(text)
	return s, seen, err
}

// Read reads status.json. Call it when the file changes, and when Due says so.
func (r *StatusReader) Read(now time.Time) Reading {
	status, seen, err := r.desk.readStatus()
	if err != nil {
		if r.unreadable.IsZero() || seen != r.unread || errors.Is(err, errReplaced) {
			r.unread, r.unreadable = seen, now
		}
		if now.Sub(r.unreadable) < r.Patience {
			return Reading{Status: r.last, Writing: true, Unread: r.violation(err)}
		}
		return Reading{Status: r.last, Violation: r.violation(err)}
	}
	r.unreadable = time.Time{}
	wrong := checkMove(r.last.State, status.State)
	if decides := wrong != nil || status.State.Final() && status.State != r.last.State; decides {
		if r.doubt != status.State {
			r.doubt, r.doubted = status.State, now
		}
		if now.Sub(r.doubted) < r.Confirm {
			return Reading{Status: r.last, Writing: true}
		}
	} else {
		r.doubt = ""
	}
	if wrong != nil {
		return Reading{Status: r.last, Violation: r.violation(wrong)}
	}
	r.last, r.doubt = status, ""
	return Reading{Status: status}
}

// Finish reads the status of a worker that is gone: what the file says now is all that it will ever
// say. A worker that left no final state has failed with [AgentExited]. how says how it ended.
func (r *StatusReader) Finish(how string) Reading {
	status, _, err := r.desk.readStatus()
	if err != nil {
		status = r.last
		how += "; status.json cannot be used: " + explain(err)
	} else if wrong := checkMove(r.last.State, status.State); wrong != nil {
		return Reading{Status: r.last, Violation: r.violation(wrong)}
	}
	if !status.State.Final() {
		status = Status{State: Failed, Started: status.Started, Progress: status.Progress, Metrics: status.Metrics,
			Error: &Failure{Type: AgentExited, Message: "the worker ended without a final state: " + how, Recoverable: true}}
	}
	r.last = status
	return Reading{Status: status}
}

// Due returns when to read again although the file does not change; zero = not at all.
func (r *StatusReader) Due() time.Time {
	switch {
	case !r.unreadable.IsZero():
		return r.unreadable.Add(r.Patience)
	case r.doubt != "":
		return r.doubted.Add(r.Confirm)
	}
	return time.Time{}
}

// oneLook is how long [Desk.Status] waits for a worker that is writing.
const oneLook = 250 * time.Millisecond

// Status reads the status once, for a caller that does not follow the desk. While the worker is writing
// it waits for a moment.
func (d *Desk) Status(ctx context.Context) Reading {
	r := NewStatusReader(d, Status{})
	for start := time.Now(); ; {
		reading := r.Read(time.Now())
		if !reading.Writing || time.Since(start) > oneLook || ctx.Err() != nil {
			return reading
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.Confirm / 2):
		}
	}
}

// explain is an error without its position.
func explain(err error) string {
	if e, ok := errors.AsType[*swarm.Error](err); ok {
		return e.Text()
	}
	return unusable("", err).Text()
}

func (r *StatusReader) violation(err error) *swarm.Error {
	e, ok := errors.AsType[*swarm.Error](err)
	if !ok {
		e = unusable("", err)
	}
	v := *e
	v.Kind, v.File = swarm.Protocol, filepath.Join(r.desk.path, StatusFile)
	if v.Hint == "" {
		v.Hint = "write the whole file under another name, and rename it to status.json"
	}
	return &v
}
