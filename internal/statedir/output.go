package statedir

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"swarm"
)

// WriteOutput writes the copy of a task's output for people. It is only a copy, so it is
// overwritten in place. An empty output makes no new file, because that would cost more than the
// rest of a short turn.
func (h *Home) WriteOutput(run swarm.RunID, task string, b []byte) error {
	if err := checkTask(task); err != nil {
		return err
	}
	path := h.OutputPath(run, task)
	if _, err := os.Lstat(path); len(b) == 0 && os.IsNotExist(err) {
		return nil
	}
	f, err := create(path)
	if os.IsNotExist(err) {
		if err := makeDir(h.OutputDir(run)); err != nil {
			return err
		}
		f, err = create(path)
	}
	if err == nil {
		if _, err = f.Write(b); err == nil {
			err = f.Truncate(int64(len(b)))
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return storageError(path, "the copy of the output cannot be written", err)
	}
	return nil
}

// create opens a file for overwriting. It does not truncate: callers truncate to the new length
// after writing. Some file systems flush a file on close if it was emptied by open, which takes a
// hundred times as long.
func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// checkTask checks a task's name, which may be that of a copy: code.2. No file can name the
// supervisor of a swarm, but a swarm has one.
func checkTask(task string) error {
	if task == swarm.Supervisor {
		return nil
	}
	base, copied, found := strings.Cut(task, ".")
	if n, err := strconv.Atoi(copied); found && (err != nil || n < 1 || strconv.Itoa(n) != copied) {
		base = task
	}
	return swarm.CheckTaskName(base)
}
