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
	"syscall"

	"swarm"
	"swarm/internal/agenttoken"
)

// A Key opens everything but /mcp. The zero Key opens nothing. It holds only the token's hash, so a
// memory dump or a log does not reveal the token.
type Key struct {
	sum [sha256.Size]byte
	set bool
}

// minKey is the minimum length of a token, so that it cannot be guessed.
const minKey = 16

// NewKey returns the key of a token.
func NewKey(token string) (Key, error) {
	if len(token) < minKey {
		return Key{}, swarm.Errorf(swarm.BadInput, "the token is shorter than %d characters", minKey).
			WithHint("make one: openssl rand -hex 32")
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return Key{}, swarm.Errorf(swarm.BadInput, "the token has characters that cannot stand in a header").
			WithHint("make one of letters and digits: openssl rand -hex 32")
	}
	if strings.HasPrefix(token, agenttoken.Prefix) {
		return Key{}, swarm.Errorf(swarm.BadInput, "the token begins as those of agents do, with %s", agenttoken.Prefix).
			WithHint("make one: openssl rand -hex 32")
	}
	return Key{sha256.Sum256([]byte(token)), true}, nil
}

// Opens reports whether this is the key's token. The comparison takes constant time, so it leaks
// nothing about a guess.
func (k Key) Opens(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return k.set && subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1
}

// ReadKey reads the token from a file that other users cannot read.
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

// readToken refuses a file that other users may read, because the token would not be secret.
func readToken(path string) (string, error) {
	refuse := func(msg, hint string, err error) (string, error) {
		e := &swarm.Error{Kind: swarm.BadInput, File: path, Msg: msg, Hint: hint}
		if err != nil {
			e.Err = swarm.WithoutPath(err)
		}
		return "", e
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe without a writer must not block
	if err != nil {
		return refuse("the token cannot be read", "it is a file with one line", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return refuse("the token cannot be read", "", err)
	case !info.Mode().IsRegular():
		return refuse("the token is not in a file", "write it into one, on one line", nil)
	case info.Mode().Perm()&0o077 != 0:
		return refuse("others may read the token", "close the file to them: chmod 600 "+path, nil)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return refuse("the token cannot be read", "", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// KeepKey reads the token from a file, and creates the file with a new token if it does not exist.
// The hard link is atomic, so concurrent processes agree on one token.
func KeepKey(path string) (Key, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ReadKey(path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // mode 0600
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
