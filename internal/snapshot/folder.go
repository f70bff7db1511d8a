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

// A Folder is one whose files are recorded again and again: before and after each turn of those who work there.
type Folder struct {
	Dir    string
	Store  string
	Hidden []string // folders and files in it that are not recorded: our own state, and what we print to
	Alone  bool     // it is recorded by itself, when it is in no repository
	Firm   bool     // what git ignores is what it ignored when this was first recorded
	Seen   *Seen    // what it was recorded as; nil = nobody remembers
}

// What is recorded of a folder that is in no repository: nothing says there what is not worth it.
const (
	maxAlone      = 20_000    // files
	maxAloneBytes = 512 << 20 // of all of them
)

// Record writes the folder's files as a tree, and returns its hash; "" without an error when it is in no repository and is not to be
// recorded by itself.
func (f Folder) Record(ctx context.Context) (hash string, err error) {
	if !f.Alone && above(f.Dir) == "" {
		return "", nil
	}
	print := ""
	if f.Seen != nil {
		print = f.glance()
	}
	if tree, ok := f.Seen.recall(f.Dir, print); ok {
		return tree, nil
	}
	r, err := f.open(ctx)
	if r == nil || err != nil {
		return "", err
	}
	if f.Firm {
		if err := r.fix(ctx); err != nil {
			return "", err
		}
	}
	if hash, err = r.write(ctx); err == nil {
		f.Seen.note(f.Dir, print, hash)
	}
	return hash, err
}

func (f Folder) open(ctx context.Context) (*repository, error) {
	r, ok, err := open(ctx, f.Dir, f.Store, f.Hidden...)
	if !ok && f.Alone && remembered(f.Store, f.Dir) == "" && swarm.KindOf(err) != swarm.NotFound {
		return f.alone(ctx)
	}
	return r, err
}

// alone is a repository for a folder that is in none.
func (f Folder) alone(ctx context.Context) (*repository, error) {
	if err := hasGit(); err != nil {
		return nil, err
	}
	r := &repository{top: resolved(f.Dir), env: environ(), hidden: allResolved(f.Hidden)}
	if err := r.make(ctx, f.Store); err != nil || r.begun() {
		return r, err
	}
	return r, f.small()
}

// small says why a folder is not recorded by itself: it holds too much.
func (f Folder) small() error {
	files, size := 0, int64(0)
	errTooMuch := errors.New("too much")
	err := filepath.WalkDir(f.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is not recorded either
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
		return swarm.Errorf(swarm.Other, "%s is in no git repository and holds more than %d files or %d MB", f.Dir, maxAlone, maxAloneBytes>>20).
			WithHint("`git init` there, with a .gitignore for what nobody writes by hand")
	}
	return nil
}

// Changes are what became of a folder's files between two trees.
type Changes struct {
	Top   string   // the folder that Files and Text name them from
	Files []string // whose content or kind is another, or that are new or gone
	Text  []byte   // as `git diff` prints it; when that is too long, as `git diff --stat` does
	Long  bool     // it was too long
}

// Compare says what is different in two trees that were recorded of the folder, in at most so many bytes.
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
	for _, rel := range r.inside() { // one that git tracks is in the trees all the same
		paths = append(paths, ":(exclude,top,literal)"+rel)
	}
	show := func(most int, args ...string) (capped, error) {
		out := capped{most: most}
		err := r.git(ctx, &out, slices.Concat([]string{"diff", "--no-ext-diff", "--no-textconv", "--no-color"}, args, paths)...)
		if out.full {
			err = nil // that nobody listens any more is no failure of git's
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

// capped keeps so many bytes, and takes no more.
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

// resolved is a path without links, as far as that can be known.
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
