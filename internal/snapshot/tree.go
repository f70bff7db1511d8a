// Package snapshot records what the files of a folder are, when a run begins and ends and before and after a turn, and shows the difference.
//
// The files are written as a git tree, with those that are not tracked and not ignored, into a repository of our own. The user's
// is only read: the index is a copy, new objects are ours, of its settings only those count that say what a file is, and nothing that its
// configuration could start (hooks, filters, monitors) is started. The whole repository is recorded, wherever in it the folder is; a folder
// that is in none is recorded by itself. A repository inside is recorded as any other folder, without its .git: no git looks into that one,
// whose settings may be an agent's. What cannot be read is recorded by what it looks like from outside.
package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"swarm"
)

// Snapshot records the files of the repository that dir is in. Without one, ok is false, and without an error too: no program is
// started then. The store is a folder that is made when it is needed; a second snapshot in it takes less time. Hidden folders and
// files are not recorded.
func Snapshot(ctx context.Context, dir, store string, hidden ...string) (t swarm.Snapshot, ok bool, err error) {
	r, ok, err := open(ctx, dir, store, hidden...)
	if !ok || err != nil {
		return swarm.Snapshot{}, false, err
	}
	hash, err := r.write(ctx)
	if err != nil {
		return swarm.Snapshot{}, false, err
	}
	return swarm.Snapshot{Hash: hash, Commit: r.commit}, true, nil
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
	top     string   // the work tree
	index   string   // the user's; it may not exist
	exclude string   // the user's file of what is not looked at; it may not exist
	objects string   // the user's, or ""
	format  string   // of hashes
	commit  string   // what is checked out, or ""
	hidden  []string // folders and files in it that are not recorded
	own     string   // our repository
	rules   string   // the file of what was not looked at when the run began, if later rules do not count; or ""
	env     []string
}

// open finds the repository that dir is in.
func open(ctx context.Context, dir, store string, hidden ...string) (r *repository, ok bool, err error) {
	asked, was := dir, remembered(store, dir)
	if was == "" && above(dir) == "" {
		return nil, false, nil
	}
	if err := hasGit(); err != nil {
		return nil, false, err
	}
	if was != "" && isRepository(was) {
		dir = was // whatever lies in between by now
	}
	r = &repository{top: dir, env: environ(), hidden: allResolved(hidden)}
	var out bytes.Buffer
	err = r.git(ctx, &out, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-path", "index", "--git-path", "objects",
		"--git-path", "info/exclude", "--show-object-format", "HEAD")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if was != "" && (len(lines) < 5 || lines[0] != was) {
		return nil, false, another(was, err)
	}
	if len(lines) < 5 {
		return nil, false, err // a bare repository, one of somebody else, or a broken one
	}
	r.top, r.index, r.objects, r.exclude, r.format = lines[0], lines[1], lines[2], lines[3], lines[4]
	if err == nil && len(lines) == 6 {
		r.commit = lines[5] // otherwise nothing was committed yet
	}
	if err := r.make(ctx, store); err != nil {
		return nil, false, err
	}
	return r, true, remember(store, asked, r.top)
}

func hasGit() error {
	if _, err := exec.LookPath("git"); err != nil {
		return swarm.Errorf(swarm.NotFound, "there is no git program").WithHint("install git to have the changes of a run recorded")
	}
	return nil
}

// make makes our repository for these files, in a store that has one for each folder, unless it is there. Git sees no other one from
// then on, and no settings but those that were the user's when it was made: whatever an agent does to them later, what is recorded stays
// the same.
func (r *repository) make(ctx context.Context, store string) error {
	r.own = filepath.Join(store, string(swarm.HashOf([]byte(r.top))[:12]))
	config := filepath.Join(r.own, "config")
	if _, err := os.Stat(config); err != nil {
		settings, err := r.settings(ctx)
		if err != nil {
			return err
		}
		if err := r.lay(config, settings, r.ignored(ctx)); err != nil {
			return failed("the changes of the run cannot be recorded", err)
		}
	} else if err := r.hide(); err != nil {
		return failed("the changes of the run cannot be recorded", err)
	}
	r.env = append(r.env, "GIT_DIR="+r.own, "GIT_WORK_TREE="+r.top, "HOME="+r.own, "XDG_CONFIG_HOME="+r.own,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1")
	if r.objects != "" {
		r.env = append(r.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoted(r.objects))
	}
	return nil
}

// lay writes the files that make a folder a repository, its configuration last.
func (r *repository) lay(config, settings string, exclude []byte) error {
	for _, folder := range []string{"objects", "refs", "info"} {
		if err := os.MkdirAll(filepath.Join(r.own, folder), 0o700); err != nil {
			return err
		}
	}
	settings += "\texcludesfile = " + os.DevNull + "\n"
	text := "[core]\n\trepositoryformatversion = 0\n" + settings
	if r.format == "sha256" {
		text = "[core]\n\trepositoryformatversion = 1\n" + settings + "[extensions]\n\tobjectformat = sha256\n"
	}
	if r.exclude != "" {
		own, _ := os.ReadFile(r.exclude) // mostly there is none
		exclude = append(append(exclude, own...), '\n')
	}
	exclude = append(exclude, r.unseen(nil)...)
	return errors.Join(place(filepath.Join(r.own, "HEAD"), "ref: refs/heads/none\n"), place(r.ownExclude(), string(exclude)), place(config, text))
}

// ownExclude is the list of what is not recorded.
func (r *repository) ownExclude() string { return filepath.Join(r.own, "info", "exclude") }

// hide adds to that list what was not hidden when it was made: a run that goes on prints to another file.
func (r *repository) hide() error {
	if len(r.hidden) == 0 {
		return nil
	}
	exclude, err := os.ReadFile(r.ownExclude())
	if err != nil {
		return err
	}
	if more := r.unseen(exclude); len(more) > 0 {
		return place(r.ownExclude(), string(exclude)+more)
	}
	return nil
}

// unseen is what is hidden, as lines for a list that may have some of them.
func (r *repository) unseen(exclude []byte) (more string) {
	for _, rel := range r.inside() {
		if line := "/" + pattern(rel) + "\n"; !bytes.Contains(exclude, []byte("\n"+line)) {
			more += line
		}
	}
	return more
}

// inside are the hidden paths that lie in the work tree, from its top.
func (r *repository) inside() (all []string) {
	for _, path := range r.hidden {
		if rel, err := filepath.Rel(r.top, resolved(path)); err == nil && filepath.IsLocal(rel) && rel != "." {
			all = append(all, filepath.ToSlash(rel))
		}
	}
	return all
}

// place puts a file there whole: two snapshots may begin at once.
func place(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// write writes the present files as a tree, and returns its hash.
func (r *repository) write(ctx context.Context) (string, error) {
	index, err := r.copyIndex()
	if err != nil {
		return "", failed("the repository's index cannot be copied", err)
	}
	defer os.Remove(index)
	again := *r
	again.env = append(r.env[:len(r.env):len(r.env)], "GIT_INDEX_FILE="+index)
	if err = again.add(ctx); err != nil && ctx.Err() == nil {
		// An index that is in two files, or that a power failure has cut, is done without: it only saves time.
		_ = os.Remove(index)
		err = again.add(ctx)
	}
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := again.git(ctx, &out, "write-tree", "--missing-ok"); err != nil {
		return "", err
	}
	if err := os.Rename(index, r.ownIndex()); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an empty folder there is none
		return "", failed("the changes of the run cannot be recorded", err)
	}
	return strings.TrimSpace(out.String()), nil
}

// begun says that something was recorded before.
func (r *repository) begun() bool {
	_, err := os.Stat(r.ownIndex())
	return err == nil
}

// ownIndex is the index of the last snapshot, which the next one begins with.
func (r *repository) ownIndex() string {
	if r.rules != "" {
		return filepath.Join(r.own, "index-firm") // it knows of other files
	}
	return filepath.Join(r.own, "index")
}

// copyIndex makes a copy of the last snapshot's index, or of the user's, so that git need not read files that have not changed.
func (r *repository) copyIndex() (string, error) {
	f, err := os.CreateTemp(r.own, "index-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for _, path := range []string{r.ownIndex(), r.index} {
		from, err := os.Open(path)
		if path == "" || errors.Is(err, fs.ErrNotExist) {
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
