package desk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

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
