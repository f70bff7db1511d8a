package snapshot

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"swarm"
)

// Limits of Contents. What lies beyond them is not looked at.
const (
	maxContents = 2000    // files
	maxContent  = 4 << 20 // bytes of one file
)

// Contents knows the contents of a few files, and of the files in a few folders. A file is read again
// only if its metadata has changed. It needs no git, so it also works outside of repositories.
type Contents struct {
	paths []string

	mu    sync.Mutex
	known map[string]content
}

type content struct {
	inode   uint64
	size    int64
	changed time.Time
	hash    swarm.Hash
}

// NewContents makes the Contents of files and folders. Those that do not exist may be made later.
func NewContents(paths []string) *Contents {
	c := &Contents{}
	for _, path := range paths {
		if path = resolved(path); !slices.Contains(c.paths, path) {
			c.paths = append(c.paths, path)
		}
	}
	return c
}

// Look returns the current contents by path. The map belongs to the caller.
func (c *Contents) Look() map[string]swarm.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make(map[string]content, len(c.known))
	for _, path := range c.paths {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			c.add(now, path, info)
		}
		if err != nil || !info.IsDir() {
			continue
		}
		_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error { // unreadable folders are left out
			switch {
			case err != nil || entry.IsDir():
				return nil
			case len(now) >= maxContents:
				return fs.SkipAll
			}
			if info, err := os.Stat(path); err == nil {
				c.add(now, path, info)
			}
			return nil
		})
	}
	c.known = now
	hashes := make(map[string]swarm.Hash, len(now))
	for path, file := range now {
		hashes[path] = file.hash
	}
	return hashes
}

func (c *Contents) add(now map[string]content, path string, info fs.FileInfo) {
	if _, seen := now[path]; seen || !info.Mode().IsRegular() || info.Size() > maxContent {
		return
	}
	file := content{size: info.Size()}
	file.inode, file.changed = changeOf(info)
	if was, ok := c.known[path]; ok && was.inode == file.inode && was.size == file.size && was.changed.Equal(file.changed) {
		now[path] = was
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	file.hash = swarm.HashOf(text)
	now[path] = file
}

// Changed returns the files that are new or different, with their content.
func Changed(before, after map[string]swarm.Hash) map[string]swarm.Hash {
	changed := maps.Clone(after)
	maps.DeleteFunc(changed, func(path string, hash swarm.Hash) bool { return before[path] == hash })
	return changed
}
