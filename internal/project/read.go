package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"swarm"
)

// A folder is read through os.Root, so no link and no ".." leads out of it. It is opened on first
// use.
type folder struct {
	path string
	root *os.Root
	err  error
}

func (f *folder) open() (*os.Root, error) {
	if f.root == nil && f.err == nil {
		f.root, f.err = os.OpenRoot(f.path)
	}
	return f.root, f.err
}

func (f *folder) close() {
	if f.root != nil {
		f.root.Close()
		f.root = nil
	}
}

// read reads a file by its path in the folder.
func (f *folder) read(rel string) ([]byte, error) {
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	return readRegular(
		func() (fs.FileInfo, error) { return root.Stat(rel) },
		func(flag int) (*os.File, error) { return root.OpenFile(rel, flag, 0) })
}

// readFile reads a file anywhere. It is only for paths that users type themselves.
func readFile(path string) ([]byte, error) {
	return readRegular(
		func() (fs.FileInfo, error) { return os.Stat(path) },
		func(flag int) (*os.File, error) { return os.OpenFile(path, flag, 0) })
}

// Reasons for refusing a file.
var (
	errTooLarge = errors.New("is larger than 4 MB")
	errNotUTF8  = errors.New("is not UTF-8")
)

type notRegular struct{ what string }

func (e notRegular) Error() string { return "is " + e.what + ", not a file" }

// readRegular checks a file, opens it, and checks the open file again, because another may have
// taken its place. O_NONBLOCK keeps open from blocking if that is a pipe.
func readRegular(stat func() (fs.FileInfo, error), open func(flag int) (*os.File, error)) ([]byte, error) {
	info, err := stat()
	if err != nil {
		return nil, err
	}
	if err := check(info); err != nil {
		return nil, err
	}
	f, err := open(os.O_RDONLY | syscall.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if err := check(info); err != nil {
		return nil, err
	}
	return capped(f, int(info.Size()))
}

// check refuses everything but a regular file of at most MaxFile bytes.
func check(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return notRegular{"a folder"}
	case mode&fs.ModeNamedPipe != 0:
		return notRegular{"a pipe"}
	case mode&fs.ModeDevice != 0:
		return notRegular{"a device"}
	case !mode.IsRegular():
		return notRegular{"a special file"}
	case info.Size() > MaxFile:
		return errTooLarge
	}
	return nil
}

// capped reads r to its end, but at most MaxFile bytes. The limit is needed because a file can
// grow, and some have size 0 and never end.
func capped(r io.Reader, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(size + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(r, MaxFile+1)); err != nil {
		return nil, err
	}
	if b.Len() > MaxFile {
		return nil, errTooLarge
	}
	return b.Bytes(), nil
}

// ReadStdin reads standard input to its end.
func ReadStdin(r io.Reader) ([]byte, error) {
	b, err := capped(r, 0)
	if errors.Is(err, errTooLarge) {
		return nil, &swarm.Error{
			Kind: swarm.BadInput, Msg: "standard input is larger than 4 MB",
			Hint: "give the agent the name of a file instead",
		}
	}
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.BadInput, Msg: "standard input cannot be read", Err: err}
	}
	return b, nil
}

// decodeText checks that a text is UTF-8, and removes a byte order mark.
func decodeText(b []byte) ([]byte, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if !utf8.Valid(b) {
		return nil, errNotUTF8
	}
	return b, nil
}

// lineOf returns the line of the first byte that is not UTF-8.
func lineOf(b []byte) int {
	line := 1
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		if c == utf8.RuneError && n <= 1 {
			break
		}
		if c == '\n' {
			line++
		}
		b = b[n:]
	}
	return line
}

// refused returns the error for a file that cannot be read, with a hint.
func refused(path string, err error) error {
	e := &swarm.Error{Kind: swarm.BadInput, Msg: path + " cannot be read"}
	var irregular notRegular
	switch {
	case errors.Is(err, errTooLarge):
		e.Msg, e.Hint = path+" is larger than 4 MB", "give the agent the name of the file instead of its text"
	case errors.Is(err, errNotUTF8):
		e.Msg, e.Hint = path+" is not UTF-8", "save it as UTF-8"
	case errors.As(err, &irregular):
		e.Msg, e.Hint = fmt.Sprintf("%s %s", path, irregular.Error()), "name a regular file"
	case escapes(err):
		e.Msg, e.Hint = path+" is a link that leads out of its folder", "put the file itself there"
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Msg = swarm.NotFound, "there is no "+path
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "let yourself read it: chmod u+r"
		fallthrough
	default:
		e.Err = swarm.WithoutPath(err)
	}
	return e
}

// escapes reports whether os.Root refused a path that leads out. Its error is not exported, so the
// text is compared.
func escapes(err error) bool {
	return strings.Contains(swarm.WithoutPath(err).Error(), "escapes from parent")
}
