package statedir

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"swarm"
)

// WriteOutput puts the copy of a task's output where people find it. It is only a copy, so it is simply written over. A task that
// has never said anything has no file: to make one costs more than the rest of a short turn.
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
		if err := made(h.OutputDir(run)); err != nil {
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
		return &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the copy of the output cannot be written", Err: swarm.WithoutPath(err)}
	}
	return nil
}

// create opens a file to be written over. It is cut to its new length afterwards and not emptied before: after that some file
// systems wait for the disk when it is closed, which takes a hundred times as long.
func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// checkTask says what is wrong with a task's name, which may be a copy's: code.2.
func checkTask(task string) error {
	base, copied, found := strings.Cut(task, ".")
	if n, err := strconv.Atoi(copied); found && (err != nil || n < 1 || strconv.Itoa(n) != copied) {
		base = task
	}
	return swarm.CheckTaskName(base)
}
