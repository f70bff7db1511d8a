package httpd

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"swarm/internal/agenttoken"
	"syscall"

	"swarm"
)

// A Key opens everything but /mcp. The zero Key opens nothing. It keeps no more than what it takes to know the token again.
type Key struct {
	sum [sha256.Size]byte
	set bool
}

// minKey is the length of the shortest token: one that cannot be guessed.
const minKey = 16

// NewKey is the key whose token this is.
func NewKey(token string) (Key, error) {
	if len(token) < minKey {
		return Key{}, swarm.Errorf(swarm.BadInput, "the token is shorter than %d characters", minKey).WithHint("make one: openssl rand -hex 32")
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return Key{}, swarm.Errorf(swarm.BadInput, "the token has characters that cannot stand in a header").WithHint("make one of letters and digits: openssl rand -hex 32")
	}
	if strings.HasPrefix(token, agenttoken.Prefix) {
		return Key{}, swarm.Errorf(swarm.BadInput, "the token begins as those of agents do, with %s", agenttoken.Prefix).WithHint("make one: openssl rand -hex 32")
	}
	return Key{sha256.Sum256([]byte(token)), true}, nil
}

// Opens says whether it is the token. How long that takes tells nothing of how good a guess was.
func (k Key) Opens(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return k.set && subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1
}

// ReadKey reads the token from a file that nobody else can read.
func ReadKey(path string) (Key, error) {
	token, err := readToken(path)
	if err != nil {
		return Key{}, err
	}
	k, err := NewKey(token)
	if e := new(swarm.Error); errors.As(err, &e) {
		e.File = path
	}
	return k, err
}

const maxToken = 4 << 10

func readToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody writes to keeps nobody waiting
	if err != nil {
		return "", &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the token cannot be read", Hint: "it is a file with one line", Err: swarm.WithoutPath(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the token cannot be read", Err: swarm.WithoutPath(err)}
	case !info.Mode().IsRegular():
		return "", &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the token is not in a file", Hint: "write it into one, on one line"}
	case info.Mode().Perm()&0o077 != 0:
		return "", &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "others may read the token", Hint: "close the file to them: chmod 600 " + path}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the token cannot be read", Err: swarm.WithoutPath(err)}
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// KeepKey reads the token from a file, which is made with a new one when it is not there. Of many who make it at once, one does.
func KeepKey(path string) (Key, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ReadKey(path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // for us alone
	if err == nil {
		_, err = f.WriteString(rand.Text() + rand.Text() + "\n")
		err = errors.Join(err, f.Sync(), f.Close())
		if err == nil {
			err = os.Link(f.Name(), path)
		}
		_ = os.Remove(f.Name())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Key{}, &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the token cannot be kept", Err: swarm.WithoutPath(err)}
	}
	return ReadKey(path)
}
