// Package tree records what the files of a git repository are when a run begins and when it ends, and shows the difference.
//
// The files are written as a git tree, with those that are not tracked and not ignored, into a store of our own. The user's
// repository is only read: the index is a copy, new objects go to the store, and nothing that its configuration could start
// (hooks, filters, monitors) is started. The whole repository is recorded, wherever in it the run was started. A submodule is
// recorded by its commit, not by the files in it.
package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"swarm"
)

// Snapshot records the files of the repository that dir is in. Without one, ok is false, and without an error too: no program is
// started then. The store is a folder that is made when it is needed; a second snapshot in it takes less time.
func Snapshot(ctx context.Context, dir, store string) (t swarm.Tree, ok bool, err error) {
	r, ok, err := open(ctx, dir, store)
	if !ok || err != nil {
		return swarm.Tree{}, false, err
	}
	hash, err := r.write(ctx)
	if err != nil {
		return swarm.Tree{}, false, err
	}
	return swarm.Tree{Hash: hash, Commit: r.commit}, true, nil
}

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// Diff writes the difference between two trees that were recorded in the store. Without a second one it is the present state. The
// arguments are those of `git diff`: --stat, --color=always, -- PATH.
func Diff(ctx context.Context, dir, store, from, to string, w io.Writer, args ...string) error {
	r, ok, err := open(ctx, dir, store)
	if err != nil {
		return err
	}
	if !ok {
		return swarm.Errorf(swarm.NotFound, "%s is in no git repository", dir).WithHint("git has to know the files whose changes are to be shown")
	}
	if to == "" {
		if to, err = r.write(ctx); err != nil {
			return err
		}
	}
	if !isHash(from) || !isHash(to) {
		return swarm.Errorf(swarm.BadInput, "%q and %q are not two trees", from, to)
	}
	command := []string{"diff", "--no-ext-diff", "--no-textconv"}
	paths := []string{}
	for i, arg := range args {
		if arg == "--" {
			args, paths = args[:i], args[i:]
			break
		}
	}
	command = append(append(append(command, args...), from, to), paths...)
	return r.git(ctx, w, command...)
}

// A repository is where the user's files and objects are, and ours.
type repository struct {
	top    string // the work tree, or a folder in it
	index  string // the user's; it may not exist
	commit string // what is checked out, or ""
	store  string
	env    []string
	config []string
}

// open finds the repository that dir is in.
func open(ctx context.Context, dir, store string) (r *repository, ok bool, err error) {
	if !inside(dir) {
		return nil, false, nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil, false, swarm.Errorf(swarm.NotFound, "there is no git program").WithHint("install git to have the changes of a run recorded")
	}
	r = &repository{store: store, top: dir, env: environ(), config: quiet}
	var filters []string
	var filtersErr error
	var both sync.WaitGroup
	both.Go(func() { filters, filtersErr = r.filterSettings(ctx) }) // meanwhile: starting git takes longer than what it does
	var out bytes.Buffer
	err = r.git(ctx, &out, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-path", "index", "--git-path", "objects", "HEAD")
	both.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) < 3 {
		return nil, false, err // a bare repository, one of somebody else, or a broken one
	}
	if filtersErr != nil {
		return nil, false, filtersErr
	}
	r.top, r.index = lines[0], lines[1]
	if err == nil && len(lines) == 4 {
		r.commit = lines[3] // otherwise nothing was committed yet
	}
	objects := lines[2]
	r.config = slices.Concat(quiet, filters)
	r.env = append(r.env, "GIT_OBJECT_DIRECTORY="+filepath.Join(store, "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoted(objects))
	return r, true, nil
}

// inside says whether there is a .git above dir. It is a folder, or a file in a worktree or submodule; an empty folder, as some
// sandboxes leave it behind, is none, and git looks further up too.
func inside(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	for {
		if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil && !info.IsDir() {
			return true
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git", "HEAD")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// write writes the present files as a tree, and returns its hash.
func (r *repository) write(ctx context.Context) (string, error) {
	if err := os.MkdirAll(filepath.Join(r.store, "objects"), 0o700); err != nil {
		return "", failed("the changes of the run cannot be recorded", err)
	}
	index, err := r.copyIndex()
	if err != nil {
		return "", failed("the repository's index cannot be copied", err)
	}
	defer os.Remove(index)
	own := *r
	own.env = append(own.env[:len(own.env):len(own.env)], "GIT_INDEX_FILE="+index)
	if err := own.add(ctx); err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := own.git(ctx, &out, "write-tree", "--missing-ok"); err != nil {
		return "", err
	}
	if err := os.Rename(index, r.ownIndex()); err != nil {
		return "", failed("the changes of the run cannot be recorded", err)
	}
	return strings.TrimSpace(out.String()), nil
}

// ownIndex is the index of the last snapshot, which the next one begins with.
func (r *repository) ownIndex() string { return filepath.Join(r.store, "index") }

// copyIndex makes a copy of the last snapshot's index, or of the user's, so that git need not read files that have not changed.
func (r *repository) copyIndex() (string, error) {
	f, err := os.CreateTemp(r.store, "index-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, path := range []string{r.ownIndex(), r.index} {
		from, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return f.Name(), err
		}
		defer from.Close()
		info, err := from.Stat()
		if err != nil {
			return f.Name(), err
		}
		if _, err := io.Copy(f, from); err != nil {
			return f.Name(), err
		}
		// A file that was changed in the same instant in which the index was written is found by the index's time.
		return f.Name(), os.Chtimes(f.Name(), info.ModTime(), info.ModTime())
	}
	return f.Name(), os.Remove(f.Name()) // git takes an empty file for a broken index
}

func failed(msg string, err error) error {
	return &swarm.Error{Kind: swarm.Storage, Msg: msg, Err: err}
}
