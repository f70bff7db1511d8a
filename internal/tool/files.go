package tool

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/permission"
	"swarm/internal/toolrule"
)

// Limits of the file tools.
const (
	maxRead  = 256 << 10 // bytes of one read
	maxWrite = 8 << 20
)

// inside returns a path relative to the folder. It accepts absolute paths inside of it, because models
// often write them.
func (l *layer) inside(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", swarm.Errorf(swarm.BadInput, "a path cannot hold a NUL byte")
	}
	local := filepath.Clean(path)
	if filepath.IsAbs(local) {
		switch {
		case within(l.root, local):
			local, _ = filepath.Rel(l.root, local)
		case within(l.real, local):
			local, _ = filepath.Rel(l.real, local)
		default:
			return "", outside(path)
		}
	}
	if !filepath.IsLocal(local) {
		return "", outside(path)
	}
	if Hides(l.hidden, l.real, local) {
		return "", outside(path)
	}
	if l.conceals(local) {
		return "", swarm.Errorf(swarm.Denied, "%s: hidden files of the project are not shown", swarm.Quote(path)).
			WithHint("give the agent a root to allow it")
	}
	return local, nil
}

// conceals reports whether a path leads to a file of the project that is not shown, possibly through a
// link.
func (l *layer) conceals(local string) bool {
	if !l.project || isPrivate(local) {
		return l.project
	}
	rel, err := filepath.Rel(l.real, resolved(filepath.Join(l.real, local)))
	return err == nil && isPrivate(rel)
}

// isPrivate reports whether a part of a path is hidden, as .env and .git are, or named as private keys
// are.
func isPrivate(local string) bool {
	for part := range strings.SplitSeq(strings.ToLower(filepath.ToSlash(local)), "/") {
		switch {
		case part == "." || part == "..":
		case strings.HasPrefix(part, "."), slices.Contains(keyNames, part), slices.Contains(keyEndings, filepath.Ext(part)):
			return true
		}
	}
	return false
}

// The names of private keys.
var (
	keyNames   = []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
	keyEndings = []string{".pem", ".key", ".p12"}
)

// Hides reports whether a path below root leads to a hidden folder, possibly through a link. Root and
// the hidden folders must be free of links.
func Hides(hidden []string, root, local string) bool {
	if len(hidden) == 0 {
		return false
	}
	real := resolved(filepath.Join(root, local))
	return slices.ContainsFunc(hidden, func(folder string) bool { return within(folder, real) })
}

// resolved resolves the links in a path, as far as it exists. A link whose target is missing counts:
// opening it to write would create the target.
func resolved(path string) string {
	const maxLinks = 40
	at, rest := path, ""
	for links := 0; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		folder := filepath.Dir(at)
		if target, err := os.Readlink(at); err == nil && links < maxLinks {
			links++
			if !filepath.IsAbs(target) {
				target = filepath.Join(resolved(folder), target)
			}
			at = target
			continue
		}
		if at == folder {
			return path
		}
		at, rest = folder, filepath.Join(filepath.Base(at), rest)
	}
}

func outside(path string) *swarm.Error {
	return swarm.Errorf(swarm.Denied, "%s is outside of the folder that may be touched", swarm.Quote(path)).
		WithHint("write a path relative to it, such as src/main.go")
}

// fileError describes an error for the model, without the names of folders above the root.
func fileError(path string, err error) error {
	var have *swarm.Error
	var number syscall.Errno
	switch {
	case errors.As(err, &have):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return swarm.Errorf(swarm.NotFound, "there is no %s", swarm.Quote(path)).
			WithHint("file_list shows what is there, if you may use it")
	case errors.Is(err, fs.ErrPermission):
		return swarm.Errorf(swarm.Denied, "the system does not allow it for %s", swarm.Quote(path))
	case errors.As(err, &number):
		return swarm.Errorf(swarm.Other, "%s: %w", swarm.Quote(path), number)
	case strings.Contains(err.Error(), "escapes"):
		return outside(path)
	}
	return swarm.Errorf(swarm.Other, "%s cannot be used", swarm.Quote(path))
}

// notRegular returns the error for a special file. Opening a pipe or a device may block or have
// effects.
func notRegular(path string, mode fs.FileMode) error {
	what := "not a file"
	switch {
	case mode.IsDir():
		return swarm.Errorf(swarm.BadInput, "%s is a folder", swarm.Quote(path)).WithHint("file_list shows what is in it")
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	case mode&fs.ModeSymlink != 0:
		return swarm.Errorf(swarm.Denied, "%s is a link", swarm.Quote(path)).WithHint("write to what it leads to")
	}
	return swarm.Errorf(swarm.Denied, "%s is %s, and only ordinary files may be used", swarm.Quote(path), what)
}

// openFile opens a regular file. It checks before opening, because opening a special file may have
// effects. It checks again after, because the file may have been replaced. O_NONBLOCK keeps a pipe
// from blocking.
func openFile(root *os.Root, path, local string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(local)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegular(path, info.Mode())
	}
	f, err := root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, nil, fileError(path, err)
	}
	return f, info, nil
}

// find opens a file in the first layer that has it.
func (b *Box) find(path string) (f *os.File, info fs.FileInfo, err error) {
	for _, l := range b.reached(path) {
		if f, info, err = l.open(path); swarm.KindOf(err) != swarm.NotFound {
			return f, info, err
		}
	}
	return nil, nil, err
}

// reached returns the layers that a path may lead to. An absolute one leads to those that it lies in.
func (b *Box) reached(path string) []layer {
	if filepath.IsAbs(path) && len(b.layers) > 1 {
		if _, err := b.layers[0].inside(path); err != nil {
			return b.layers[1:]
		}
		return b.layers[:1]
	}
	return b.layers
}

// open opens a regular file of the layer. The root is opened for each call, so that a box keeps
// nothing open.
func (l *layer) open(path string) (*os.File, fs.FileInfo, error) {
	local, err := l.inside(path)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, nil, fileError(".", err)
	}
	defer root.Close()
	return openFile(root, path, local)
}

// aboutBelow says what else the file tools read, or nothing.
func (b *Box) aboutBelow() string {
	if len(b.layers) < 2 {
		return ""
	}
	return " Files that are not there are looked for among " + b.o.Below.About + ", which you can read and not write."
}

func (b *Box) readSpec() swarm.ToolSpec {
	return swarm.ToolSpec{Name: toolrule.FileRead,
		Description: "Reads a text file. Paths are relative to your folder." + b.aboutBelow() + " Up to 256 KB are given at once; " +
			"the last line says what was left out, and offset (in bytes) reads on.",
		Schema: object(`"path":{"type":"string"},`+
			`"offset":{"type":"integer","minimum":0,"description":"bytes to leave out at the beginning"},`+
			`"max":{"type":"integer","minimum":1,"description":"bytes to read at most"}`, "path")}
}

// read reads a piece of a file.
func (b *Box) read(_ context.Context, args json.RawMessage) (string, error) {
	var a struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Max    int64  `json:"max"`
	}
	if err := arguments(toolrule.FileRead, args, &a); err != nil {
		return "", err
	}
	if a.Path == "" || a.Offset < 0 || a.Max < 0 {
		return "", swarm.Errorf(swarm.BadInput, "file_read needs a path; offset and max cannot be below 0")
	}
	f, info, err := b.find(a.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if a.Max == 0 || a.Max > maxRead {
		a.Max = maxRead
	}
	text := make([]byte, min(a.Max, max(0, info.Size()-a.Offset)))
	n, err := f.ReadAt(text, a.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fileError(a.Path, err)
	}
	return formatPiece(a.Path, text[:n], a.Offset, info.Size())
}

// formatPiece formats a piece of a file for the model: whole runes, and a note about what was left
// out.
func formatPiece(path string, piece []byte, from, size int64) (string, error) {
	if from > 0 {
		begin := excerpt.RestOfRune(piece)
		piece, from = piece[begin:], from+int64(begin)
	}
	if from+int64(len(piece)) < size {
		piece = piece[:excerpt.WholeRunes(piece)]
	}
	upto := from + int64(len(piece))
	text := string(piece)
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", swarm.Errorf(swarm.BadInput, "%s is not a text: it is a binary file of %d bytes",
			swarm.Quote(path), max(size, upto))
	case len(piece) == 0 && from > 0:
		return "", swarm.Errorf(swarm.BadInput, "%s has %d bytes, and nothing after byte %d", swarm.Quote(path), size, from)
	case from == 0 && upto >= size:
		return text, nil
	}
	note := fmt.Sprintf("[bytes %d to %d of %d", from, upto, size)
	if upto < size {
		note += fmt.Sprintf("; read on with offset %d", upto)
	}
	return strings.TrimSuffix(text, "\n") + "\n" + note + "]", nil
}

func (b *Box) writeSpec() swarm.ToolSpec {
	about := "Writes a text file, in place of what it held before. " +
		"Paths are relative to your folder; folders on the way are made."
	if all, named := b.writes(); !all {
		about += " Only these may be written: " + joinPatterns(named) + "."
	}
	if b.o.Phase == swarm.PlanningPhase {
		about += " The phase is PLANNING: only files below docs/ may be written."
	}
	return swarm.ToolSpec{Name: toolrule.FileWrite, Description: about,
		Schema: object(`"path":{"type":"string"},"content":{"type":"string"}`, "path", "content")}
}

// write replaces a file. The checks of the path come before the root is opened, and os.Root
// enforces the boundary again, so a link that is swapped in between leads nowhere.
func (b *Box) write(_ context.Context, args json.RawMessage) (string, error) {
	var a struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := arguments(toolrule.FileWrite, args, &a); err != nil {
		return "", err
	}
	switch {
	case a.Path == "" || a.Content == nil:
		return "", swarm.Errorf(swarm.BadInput, "file_write needs a path and a content")
	case len(*a.Content) > maxWrite:
		const msg = "the content has %d bytes, and %d MB are the most"
		return "", swarm.Errorf(swarm.BadInput, msg, len(*a.Content), maxWrite>>20).WithHint("write several files")
	}
	l := &b.layers[0]
	local, err := l.inside(a.Path)
	if err != nil {
		return "", err
	}
	if local == "." || strings.HasSuffix(a.Path, "/") {
		return "", notRegular(a.Path, fs.ModeDir)
	}
	depth := strings.Count(local, string(filepath.Separator)) + 1
	if depth > maxDepth {
		return "", swarm.Errorf(swarm.BadInput, "the path has %d parts, and %d are the most", depth, maxDepth).
			WithHint("write to a folder that is less deep")
	}
	if len(b.layers) > 1 && local == b.o.Report {
		l = &b.layers[1]
	} else if covered := b.covers(local); covered != "" {
		return "", swarm.Errorf(swarm.Denied, "%s is there already, and you can only read it", swarm.Quote(covered)).
			WithHint("write to a file of another name")
	}
	if err := b.mayWrite(l, a.Path, local); err != nil {
		return "", err
	}
	shownPath := local
	root, local, err := b.writable(l, a.Path, local)
	if err != nil {
		return "", err
	}
	defer root.Close()
	mode := fs.FileMode(0o644)
	if info, err := root.Lstat(local); err == nil {
		if !info.Mode().IsRegular() {
			return "", notRegular(a.Path, info.Mode())
		}
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fileError(a.Path, err)
	}
	if err := replace(root, local, *a.Content, mode); err != nil {
		return "", fileError(a.Path, err)
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(*a.Content), shownPath), nil
}

// mayWrite returns an error if no rule allows to write a file. Patterns count for the file itself,
// whatever link leads there.
func (b *Box) mayWrite(l *layer, path, local string) error {
	all, named := b.writes()
	if err := CheckGuard(b.o.Guard, l.real, local, toolrule.FileWrite, named); err != nil || all || l != &b.layers[0] {
		return err
	}
	rel, err := filepath.Rel(l.real, resolved(filepath.Join(l.real, local)))
	if err == nil && slices.ContainsFunc(named, func(p toolrule.PathPattern) bool { return p.Matches(filepath.ToSlash(rel)) }) {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s is not among the files that may be written", swarm.Quote(path)).
		WithHint("allowed are %s", joinPatterns(named))
}

// covers returns the read-only file that a new file, or a folder made for it, would hide; "" = none. An
// agent that reads the name afterwards would get the new file instead.
func (b *Box) covers(local string) string {
	if len(b.layers) < 2 {
		return ""
	}
	for at := local; at != "."; at = filepath.Dir(at) {
		if there, isDir := b.layers[1].has(at); !there || isDir && at != local {
			continue
		}
		if there, _ := b.layers[0].has(at); !there {
			return at
		}
	}
	return ""
}

// has reports whether something of this name is in the layer, and not hidden.
func (l *layer) has(local string) (there, isDir bool) {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return false, false
	}
	defer root.Close()
	if _, err = root.Lstat(local); err != nil || Hides(l.hidden, l.real, local) || l.conceals(local) {
		return false, false
	}
	info, err := root.Stat(local)
	return true, err == nil && info.IsDir()
}

// writes returns what the agent's rules allow to write: all files, and those that they name.
func (b *Box) writes() (all bool, named []toolrule.PathPattern) {
	for _, r := range b.rules {
		switch {
		case r.Tool != toolrule.FileWrite:
		case r.Path == "":
			all = true
		default:
			named = append(named, r.Path)
		}
	}
	return all, named
}

func joinPatterns(patterns []toolrule.PathPattern) string {
	var texts []string
	for _, p := range patterns {
		texts = append(texts, string(p))
	}
	return strings.Join(texts, ", ")
}

// writable returns the root for writing, and the path relative to it. In PLANNING the root is
// docs/, so that no link inside leads out of docs/.
func (b *Box) writable(l *layer, path, local string) (*os.Root, string, error) {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, "", fileError(".", err)
	}
	if b.o.Phase != swarm.PlanningPhase {
		return root, local, nil
	}
	defer root.Close()
	if err := root.MkdirAll(permission.Docs, 0o755); err != nil {
		return nil, "", fileError(permission.Docs, err)
	}
	if info, err := root.Lstat(permission.Docs); err != nil || !info.IsDir() {
		const msg = "%s is not a folder but leads elsewhere, and nothing else may be written in the phase %s"
		return nil, "", swarm.Errorf(swarm.Denied, msg, permission.Docs, b.o.Phase)
	}
	docs, err := root.OpenRoot(permission.Docs)
	if err != nil {
		return nil, "", fileError(path, err)
	}
	rel, err := filepath.Rel(permission.Docs, local)
	return docs, rel, err
}

// replace replaces a file atomically: a crash leaves the old or the new content, never a mixture.
func replace(root *os.Root, path, content string, mode fs.FileMode) error {
	if dir := filepath.Dir(path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	temp := filepath.Join(filepath.Dir(path), ".swarm-"+rand.Text()[:12]+".tmp")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = root.Rename(temp, path)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err
}
