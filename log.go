package swarm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Log is one run's: the audit trail, the feed of every view, the mailbox (events by receiver) and the journal of its loops
// (events by key). It keeps larger texts beside the events, by their hash. Any process may append mail and control; the rest
// only the owner, by its fence.
//
// The time of an event is the store's clock, read when the event is written, and never before that of the event ahead of it.
// Loops have no other clock: a writer's own could move their timeouts by as much as it is wrong.
type Log interface {
	// Append writes the batch whole or not at all and returns the events' numbers when it is on disk. An event whose key is
	// there already, with the same body, is not written again and has its old number; with another body it is ErrConflict.
	//
	// An error that is none of the refusals below leaves open whether the batch was written. Callers do not retry: events
	// without a key would be doubled. A store behind a network retries inside Append, until ctx ends, under an id that it gives
	// the batch and stores with it. It looks for that id before it checks fence and keys, because both may have changed since
	// the first try was written.
	Append(ctx context.Context, b Batch) ([]int64, error)
	// Flush writes the lazy batches that wait, for a caller that has nothing more to append for now. It waits for no disk.
	Flush()
	// Read returns up to limit events after a number, in order: all of them, or those for the given receivers; [ToAgents] is
	// every agent.
	Read(after int64, limit int, to ...string) ([]Event, error)
	// Find returns the event with this key.
	Find(key string) (Event, bool, error)
	// Body returns the text with this hash, or ErrNoBody.
	Body(h Hash) ([]byte, error)
	// Watch gives a channel that holds a value soon after an event for one of the receivers (none given: for anybody) was
	// appended, by this process or another. The function ends it.
	Watch(to ...string) (<-chan struct{}, func())
}

// A Batch is what is appended at once.
type Batch struct {
	Fence  int64    // if not 0: the owner's; the batch is refused with ErrFenced when the run has another owner
	Absent []string // keys that must not be there, or the batch is refused with ErrStale
	Events []Event  // Seq and Time are the log's, whatever they say here: writers' clocks differ
	Bodies [][]byte // texts that the events name by their hash
	// Lazy says that nobody waits: Append returns at once, without numbers. The batch keeps its place in the order and goes to
	// disk with the next one that somebody waits for, or by itself after a moment; Flush writes it without a sync. A crash
	// before that loses it, and what comes after it.
	Lazy bool
	// Early has Append return when the batch has its place in the order, before it is on disk. It goes to disk with the next one
	// that somebody waits for, or by itself after a moment. Until then only Read for the loops that it is addressed to returns
	// it: what they do next goes to disk with it. Any other reader is given it when it is on disk.
	Early bool
}

// What a Log refuses with.
var (
	ErrFenced   = errors.New("the run has another owner now")
	ErrStale    = errors.New("a newer start of this turn exists")
	ErrConflict = errors.New("the same id was used for something else")
	ErrNoBody   = errors.New("no text with this hash is stored")
)

// An Owned is a log whose run can have an owner.
type Owned interface {
	// Own takes the run and returns its new fence. It is refused with an *OwnedError while another owner lives: one that is
	// gone is replaced at once, one that has stopped moving when its lease is over.
	Own(ctx context.Context, loops string, lease time.Duration) (fence int64, err error)
	// Renew keeps the lease. It never takes one back: ErrFenced.
	Renew(ctx context.Context, fence int64, lease time.Duration) error
	// Disown gives the run up.
	Disown(ctx context.Context, fence int64) error
	// Owner says who drives the run; ok is false when nobody does.
	Owner(ctx context.Context) (o Owner, ok bool, err error)
}

// An OwnedError refuses a run to a second owner.
type OwnedError struct{ Owner Owner }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("process %d drives this run", e.Owner.PID)
}

// An Owner drives a run until its lease ends.
type Owner struct {
	Engine string // what runs the loops: "local"
	Host   string // the machine of the process
	PID    int
	Fence  int64
	Until  time.Time // the lease's end
	Gone   bool      // the process has died, and its lease has not run out yet
}

// A Hash names a text: the SHA-256 of its bytes in hexadecimal.
type Hash string

// NoText is the hash of the empty text, which every log has.
const NoText Hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// HashOf is the hash of b.
func HashOf(b []byte) Hash {
	h := sha256.Sum256(b)
	return Hash(hex.EncodeToString(h[:]))
}

// FindBody is the body of the event with a key. It is not ok if there is none, or it cannot be read.
func FindBody[T any](log Log, key string) (body T, ok bool, err error) {
	e, ok, err := log.Find(key)
	if err != nil || !ok {
		return body, false, err
	}
	body, err = Body[T](&e)
	return body, err == nil, err
}

// Events goes through the events after a number, as [Log.Read] has them, page by page. An error ends it. Whoever is given
// an event does not change it.
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
