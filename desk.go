package swarm

import (
	"encoding/json"
	"time"
)

// A DeskOpening says where the desk of a turn is. It is on disk before a worker starts there.
type DeskOpening struct {
	Dir      string `json:"dir"` // absolute
	Worker   Worker `json:"worker"`
	Manifest Hash   `json:"manifest"` // the inputs with their hashes, as JSON: changes of the worker are found by it
	// Archived is the new path of the desk that was in Dir before: a desk of an earlier iteration,
	// or one that could not be used. "" means that there was none.
	Archived string    `json:"archived,omitempty"`
	Until    time.Time `json:"until,omitzero"` // when the attempt ends by itself; zero = it does not
}

// A DeskStatus is what status.json of a desk says.
type DeskStatus struct {
	State   string          `json:"state"`          // pending, running, completed or failed
	Step    string          `json:"step,omitempty"` // what the worker is at
	Done    int             `json:"done,omitempty"` // steps
	Total   int             `json:"total,omitempty"`
	Metrics json.RawMessage `json:"metrics,omitempty"` // a JSON object; the first bytes of a long one as a text
	Error   string          `json:"error,omitempty"`   // why the worker failed
}

// A DeskCollection is what a worker has delivered at a desk.
type DeskCollection struct {
	Dir      string          `json:"dir"`
	State    string          `json:"state"`
	Files    []DeskFile      `json:"files"`
	Criteria []DeskCriterion `json:"criteria,omitempty"`
	Problems []string        `json:"problems,omitempty"` // rules of the protocol that the worker broke
}

// Clean reports whether the worker completed and broke no rule. Later work at the desk is of another attempt.
func (c DeskCollection) Clean() bool { return c.State == "completed" && len(c.Problems) == 0 }

// A DeskFile is a file of an outbox.
type DeskFile struct {
	Path   string `json:"path"` // of the desk: outbox/report.md
	Kind   string `json:"kind"` // deliverable, summary, partial, …
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Ref    string `json:"ref,omitempty"` // of the artifact; "" = the file is too large for the log and stays where it is
}

// A DeskCriterion is a success criterion of a task, and whether the worker says that it is met.
type DeskCriterion struct {
	Text string `json:"text"`
	Met  bool   `json:"met"`
}

// DeskKey is the key of the event that records the opening of a turn's desk. After a crash the turn
// opens the desk again: the key of the second opening ends in /2, and so on.
func DeskKey(turn TurnID) string { return DeskKeys(string(turn)) }

// DeskKeys is the beginning of those keys, for turns whose ids begin so.
func DeskKeys(turns string) string { return "desk:" + turns }

// CollectedKey is the key of the event that the outbox of a turn's desk was read.
func CollectedKey(turn TurnID) string { return "collected:" + string(turn) }
