package swarm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Log is the log of one run. It is four things at once:
//   - the audit trail
//   - the feed of every view
//   - the mailbox of agents and loops (events by receiver)
//   - the journal of the loops (events by key)
//
// It stores larger texts beside the events, by their hash. Any process may append mail and control.
// Only the owner may append the rest, under its fence.
//
// The store's clock sets the time of an event when the event is written. Times never decrease from
// one event to the next. Loops have no other clock: a writer's own clock could move their timeouts
// by as much as it is wrong.
type Log interface {
	// Append writes the batch whole or not at all. It returns the numbers of the events when they
	// are on disk. An event whose key exists already with the same body is not written again, and
	// gets its old number. The same key with another body is ErrConflict.
	//
	// After an error other than the refusals below, the batch may or may not have been written.
	// Callers do not retry, because events without a key would be doubled. A store behind a network
	// retries inside Append, until ctx ends, under an id that it stores with the batch. It looks
	// for that id before it checks fence and keys, because both may have changed since the first
	// try was written.
	Append(ctx context.Context, b Batch) ([]int64, error)
	// Flush writes the lazy batches that wait. When it returns, Read returns them. It does not wait
	// until they are on disk.
	Flush()
	// Read returns up to limit events after a number, in order. With receivers it returns only
	// their events; [ToAgents] means every agent. An empty answer means that no such event was
	// acknowledged before the call, in whichever process. Loops are the exception: they may be
	// answered from memory, because their Watch wakes them.
	Read(after int64, limit int, to ...string) ([]Event, error)
	// Find returns the event with this key.
	Find(key string) (Event, bool, error)
	// Body returns the text with this hash, or ErrNoBody.
	Body(h Hash) ([]byte, error)
	// Watch returns a channel that gets a value soon after any process has appended an event for
	// one of the receivers. Without receivers it reports every event. The function ends the watch.
	Watch(to ...string) (<-chan struct{}, func())
}

// A Batch is a set of events that are appended together, or not at all.
type Batch struct {
	Fence  int64    // if not 0: the owner's fence; another owner means ErrFenced
	Absent []string // keys that must not exist, or the batch is refused with ErrStale
	Events []Event  // the log sets Seq and Time, because writers' clocks differ
	Bodies [][]byte // the texts that the events name by hash
	// Lazy appends without waiting: Append returns at once, without numbers. The batch keeps its
	// place in the order. It reaches the disk with the next batch that a caller waits for, or by
	// itself after a moment. Flush writes it without a sync. A crash before that loses it, and
	// everything after it.
	Lazy bool
	// Early lets Append return when the batch has its place in the order, before it is on disk. The
	// batch reaches the disk with the next one that a caller waits for, or by itself after a
	// moment. Until then only Read for the loops that it is addressed to returns it, because
	// everything they append next reaches the disk with it. Other readers get it when it is on
	// disk.
	Early bool
}

// The refusals of a Log.
var (
	ErrFenced   = errors.New("the run has another owner now")
	ErrStale    = errors.New("a newer start of this turn exists")
	ErrConflict = errors.New("the same id was used for something else")
	ErrNoBody   = errors.New("no text with this hash is stored")
)

// ErrDamaged says that a log is not what was written. A store never returns anything of it that it
// could not check.
var ErrDamaged = errors.New("the log is damaged")

// An Owned is a log whose run can have an owner: the one process that drives the run.
type Owned interface {
	// Own takes the run and returns the body of [RunOwned]: this process, its new fence, and when the
	// owner before it last lived. That is its last renewal, or a later event before its lease ended.
	// Leases of a run have the same length. Own is refused with an *OwnedError while another owner
	// lives. A dead owner is replaced at once, an owner that hangs when its lease ends.
	Own(ctx context.Context, loops string, lease time.Duration) (Ownership, error)
	// Renew extends the lease. It never takes a lost one back: the error is ErrFenced.
	Renew(ctx context.Context, fence int64, lease time.Duration) error
	// Disown gives the run up.
	Disown(ctx context.Context, fence int64) error
	// Owner returns the process that drives the run; ok is false if there is none.
	Owner(ctx context.Context) (o Owner, ok bool, err error)
}

// An OwnedError refuses a run to a second owner, and names the first.
type OwnedError struct{ Owner Owner }

func (e *OwnedError) Error() string {
	return e.Owner.Process() + " drives this run"
}

// An Owner drives a run until its lease ends.
type Owner struct {
	Engine string // the engine that runs the loops: "local"
	Host   string // the machine of the process
	PID    int
	Fence  int64
	Until  time.Time // the lease's end
	Gone   bool      // the process has died before its lease ended
	Away   bool      // it is a process of another machine: whether it lives is told by its lease alone
}

// Process names the process, and its machine if that is another one than this.
func (o Owner) Process() string {
	if o.Away {
		return fmt.Sprintf("process %d on %s", o.PID, cmp.Or(o.Host, "another machine"))
	}
	return fmt.Sprintf("process %d", o.PID)
}

// A Hash names a text: the SHA-256 of its bytes in hexadecimal.
type Hash string

// NoText is the hash of the empty text. Every log has it.
const NoText Hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// HashOf returns the hash of b.
func HashOf(b []byte) Hash {
	h := sha256.Sum256(b)
	return Hash(hex.EncodeToString(h[:]))
}

// FindBody decodes the body of the event with a key. ok is false if there is no such event, or its
// body cannot be read.
func FindBody[T any](log Log, key string) (body T, ok bool, err error) {
	e, ok, err := log.Find(key)
	if err != nil || !ok {
		return body, false, err
	}
	body, err = Body[T](&e)
	return body, err == nil, err
}

// Events iterates over the events after a number, page by page, with the receivers of [Log.Read].
// An error ends the iteration. The caller must not change the events.
func Events(log interface {
	Read(after int64, limit int, to ...string) ([]Event, error)
}, after int64, to ...string) iter.Seq2[*Event, error] {
	const page = 512
	return func(yield func(*Event, error) bool) {
		for {
			events, err := log.Read(after, page, to...)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range events {
				if after = events[i].Seq; !yield(&events[i], nil) {
					return
				}
			}
			if len(events) == 0 {
				return
			}
		}
	}
}
