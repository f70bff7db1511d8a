package desk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"swarm"
)

// A Setup is what a new desk starts with.
type Setup struct {
	Skill        string // SKILL.md
	Instructions Instructions
	Dependencies *Dependencies // nil = none, and no file
	Inputs       []Input
}

// An Input is a file or a folder that the worker gets.
type Input struct {
	Name        string // in the inbox: data/a.csv
	Description string
	Source      string // where it is now
	From        *Desk  // Source is a path of this desk; nil = a path of the caller's own
	// Delivered are the files of Source as they were collected; nil = they are taken as they are now.
	Delivered []Delivery
}

// Create makes a desk in a folder that does not exist yet, or is empty. Inputs are copied, or named in
// the instructions if they are larger than [MaxFile]. The caller keeps the manifest where the worker
// cannot change it, and compares with it at the end: [Desk.Verify].
//
// status.json is written last. So a folder without one is a desk whose making was interrupted.
func Create(dir string, s Setup) (*Desk, Manifest, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, Manifest{}, err
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, Manifest{}, swarm.Errorf(swarm.BadInput, "the folder %s cannot be created: %w", dir, swarm.WithoutPath(err)).
			WithHint("choose a folder where you may write")
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, Manifest{}, noFolder(dir, err)
	}
	d := &Desk{root: root, path: abs}
	err = d.checkEmpty(dir)
	var m Manifest
	if err == nil {
		if m, err = d.fill(s); err != nil {
			d.undo()
		}
	}
	if err != nil {
		root.Close()
		return nil, Manifest{}, err
	}
	return d, m, nil
}

func (d *Desk) checkEmpty(dir string) error {
	f, err := d.root.Open(".")
	if err != nil {
		return noFolder(dir, err)
	}
	defer f.Close()
	there, err := f.Readdirnames(1)
	if len(there) > 0 {
		return swarm.Errorf(swarm.BadInput, "the folder %s is not empty", dir).
			WithHint("choose another name, or see what is there: swarm desk status %s", dir)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return noFolder(dir, err)
	}
	return nil
}

// undo removes what fill has made before it failed. Only a folder that is empty then goes with it.
func (d *Desk) undo() {
	for _, name := range []string{Inbox, Outbox, Workspace, SkillFile, StatusFile} {
		_ = d.root.RemoveAll(name)
	}
	_ = os.Remove(d.path)
}

func (d *Desk) fill(s Setup) (Manifest, error) {
	for _, folder := range []string{Inbox, Outbox, Workspace} {
		if err := d.root.Mkdir(folder, 0o755); err != nil {
			return Manifest{}, d.unusable(folder, err)
		}
	}
	s.Instructions.Inputs = append([]Provided(nil), s.Instructions.Inputs...)
	var references []Recorded
	from := map[string]string{} // a name in the inbox → where it came from
	for _, in := range s.Inputs {
		if err := d.checkFree(in, from); err != nil {
			return Manifest{}, err
		}
		large, err := d.put(in)
		if err != nil {
			return Manifest{}, err
		}
		references = append(references, large...)
		s.Instructions.Inputs = append(s.Instructions.Inputs, provided(in, large)...)
	}
	if s.Dependencies != nil {
		if err := s.Dependencies.Check(); err != nil {
			return Manifest{}, err
		}
		if err := d.write(DependenciesFile, s.Dependencies.render()); err != nil {
			return Manifest{}, err
		}
	}
	if err := d.write(SkillFile, []byte(s.Skill)); err != nil {
		return Manifest{}, err
	}
	if err := d.write(InstructionsFile, s.Instructions.Render()); err != nil {
		return Manifest{}, err
	}
	if err := d.write(StatusFile, Status{State: Pending}.render()); err != nil {
		return Manifest{}, err
	}
	if err := syncParent(d.path); err != nil {
		return Manifest{}, d.unusable(".", err)
	}
	m, err := d.Record()
	m.References = references
	return m, err
}

// checkFree checks that no other input has the name of this one, or is a folder that holds it.
func (d *Desk) checkFree(in Input, from map[string]string) error {
	source := in.Source
	if in.From != nil {
		source = in.From.Name() + "/" + source
	}
	name := path.Clean(in.Name)
	if name == "." || !filepath.IsLocal(name) {
		return swarm.Errorf(swarm.BadInput, "the input %s has no file name", source).
			WithHint("name a file or a folder in it")
	}
	for at := name; at != "."; at = path.Dir(at) {
		if other, ok := from[at]; ok {
			return sameInput(path.Join(Inbox, name), other, source)
		}
	}
	if _, err := d.root.Lstat(path.Join(Inbox, name)); err == nil { // a folder on the way to another input
		return sameInput(path.Join(Inbox, name), "another input", source)
	}
	from[name] = source
	return nil
}

// provided lists an input in the instructions. A large file is listed by its path.
func provided(in Input, large []Recorded) (all []Provided) {
	whole := len(large) == 1 && path.Base(large[0].Path) == path.Base(in.Name)
	if !whole {
		all = append(all, Provided{in.Name, in.Description})
	}
	for _, r := range large {
		note := fmt.Sprintf("not copied, it has %d bytes; SHA-256 %s", r.Size, r.SHA256)
		if whole && in.Description != "" {
			note = in.Description + " (" + note + ")"
		}
		all = append(all, Provided{r.Path, note})
	}
	return all
}

// put copies an input into the inbox. It returns the files that were too large for that.
func (d *Desk) put(in Input) (large []Recorded, err error) {
	name, err := localPath(path.Join(Inbox, in.Name), Inbox, false)
	if err != nil {
		return nil, err
	}
	if name == InstructionsFile || name == DependenciesFile {
		return nil, swarm.Errorf(swarm.BadInput, "the input %s has the name of a file of the protocol", in.Name).
			WithHint("give it another name")
	}
	if in.Delivered != nil {
		return d.putDelivered(in, name)
	}
	from, source, err := in.open()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	large, err = d.copyFrom(from, source, name)
	if e, ok := errors.AsType[*swarm.Error](err); ok && in.From == nil && e.Kind == swarm.Protocol {
		e.Kind, e.Hint = swarm.BadInput, "name the file itself; links are not followed" // the user named the link, so the mistake is in the input
	}
	return large, err
}

// open opens the folder that the input lies in, and returns its path there.
func (in Input) open() (*os.Root, string, error) {
	if in.From != nil {
		source, err := localPath(in.Source, Outbox, false)
		if err != nil {
			return nil, "", err
		}
		root, err := in.From.root.OpenRoot(".")
		return root, source, err
	}
	abs, err := filepath.Abs(in.Source)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(filepath.Dir(abs))
	if err != nil {
		return nil, "", unusable(in.Source, err)
	}
	return root, filepath.Base(abs), nil
}

// copyFrom copies a file or a folder of another root into this desk.
func (d *Desk) copyFrom(from *os.Root, source, name string) (large []Recorded, err error) {
	return d.copyTree(from, source, name, nil)
}

// copyTree is copyFrom. skip may leave out folders and files of the source.
func (d *Desk) copyTree(from *os.Root, source, name string, skip func(string) bool) (large []Recorded, err error) {
	info, err := from.Lstat(source)
	if err != nil {
		return nil, unusable(filepath.Join(from.Name(), source), err)
	}
	files := []entry{{source, info}}
	if info.IsDir() {
		if files, err = walk(from, source, skip); err != nil {
			return nil, unusable(filepath.Join(from.Name(), source), err)
		}
		if err := d.root.MkdirAll(name, 0o755); err != nil {
			return nil, d.unusable(name, err)
		}
	}
	for _, f := range files {
		to := path.Join(name, strings.TrimPrefix(f.path, source))
		if !goodName(to) {
			return large, swarm.Errorf(swarm.BadInput, "the name %s cannot be used in a desk", swarm.Quote(to)).
				WithHint("rename the file: UTF-8, without control characters and backslashes")
		}
		reference, err := d.copyFile(from, f.path, to)
		if err != nil {
			return large, err
		}
		if reference != nil {
			large = append(large, *reference)
		}
	}
	return large, nil
}

// copyFile copies one file, read-only. Both ends are files, so that [io.Copy] has the kernel do it,
// by a reflink where the file system has those. A copy is not synced: the original is the truth, and
// a manifest finds a copy that a crash cut.
func (d *Desk) copyFile(from *os.Root, source, name string) (reference *Recorded, err error) {
	f, info, err := openRegular(from, source)
	if err != nil {
		return nil, unusable(filepath.Join(from.Name(), source), err)
	}
	defer f.Close()
	if info.Size() > MaxFile {
		r, err := hash(f, filepath.Join(from.Name(), source))
		return &r, err
	}
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return nil, d.unusable(path.Dir(name), err)
	}
	err = replace(d.root, name, 0o444, false, func(to *os.File) error {
		n, err := io.Copy(to, io.LimitReader(f, MaxFile+1))
		if err == nil && n > MaxFile {
			return errLarge // it grew meanwhile
		}
		return err
	})
	if err != nil {
		return nil, d.unusable(name, err)
	}
	return nil, nil
}
