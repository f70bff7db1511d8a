// Package desk speaks the file protocol of desks. A desk is a folder through which an agent works: it
// reads its inbox, writes its outbox, and says in status.json how far it is. So a shell script, a
// notebook or a person with an editor can be a teammate.
//
//	SKILL.md                  what the agent is
//	inbox/instructions.md     what it has to do
//	inbox/dependencies.json   whose outputs it gets
//	inbox/…                   its inputs, read-only
//	outbox/summary.md         what it did
//	outbox/…                  its deliverables
//	workspace/                its own: never collected
//	status.json               pending, running, completed or failed
//
// [Create] makes a desk and [Open] opens one. A [StatusReader] reads status.json, and a [Watcher] does
// so for many desks. [Desk.Collect] reads the outbox, and [Desk.Reset] prepares another attempt.
// [Messages] is the folder of messages between agents.
//
// The worker is not trusted. Every path goes through [os.Root], so neither a link nor ".." leads out
// of the folder. Links, pipes, devices and folders in the place of files are refused and never
// opened: a read cannot block. What the worker writes may change at any time, so a file is read
// through one descriptor, and the same bytes give its size, its hash and its content.
package desk

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"swarm"
)

// The names of the protocol.
const (
	SkillFile        = "SKILL.md"
	Inbox            = "inbox"
	Outbox           = "outbox"
	Workspace        = "workspace"
	StatusFile       = "status.json"
	InstructionsFile = "inbox/instructions.md"
	DependenciesFile = "inbox/dependencies.json"
	SummaryFile      = "outbox/summary.md"
	ChangelogFile    = "outbox/changelog.md"
	IssuesFile       = "outbox/issues.md"
	MetadataFile     = "outbox/metadata.json"
	ErrorReportFile  = "outbox/error_report.md"
	Partial          = "outbox/partial"
)

// Limits. A folder that goes beyond them breaks the protocol.
const (
	MaxFile  = 4 << 20 // bytes; larger files are referenced by path, size and SHA-256
	MaxState = 1 << 20 // bytes of status.json, dependencies.json and messages
	MaxFiles = 10_000  // in an inbox or an outbox
	maxDepth = 32      // folders in folders
)

// A Desk is an opened folder. It stays the same folder when that is moved or replaced. Its methods may
// be called concurrently.
type Desk struct {
	root *os.Root
	path string
}

// Open opens a folder that follows the protocol. Only the inbox must be there: an agent may be about
// to replace any other file.
func Open(dir string) (*Desk, error) {
	if dir == "" {
		return nil, swarm.Errorf(swarm.BadInput, "the name of the desk is empty").WithHint("%s", listDesks)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, noFolder(dir, err)
	}
	d := &Desk{root: root, path: abs}
	if info, err := root.Lstat(Inbox); err != nil || !info.IsDir() {
		root.Close()
		return nil, swarm.Errorf(swarm.BadInput, "%s is not a desk: it has no folder %s", dir, Inbox).
			WithHint("swarm desk new NAME makes one; swarm desk validate %s lists what is missing", dir)
	}
	return d, nil
}

// OpenInRun opens a desk that a run has made. A link that a worker has put in its place is refused,
// because it may lead anywhere.
func OpenInRun(dir string) (*Desk, error) {
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, unusable(dir, notFolder("", info.Mode()))
	}
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if err := d.same(); err != nil { // it was replaced meanwhile
		d.Close()
		return nil, err
	}
	return d, nil
}

// listDesks is the hint for a name that is no desk.
const listDesks = "swarm desk status lists the desks of this folder; swarm desk new NAME makes one"

// mayWrite is the hint for a file or a folder that this user must not use.
const mayWrite = "you need permission to read and write there: see ls -l, or use another folder"

func noFolder(dir string, err error) *swarm.Error {
	info, statErr := os.Stat(dir) // the error of OpenRoot for a file is a text only
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return swarm.Errorf(swarm.NotFound, "there is no folder %s", dir).WithHint("%s", listDesks)
	case errors.Is(err, syscall.ENOTDIR), statErr == nil && !info.IsDir():
		return swarm.Errorf(swarm.BadInput, "%s is not a folder", dir).WithHint("name the folder of a desk")
	}
	e := &swarm.Error{Kind: swarm.BadInput, Msg: "the folder " + dir + " cannot be opened", Err: swarm.WithoutPath(err)}
	if errors.Is(err, fs.ErrPermission) {
		e.Hint = mayWrite
	}
	return e
}

// Path returns the absolute path of the folder.
func (d *Desk) Path() string { return d.path }

// Name returns the name of the folder.
func (d *Desk) Name() string { return filepath.Base(d.path) }

// Close closes the folder.
func (d *Desk) Close() error { return d.root.Close() }

// Lock keeps other processes that call Lock away from the desk. The lock is free when this process
// ends.
func (d *Desk) Lock() (unlock func(), err error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, d.unusable(".", err)
	}
	// A shared folder may have no locks. Then desks of other machines are not kept away.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, swarm.Errorf(swarm.BadInput, "another process drives the desk %s: %w", d.Name(), err).
			WithHint("wait for it; to watch: swarm desk status -f %s", d.path)
	}
	return func() { _ = f.Close() }, nil
}

// errReplaced says that a file was replaced while it was opened. The next attempt finds the new one.
var errReplaced = errors.New("it was replaced while it was read")

// An irregular is the error for a name that is not what the protocol has there.
type irregular struct{ text, hint string }

func (e irregular) Error() string { return e.text }

// notFile is the error for something in the place of a regular file.
func notFile(what string) error {
	return irregular{"it is " + what + ", not a file", "put a regular file there; links are not followed"}
}

// notFolder is the error for something in the place of a folder. name is "" if the error has it elsewhere.
func notFolder(name string, mode fs.FileMode) error {
	return irregular{cmp.Or(name, "it") + " is " + orFile(kindOf(mode)) + ", not a folder", "put a folder there; links are not followed"}
}

// kindOf names what stands in the place of a file, or returns "".
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// openRegular opens a regular file below a root for reading. It looks before it opens, because opening
// a device may have effects. It looks again after, because [os.Root] follows links inside of its
// folder, and the file may have been replaced by one. O_NONBLOCK keeps a pipe from blocking.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	if err := checkParents(root, name); err != nil {
		return nil, nil, err
	}
	before, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if what := kindOf(before.Mode()); what != "" {
		return nil, before, notFile(what)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errReplaced
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// checkParents refuses a path that leads through a link, for a reason that a person understands. It is
// no protection: [os.Root] is.
func checkParents(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return notFolder(name[:i], info.Mode())
		}
	}
	return nil
}

func orFile(what string) string {
	if what == "" {
		return "a file"
	}
	return what
}

// read reads a regular file of at most `most` bytes.
func (d *Desk) read(name string, most int) ([]byte, error) { return readRegular(d.root, name, most) }

func readRegular(root *os.Root, name string, most int) ([]byte, error) {
	f, info, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, info, most)
}

// errLarge says that a file is larger than it may be.
var errLarge = errors.New("it is too large")

// readAll reads an opened file. A file may grow while it is read, so the limit counts here too.
func readAll(f *os.File, info fs.FileInfo, most int) ([]byte, error) {
	if info.Size() > int64(most) {
		return nil, errLarge
	}
	text := make([]byte, 0, info.Size()+1)
	for {
		if len(text) == cap(text) {
			text = slices.Grow(text, 4096)
		}
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case len(text) > most:
			return nil, errLarge
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return nil, err
		}
	}
}

// unusable is the error for a file of the desk that cannot be used.
func (d *Desk) unusable(name string, err error) *swarm.Error {
	return unusable(filepath.Join(d.path, name), err)
}

func unusable(file string, err error) *swarm.Error {
	e := &swarm.Error{Kind: swarm.BadInput, File: file}
	var odd irregular
	switch {
	case errors.As(err, &odd):
		e.Kind, e.Msg, e.Hint = swarm.Protocol, odd.Error(), odd.hint
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Msg = swarm.NotFound, "it is not there"
	case errors.Is(err, errLarge):
		e.Kind, e.Msg = swarm.Protocol, err.Error()
	case escapes(err):
		e.Kind, e.Msg, e.Hint = swarm.Protocol, "it leads out of the folder", "put the file itself there"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EIO), errors.Is(err, syscall.EROFS):
		e.Kind = swarm.Storage
		fallthrough
	default:
		e.Msg, e.Err = "it cannot be used", swarm.WithoutPath(err)
		if link, ok := errors.AsType[*os.LinkError](err); ok { // of a rename, with our temporary names
			e.Err = link.Err
		}
		if errors.Is(err, fs.ErrPermission) {
			e.Hint = mayWrite
		}
	}
	return e
}

// escapes reports whether [os.Root] refused a path that leads out. Its error is not exported, so the
// text is compared.
func escapes(err error) bool {
	return strings.Contains(swarm.WithoutPath(err).Error(), "escapes from parent")
}

// localPath returns a path that others named in its shortest form. It must lie below a folder of the
// desk: "outbox/" or "inbox/". It may be that folder itself only if whole is set.
func localPath(name, below string, whole bool) (string, error) {
	clean := path.Clean(name)
	switch {
	case !goodName(name) || path.IsAbs(name) || strings.Contains(name, "..") && !localDots(name):
		return "", swarm.Errorf(swarm.BadInput, "%s is not a path inside of the desk", swarm.Quote(name)).
			WithHint("write a relative path without .., such as %s/data.json", below)
	case clean == below && whole || strings.HasPrefix(clean, below+"/"):
		return clean, nil
	}
	e := swarm.Errorf(swarm.BadInput, "%s is not below %s/", swarm.Quote(name), below)
	if clean == below {
		return "", e.WithHint("name a file or a folder in it, such as %s/data.json", below)
	}
	return "", e.WithHint("write %s", path.Join(below, path.Base(clean)))
}

// localDots reports whether no part of a path is "..". Dots inside of a name are harmless.
func localDots(name string) bool { return !slices.Contains(strings.Split(name, "/"), "..") }

// goodName reports whether a path can be shown and stored: UTF-8, without control characters and
// without backslashes, which other systems take for separators.
func goodName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.Contains(name, `\`) &&
		!strings.ContainsFunc(name, func(c rune) bool { return unicode.IsControl(c) || c == utf8.RuneError })
}

// An entry is a name that walk found.
type entry struct {
	path string
	info fs.FileInfo
}

// walk lists everything in a folder but folders, in the order of its paths. Links are listed and not
// followed. skip may leave out folders and files.
func walk(root *os.Root, dir string, skip func(path string) bool) (all []entry, err error) {
	all, err = appendFolder(root, dir, skip, 0, nil)
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return all, err
}

// errMany says that a folder has more files than are looked at.
var errMany = errors.New("it has more than 10000 files")

func appendFolder(root *os.Root, dir string, skip func(string) bool, depth int, all []entry) ([]entry, error) {
	if depth > maxDepth {
		return all, errors.New("its folders are nested too deeply")
	}
	f, err := openFolder(root, dir)
	if err != nil {
		return all, err
	}
	defer f.Close()
	for {
		batch, err := f.ReadDir(256)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		for _, item := range batch {
			name := path.Join(dir, item.Name())
			if isTemp(item.Name()) || skip != nil && skip(name) {
				continue
			}
			info, err := root.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it went meanwhile
			}
			if err != nil {
				return all, err
			}
			if info.IsDir() {
				if all, err = appendFolder(root, name, skip, depth+1, all); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return all, err
				}
				continue
			}
			if all = append(all, entry{name, info}); len(all) > MaxFiles {
				return all, errMany
			}
		}
	}
}

// openFolder opens a folder, and no link to one.
func openFolder(root *os.Root, dir string) (*os.File, error) {
	before, err := root.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, notFolder("", before.Mode())
	}
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !os.SameFile(before, info) {
		f.Close()
		return nil, errors.Join(err, errReplaced)
	}
	return f, nil
}
