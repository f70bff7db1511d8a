package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

// A Folder is a folder whose files are recorded before and after each turn of its agents.
type Folder struct {
	Dir    string
	Store  string   // folder for our repositories; they are reused by later snapshots
	Hidden []string // paths that are not recorded: our own state, and files that we print to
	Alone  bool     // record it by itself if it is in no repository
	Firm   bool     // only ignore rules from before the first snapshot count (see freezeRules)
	Seen   *Seen    // cache of earlier snapshots; nil = none
}

// Limits of a folder that is in no repository. It has no .gitignore that keeps generated files out.
const (
	maxAlone      = 20_000    // files
	maxAloneBytes = 512 << 20 // in all of them
)

// Record writes the folder's files as a tree and returns its hash. The hash is "" without an error
// if the folder is in no repository and Alone is not set.
func (f Folder) Record(ctx context.Context) (hash string, err error) {
	if !f.Alone && repositoryAbove(f.Dir) == "" {
		return "", nil
	}
	print := ""
	if f.Seen != nil {
		print = f.fingerprint()
	}
	if tree, ok := f.Seen.lookup(f.Dir, print); ok {
		return tree, nil
	}
	r, err := f.open(ctx)
	if r == nil || err != nil {
		return "", err
	}
	if f.Firm {
		if err := r.freezeRules(ctx); err != nil {
			return "", err
		}
	}
	if hash, err = r.write(ctx); err == nil {
		f.Seen.store(f.Dir, print, hash)
	}
	return hash, err
}

// open opens the folder's repository. The folder is recorded by itself only if it never was in a
// repository: otherwise an agent could hide changes by moving .git away.
func (f Folder) open(ctx context.Context) (*repository, error) {
	r, ok, err := open(ctx, f.Dir, f.Store, f.Hidden...)
	if !ok && f.Alone && remembered(f.Store, f.Dir) == "" && swarm.KindOf(err) != swarm.NotFound {
		return f.alone(ctx)
	}
	return r, err
}

// alone returns a repository for a folder that is in none.
func (f Folder) alone(ctx context.Context) (*repository, error) {
	if err := hasGit(); err != nil {
		return nil, err
	}
	r := &repository{top: resolved(f.Dir), env: environ(), hidden: allResolved(f.Hidden)}
	if err := r.prepare(ctx, f.Store); err != nil || r.hasSnapshot() {
		return r, err
	}
	return r, f.checkSize()
}

// checkSize returns an error if the folder is too large to be recorded by itself.
func (f Folder) checkSize() error {
	files, size := 0, int64(0)
	errTooMuch := errors.New("too much")
	err := filepath.WalkDir(f.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // unreadable files are not recorded either
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.Type().IsRegular():
			files++
			if info, err := entry.Info(); err == nil {
				size += info.Size()
			}
		}
		if files > maxAlone || size > maxAloneBytes {
			return errTooMuch
		}
		return nil
	})
	if errors.Is(err, errTooMuch) {
		const msg = "%s is in no git repository and holds more than %d files or %d MB"
		return swarm.Errorf(swarm.Other, msg, f.Dir, maxAlone, maxAloneBytes>>20).
			WithHint("`git init` there, with a .gitignore for what nobody writes by hand")
	}
	return nil
}

// Changes are the differences between two trees of a folder.
type Changes struct {
	Top   string   // the folder to which the paths in Files and Text are relative
	Files []string // changed, new and deleted files
	Text  []byte   // output of `git diff`, or of `git diff --stat` if that is too long
	Long  bool     // the output of `git diff` was too long
}

// Compare returns the differences between two trees that were recorded of the folder. Its text has
// at most `most` bytes.
func (f Folder) Compare(ctx context.Context, from, to string, most int) (c Changes, err error) {
	if !isHash(from) || !isHash(to) {
		return c, swarm.Errorf(swarm.BadInput, "%q and %q are not two trees", from, to)
	}
	r, err := f.open(ctx)
	if err == nil && r == nil {
		err = swarm.Errorf(swarm.NotFound, "%s is in no git repository any more", f.Dir)
	}
	if err != nil {
		return c, err
	}
	c.Top = r.top
	if from == to {
		return c, nil
	}
	paths := []string{from, to, "--", "."}
	for _, rel := range r.hiddenInside() { // a hidden file that git tracks is in the trees too
		paths = append(paths, ":(exclude,top,literal)"+rel)
	}
	show := func(most int, args ...string) (capped, error) {
		out := capped{most: most}
		err := r.git(ctx, &out, slices.Concat([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-color"}, args, paths)...)
		if out.full {
			err = nil // we stopped reading, so git failed for that reason
		}
		return out, err
	}
	names, err := show(1<<30, "--name-only", "-z", "--no-renames")
	if err != nil || names.kept.Len() == 0 {
		return c, err
	}
	c.Files = strings.Split(strings.TrimSuffix(names.kept.String(), "\x00"), "\x00")
	text, err := show(most)
	if err == nil && text.full {
		c.Long = true
		text, err = show(most, "--stat=200", "--stat-count=2000")
	}
	c.Text = text.kept.Bytes()
	return c, err
}

// capped is a writer that accepts at most `most` bytes and fails after that.
type capped struct {
	kept bytes.Buffer
	most int
	full bool
}

func (c *capped) Write(b []byte) (int, error) {
	if c.kept.Len()+len(b) > c.most {
		c.full = true
		return 0, errors.New("that is enough")
	}
	return c.kept.Write(b)
}

// resolved returns a path without links, if they can be resolved.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func allResolved(paths []string) []string {
	real := make([]string, len(paths))
	for i, path := range paths {
		real[i] = resolved(path)
	}
	return real
}
