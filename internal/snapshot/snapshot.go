// Package snapshot records the files of a folder as a git tree, and shows the difference between
// two trees. A run records its folder at its beginning and end, and before and after each turn.
//
// [Snapshot] and [Diff] serve the run as a whole, a [Folder] serves turns.
//
// Trees go into a repository of our own, in the store. They hold tracked files, and untracked files
// that are not ignored. The user's repository is only read:
//   - The index is a copy.
//   - New objects are written to our repository.
//   - Only settings that define a file's content count.
//   - Hooks, filters and monitors of its configuration are never started, because an agent may have
//     written them.
//
// The whole repository is recorded, wherever in it the folder is. A folder that is in no repository
// is recorded by itself. A nested repository is recorded like any other folder, without its .git.
// Files that git cannot read are recorded as placeholders, which change with the metadata of the
// file.
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

// Snapshot records the files of the repository that dir is in. If there is none, ok is false
// without an error, and no program is started. The store is a folder that is created on demand;
// later snapshots in the same store are faster. Hidden paths are not recorded.
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

// Diff writes the difference between two trees that were recorded in the store. If `to` is "", it
// compares with the current files. The arguments are those of `git diff`: --stat, --color=always,
// -- PATH.
func Diff(ctx context.Context, dir, store, from, to string, w io.Writer, args ...string) error {
	r, ok, err := open(ctx, dir, store)
	if err != nil {
		return err
	}
	if !ok {
		return swarm.Errorf(swarm.NotFound, "%s is in no git repository", dir).
			WithHint("git has to know the files whose changes are to be shown")
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

// A repository is the user's repository together with our own, which records it.
type repository struct {
	top     string   // the work tree
	index   string   // the user's; it may not exist
	exclude string   // the user's info/exclude; it may not exist
	objects string   // the user's, or ""
	format  string   // of hashes
	commit  string   // the user's HEAD, or ""
	hidden  []string // paths that are not recorded
	own     string   // our repository
	rules   string   // file with the frozen ignore rules; "" = current rules count
	env     []string
}

// open finds the repository that dir is in, and prepares our own for it.
func open(ctx context.Context, dir, store string, hidden ...string) (r *repository, ok bool, err error) {
	asked, was := dir, remembered(store, dir)
	if was == "" && repositoryAbove(dir) == "" {
		return nil, false, nil
	}
	if err := hasGit(); err != nil {
		return nil, false, err
	}
	if was != "" && isRepository(was) {
		dir = was // even if a nearer repository exists by now
	}
	r = &repository{top: dir, env: environ(), hidden: allResolved(hidden)}
	var out bytes.Buffer
	err = r.git(ctx, &out, "rev-parse", "--show-toplevel", "--path-format=absolute", "--git-path", "index",
		"--git-path", "objects", "--git-path", "info/exclude", "--show-object-format", "HEAD")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if was != "" && (len(lines) < 5 || lines[0] != was) {
		return nil, false, repositoryChanged(was, err)
	}
	if len(lines) < 5 {
		return nil, false, err // a bare repository, another user's, or a broken one
	}
	r.top, r.index, r.objects, r.exclude, r.format = lines[0], lines[1], lines[2], lines[3], lines[4]
	if err == nil && len(lines) == 6 {
		r.commit = lines[5] // otherwise it has no commit yet
	}
	if err := r.prepare(ctx, store); err != nil {
		return nil, false, err
	}
	return r, true, remember(store, asked, r.top)
}

func hasGit() error {
	if _, err := exec.LookPath("git"); err != nil {
		return swarm.Errorf(swarm.NotFound, "there is no git program").
			WithHint("install git to have the changes of a run recorded")
	}
	return nil
}

// prepare creates our repository for these files, unless it exists. The store has one for each
// folder. From then on git uses only this repository, with the user's settings from that moment. So
// nothing that an agent does to settings later changes what is recorded.
func (r *repository) prepare(ctx context.Context, store string) error {
	r.own = filepath.Join(store, string(swarm.HashOf([]byte(r.top))[:12]))
	config := filepath.Join(r.own, "config")
	if _, err := os.Stat(config); err != nil {
		settings, err := r.settings(ctx)
		if err != nil {
			return err
		}
		if err := r.initialize(config, settings, r.ignored(ctx)); err != nil {
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

// initialize writes the files that make a folder a repository. The configuration comes last:
// prepare takes it as the sign that the others are complete, so a crash leaves no broken
// repository.
func (r *repository) initialize(config, settings string, exclude []byte) error {
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
		own, _ := os.ReadFile(r.exclude) // most users have none
		exclude = append(append(exclude, own...), '\n')
	}
	exclude = append(exclude, r.missingExcludes(nil)...)
	return errors.Join(writeAtomically(filepath.Join(r.own, "HEAD"), "ref: refs/heads/none\n"),
		writeAtomically(r.ownExclude(), string(exclude)), writeAtomically(config, text))
}

// ownExclude is the exclude file of our repository.
func (r *repository) ownExclude() string { return filepath.Join(r.own, "info", "exclude") }

// hide adds hidden paths to the exclude file. A resumed run may print to another file than when the
// repository was made.
func (r *repository) hide() error {
	if len(r.hidden) == 0 {
		return nil
	}
	exclude, err := os.ReadFile(r.ownExclude())
	if err != nil {
		return err
	}
	if more := r.missingExcludes(exclude); len(more) > 0 {
		return writeAtomically(r.ownExclude(), string(exclude)+more)
	}
	return nil
}

// missingExcludes returns the lines for hidden paths that an exclude file does not have yet.
func (r *repository) missingExcludes(exclude []byte) (more string) {
	for _, rel := range r.hiddenInside() {
		if line := "/" + pattern(rel) + "\n"; !bytes.Contains(exclude, []byte("\n"+line)) {
			more += line
		}
	}
	return more
}

// hiddenInside returns the hidden paths that are in the work tree, relative to its top.
func (r *repository) hiddenInside() (all []string) {
	for _, path := range r.hidden {
		if rel, err := filepath.Rel(r.top, resolved(path)); err == nil && filepath.IsLocal(rel) && rel != "." {
			all = append(all, filepath.ToSlash(rel))
		}
	}
	return all
}

// writeAtomically creates or replaces a file by a rename, because two snapshots may run at once.
func writeAtomically(path, text string) error {
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

// write records the current files as a tree and returns its hash.
func (r *repository) write(ctx context.Context) (string, error) {
	index, err := r.copyIndex()
	if err != nil {
		return "", failed("the repository's index cannot be copied", err)
	}
	defer os.Remove(index)
	again := *r
	again.env = append(r.env[:len(r.env):len(r.env)], "GIT_INDEX_FILE="+index)
	if err = again.add(ctx); err != nil && ctx.Err() == nil {
		// The index only saves time. A split index, or one that a power failure has cut, is
		// dropped.
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
	if err := os.Rename(index, r.ownIndex()); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty folder has none
		return "", failed("the changes of the run cannot be recorded", err)
	}
	return strings.TrimSpace(out.String()), nil
}

// hasSnapshot reports whether an earlier snapshot left an index.
func (r *repository) hasSnapshot() bool {
	_, err := os.Stat(r.ownIndex())
	return err == nil
}

// ownIndex is the index of the last snapshot, from which the next one starts.
func (r *repository) ownIndex() string {
	if r.rules != "" {
		return filepath.Join(r.own, "index-firm") // frozen rules select other files
	}
	return filepath.Join(r.own, "index")
}

// copyIndex copies the index of the last snapshot, or the user's. With it, git need not read
// unchanged files.
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
		// Git reads a file again if it changed in the instant in which the index was written. It
		// knows by the index's time, so the copy keeps that.
		return f.Name(), os.Chtimes(f.Name(), info.ModTime(), info.ModTime())
	}
	return f.Name(), os.Remove(f.Name()) // git takes an empty file for a broken index
}

func failed(msg string, err error) error {
	return &swarm.Error{Kind: swarm.Storage, Msg: msg, Err: err}
}
