// Package statedir is the state folder of swarm: $SWARM_HOME, or ~/.swarm.
//
//	runs/<run>.db           a run's log, written by package sqlite
//	runs/<run>.db.owner     locked by the process that drives the run
//	runs/<run>.jsonl        summaries of the run for lists; the last line counts, and the log can restore it
//	outputs/<run>/TASK.txt  copies of the tasks' last outputs, for people
//	streams/<run>/          the output of turns, readable while they run
//	live/                   marks of the processes that drive runs, locked while they do
//	trees/<run>/            git objects of the work tree before and after the run
//	desks/<run>/            the desks of agents that use the file protocol
//	work/<run>/             the files of a swarm's agents
//	artifacts/              bytes that envelopes refer to
//	prompts/                prompts for all projects
//	versions/               versions of programs that were started for a check
//	token                   the key of our own server
//	of-agent                the folder was made by an agent's program
//	shared/                 outputs, streams, trees, artifacts and work of runs whose log is in a shared store
//
// [Open] opens the folder. A log is the truth about its run; everything else here can be deleted.
// Folders are created on demand only.
package statedir

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"swarm"
	"swarm/internal/process"
)

// Variable is the environment variable that names the folder.
const Variable = "SWARM_HOME"

// A Home is the state folder.
type Home struct {
	// Store holds the runs.
	Store swarm.Store
	// Summarize makes a run's summary from its log. It is called if the saved summary is missing or
	// cannot be right. If it is nil, such runs are listed with what their id tells.
	Summarize func(log swarm.RunLog, run swarm.RunID) (swarm.RunSummary, error)

	dir    string
	shared swarm.SharedStore // the store, if other machines use it as well; else nil
}

// A StoreOpener opens the store of runs in a folder.
type StoreOpener func(dir string) swarm.Store

// Open returns the state folder, or why an existing folder cannot be used. It must be fast, because
// every command begins with it.
func Open(store StoreOpener) (*Home, error) {
	dir, err := where()
	if err != nil {
		return nil, err
	}
	return At(dir, store)
}

// At is Open for a given folder.
func At(dir string, store StoreOpener) (*Home, error) {
	h := &Home{dir: dir}
	h.Store = store(h.in("runs"))
	h.shared, _ = h.Store.(swarm.SharedStore)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, nil
	case err != nil:
		return nil, h.useless("the state folder cannot be used", err)
	case !info.IsDir():
		return nil, h.useless("the state folder is a file", nil)
	case info.Mode().Perm()&0o002 != 0:
		// Folders made here are closed to other users. But a user who can write beside them could
		// replace them.
		e := h.useless("everybody may write in the state folder", nil)
		e.Hint = "close it to others with `chmod 700`, or " + e.Hint
		return nil, e
	}
	me := os.Geteuid()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != me && me != 0 {
		return nil, h.useless("the state folder belongs to another user", nil)
	}
	return h, nil
}

// Make creates the folder if it does not exist, and returns an error if it is not writable. Only
// commands that begin something call it. Commands that only read must leave no trace.
func (h *Home) Make() error {
	ofAgent := process.Inside() && h.OfAgent() // asked before something is in it
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return h.useless("the state folder cannot be made", err)
	}
	if ofAgent {
		_ = os.WriteFile(h.in("of-agent"), nil, 0o600) // best effort: without it the folder is a person's
	}
	const writeAndEnter = 2 | 1
	if err := syscall.Access(h.dir, writeAndEnter); err != nil {
		return h.useless("the state folder cannot be written in", err)
	}
	return nil
}

// OfAgent reports whether an agent's program made the folder, or would make it now, because nothing
// is in it. Its runs are not a person's, and agents may steer them.
//
// The note is the first file of the folder. One that is younger than the folder of runs does not
// count: an agent may have put it into a person's folder.
func (h *Home) OfAgent() bool {
	if noted, ok := born(h.in("of-agent")); ok {
		runs, ok := born(h.in("runs"))
		return !ok || !noted.After(runs)
	}
	f, err := os.Open(h.dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func (h *Home) useless(msg string, err error) *swarm.Error {
	return &swarm.Error{
		Kind: swarm.BadInput, File: h.dir, Msg: msg, Hint: "set " + Variable + " to a folder of your own",
		Err: swarm.WithoutPath(err),
	}
}

// where returns the absolute path of the folder.
func where() (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", &swarm.Error{
				Kind: swarm.BadInput, Msg: "the current folder is gone",
				Hint: "set " + Variable + " to an absolute path", Err: err,
			}
		}
		return abs, nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", &swarm.Error{
			Kind: swarm.BadInput, Msg: "there is no home folder to keep state in",
			Hint: "set HOME, or " + Variable, Err: err,
		}
	}
	return filepath.Join(user, ".swarm"), nil
}

// Dir returns the absolute path of the folder.
func (h *Home) Dir() string { return h.dir }

// OutputDir is the folder of the copies of a run's outputs.
func (h *Home) OutputDir(run swarm.RunID) string { return h.ofRun("outputs", run) }

// OutputPath is the copy of a task's last output.
func (h *Home) OutputPath(run swarm.RunID, task string) string {
	return filepath.Join(h.OutputDir(run), task+".txt")
}

// TreePath is the folder of the git objects that a run recorded.
func (h *Home) TreePath(run swarm.RunID) string { return h.ofRun("trees", run) }

// MakeWork makes the folder for the files of a swarm's agents.
func (h *Home) MakeWork(run swarm.RunID) error { return makeDir(h.WorkPath(run)) }

// MakeOwnWork makes a folder for the files of one agent in that of its swarm.
func (h *Home) MakeOwnWork(run swarm.RunID, agent string) error {
	return makeDir(filepath.Join(h.WorkPath(run), agent))
}

// RemoveWork removes the files of a run that has not begun.
func (h *Home) RemoveWork(run swarm.RunID) error { return os.RemoveAll(h.WorkPath(run)) }

// CopyWork copies the files of a swarm's agents for another run. Their programs may have made anything there,
// and may still be at it: only folders and regular files that can be read are copied, and no link is followed.
func (h *Home) CopyWork(ctx context.Context, from, to swarm.RunID) error {
	source, err := os.OpenRoot(h.WorkPath(from))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	if err := h.MakeWork(to); err != nil {
		return err
	}
	target, err := os.OpenRoot(h.WorkPath(to))
	if err != nil {
		return err
	}
	defer target.Close()
	return fs.WalkDir(source.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isAway(err):
			return nil
		case err != nil || path == ".":
			return err
		case path == "desks": // those of a run are its own
			return fs.SkipDir
		case d.IsDir():
			return target.Mkdir(path, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(ctx, source, target, path)
	})
}

// isAway reports whether a file was deleted just now, or its agent has made it unreadable.
func isAway(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// copyFile copies a regular file. Opening it does not wait, should it have become a pipe.
func copyFile(ctx context.Context, source, target *os.Root, path string) error {
	in, err := source.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if isAway(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	out, err := target.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|info.Mode()&0o100)
	if err != nil {
		return err
	}
	for err == nil { // in pieces, so that a large file can be stopped
		const piece = 64 << 20
		if err = context.Cause(ctx); err == nil {
			_, err = io.CopyN(out, in, piece)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, out.Close())
}

// DesksPath is the folder of a run's desks.
func (h *Home) DesksPath(run swarm.RunID) string { return filepath.Join(h.WorkPath(run), "desks") }

// WorkPath is the folder for the files of a swarm's agents.
func (h *Home) WorkPath(run swarm.RunID) string { return h.ofRun("work", run) }

// ArtifactPath is the folder of artifacts.
func (h *Home) ArtifactPath() string { return h.files("artifacts") }

// PromptPath is the folder of the prompts for all projects.
func (h *Home) PromptPath() string { return h.in("prompts") }

// TokenPath is the file of our own server's key.
func (h *Home) TokenPath() string { return h.in("token") }

func (h *Home) streamDir(run swarm.RunID) string { return h.ofRun("streams", run) }

// MakeRuns creates the folder of logs. The first time it also writes a .gitignore that leaves out
// everything but the prompts, because the state folder may be in a repository.
func (h *Home) MakeRuns() error {
	if err := h.Make(); err != nil {
		return err
	}
	err := os.Mkdir(h.in("runs"), 0o700)
	switch {
	case err == nil:
		if f, err := os.OpenFile(h.in(".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, _ = f.WriteString("/*\n!/prompts/\n") // best effort: no run depends on it
			_ = f.Close()
		}
		return nil
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return makeDir(h.in("runs"))
}

// ofRun is the folder of one kind of a run's files.
func (h *Home) ofRun(kind string, run swarm.RunID) string { return h.files(kind, string(run)) }

// files is a path among the files of the store's runs. Those of shared runs are in a folder of their
// own. So no store takes the files of another one's runs for leftovers.
func (h *Home) files(parts ...string) string {
	if h.shared != nil {
		return h.in(append([]string{sharedFiles}, parts...)...)
	}
	return h.in(parts...)
}

// sharedFiles is the folder for the files of runs that are in a shared store.
const sharedFiles = "shared"

func (h *Home) in(parts ...string) string {
	path := h.dir
	for _, part := range parts {
		path += string(filepath.Separator) + part
	}
	return path
}

// makeDir creates a folder and its parents.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return storageError(dir, "the folder cannot be made", err)
	}
	return nil
}

// storageError returns an error with the file it is about.
func storageError(path, msg string, err error) error {
	return &swarm.Error{Kind: swarm.Storage, File: path, Msg: msg, Err: swarm.WithoutPath(err)}
}
