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

// Seen is a cache of the trees of small folders. In most turns most folders are unchanged, and
// comparing the metadata of a few files is much cheaper than starting git. A nil Seen caches
// nothing. mu guards byDir.
type Seen struct {
	mu    sync.Mutex
	byDir map[string]cachedTree
}

type cachedTree struct {
	print string // fingerprint of the files
	tree  string // hash
}

const maxFingerprint = 1000 // files of a folder that is fingerprinted

// steady is how old the newest change must be, because file systems have coarse clocks. It is a
// variable so that tests need not wait.
var steady = 100 * time.Millisecond

// fingerprint hashes the metadata of a folder's files. It returns "" if that would prove nothing:
// there are too many files, or one changed just now.
func (f Folder) fingerprint() string {
	top, now := repositoryAbove(f.Dir), time.Now()
	if top == "" {
		top = f.Dir
	}
	sum, files := sha256.New(), 0
	fmt.Fprintln(sum, top)
	for _, name := range []string{"HEAD", "config"} { // they show whether it is the same repository
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
				return errVague // a nested repository: the metadata does not show its changes
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
		}
		switch hidden := f.hides(path); {
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir(), hidden: // a folder's own metadata does not count
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		inode, changed := changeOf(info)
		if files++; files > maxFingerprint || now.Sub(changed) < steady {
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

// lookup returns the cached tree of a folder whose fingerprint is unchanged.
func (s *Seen) lookup(dir, print string) (tree string, ok bool) {
	if s == nil || print == "" {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.byDir[dir]
	return was.tree, ok && was.print == print
}

// store caches a tree. The fingerprint is older than the tree: a file that changed in between
// changes the next fingerprint.
func (s *Seen) store(dir, print, tree string) {
	if s == nil || print == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byDir == nil {
		s.byDir = map[string]cachedTree{}
	}
	s.byDir[dir] = cachedTree{print, tree}
}

// repositoryAbove returns the nearest folder with a .git, from dir upwards, or "".
func repositoryAbove(dir string) string {
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

// isRepository reports whether a folder has a .git: a folder, or a file in a worktree or submodule.
// An empty .git folder, as some sandboxes leave behind, doesn't count. Git skips it too.
func isRepository(dir string) bool {
	if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil && !info.IsDir() {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git", "HEAD"))
	return err == nil
}
