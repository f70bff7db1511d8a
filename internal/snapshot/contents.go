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
	maxContents = 2000     // files
	maxContent  = 4 << 20  // bytes of one file
	maxRead     = 64 << 20 // bytes that one look reads
	maxBeside   = 2000     // entries of the folder in which new compose files are looked for
)

// Contents knows the contents of a few files, and of the files in a few folders. A file is read again
// only if its metadata has changed. It needs no git, so it also works outside of repositories.
type Contents struct {
	paths  []string
	beside string // the folder whose YAML files count too

	mu     sync.Mutex
	known  map[string]content
	read   int64 // bytes in this look
	last   map[string]swarm.Hash
	looked time.Time // the beginning of the last look; zero = there was none
}

type content struct {
	inode   uint64
	size    int64
	changed time.Time
	settled bool // a later write would have had another time
	hash    swarm.Hash
}

// clockTick is longer than the step of a file system's clock. Two writes within one step have the same
// time.
const clockTick = 100 * time.Millisecond

// NewContents makes the Contents of files and folders, which may be made later, and of the YAML files
// in the folder dir: each may be a compose file.
func NewContents(dir string, paths []string) *Contents {
	c := &Contents{beside: resolved(dir)}
	for _, path := range paths {
		if path = resolved(path); !slices.Contains(c.paths, path) {
			c.paths = append(c.paths, path)
		}
	}
	return c
}

// recent is the age of a look that LookBefore takes instead of a new one.
const recent = 10 * time.Millisecond

// LookBefore returns the contents before a turn, for Changed. The turn after another one shares the
// look at the end of that one, because a look costs a tenth of a short turn. A change between both is
// then taken for one of the turn, so that a person is asked once too often and never too rarely.
func (c *Contents) LookBefore() map[string]swarm.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looked.IsZero() && time.Since(c.looked) < recent {
		return c.last
	}
	return c.look()
}

// Look returns the current contents by path. Callers leave the map as it is.
func (c *Contents) Look() map[string]swarm.Hash {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look()
}

func (c *Contents) look() map[string]swarm.Hash {
	c.looked = time.Now()
	now := make(map[string]content, len(c.known))
	c.read = 0
	for _, path := range append(c.yamlFiles(), c.paths...) {
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
				return nil //nolint:nilerr // see above
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
	c.last = make(map[string]swarm.Hash, len(now))
	for path, file := range now {
		c.last[path] = file.hash
	}
	return c.last
}

// yamlFiles returns the files beside the compose file that may be others. A folder with very many
// entries is data.
func (c *Contents) yamlFiles() (paths []string) {
	f, err := os.Open(c.beside)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxBeside)
	if len(names) == maxBeside {
		return nil
	}
	for _, name := range names {
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
			paths = append(paths, filepath.Join(c.beside, name))
		}
	}
	return paths
}

func (c *Contents) add(now map[string]content, path string, info fs.FileInfo) {
	if _, seen := now[path]; seen || !info.Mode().IsRegular() || info.Size() > maxContent {
		return
	}
	file := content{size: info.Size()}
	file.inode, file.changed = changeOf(info)
	if was, ok := c.known[path]; ok && was.settled && was.inode == file.inode && was.size == file.size && was.changed.Equal(file.changed) {
		now[path] = was
		return
	}
	begun := time.Now()
	if c.read += file.size; c.read > maxRead {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	file.hash, file.settled = swarm.HashOf(text), begun.Sub(file.changed) > clockTick
	now[path] = file
}

// Changed returns the files that are new or different, with their content.
func Changed(before, after map[string]swarm.Hash) map[string]swarm.Hash {
	changed := maps.Clone(after)
	maps.DeleteFunc(changed, func(path string, hash swarm.Hash) bool { return before[path] == hash })
	return changed
}
