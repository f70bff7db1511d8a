package statedir

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"swarm"
)

// A process that drives a run holds a lock on its mark, the file live/RUN.FENCE.PID.STARTED. The
// kernel releases the lock when the process dies, but the mark stays. So marks without a lock lead
// to the orphaned processes of killed drivers. Earlier versions left out the start time. The file
// holds the folder of the cgroup for the run's programs.

// A Mark names a process that drives or drove a run.
type Mark struct {
	Run     swarm.RunID
	PID     int
	Started uint64 // when the process started, in clock ticks since boot; 0 = not known
	Folder  string // in which the cgroup of its programs is; "" = none
	fence   int64
	name    string
}

// MarkLive marks a run as driven by this process, until unmark is called or the process dies.
// started and folder are those of this process, as in [Mark].
func (h *Home) MarkLive(run swarm.RunID, fence int64, started uint64, folder string) (unmark func(), err error) {
	if err := makeDir(h.in("live")); err != nil {
		return nil, err
	}
	name := string(run) + "." + strconv.FormatInt(fence, 10) + "." + strconv.Itoa(os.Getpid()) + "." + strconv.FormatUint(started, 10)
	f, err := create(h.in("live", name+unready))
	if err == nil {
		_, err = f.WriteString(folder)
	}
	if err == nil {
		err = flock(f, syscall.LOCK_EX)
	}
	if err == nil { // the rename comes after the lock, so a complete mark without a lock is always orphaned
		err = os.Rename(h.in("live", name+unready), h.in("live", name))
	}
	if err != nil {
		return nil, storageError(h.in("live", name), "the run cannot be marked as driven", err)
	}
	return func() {
		_ = os.Remove(h.in("live", name))
		_ = f.Close()
	}, nil
}

// unready is the suffix of a mark that is not locked yet. Such a name does not count as a mark, so
// no process removes it.
const unready = ".new"

// Left returns the marks of processes that are gone. A process that was killed while it started a
// program leaves its lock to that program for a moment, until exec. Left waits while dying says that
// of a mark.
func (h *Home) Left(dying func(Mark) bool) (left []Mark) {
	patience := time.Now().Add(2 * time.Second)
	for _, m := range h.Marks() {
		alive := h.Alive(m)
		for alive && dying(m) && time.Now().Before(patience) {
			time.Sleep(time.Millisecond)
			alive = h.Alive(m)
		}
		if !alive {
			left = append(left, h.withFolder(m))
		}
	}
	return left
}

// Earlier returns the marks of processes that drove a run under a lower fence and did not unmark it.
// They were killed, or are stopped.
func (h *Home) Earlier(run swarm.RunID, fence int64) (earlier []Mark) {
	for _, m := range h.Marks() {
		if m.Run == run && m.fence < fence {
			earlier = append(earlier, h.withFolder(m))
		}
	}
	return earlier
}

// withFolder reads the folder of a mark.
func (h *Home) withFolder(m Mark) Mark {
	if f, err := openMark(h.in("live", m.name)); err == nil {
		text, _ := io.ReadAll(io.LimitReader(f, 4096))
		m.Folder = string(text)
		_ = f.Close()
	}
	return m
}

// Unmark removes the mark of a process that is gone.
func (h *Home) Unmark(m Mark) { _ = os.Remove(h.in("live", m.name)) }

// Marks lists all complete marks. Names with another format, such as unready ones, are skipped.
func (h *Home) Marks() (all []Mark) {
	names, _ := namesIn(h.in("live"))
	for _, name := range names {
		parts := strings.Split(name, ".")
		if len(parts) == 3 {
			parts = append(parts, "0") // of an earlier version
		}
		if len(parts) != 4 || !swarm.IsRunID(parts[0]) {
			continue
		}
		fence, err := strconv.ParseInt(parts[1], 10, 64)
		pid, err2 := strconv.Atoi(parts[2])
		started, err3 := strconv.ParseUint(parts[3], 10, 64)
		if errors.Join(err, err2, err3) == nil {
			all = append(all, Mark{Run: swarm.RunID(parts[0]), PID: pid, Started: started, fence: fence, name: name})
		}
	}
	return all
}

// DrivenBy reports whether a process with this pid drives a run. It may be another process than the
// one that left a mark with the same pid, because containers reuse pids soon.
func (h *Home) DrivenBy(run swarm.RunID, pid int) bool {
	return slices.ContainsFunc(h.Marks(), func(m Mark) bool { return m.Run == run && m.PID == pid && h.Alive(m) })
}

// HasMark reports whether a process drives a run by this state folder, or was killed as it did.
func (h *Home) HasMark(run swarm.RunID) bool {
	return slices.ContainsFunc(h.Marks(), func(m Mark) bool { return m.Run == run })
}

// isLive reports whether a process drives a run by this state folder, whatever store has the log.
func (h *Home) isLive(run swarm.RunID) bool {
	return slices.ContainsFunc(h.Marks(), func(m Mark) bool { return m.Run == run && h.Alive(m) })
}

// Alive reports whether the process of a mark holds its lock. The test takes a shared lock for a
// moment, so two tests at once do not mistake each other for an owner.
func (h *Home) Alive(m Mark) bool {
	lock, held, err := tryLock(h.in("live", m.name), syscall.LOCK_SH)
	if lock != nil {
		_ = lock.Close()
	}
	return held && err == nil
}

// openMark opens a file to read it or to lock it. It does not wait for the other end of a FIFO.
func openMark(path string) (*os.File, error) {
	return os.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// tryLock takes the lock of a file without waiting. held reports that another process has it.
// Without the file, lock is nil and held is false.
func tryLock(path string, how int) (lock *os.File, held bool, err error) {
	lock, err = openMark(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, false, err
	}
	if err = flock(lock, how|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, true, nil
		}
		return nil, false, err
	}
	return lock, false, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
