package desk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Temporary files of ours. They are never collected, listed or read.
const (
	tempPrefix = ".swarm-"
	tempSuffix = ".tmp"
)

func tempName() string { return tempPrefix + rand.Text()[:12] + tempSuffix }

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// write replaces a file of the desk. When it returns, the file is on disk.
func (d *Desk) write(name string, text []byte) error {
	fill := func(f *os.File) error {
		_, err := f.Write(text)
		return err
	}
	err := replace(d.root, name, 0o644, true, fill)
	if info, there := d.root.Lstat(name); err != nil && there == nil && info.IsDir() { // the worker has put a folder there
		if err = d.putAside(name); err == nil {
			err = replace(d.root, name, 0o644, true, fill)
		}
	}
	if err != nil {
		return d.unusable(name, err)
	}
	return nil
}

// putAside renames what the worker has put into the place of a file or a folder of the protocol:
// status.json becomes status.json.aside. Nothing is deleted.
func (d *Desk) putAside(name string) error { return putAside(d.root, name) }

func putAside(root *os.Root, name string) error {
	for n := 1; ; n++ {
		to := name + ".aside"
		if n > 1 {
			to = fmt.Sprintf("%s.%d", to, n)
		}
		if _, err := root.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return root.Rename(name, to)
		} else if err != nil {
			return err
		}
	}
}

// replace replaces a file atomically: a reader, and a crash, find the old content or the new one. With
// durable it is on disk when replace returns: first the content, then the name.
func replace(root *os.Root, name string, mode fs.FileMode, durable bool, fill func(*os.File) error) error {
	temp, err := fillTemp(root, path.Dir(name), mode, durable, fill)
	if err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		_ = root.Remove(temp)
		return err
	}
	if !durable {
		return nil
	}
	return syncFolder(root, path.Dir(name))
}

// fillTemp makes a temporary file with content.
func fillTemp(root *os.Root, dir string, mode fs.FileMode, durable bool, fill func(*os.File) error) (string, error) {
	temp := path.Join(dir, tempName())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = fill(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = root.Remove(temp)
		return "", err
	}
	return temp, nil
}

// syncParent takes the name of a folder to disk.
func syncParent(dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	return syncFolder(parent, ".")
}

// syncName takes a file or a folder that the worker made to disk. It opens no pipe or device.
func syncName(root *os.Root, name string) error {
	if info, err := root.Lstat(name); err != nil || info.IsDir() {
		return errors.Join(err, syncFolder(root, name))
	}
	f, _, err := openRegular(root, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncFolder takes the names in a folder to disk.
func syncFolder(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
