package snapshot

import "os"

// Paths is where files are that this process was given open, and to which it prints: what stands in them is no work of an agent's. One
// that is a terminal, a pipe or gone has no path.
func Paths(files ...*os.File) (paths []string) {
	for _, f := range files {
		is, err := f.Stat()
		if err != nil || !is.Mode().IsRegular() {
			continue
		}
		path := pathOf(f)
		if there, err := os.Lstat(path); err == nil && os.SameFile(is, there) {
			paths = append(paths, path)
		}
	}
	return paths
}
