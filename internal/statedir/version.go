package statedir

import (
	"encoding/json"
	"os"

	"swarm"
)

// A programVersion is the version that a program has said it is.
type programVersion struct {
	Stamp   string `json:"stamp"` // of its files
	Version string `json:"version"`
}

// versionPath names the file by a hash, because arguments of programs may be secret.
func (h *Home) versionPath(program string) string {
	return h.in("versions", string(swarm.HashOf([]byte(program)))+".json")
}

// Version returns the version of a program, if it is known and the program's files are still the
// same.
func (h *Home) Version(program, stamp string) (string, bool) {
	var v programVersion
	text, err := os.ReadFile(h.versionPath(program))
	if err != nil || json.Unmarshal(text, &v) != nil || v.Stamp != stamp {
		return "", false
	}
	return v.Version, true
}

// NoteVersion remembers the version of a program. One that cannot be remembered is asked for again.
func (h *Home) NoteVersion(program, stamp, version string) {
	_ = h.storeFact(h.versionPath(program), programVersion{stamp, version})
}
