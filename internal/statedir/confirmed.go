package statedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"swarm"
)

// A Confirmation is a person's yes to what a file would do.
type Confirmation struct {
	ID   string    `json:"id"` // of the question; the name of its file
	File string    `json:"file"`
	Text string    `json:"text"`
	Time time.Time `json:"time"`
}

// Each confirmation is a file of its own, so processes need no lock between them.
func (h *Home) confirmationPath(id string) string { return h.in("trust", "confirmed", id+".json") }

// Confirmed reports whether a person has confirmed a question. A file that cannot be read is no
// confirmation.
func (h *Home) Confirmed(id string) bool {
	_, err := os.Stat(h.confirmationPath(id))
	return err == nil
}

// Confirm stores a confirmation. It is on disk when Confirm returns.
func (h *Home) Confirm(c Confirmation) error { return h.storeFact(h.confirmationPath(c.ID), c) }

// Confirmations returns all confirmations. Files that cannot be read are left out.
func (h *Home) Confirmations() (all []Confirmation) {
	paths, _ := filepath.Glob(h.confirmationPath("*"))
	for _, path := range paths {
		var c Confirmation
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &c) == nil && h.confirmationPath(c.ID) == path {
			all = append(all, c)
		}
	}
	return all
}

// Revoke deletes a confirmation. The question is asked again.
func (h *Home) Revoke(id string) error {
	path := h.confirmationPath(id)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storageError(path, "the confirmation cannot be deleted", err)
	}
	return nil
}

// A Change is a file that swarm executes or obeys, and that was changed while an agent's turn ran.
type Change struct {
	Path  string       `json:"path"` // absolute
	Hash  swarm.Hash   `json:"hash"` // of its content
	Run   swarm.RunID  `json:"run"`
	Turn  swarm.TurnID `json:"turn"`
	Agent string       `json:"agent"`
	Time  time.Time    `json:"time"`
}

func (h *Home) changePath(file string) string {
	return h.in("trust", "changed", string(swarm.HashOf([]byte(file)))[:16]+".json")
}

// NoteChange stores the last change of a file. It is on disk when NoteChange returns.
func (h *Home) NoteChange(c Change) error { return h.storeFact(h.changePath(c.Path), c) }

// LastChange returns the last change of a file by an agent's turn, if there is one.
func (h *Home) LastChange(file string) (c Change, ok bool) {
	text, err := os.ReadFile(h.changePath(file))
	return c, err == nil && json.Unmarshal(text, &c) == nil && c.Path == file
}

// storeFact writes a small file atomically and durably.
func (h *Home) storeFact(path string, fact any) error {
	if err := h.Make(); err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := makeDir(folder); err != nil {
		return err
	}
	text, err := json.Marshal(fact)
	if err != nil {
		return swarm.Errorf(swarm.Storage, "%w", err)
	}
	f, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return storageError(path, "the file cannot be made", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return storageError(path, "the file cannot be written", err)
	}
	return nil
}
