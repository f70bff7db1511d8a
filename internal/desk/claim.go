package desk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"swarm"
)

const (
	// MessagesFolder lies beside the desks of a team. By its files their agents write to each other.
	MessagesFolder = "messages"
	// runsFile lists the runs whose desks were in the folder, the last one at the end.
	runsFile = ".runs"
	maxRuns  = 1 << 20 // bytes
)

// Claim makes a folder the one of a run's desks, until release is called or the process ends. Two runs
// would archive each other's desks and read each other's messages. So a folder of a run that is at work
// is refused, and so is one that another run has taken over since. Messages of the run before are
// archived.
func Claim(dir string, run swarm.RunID) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, noFolder(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, noFolder(dir, err)
	}
	defer root.Close()
	lock, err := root.Open(".")
	if err != nil {
		return nil, unusable(dir, err)
	}
	busy := errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	if err := claim(root, dir, run, busy); err != nil {
		lock.Close()
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

func claim(root *os.Root, dir string, run swarm.RunID, busy bool) error {
	runs, err := readRuns(root)
	if err != nil {
		return unusable(filepath.Join(dir, runsFile), err)
	}
	last := ""
	if len(runs) > 0 {
		last = runs[len(runs)-1]
	}
	switch {
	case busy:
		return swarm.Errorf(swarm.BadInput, "the desks of the run %s are in %s, and it is at work", cmp.Or(last, "before"), dir).
			WithHint("wait until it has ended, or name another folder: --set desks=DIR")
	case last == string(run):
		return nil
	case slices.Contains(runs, string(run)):
		return swarm.Errorf(swarm.BadInput, "the run %s has taken over %s, the folder of this run's desks", last, dir).
			WithHint("the old desks are in %s; to do the work again: swarm retry %s", filepath.Join(dir, archiveFolder), run)
	}
	if err := archiveMessages(root); err != nil {
		return unusable(filepath.Join(dir, MessagesFolder), err)
	}
	err = replace(root, runsFile, 0o644, true, func(f *os.File) error {
		_, err := f.WriteString(strings.Join(append(runs, string(run)), "\n") + "\n")
		return err
	})
	if err != nil {
		return unusable(filepath.Join(dir, runsFile), err)
	}
	return nil
}

// LastRun returns the run whose desks are in a folder that a compose file names; "" = no file names it.
func LastRun(dir string) swarm.RunID {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	runs, err := readRuns(root)
	if err != nil || len(runs) == 0 {
		return ""
	}
	return swarm.RunID(runs[len(runs)-1])
}

func readRuns(root *os.Root) ([]string, error) {
	f, info, err := openRegular(root, runsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readAll(f, info, maxRuns)
	return strings.Fields(string(text)), err
}

// archiveMessages moves the message folder of an earlier run to _archive/messages.N.
func archiveMessages(root *os.Root) error {
	if info, err := root.Lstat(MessagesFolder); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil
	}
	if err := root.MkdirAll(archiveFolder, 0o755); err != nil {
		return err
	}
	for n := 1; ; n++ {
		to := path.Join(archiveFolder, fmt.Sprintf("%s.%d", MessagesFolder, n))
		if _, err := root.Lstat(to); err == nil {
			continue
		}
		return root.Rename(MessagesFolder, to)
	}
}
