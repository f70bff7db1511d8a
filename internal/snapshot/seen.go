package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Seen remembers what small folders were recorded as: looking at a few files is much cheaper than starting git, and in most turns most
// folders are as they were. The nil one remembers nothing.
type Seen struct {
	mu sync.Mutex
	by map[string]sight
}

type sight struct {
	print string // of what the files looked like
	tree  string
}

const maxGlance = 1000 // files of a folder that is looked at

// steady is how long nothing must have moved: clocks of files are coarse. It is a variable so that tests need not wait.
var steady = 100 * time.Millisecond

// glance is what the files of a folder look like, or "" when that tells nothing: they are many, or may be moving just now.
func (f Folder) glance() string {
	top, now := above(f.Dir), time.Now()
	if top == "" {
		top = f.Dir
	}
	sum, files := sha256.New(), 0
	fmt.Fprintln(sum, top)
	for _, name := range []string{"HEAD", "config"} { // without which it is no repository, or another one
		if info, err := os.Lstat(filepath.Join(top, ".git", name)); err == nil {
			inode, changed := changeOf(info)
			fmt.Fprintln(sum, name, info.Mode(), info.Size(), inode, changed.UnixNano())
		}
	}
	errVague := errors.New("nobody can tell")
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" {
			if filepath.Dir(path) != top {
				return errVague // what is in another repository is told by its commit
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
		}
		switch hidden := f.hides(path); {
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir(), hidden: // a folder is what is in it
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		inode, changed := changeOf(info)
		if files++; files > maxGlance || now.Sub(changed) < steady {
			return errVague
		}
		fmt.Fprintf(sum, "%q %v %d %d %d\n", path, info.Mode(), info.Size(), inode, changed.UnixNano())
		return nil
	})
	if err != nil {
		return ""
	}
	return string(sum.Sum(nil))
}

func (f Folder) hides(path string) bool {
	for _, hidden := range f.Hidden {
		if path == hidden || path == resolved(hidden) {
			return true
		}
	}
	return false
}

// recall is the tree of a folder that looks as it did.
func (s *Seen) recall(dir, print string) (tree string, ok bool) {
	if s == nil || print == "" {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.by[dir]
	return was.tree, ok && was.print == print
}

// note remembers what was recorded after somebody has looked: whatever moved in between looks another way the next time.
func (s *Seen) note(dir, print, tree string) {
	if s == nil || print == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]sight{}
	}
	s.by[dir] = sight{print, tree}
}

// above is the folder above dir, or dir itself, that has a .git, or "".
func above(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for {
		if isRepository(dir) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// isRepository says whether a folder has a .git. It is a folder, or a file in a worktree or submodule; an empty folder, as some sandboxes
// leave it behind, is none, and git looks further up too.
func isRepository(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil && !info.IsDir() {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git", "HEAD"))
	return err == nil
}
