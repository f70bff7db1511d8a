package swarm

import (
	"context"
	"crypto/rand"
	"iter"
	"time"
)

// A Store holds the runs of one place: a folder of SQLite files on one machine, or a database that several machines share.
// Packages above it name a run by its id only. Where the bytes are, who may lock them and how a dead owner is noticed is the
// store's business.
type Store interface {
	// Create makes the log of a new run. An id that is taken is refused.
	Create(ctx context.Context, run RunID) (RunLog, error)
	// Open opens the log of a run, or returns a NotFound error. A log that was opened ReadOnly keeps nobody from writing.
	Open(ctx context.Context, run RunID, access Access) (RunLog, error)
	// Runs lists runs, newest first, with the summary that was saved last. A caller that stops early reads no more of them.
	Runs(ctx context.Context, q RunQuery) iter.Seq2[RunEntry, error]
	// Save keeps a run's summary for lists. A lost summary is made again from the log, so Save waits for no disk.
	Save(ctx context.Context, s RunSummary) error
	// Remove deletes a run. It refuses with an *OwnedError while a process drives the run, and with ErrFenced when the run has
	// had another owner since the caller looked at it.
	Remove(ctx context.Context, run RunID, o RemoveOptions) (Removed, error)
	// Close gives back what the store shares between its logs.
	Close() error
}

// Access says what a log is opened for.
type Access int

// What a log can be opened for.
const (
	ReadWrite Access = iota // mail and control by any process; the rest by the owner
	ReadOnly                // a reader leaves no trace, even where it may not write
)

// A RunLog is the log of one run as a store opens it: what drives, shows and follows a run asks for nothing else.
type RunLog interface {
	Log
	Owned
	Folds
	// Scan calls f with every event after a number, in order. It holds one event in memory at a time.
	Scan(after int64, f func(*Event) error) error
	// Err is the error of a lazy batch that could not be written.
	Err() error
	// Close writes what still waits. If this process owned the run, the run has no owner afterwards.
	Close() error
}

// Folds keep what a reader has made of a log up to an event, so that the next one need not read all of it. A fold may be
// thrown away at any time.
type Folds interface {
	SaveFold(name, version string, seq int64, data []byte) error
	LoadFold(name, version string) (seq int64, data []byte, ok bool)
}

// A RunQuery chooses runs from the list of a store. The zero value means all.
type RunQuery struct {
	ID     RunID  // this run only, without a look at the others
	Prefix string // runs whose id begins so
	Before RunID  // runs that are older than this one
}

// A RunEntry is one run in the list of a store.
type RunEntry struct {
	RunSummary
	Saved bool // a summary was saved; otherwise only the id is known
}

// A RunSummary is what a list of runs shows of one.
type RunSummary struct {
	ID      RunID     `json:"id"`
	Kind    RunKind   `json:"kind,omitempty"`
	Name    string    `json:"name,omitempty"`
	Dir     string    `json:"dir,omitempty"`
	Status  Status    `json:"status,omitempty"` // "" = not known, see Problem
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Exit    int       `json:"exit,omitempty"`
	Tasks   int       `json:"tasks,omitempty"`
	Done    int       `json:"done,omitempty"` // completed tasks
	Usage   Usage     `json:"usage,omitzero"`
	PID     int       `json:"pid,omitempty"`     // of the process that drives it, or drove it last
	Origin  *Origin   `json:"asked,omitempty"`   // the message of another program that began the run
	Problem string    `json:"problem,omitempty"` // why nothing more is known: the log cannot be read
}

// Begun says whether a summary that was made from a log tells of a run. The process that makes a run may not have written its
// first event yet, or may have died before it could.
func (s RunSummary) Begun() bool { return s.Status != "" || s.Problem != "" }

// RemoveOptions say how a run is removed.
type RemoveOptions struct {
	Fence  int64 // the run's fence when the caller decided; [AnyFence] = unknown, as in a damaged log
	DryRun bool  // only count
}

// AnyFence removes a run whatever its fence is.
const AnyFence = -1

// Removed is what removing a run has freed.
type Removed struct {
	Files int
	Bytes int64
}

// runDigits are in the order of their bytes, without those that are easily mistaken for others.
const runDigits = "0123456789abcdefghjkmnpqrstvwxyz"

// NewRunID makes the id of a run that begins now. 20261115-143205-g7k3f9q is the second in UTC, the millisecond in two digits
// of base 32, and five random digits. Ids sort by time, and no two processes make the same.
func NewRunID(now time.Time) RunID {
	now = now.UTC()
	id := now.AppendFormat(make([]byte, 0, 24), "20060102-150405-")
	ms := now.Nanosecond() / 1e6
	id = append(id, runDigits[ms>>5], runDigits[ms&31])
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	for _, b := range random {
		id = append(id, runDigits[b&31])
	}
	return RunID(id)
}

// IsRunID says whether a name can be a run's id. No path can be made of one.
func IsRunID(name string) bool {
	if name == "" || len(name) > 64 || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
