package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"swarm"
)

const archiveFolder = "_archive"

// LastArchived returns the path to which [SetAside] last moved what was in the place of a desk, or
// "" if it moved nothing.
func LastArchived(dir, name string) (last string) {
	for n := 1; ; n++ {
		free := filepath.Join(filepath.Dir(dir), archiveFolder, archiveName(name, n))
		if _, err := os.Lstat(free); err != nil {
			return last
		}
		last = free
	}
}

// archiveName is the n-th name for an archived desk, from 1.
func archiveName(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, n)
}

// SetAside moves what is in the place of a desk to _archive/NAME beside it, or to the first free
// NAME.N. The thing moved may be a desk, a folder that was one, or anything else. SetAside returns
// the new path; "" = nothing was there.
func SetAside(dir, name string) (string, error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", unusable(dir, err)
	}
	d := &Desk{path: dir}
	if info.IsDir() {
		if d.root, err = os.OpenRoot(dir); err != nil {
			return "", noFolder(dir, err)
		}
		defer d.Close()
		unlock, err := d.Lock()
		if err != nil {
			return "", err
		}
		defer unlock()
	}
	for n := 1; ; n++ {
		to, err := d.Archive(archiveName(name, n))
		if !errors.Is(err, fs.ErrExist) {
			return to, err
		}
	}
}

// Archive moves the folder to _archive/NAME beside it. It returns the new path. The desk stays open.
func (d *Desk) Archive(name string) (string, error) {
	to := filepath.Join(filepath.Dir(d.path), archiveFolder, name)
	if !filepath.IsLocal(name) || strings.ContainsRune(name, filepath.Separator) {
		return "", swarm.Errorf(swarm.BadInput, "%s is not a name for an archived desk", swarm.Quote(name))
	}
	if d.root != nil { // SetAside also moves what is no folder
		if err := d.same(); err != nil {
			return "", err
		}
	}
	parent, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return "", unusable(d.path, err)
	}
	defer parent.Close()
	if err := parent.MkdirAll(archiveFolder, 0o755); err != nil {
		return "", unusable(filepath.Dir(to), err)
	}
	if _, err := parent.Lstat(path.Join(archiveFolder, name)); err == nil { // a rename would replace an empty folder
		return "", swarm.Errorf(swarm.BadInput, "%s already exists: %w", to, fs.ErrExist)
	}
	if err := parent.Rename(filepath.Base(d.path), path.Join(archiveFolder, name)); err != nil {
		return "", unusable(d.path, err)
	}
	d.path = to
	if err := errors.Join(syncFolder(parent, archiveFolder), syncFolder(parent, ".")); err != nil {
		return to, unusable(to, err)
	}
	return to, nil
}

// Move gives the folder another name beside the old one. It is on disk when Move returns. The desk stays
// open.
func (d *Desk) Move(dir string) error {
	if err := d.same(); err != nil {
		return err
	}
	if err := os.Rename(d.path, dir); err != nil {
		return unusable(dir, err)
	}
	d.path = dir
	if err := syncParent(dir); err != nil {
		return d.unusable(".", err)
	}
	return nil
}

// Remove deletes the folder with all that is in it.
func (d *Desk) Remove() error {
	if err := d.same(); err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return unusable(d.path, err)
	}
	defer parent.Close()
	if err := parent.RemoveAll(filepath.Base(d.path)); err != nil {
		return unusable(d.path, err)
	}
	return nil
}

// same refuses to move or delete another folder that has taken the desk's place.
func (d *Desk) same() error {
	opened, err := d.root.Stat(".")
	if err != nil {
		return d.unusable(".", err)
	}
	named, err := os.Lstat(d.path)
	if err != nil || !os.SameFile(opened, named) {
		return swarm.Errorf(swarm.BadInput, "%s is no longer the desk that was opened", d.path).
			WithHint("name the folder itself, not a link to it")
	}
	return nil
}
