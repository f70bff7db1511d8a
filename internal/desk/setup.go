package desk

import (
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

// TakeInputs replaces SKILL.md and the inbox by those of another desk, which a person has corrected. Files
// and folders of the inbox that are fresh stay as they are here. It returns the new manifest.
func (d *Desk) TakeInputs(from *Desk, fresh []string) (Manifest, error) {
	isFresh := func(name string) bool {
		return slices.ContainsFunc(fresh, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") })
	}
	mine, err := walk(d.root, Inbox, isFresh)
	if err != nil {
		return Manifest{}, d.unusable(Inbox, err)
	}
	for _, f := range mine {
		if err := d.root.Remove(f.path); err != nil {
			return Manifest{}, d.unusable(f.path, err)
		}
	}
	large, err := d.copyTree(from.root, Inbox, Inbox, isFresh)
	if err != nil {
		return Manifest{}, err
	}
	if len(large) > 0 {
		return Manifest{}, swarm.Errorf(swarm.BadInput, "%s is larger than 4 MB, which is too large for an inbox", large[0].Path).
			WithHint("put it elsewhere, and name its path in %s", InstructionsFile)
	}
	if _, err := d.copyFile(from.root, SkillFile, SkillFile); err != nil {
		return Manifest{}, err
	}
	return d.Record()
}

// TakeOutbox copies the deliverables and the status of a worker from another desk to this one,
// which has none yet. It leaves out the report of the failure there, and the files of earlier
// attempts.
func (d *Desk) TakeOutbox(from *Desk) error {
	status, _, err := from.readStatus()
	if err != nil {
		return from.unusable(StatusFile, err)
	}
	files, err := walk(from.root, Outbox, func(name string) bool { return name == Partial || name == ErrorReportFile })
	if err != nil {
		return from.unusable(Outbox, err)
	}
	var taken []File
	for _, f := range files {
		if err := d.takeFile(from, f.path); err != nil {
			return err
		}
		taken = append(taken, File{Path: f.path})
	}
	// The status says that the work is complete, so a loss of power must not cut the files after it.
	if err := d.settle(taken); err != nil {
		return err
	}
	return d.write(StatusFile, status.render())
}

// takeFile copies a file of any size from another desk. A name that is no regular file is left out.
func (d *Desk) takeFile(from *Desk, name string) error {
	f, _, err := openRegular(from.root, name)
	var odd irregular
	if errors.As(err, &odd) {
		return nil
	}
	if err != nil {
		return from.unusable(name, err)
	}
	defer f.Close()
	if err := d.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return d.unusable(path.Dir(name), err)
	}
	err = replace(d.root, name, 0o644, false, func(to *os.File) error {
		_, err := io.Copy(to, f)
		return err
	})
	if err != nil {
		return d.unusable(name, err)
	}
	return nil
}

// TakePartial makes the outbox of an archived desk the outbox/partial of this one. Both lie in the same
// folder, or one of them in its archive.
func (d *Desk) TakePartial(archived string) error {
	parent, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return unusable(d.path, err)
	}
	defer parent.Close()
	from, err := filepath.Rel(filepath.Dir(d.path), filepath.Join(archived, Outbox))
	if err != nil {
		return err
	}
	if info, err := parent.Lstat(filepath.Dir(from)); err == nil && !info.IsDir() { // the worker has replaced the desk
		return nil
	}
	err = parent.Rename(from, filepath.Join(d.Name(), Partial))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(archived, err)
	}
	return nil
}

// SameTask reports whether another desk has the same inputs as this one. It ignores the reasons why
// attempts failed, and files that only the other desk has.
func (d *Desk) SameTask(other *Desk) bool {
	mine, err := d.Record()
	if err != nil {
		return false
	}
	for _, f := range mine.Files {
		theirs, err := other.record(f.Path)
		if err == nil && theirs.SHA256 == f.SHA256 && theirs.Link == f.Link {
			continue
		}
		if f.Path != InstructionsFile || d.task() != other.task() {
			return false
		}
	}
	return true
}

// task is the text of the instructions, without the reasons why attempts failed.
func (d *Desk) task() string {
	text, err := d.read(InstructionsFile, MaxFile)
	if err != nil {
		return "unreadable: " + d.path
	}
	at := strings.Index("\n"+string(text), "\n"+failedStart)
	if at >= 0 {
		text = text[:at]
	}
	return strings.TrimSpace(string(text))
}

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
