package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// An Unfinished is an external worker that was running when its attempt ended, such as by a timeout.
// Nothing stops that worker, so it may go on while the next attempt waits for a worker.
type Unfinished struct {
	Started time.Time `json:"started,omitzero"` // as the worker wrote it
	// Levels is how many attempts it has worked in. Its first files are so deep in outbox/partial.
	Levels int `json:"levels"`
}

// stillRunning marks the failure of an attempt whose external worker was running.
const stillRunning = "The worker was still running."

// Unfinished returns the worker that was running when the last attempt failed; nil = there is none.
// before is what the manifest of that attempt has. Call it before [Desk.Reset].
func (d *Desk) Unfinished(before *Unfinished) *Unfinished {
	status, _, err := d.readStatus()
	if err != nil || status.State != Failed || status.Error == nil {
		return nil
	}
	if !strings.HasSuffix(status.Error.Details, stillRunning) {
		if before == nil || !status.Started.IsZero() || status.Error.Type != TimedOut {
			return nil
		}
		return &Unfinished{before.Started, before.Levels + 1} // the last attempt saw no worker
	}
	u := &Unfinished{status.Started, 1}
	if before != nil && !u.Started.IsZero() && u.Started.Equal(before.Started) {
		u.Levels += before.Levels
	}
	return u
}

// goesOn reports whether a status is one of the unfinished worker, and not of one that began anew. began
// says that the state was running in this attempt. A worker that begins sets running first, as the
// unfinished one did.
func (u *Unfinished) goesOn(s Status, began bool) bool {
	switch {
	case s.State != Running && s.State != Completed:
		return false
	case !s.Started.IsZero() && !u.Started.IsZero():
		return s.Started.Equal(u.Started)
	}
	return s.State == Completed && !began
}

// watch calls tell with the changes of an attempt. It gives the unfinished worker its first files back
// when that worker goes on.
func (a Attempt) watch(d *Desk) (tell func(Reading), failed func() error) {
	u := a.Manifest.Unfinished
	if u == nil || a.Work != nil {
		return a.Tell, func() error { return nil }
	}
	began, known := false, false
	var err error
	tell = func(r Reading) {
		if !known && r.Violation == nil && u.goesOn(r.Status, began) {
			known = true
			var twice []string
			if twice, err = d.putBack(u.Levels); err == nil && a.Notice != nil {
				a.Notice(WentOn(d.Name()), versionsHint(twice))
			}
		}
		began = began || r.Status.State == Running
		if a.Tell != nil {
			a.Tell(r)
		}
	}
	return tell, func() error { return err }
}

// putBack moves files from outbox/partial to the outbox. A file that the outbox has too stays in
// outbox/partial; putBack lists those whose content differs.
func (d *Desk) putBack(levels int) (twice []string, err error) {
	for from := Partial; levels > 0; from, levels = from+"/partial", levels-1 {
		files, err := walk(d.root, from, func(name string) bool {
			return name == from+"/partial" || name == path.Join(from, path.Base(ErrorReportFile))
		})
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return twice, d.unusable(from, err)
		}
		for _, f := range files {
			to := Outbox + strings.TrimPrefix(f.path, from)
			if _, err := d.root.Lstat(to); err == nil {
				old, _ := d.record(f.path)
				if now, err := d.record(to); err != nil || now.SHA256 != old.SHA256 {
					twice = append(twice, to)
				}
				continue
			}
			if err := d.root.MkdirAll(path.Dir(to), 0o755); err != nil {
				return twice, d.unusable(path.Dir(to), err)
			}
			if err := d.root.Rename(f.path, to); err != nil {
				return twice, d.unusable(to, err)
			}
		}
	}
	slices.Sort(twice)
	return slices.Compact(twice), nil
}

// GoOn prepares the desk for an attempt that goes on with the work of the last one: its worker has set
// the state to running or completed after that attempt had failed. before is what the manifest of the
// last attempt has. The report of the failure moves to outbox/partial. hint names files of which
// the worker has written two versions; "" = there are none.
func (d *Desk) GoOn(before *Unfinished) (hint string, err error) {
	report, err := d.read(ErrorReportFile, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if before != nil {
		status, _, err := d.readStatus()
		timed := !status.Started.IsZero() && !before.Started.IsZero()
		if err == nil && (timed && before.goesOn(status, false) || !timed && !strings.Contains(string(report), stillRunning)) {
			twice, err := d.putBack(before.Levels)
			if err != nil {
				return "", err
			}
			hint = versionsHint(twice)
		}
	}
	if err := d.root.MkdirAll(Partial, 0o755); err != nil {
		return "", d.unusable(Partial, err)
	}
	if err := d.root.Rename(ErrorReportFile, path.Join(Partial, path.Base(ErrorReportFile))); err != nil {
		return "", d.unusable(ErrorReportFile, err)
	}
	return hint, nil
}

// WentOn tells people that the worker of a failed attempt goes on.
func WentOn(task string) string {
	return fmt.Sprintf("the external worker of %s went on after its attempt had ended: this attempt uses all its work", task)
}

func versionsHint(twice []string) string {
	if len(twice) == 0 {
		return ""
	}
	return "earlier versions are in " + Partial + ": " + strings.Join(twice, ", ")
}
