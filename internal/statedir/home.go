// Package statedir is the folder in which swarm keeps its state: $SWARM_HOME, or ~/.swarm.
//
//	runs/<run>.db           a run's log; sqlite's business
//	runs/<run>.db.owner     locked by the process that drives the run, while it does
//	runs/<run>.jsonl        summaries of the run, for lists: the last line counts; made again from the log when it is missing
//	outputs/<run>/TASK.txt  copies of the tasks' last outputs, for people
//	streams/<run>/          what turns say, while they say it and later
//	live/                   marks of the processes that drive runs, locked while they do
//	trees/<run>/            git objects of the work tree before and after the run
//	desks/<run>/            the desks of agents that work through files
//	artifacts/              bytes that envelopes refer to
//	prompts/                prompts for every project
//	token                   the key to our own server
//
// Logs hold the truth, and everything else here can be thrown away. Only folders that are needed are made.
package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"swarm"
)

// Variable names the folder, when it is set.
const Variable = "SWARM_HOME"

// A Home is the state folder.
type Home struct {
	// Store holds the runs.
	Store swarm.Store
	// Summarize makes a run's summary from its log. It is asked when the saved summary is missing or cannot be right. Nil:
	// such runs are listed with what their id tells.
	Summarize func(log swarm.RunLog, run swarm.RunID) (swarm.RunSummary, error)

	dir string
}

// A StoreOpener opens the store of runs in a folder.
type StoreOpener func(dir string) swarm.Store

// Open says why the folder cannot be used, if it is there. It does little, for every command begins with it.
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
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h, nil
	case err != nil:
		return nil, h.useless("the state folder cannot be used", err)
	case !info.IsDir():
		return nil, h.useless("the state folder is a file", nil)
	case info.Mode().Perm()&0o002 != 0:
		// Folders made here are closed to others, but whoever may write beside them could put his own in their place.
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

// Make makes the folder if it is not there, and says why nothing can be written in it. Whoever begins something calls it; those
// who only look must leave no trace.
func (h *Home) Make() error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return h.useless("the state folder cannot be made", err)
	}
	const writeAndEnter = 2 | 1
	if err := syscall.Access(h.dir, writeAndEnter); err != nil {
		return h.useless("the state folder cannot be written in", err)
	}
	return nil
}

func (h *Home) useless(msg string, err error) *swarm.Error {
	return &swarm.Error{Kind: swarm.BadInput, File: h.dir, Msg: msg, Hint: "set " + Variable + " to a folder of your own", Err: swarm.WithoutPath(err)}
}

// where is the folder's absolute path.
func where() (string, error) {
	if dir := os.Getenv(Variable); dir != "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", &swarm.Error{Kind: swarm.BadInput, Msg: "the current folder is gone", Hint: "set " + Variable + " to an absolute path", Err: err}
		}
		return abs, nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", &swarm.Error{Kind: swarm.BadInput, Msg: "there is no home folder to keep state in", Hint: "set HOME, or " + Variable, Err: err}
	}
	return filepath.Join(user, ".swarm"), nil
}

// Dir is the folder's absolute path.
func (h *Home) Dir() string { return h.dir }

// OutputDir is where the copies of a run's outputs are.
func (h *Home) OutputDir(run swarm.RunID) string { return h.in("outputs", string(run)) }

// OutputPath is where the copy of a task's last output is.
func (h *Home) OutputPath(run swarm.RunID, task string) string {
	return h.in("outputs", string(run), task+".txt")
}

// TreePath is where the git objects that a run recorded are.
func (h *Home) TreePath(run swarm.RunID) string { return h.in("trees", string(run)) }

// DeskPath is where a run's desks are.
func (h *Home) DeskPath(run string) string { return h.in("desks", run) }

// ArtifactPath is where artifacts are.
func (h *Home) ArtifactPath() string { return h.in("artifacts") }

// PromptPath is where the prompts for every project are.
func (h *Home) PromptPath() string { return h.in("prompts") }

// TokenPath is where the key to our own server is.
func (h *Home) TokenPath() string { return h.in("token") }

func (h *Home) streamDir(run swarm.RunID) string { return h.in("streams", string(run)) }

// MakeRuns makes the folder in which logs are created. The first time, it also tells git that the state folder is none of its
// business, but for the prompts: it may lie in somebody's repository.
func (h *Home) MakeRuns() error {
	if err := h.Make(); err != nil {
		return err
	}
	err := os.Mkdir(h.in("runs"), 0o700)
	switch {
	case err == nil:
		if f, err := os.OpenFile(h.in(".gitignore"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, _ = f.WriteString("/*\n!/prompts/\n") // a kindness: the run does not depend on it
			_ = f.Close()
		}
		return nil
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return made(h.in("runs"))
}

func (h *Home) in(parts ...string) string {
	path := h.dir
	for _, part := range parts {
		path += string(filepath.Separator) + part
	}
	return path
}

// made makes a folder and those above it.
func made(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &swarm.Error{Kind: swarm.Storage, File: dir, Msg: "the folder cannot be made", Err: swarm.WithoutPath(err)}
	}
	return nil
}
