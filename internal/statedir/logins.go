package statedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"swarm"
)

// loginPath is the file of the login at a tool server. The name tells nothing of the address, which
// may have a key in it.
func (h *Home) loginPath(url string) string {
	return h.in("logins", string(swarm.HashOf([]byte(url)))[:16]+".json")
}

// Login returns the stored login at a tool server, or nil.
func (h *Home) Login(url string) ([]byte, error) {
	text, err := os.ReadFile(h.loginPath(url))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storageError(h.loginPath(url), "the login cannot be read", err)
	}
	return text, nil
}

// SaveLogin stores the login at a tool server, readable by the user alone. It is on disk when
// SaveLogin returns. nil forgets it.
func (h *Home) SaveLogin(url string, login []byte) error {
	if login != nil {
		return h.storeFact(h.loginPath(url), json.RawMessage(login))
	}
	if err := os.Remove(h.loginPath(url)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storageError(h.loginPath(url), "the login cannot be removed", err)
	}
	return nil
}
