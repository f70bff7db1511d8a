package desk

import (
	"cmp"
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
	"sync"
	"syscall"
	"time"

	"swarm"
)

// Folders inside of the message folder.
const (
	takenFolder = "taken" // messages that were consumed
	// RefusedFolder has the files that broke the rules, each beside a .error with the reason.
	RefusedFolder = "refused"
)

// Messages is the folder by which agents at desks write to each other. Its files are
// {from}_to_{to}_NNN.json. A writer may not be atomic, so a file that cannot be read gets
// [DefaultPatience] before it is refused.
type Messages struct {
	Patience time.Duration

	root *os.Root
	path string

	mu     sync.Mutex // guards what follows
	next   int        // the number to try next; 0 = the folder has not been looked at
	unread map[string]unread
}

// An unread is a file that cannot be read yet.
type unread struct {
	seen  fingerprint
	since time.Time
}

// OpenMessages opens a message folder. It makes the folder if it is not there. A link or a file that a
// worker has put in its place moves to _archive/ beside it.
func OpenMessages(dir string) (*Messages, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(abs); err == nil && !info.IsDir() {
		if _, err := SetAside(abs, filepath.Base(abs)); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, noFolder(dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, noFolder(dir, err)
	}
	m := &Messages{root: root, path: abs, Patience: DefaultPatience, unread: map[string]unread{}}
	if err := m.checkPlace(); err != nil {
		root.Close()
		return nil, unusable(abs, err)
	}
	for _, folder := range []string{takenFolder, RefusedFolder} {
		if err := m.makeFolder(folder); err != nil {
			root.Close()
			return nil, unusable(filepath.Join(abs, folder), err)
		}
	}
	return m, nil
}

// makeFolder makes a folder of ours. What a worker has put in its place is renamed to NAME.aside.
func (m *Messages) makeFolder(name string) error {
	if info, err := m.root.Lstat(name); err == nil && !info.IsDir() {
		if err := putAside(m.root, name); err != nil {
			return err
		}
	}
	if err := m.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// checkPlace returns an error if the folder was deleted, or if something else has its place.
func (m *Messages) checkPlace() error {
	ours, err := m.root.Stat(".")
	if err != nil {
		return err
	}
	now, err := os.Lstat(m.path)
	if err == nil && !os.SameFile(ours, now) {
		err = errReplaced
	}
	return err
}

// Broken reports whether a worker has deleted or replaced the folder, or one of ours in it. To mend
// that, open it again.
func (m *Messages) Broken() bool {
	for _, folder := range []string{takenFolder, RefusedFolder} {
		if info, err := m.root.Lstat(folder); err != nil || !info.IsDir() {
			return true
		}
	}
	return m.checkPlace() != nil
}

// Close closes the folder.
func (m *Messages) Close() error { return m.root.Close() }

// Send writes a message under the next free number. It is on disk when Send returns. Other processes
// may send at the same time: a name is taken by a link, which fails if it is there. A name that was
// consumed is not used again, because its reader remembers it.
func (m *Messages) Send(msg Message) (MessageName, error) {
	for _, party := range []string{msg.From, msg.To} {
		if err := checkParty(party); err != nil {
			return MessageName{}, err
		}
	}
	text := msg.render()
	if _, err := ReadMessage(text); err != nil {
		return MessageName{}, err
	}
	temp, err := fillTemp(m.root, ".", 0o644, true, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
	if err != nil {
		return MessageName{}, unusable(m.path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() { _ = m.root.Remove(temp) }()
	if m.next == 0 {
		if err := m.findNext(); err != nil {
			return MessageName{}, unusable(m.path, err)
		}
	}
	for ; ; m.next++ {
		if m.next > maxNumber {
			m.next = 1
		}
		name := MessageName{msg.From, msg.To, m.next}
		claimed, err := m.claim(temp, name.String())
		if err != nil {
			return MessageName{}, unusable(filepath.Join(m.path, name.String()), err)
		}
		if claimed {
			m.next++
			return name, syncFolder(m.root, ".")
		}
	}
}

// claim gives a temporary file its name, unless that is or was another message's. A consumed message is
// linked into taken before its name is removed, so a name that was used is found in one of them.
func (m *Messages) claim(temp, name string) (bool, error) {
	ours, err := m.root.Lstat(temp)
	if err != nil || m.usedByOther(name, ours) {
		return false, err
	}
	err = m.root.Link(temp, name)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if cannotLink(err) {
		return m.claimWithoutLinks(temp, name)
	}
	if err == nil && m.usedByOther(name, ours) { // between our two looks it came and was consumed
		return false, m.root.Remove(name)
	}
	return err == nil, err
}

// usedByOther reports whether another message of this name was consumed or refused. Ours may have been
// consumed already, as soon as it had its name.
func (m *Messages) usedByOther(name string, ours fs.FileInfo) bool {
	for _, folder := range []string{takenFolder, RefusedFolder} {
		if info, err := m.root.Lstat(path.Join(folder, name)); err == nil && !os.SameFile(info, ours) {
			return true
		}
	}
	return false
}

// cannotLink reports whether the file system has no hard links.
func cannotLink(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EMLINK)
}

// claimWithoutLinks reserves the name by an empty file and replaces that. A reader that sees the empty
// file takes it for one that is being written.
func (m *Messages) claimWithoutLinks(temp, name string) (bool, error) {
	f, err := m.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	return true, m.root.Rename(temp, name)
}

// findNext looks for the highest number in the folder.
func (m *Messages) findNext() error {
	highest := 0
	for _, folder := range []string{".", takenFolder, RefusedFolder} {
		names, err := m.list(folder)
		if err != nil {
			return err
		}
		for _, file := range names {
			if name, ok := ReadMessageName(file); ok {
				highest = max(highest, name.Number)
			}
		}
	}
	m.next = highest + 1
	if m.next > maxNumber { // a worker chose it; Send then takes the first free number
		m.next = 1
	}
	return nil
}

// list returns the names of a folder that end in .json.
func (m *Messages) list(folder string) ([]string, error) {
	f, err := openFolder(m.root, folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []string
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
				all = append(all, name)
			}
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// A Received is a message with the file that it came in.
type Received struct {
	Name   MessageName
	SHA256 string // of the file
	Message
}

// A Refusal is a file that broke the rules, and now lies in refused/.
type Refusal struct {
	File string
	Why  error
}

// Receive reads the messages that are there, by number. seen leaves out those that the caller remembers;
// nil = none. A message stays until Take or Refuse is called for it. A file that has been unreadable for
// Patience, or whose name breaks the rules for as long, is refused.
func (m *Messages) Receive(now time.Time, seen func(MessageName) bool) (got []Received, refused []Refusal, err error) {
	files, err := m.list(".")
	if err != nil {
		return nil, nil, unusable(m.path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for file := range m.unread {
		if !slices.Contains(files, file) {
			delete(m.unread, file)
		}
	}
	for _, file := range files {
		name, good := ReadMessageName(file)
		if good && seen != nil && seen(name) {
			continue
		}
		one, print, err := m.read(file, name, good)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process took it
		}
		if err == nil {
			delete(m.unread, file)
			got = append(got, one)
			continue
		}
		if u, ok := m.unread[file]; !ok || u.seen != print {
			m.unread[file] = unread{print, now}
		}
		if now.Sub(m.unread[file].since) >= m.Patience {
			delete(m.unread, file)
			switch moved := m.refuse(file, err); {
			case moved == nil:
				refused = append(refused, Refusal{file, err})
			case !errors.Is(moved, fs.ErrNotExist):
				return got, refused, moved
			}
		}
	}
	slices.SortFunc(got, func(a, b Received) int {
		return cmp.Or(a.Name.Number-b.Name.Number, strings.Compare(a.Name.String(), b.Name.String()))
	})
	return got, refused, nil
}

// RefuseUnreadable refuses the files of a sender that cannot be read. It is for a sender that has ended: its
// files stay as they are.
func (m *Messages) RefuseUnreadable(sender string) (refused []Refusal, err error) {
	files, err := m.list(".")
	if err != nil {
		return nil, unusable(m.path, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range files {
		if !strings.HasPrefix(file, sender+"_to_") {
			continue
		}
		name, good := ReadMessageName(file)
		_, _, err := m.read(file, name, good)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		delete(m.unread, file)
		switch moved := m.refuse(file, err); {
		case moved == nil:
			refused = append(refused, Refusal{file, err})
		case !errors.Is(moved, fs.ErrNotExist):
			return refused, moved
		}
	}
	return refused, nil
}

// read reads one file.
func (m *Messages) read(file string, name MessageName, good bool) (Received, fingerprint, error) {
	f, info, err := openRegular(m.root, file)
	if err != nil {
		var print fingerprint
		if info != nil {
			print = fingerprintOf(info)
		}
		return Received{}, print, err
	}
	defer f.Close()
	print := fingerprintOf(info)
	if !good {
		return Received{}, print, swarm.Errorf(swarm.BadInput, "%s is not the name of a message", swarm.Quote(file)).
			WithHint("name it after its sender and receiver: agent-a_to_agent-b_001.json")
	}
	if taken, err := m.root.Lstat(path.Join(takenFolder, file)); err == nil {
		if os.SameFile(taken, info) { // a crash in the middle of Take
			_ = m.root.Remove(file)
			return Received{}, print, fs.ErrNotExist
		}
		return Received{}, print, swarm.Errorf(swarm.BadInput, "there was a message %s before", file).
			WithHint("give each message a number of its own; taken/ has those that were read")
	}
	text, err := readAll(f, info, MaxState)
	if err != nil {
		return Received{}, print, err
	}
	msg, err := ReadMessage(text)
	if err == nil && (msg.From != name.From || msg.To != name.To) {
		err = swarm.Errorf(swarm.BadInput, "the message is from %s to %s, and its file name says %s to %s", msg.From, msg.To, name.From, name.To).
			WithHint("name the file %s", MessageName{msg.From, msg.To, name.Number})
	}
	sum := sha256.Sum256(text)
	return Received{name, hex.EncodeToString(sum[:]), msg}, print, err
}

// Take consumes a message: it moves to taken/. Of several that try, one succeeds; the others get an
// error that is [fs.ErrNotExist].
func (m *Messages) Take(name MessageName) error {
	file, taken := name.String(), path.Join(takenFolder, name.String())
	err := m.root.Link(file, taken)
	switch {
	case err == nil:
		err = m.root.Remove(file)
	case errors.Is(err, fs.ErrExist):
		// A crash between the two steps left both names. Otherwise another message has a name that was
		// used: its sender is about to choose another.
		a, errA := m.root.Lstat(file)
		b, errB := m.root.Lstat(taken)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			_ = m.root.Remove(file)
		}
		return fmt.Errorf("%s was consumed already: %w", file, fs.ErrNotExist)
	case cannotLink(err):
		err = m.root.Rename(file, taken)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was consumed already: %w", file, err)
	}
	if err != nil {
		return unusable(filepath.Join(m.path, file), err)
	}
	return nil
}

// Refuse moves a message that breaks the rules of the caller to refused/, beside a .error with the
// reason. The error is [fs.ErrNotExist] if another process was faster.
func (m *Messages) Refuse(name MessageName, why error) error { return m.refuse(name.String(), why) }

const maxRefusedName = 200 // bytes

func (m *Messages) refuse(file string, why error) error {
	if file != filepath.Base(file) {
		return swarm.Errorf(swarm.BadInput, "%s is not a file of the message folder", swarm.Quote(file))
	}
	text := explain(why) + "\n"
	if hint := swarm.HintOf(why); hint != "" {
		text += "hint: " + hint + "\n"
	}
	// A name may have as many bytes as the system allows, and there must be room for a number and .error.
	kept := path.Join(RefusedFolder, file[:min(len(file), maxRefusedName)])
	to := kept
	for n := 2; ; n++ { // an earlier one of the same name stays
		if _, err := m.root.Lstat(to); err != nil {
			break // it is free, or the error comes again below
		}
		to = fmt.Sprintf("%s.%d", kept, n)
	}
	// The reason first: after a crash a file without one must not lie there.
	err := replace(m.root, to+".error", 0o644, true, func(f *os.File) error {
		_, err := io.WriteString(f, text)
		return err
	})
	if err == nil {
		err = m.root.Rename(file, to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := m.root.Lstat(to); gone != nil { // otherwise the reason is that of the other process
			_ = m.root.Remove(to + ".error")
		}
		return fmt.Errorf("%s was refused already: %w", file, err)
	}
	if err != nil {
		return unusable(filepath.Join(m.path, file), err)
	}
	return nil
}
