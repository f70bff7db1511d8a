package snapshot

import "os"

// Paths returns the paths of the regular files to which this process prints. Their content is our
// own output, not an agent's work, so snapshots hide them. Terminals, pipes and deleted files have
// no path.
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
