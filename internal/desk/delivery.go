package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

// A Delivery is a file of an outbox as it was collected. The file may have changed since.
type Delivery struct {
	File
	Content func() ([]byte, error) // reads what was stored of it; nil = nothing was, because the file is large
}

// PassedOn lists the files and folders directly in the outbox that another desk may be given. What tells
// of failures is not among them.
func PassedOn(all []Delivery) (names []string) {
	for _, f := range all {
		if f.Kind != PartialWork && f.Kind != ErrorReport {
			first, _, _ := strings.Cut(strings.TrimPrefix(f.Path, Outbox+"/"), "/")
			names = append(names, path.Join(Outbox, first))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FindDelivery returns the files that an output names: one, or those of a folder.
func FindDelivery(all []Delivery, output string) (files []Delivery, err error) {
	name, err := localPath(output, Outbox, false)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.Path == name || strings.HasPrefix(f.Path, name+"/") {
			files = append(files, f)
		}
	}
	if files == nil {
		return nil, &swarm.Error{Kind: swarm.NotFound, File: output, Msg: "it was not delivered"}
	}
	return files, nil
}

// putDelivered writes what was collected at another desk into the inbox. It returns the files that are too
// large for that.
func (d *Desk) putDelivered(in Input, name string) (large []Recorded, err error) {
	source, err := localPath(in.Source, Outbox, false)
	if err != nil {
		return nil, err
	}
	for _, f := range in.Delivered {
		if f.Large {
			r, err := in.From.recordLarge(f.File)
			if err != nil {
				return large, err
			}
			large = append(large, r)
			continue
		}
		content, err := in.From.deliveredContent(f)
		if err != nil {
			return large, err
		}
		to := path.Join(name, strings.TrimPrefix(f.Path, source))
		if err := d.root.MkdirAll(path.Dir(to), 0o755); err != nil {
			return large, d.unusable(path.Dir(to), err)
		}
		err = replace(d.root, to, 0o444, false, func(f *os.File) error {
			_, err := f.Write(content)
			return err
		})
		if err != nil {
			return large, d.unusable(to, err)
		}
	}
	return large, nil
}

// deliveredContent returns the bytes that were collected: those of the file if it is the same, or else
// those that were stored. Secrets are masked in the stored ones. d may be nil: the desk is gone.
func (d *Desk) deliveredContent(f Delivery) ([]byte, error) {
	if d != nil {
		content, err := d.read(f.Path, MaxFile)
		if sum := sha256.Sum256(content); err == nil && hex.EncodeToString(sum[:]) == f.SHA256 {
			return content, nil
		}
	}
	return f.Content()
}

// recordLarge returns the reference to a file that was collected, if it is still the same.
func (d *Desk) recordLarge(f File) (Recorded, error) {
	var r Recorded
	err := fs.ErrNotExist
	file := f.Path
	if d != nil {
		file = filepath.Join(d.path, f.Path)
		r, err = d.record(f.Path)
	}
	if err == nil && r.SHA256 != f.SHA256 {
		err = errors.New("it was changed after it was collected")
	}
	if err != nil {
		e := unusable(file, err)
		e.Kind = swarm.WaitFailed
		return r, e.WithHint("files of more than 4 MB are not stored; have the task make it again: swarm retry RUN --from TASK")
	}
	r.Path = file
	return r, nil
}

// Targets lists where the outputs of a dependency are in the inbox.
func (d Dependency) Targets() (names []string) {
	folder, err := d.folder()
	if err != nil {
		return nil
	}
	for _, output := range d.Outputs {
		names = append(names, path.Join(folder, path.Base(output)))
	}
	return names
}
