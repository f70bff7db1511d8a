package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

// Export copies what was collected to a folder, without what an earlier attempt left. Nothing there is
// replaced: if a file is there already, nothing is copied. When it returns, the copies are on disk. A
// file that has changed since it was collected is an error.
func (d *Desk) Export(c *Collection, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return noFolder(dir, err)
	}
	to, err := os.OpenRoot(dir)
	if err != nil {
		return noFolder(dir, err)
	}
	defer to.Close()
	files := slices.DeleteFunc(slices.Clone(c.Files), func(f File) bool { return f.Kind == PartialWork })
	if err := checkExport(files, to, dir); err != nil {
		return err
	}
	folders := map[string]bool{".": true}
	for _, f := range files {
		name := exportName(f)
		folders[path.Dir(name)] = true
		if err := d.export(f, to, name); err != nil {
			return unusable(filepath.Join(dir, name), err)
		}
	}
	for folder := range folders {
		for ; folder != "."; folder = path.Dir(folder) {
			if err := syncFolder(to, folder); err != nil {
				return unusable(filepath.Join(dir, folder), err)
			}
		}
	}
	return errors.Join(syncFolder(to, "."), syncParent(dir))
}

func exportName(f File) string { return strings.TrimPrefix(f.Path, Outbox+"/") }

// checkExport returns an error if a folder has one of the files, or something else in its place.
func checkExport(files []File, to *os.Root, dir string) error {
	var there []string
	for _, f := range files {
		name := exportName(f)
		if _, err := to.Lstat(name); err == nil {
			there = append(there, filepath.Join(dir, name))
		} else if err := checkParents(to, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unusable(filepath.Join(dir, name), err)
		}
	}
	if len(there) == 0 {
		return nil
	}
	names, verb := there[0], "exists"
	if n := len(there) - 1; n > 0 {
		names, verb = fmt.Sprintf("%s and %d more", names, n), "exist"
	}
	return swarm.Errorf(swarm.BadInput, "%s already %s", names, verb).
		WithHint("nothing was copied, because nothing is replaced; name another folder, or remove them")
}

func (d *Desk) export(f File, to *os.Root, name string) (err error) {
	from, _, err := openRegular(d.root, f.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := to.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(out, io.TeeReader(from, sum))
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		err = errors.New("the worker changed it after it was collected")
	}
	if err != nil { // half a file under the name would pass for the whole one
		err = errors.Join(err, to.Remove(name))
	}
	return err
}
