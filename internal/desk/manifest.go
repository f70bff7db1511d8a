package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"swarm"
)

// A Manifest says what a desk's inputs were before the worker started. It is JSON, and belongs where
// the worker cannot change it.
type Manifest struct {
	Files      []Recorded `json:"files"`                // SKILL.md and the inbox; paths of the desk
	References []Recorded `json:"references,omitempty"` // larger files, which were not copied; absolute paths
	// Unfinished is the worker of the attempt before, if it may still be at work; nil = it is not.
	Unfinished *Unfinished `json:"unfinished,omitempty"`
}

// A Recorded is a file with its size and its hash.
type Recorded struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"`
	Link   string `json:"link,omitempty"` // where a link that a person put there leads; it is not followed
}

// Changes lists the files that are not the same in a later manifest: changed, new or gone.
func (m Manifest) Changes(later Manifest) (paths []string) {
	was := map[string]Recorded{}
	for _, f := range m.Files {
		was[f.Path] = f
	}
	for _, f := range later.Files {
		if old, ok := was[f.Path]; !ok || old != f {
			paths = append(paths, f.Path)
		}
		delete(was, f.Path)
	}
	paths = slices.AppendSeq(paths, maps.Keys(was))
	slices.Sort(paths)
	return paths
}

// Record makes the manifest of the inputs as they are now.
func (d *Desk) Record() (Manifest, error) {
	files, err := walk(d.root, Inbox, nil)
	if err != nil {
		return Manifest{}, d.unusable(Inbox, err)
	}
	if info, err := d.root.Lstat(SkillFile); err == nil {
		files = append(files, entry{SkillFile, info})
	}
	var m Manifest
	for _, f := range files {
		r, err := d.record(f.path)
		if err != nil {
			return Manifest{}, d.unusable(f.path, err)
		}
		m.Files = append(m.Files, r)
	}
	return m, nil
}

func (d *Desk) record(name string) (Recorded, error) {
	if target, err := d.root.Readlink(name); err == nil {
		return Recorded{Path: name, Link: target}, nil
	}
	f, _, err := openRegular(d.root, name)
	if err != nil {
		return Recorded{}, err
	}
	defer f.Close()
	return hash(f, name)
}

// hash reads an opened file to its end. Size and hash are of the same bytes.
func hash(f *os.File, name string) (Recorded, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return Recorded{}, unusable(f.Name(), err)
	}
	return Recorded{Path: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// Verify compares the inputs with their manifest. Each that the worker changed is a violation.
func (d *Desk) Verify(m Manifest) (violations []*swarm.Error) {
	compare := func(want Recorded, file string, got Recorded, err error) {
		switch {
		case err == nil && got.Size == want.Size && got.SHA256 == want.SHA256 && got.Link == want.Link:
			return
		case err == nil:
			err = errors.New("it was changed")
		}
		e := unusable(file, err)
		if e.Err != nil {
			e.Msg, e.Err = e.Err.Error(), nil
		}
		e.Kind, e.Msg = swarm.Protocol, "an input is read-only: "+e.Msg
		e.Hint = "the worker writes to outbox/ and workspace/ only"
		violations = append(violations, e)
	}
	for _, want := range m.Files {
		if info, err := d.root.Lstat(want.Path); err == nil && info.Mode().IsRegular() && info.Size() != want.Size {
			compare(want, filepath.Join(d.path, want.Path), Recorded{Size: info.Size()}, nil) // a sparse file takes days to read
			continue
		}
		got, err := d.record(want.Path)
		compare(want, filepath.Join(d.path, want.Path), got, err)
	}
	for _, want := range m.References {
		got, err := recordOutside(want.Path)
		compare(want, want.Path, got, err)
	}
	return violations
}

// recordOutside hashes a file that the caller of [Create] named.
func recordOutside(file string) (Recorded, error) {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return Recorded{}, err
	}
	defer root.Close()
	f, _, err := openRegular(root, path.Base(filepath.ToSlash(file)))
	if err != nil {
		return Recorded{}, err
	}
	defer f.Close()
	return hash(f, file)
}
