package statedir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"swarm"
)

// A deskRecord is what the inputs of a desk were before anybody worked there. It is kept here because the
// worker may write in the desk.
type deskRecord struct {
	Path   string          `json:"path"` // absolute
	Inode  uint64          `json:"inode"`
	Born   time.Time       `json:"born,omitzero"`
	Inputs json.RawMessage `json:"inputs"`
}

func (h *Home) deskRecordPath(dir string) string {
	return h.in("trust", "desks", string(swarm.HashOf([]byte(dir)))[:16]+".json")
}

// KeepDeskInputs stores what the inputs of a desk are now. It is on disk when KeepDeskInputs returns.
func (h *Home) KeepDeskInputs(dir string, inputs any) error {
	r, err := identify(dir)
	if err != nil {
		return err
	}
	r.Inputs = swarm.Encode(inputs)
	return h.storeFact(h.deskRecordPath(dir), r)
}

// DeskInputs reads what was kept of a desk. It reports false if nothing was, or if another folder has
// taken its place since.
func (h *Home) DeskInputs(dir string, inputs any) bool {
	text, err := os.ReadFile(h.deskRecordPath(dir))
	var kept deskRecord
	if err != nil || json.Unmarshal(text, &kept) != nil {
		return false
	}
	now, err := identify(dir)
	return err == nil && kept.Path == now.Path && kept.Inode == now.Inode && kept.Born.Equal(now.Born) &&
		json.Unmarshal(kept.Inputs, inputs) == nil
}

// ForgetDeskInputs deletes what was kept of a desk that is gone.
func (h *Home) ForgetDeskInputs(dir string) error {
	path := h.deskRecordPath(dir)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storageError(path, "the record of a desk cannot be deleted", err)
	}
	return nil
}

// identify tells a folder from one that takes its place later. The number of a deleted folder may be
// given to another one, so the time when it was made counts too, where the file system knows it.
func identify(dir string) (deskRecord, error) {
	r := deskRecord{Path: filepath.Clean(dir)}
	info, err := os.Lstat(dir)
	if err != nil {
		return r, storageError(dir, "the desk cannot be read", err)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		r.Inode = s.Ino
	}
	r.Born, _ = born(dir)
	return r, nil
}
