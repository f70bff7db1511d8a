package swarm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"strings"
	"time"
)

// A Store holds the runs of one place: a folder of SQLite files on one machine, or a database that
// several machines share. Packages above it name a run by its id only. Only the store knows where
// the bytes are, how they are locked and how a dead owner is detected.
type Store interface {
	// Create makes the log of a new run. It refuses an id that exists.
	Create(ctx context.Context, run RunID) (RunLog, error)
	// Open opens the log of a run, or returns a NotFound error. A log that is opened ReadOnly
	// blocks no writer.
	Open(ctx context.Context, run RunID, access Access) (RunLog, error)
	// Runs lists runs, newest first, with their last saved summary. A caller that stops early reads
	// no more of them.
	Runs(ctx context.Context, q RunQuery) iter.Seq2[RunEntry, error]
	// Save stores a run's summary for lists. A lost summary is made again from the log, so Save
	// does not wait for the disk.
	Save(ctx context.Context, s RunSummary) error
	// Remove deletes a run. It refuses with an *OwnedError while a process drives the run. It
	// refuses with ErrFenced if the run has had another owner since the caller looked at it.
	Remove(ctx context.Context, run RunID, o RemoveOptions) (Removed, error)
	// Close releases the resources that the store's logs share.
	Close() error
}

// A SharedStore is a store outside of the state folder, which several machines use. The files of its
// runs are in the state folders of the machines that drove them. That a run is not in the store does
// not make them leftovers: the run may be in another database. So the store remembers what was
// removed from it.
type SharedStore interface {
	Store
	// Name returns the address of the store for people, without a password.
	Name() string
	// Removed returns those of the runs that were in this store and were removed from it.
	Removed(ctx context.Context, runs []RunID) ([]RunID, error)
	// Lock is a mutex between all processes that use the store. It waits until ctx ends. The lock of
	// a process that is gone, or has lost its connection, is free.
	Lock(ctx context.Context, what string) (StoreLock, error)
	// Examine asks the store how it is.
	Examine(ctx context.Context) (StoreHealth, error)
}

// A StoreLock is a mutex of a store that this process has taken. A process that loses its connection
// to the store loses its locks, and is not told.
type StoreLock interface {
	// Held returns nil if no other process has had the lock since it was taken. A holder asks after it
	// has written, and before anything follows from that.
	Held(ctx context.Context) error
	Unlock()
}

// StoreHealth is what a shared store tells about itself.
type StoreHealth struct {
	Name      string        // its address, without a password
	Server    string        // its program and version
	RoundTrip time.Duration // a question and its answer, the fastest of a few
	Ahead     time.Duration // its clock is ahead of this machine's by so much, give or take RoundTrip
	Risk      string        // how acknowledged events can be lost; "" = not by a crash of its machine
	Hint      string        // what ends the risk
	Runs      int64
	Bytes     int64 // of all its tables
}

// Access says what a log is opened for.
type Access int

// The kinds of access.
const (
	ReadWrite Access = iota // any process may append mail and control, the owner everything
	ReadOnly                // a reader leaves no trace, even where it may not write
)

// A RunLog is the log of one run as a store opens it. Driving, showing and following a run need
// nothing else.
type RunLog interface {
	Log
	Owned
	Folds
	// Scan calls f with every event after a number, in order. It holds one event in memory at a
	// time.
	Scan(after int64, f func(*Event) error) error
	// Keys returns the keys that begin with a text, those of the newest events first.
	Keys(prefix string) ([]string, error)
	// Err returns the error of a lazy batch that could not be written.
	Err() error
	// Close writes what still waits. If this process owned the run, the run has no owner
	// afterwards.
	Close() error
}

// Folds store what a reader has computed from a log up to an event, so that the next reader need
// not read all of it. A fold is a cache: it may be deleted at any time.
type Folds interface {
	SaveFold(name, version string, seq int64, data []byte) error
	LoadFold(name, version string) (seq int64, data []byte, ok bool)
}

// A RunQuery selects runs from the list of a store. The zero value selects all.
type RunQuery struct {
	ID     RunID  // this run only, without reading the others
	Prefix string // runs whose id begins so
	Before RunID  // runs older than this one
}

// A RunEntry is one run in the list of a store.
type RunEntry struct {
	RunSummary
	Saved   bool      // a summary was saved; otherwise only the id is known
	Changed time.Time // when the run was made or its newest event was written; zero = the store does not know
}

// A RunSummary is the row of one run in a list.
type RunSummary struct {
	ID      RunID         `json:"id"`
	Kind    RunKind       `json:"kind,omitempty"`
	Name    string        `json:"name,omitempty"`
	Dir     string        `json:"dir,omitempty"`
	Status  Status        `json:"status,omitempty"` // "" = unknown, see Problem
	Started time.Time     `json:"started,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
	Pauses  time.Duration `json:"pauses_ns,omitempty"`   // how long it was paused, without the pause that lasts
	Since   time.Time     `json:"paused_since,omitzero"` // when the pause that lasts began
	Exit    int           `json:"exit,omitempty"`        // of a run that has ended
	Tasks   int           `json:"tasks"`
	Done    int           `json:"done"` // completed tasks
	Usage   Usage         `json:"usage,omitzero"`
	PID     int           `json:"pid,omitempty"`     // the process that drives it, or drove it last
	Host    string        `json:"host,omitempty"`    // its machine, in a store that several machines share
	Origin  *Origin       `json:"asked,omitempty"`   // the message of another program that began the run
	Key     string        `json:"key,omitempty"`     // the key of the MCP client that began the run
	Args    []string      `json:"args,omitempty"`    // its command line, shortened
	Needs   []Need        `json:"needs,omitempty"`   // what a person has to do about it
	Waits   string        `json:"waits,omitempty"`   // why it runs and nothing happens: a person has to decide, or has paused an agent
	Problem string        `json:"problem,omitempty"` // why nothing more is known: the log cannot be read
	Damaged bool          `json:"damaged,omitempty"` // the problem is that the log is damaged
}

// A Need is one thing that a run needs a person for.
type Need struct {
	Kind  NeedKind `json:"kind"`
	ID    string   `json:"id,omitempty"`    // of the approval, or of the message that asks
	Agent string   `json:"agent,omitempty"` // that waits for it
	Text  string   `json:"text"`
}

// A NeedKind says what a person has to do.
type NeedKind string

// The kinds of needs, the most urgent first.
const (
	NeedsApproval NeedKind = "approval" // allow or deny something
	NeedsAnswer   NeedKind = "question" // answer a message
	NeedsHelp     NeedKind = "stalled"  // find out why nothing happens, and go on
	NeedsRetry    NeedKind = "failed"   // look at it, and retry it
)

// Matches reports whether each of the words is in the summary's id, name, kind, folder or command
// line, in any case. The command line has the goal of a team and the query of a swarm.
func (s RunSummary) Matches(words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join(append([]string{string(s.ID), s.Name, string(s.Kind), s.Dir}, s.Args...), "\n"))
	for _, w := range words {
		if !strings.Contains(text, strings.ToLower(w)) {
			return false
		}
	}
	return true
}

// MarshalJSON writes the exit code of every run that has ended, 0 too, and of no other.
func (s RunSummary) MarshalJSON() ([]byte, error) {
	type plain RunSummary // without this method
	all := struct {
		plain
		Exit *int `json:"exit,omitempty"`
	}{plain: plain(s)}
	if s.Status.Ended() {
		all.Exit = &s.Exit
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the caller's encoder decides
	err := enc.Encode(all)
	return b.Bytes(), err
}

// Elapsed returns how long the run has taken at a moment. Its clock stops while it is paused.
func (s RunSummary) Elapsed(now time.Time) time.Duration {
	switch {
	case s.Started.IsZero():
		return 0
	case !s.Ended.IsZero():
		now = s.Ended
	case !s.Since.IsZero():
		now = s.Since
	}
	return max(0, now.Sub(s.Started)-s.Pauses)
}

// Begun reports whether the log of the summary has a first event. The process that makes a run may
// not have written it yet, or may have crashed before it could.
func (s RunSummary) Begun() bool { return s.Status != "" || s.Problem != "" }

// A Recoverer is a store that can check a log whole, and save what is intact of a damaged one.
type Recoverer interface {
	// Check reads all of a log and reports what is damaged. It changes nothing. It calls progress
	// often, if that is not nil.
	Check(ctx context.Context, run RunID, progress func(part string, done, total int64)) (LogCheck, error)
	// Recover puts a new log in the place of a damaged one. The new log has the events before the
	// first one that is damaged or missing, and all intact texts. The damaged files are kept under
	// other names.
	Recover(ctx context.Context, run RunID) (LogRecovery, error)
}

// A LogCheck is what the check of a log has found.
type LogCheck struct {
	Run     RunID     `json:"run"`
	File    string    `json:"file"`
	Damaged bool      `json:"damaged"`
	Intact  int64     `json:"intact"` // the last event before the first one that is damaged or missing
	Parts   []LogPart `json:"parts"`
}

// A LogPart is one part of a checked log.
type LogPart struct {
	Part    string `json:"part"`
	Checked int64  `json:"checked"` // how many were checked: pages, frames, events or texts
	Damaged int64  `json:"damaged"` // how many of them are damaged
	Note    string `json:"note,omitempty"`
}

// A LogRecovery is what a recovery has saved, and what is lost.
type LogRecovery struct {
	Run        RunID    `json:"run"`
	Events     int64    `json:"events"`         // saved
	LostEvents int64    `json:"lost_events"`    // known to be lost
	Texts      int64    `json:"texts"`          // saved
	LostTexts  int64    `json:"lost_texts"`     // found damaged
	Turns      []TurnID `json:"lost_turns"`     // turns whose lost events could still be read in part
	Kept       []string `json:"kept,omitempty"` // the damaged files, under their new names
}

// RemoveOptions say how to remove a run.
type RemoveOptions struct {
	Fence   int64 // the run's fence when the caller decided; [AnyFence] = unknown, as in a damaged log
	DryRun  bool  // count, but delete nothing
	Damaged bool  // also delete the damaged files that a recovery has kept
}

// AnyFence removes a run whatever its fence.
const AnyFence = -1

// Removed is what a removal has freed.
type Removed struct {
	Files int
	Bytes int64
}

// runDigits are in byte order, so that ids sort. Letters that look like other characters are left
// out.
const runDigits = "0123456789abcdefghjkmnpqrstvwxyz"

// NewRunID makes the id of a run that begins now. In 20261115-143205-g7k3f9q the parts are the
// second in UTC, the millisecond in two digits of base 32, and five random digits. Ids sort by
// time, and two processes practically never make the same.
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

// IsRunID reports whether a name can be a run's id. The characters of an id cannot form a path out
// of the store.
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
