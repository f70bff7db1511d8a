package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"swarm"
)

// A process that drives a run keeps a mark here, live/RUN.FENCE.PID, and has it locked. The marks of those that were killed stay,
// and lead to what they have left behind.

// A Mark says which process drives a run, or drove it.
type Mark struct {
	Run   swarm.RunID
	PID   int
	fence int64
	name  string
}

// MarkLive marks a run as driven by this process, until unmark is called or the process dies.
func (h *Home) MarkLive(run swarm.RunID, fence int64) (unmark func(), err error) {
	if err := made(h.in("live")); err != nil {
		return nil, err
	}
	name := string(run) + "." + strconv.FormatInt(fence, 10) + "." + strconv.Itoa(os.Getpid())
	f, err := create(h.in("live", name+unready))
	if err == nil {
		err = flock(f, syscall.LOCK_EX)
	}
	if err == nil { // under its name it is always locked: nobody takes it for one that was left
		err = os.Rename(h.in("live", name+unready), h.in("live", name))
	}
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, File: h.in("live", name), Msg: "the run cannot be marked as driven", Err: swarm.WithoutPath(err)}
	}
	return func() {
		_ = os.Remove(h.in("live", name))
		_ = f.Close()
	}, nil
}

// unready ends the name of a mark that is not yet locked, and makes it none: nobody may take it away.
const unready = ".new"

// Left lists the marks of processes that are gone.
func (h *Home) Left() (left []Mark) {
	for _, m := range h.marks() {
		if !h.locked(h.in("live", m.name)) {
			left = append(left, m)
		}
	}
	return left
}

// Earlier lists the processes that drove a run under a lower fence and have not left it: they were killed, or do not move.
func (h *Home) Earlier(run swarm.RunID, fence int64) (pids []int) {
	for _, m := range h.marks() {
		if m.Run == run && m.fence < fence {
			pids = append(pids, m.PID)
		}
	}
	return pids
}

// Unmark takes away a mark that was left.
func (h *Home) Unmark(m Mark) { _ = os.Remove(h.in("live", m.name)) }

func (h *Home) marks() (all []Mark) {
	names, _ := namesIn(h.in("live"))
	for _, name := range names {
		parts := strings.Split(name, ".")
		if len(parts) != 3 || !swarm.IsRunID(parts[0]) {
			continue
		}
		pid, err := strconv.Atoi(parts[2])
		fence, err2 := strconv.ParseInt(parts[1], 10, 64)
		if err == nil && err2 == nil {
			all = append(all, Mark{Run: swarm.RunID(parts[0]), PID: pid, fence: fence, name: name})
		}
	}
	return all
}

// DrivenBy says whether a process with this number drives a run. It need not be the one that has left a mark with the same
// number: in containers numbers come again soon.
func (h *Home) DrivenBy(run swarm.RunID, pid int) bool {
	return slices.ContainsFunc(h.marks(), func(m Mark) bool { return m.Run == run && m.PID == pid && h.locked(h.in("live", m.name)) })
}

func (h *Home) locked(path string) bool {
	lock, held, err := tryLock(path, syscall.LOCK_SH)
	if lock != nil {
		_ = lock.Close()
	}
	return held && err == nil
}

// tryLock takes the lock of a file, and says whether somebody else holds it. Without the file there is neither.
func tryLock(path string, how int) (lock *os.File, held bool, err error) {
	lock, err = os.OpenFile(filepath.Clean(path), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
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
