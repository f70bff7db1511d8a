package replay

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"swarm"
)

// A copier writes the log of the new run, and maps the numbers of recorded events to their numbers
// there.
//
// Writes are batched: an event is durable after the next flush. The copier flushes before it reads
// the new log, and before it needs a number that the batch does not have yet.
//
// A crash leaves a prefix of the new log behind. The next process starts again at the beginning of
// the recording, and puts the same events in the same order. So put looks for each event in the
// log, after the last one that it found there, and does not write it twice.
type copier struct {
	ctx   context.Context
	log   swarm.Log
	fence int64
	file  string // the name of the recording, for errors

	// Events that an earlier process wrote.
	behind []swarm.Event // read from the log, and not matched yet
	read   int64         // the last event of the log that was read
	fresh  bool          // the log has no more of them: each further event is new

	// Events that wait for the next flush.
	batch swarm.Batch
	olds  []int64  // the recorded numbers of its events; 0 = not recorded
	bytes int      // the size of its bodies and texts
	after []func() // to be called when it is durable

	pairs []pair // in the order of their old numbers; the new numbers never fall
	err   error  // the first error of a flush. Later calls return it: number and pair have no error of their own.
}

// A pair is the number of an event in the recording, and in the new log.
type pair struct{ old, new int64 }

// maxBatch bytes or maxEvents events wait at most for the next flush.
const (
	maxBatch  = 1 << 20
	maxEvents = 500
)

// put adds an event to the batch. If an earlier process wrote the event, put returns before = true
// and adds nothing. The old number is 0 for an event that is not in the recording.
func (c *copier) put(old int64, e swarm.Event, texts ...[]byte) (before bool, err error) {
	if c.err != nil {
		return false, c.err
	}
	if seq, err := c.find(&e); err != nil || seq > 0 {
		c.pair(old, seq)
		return true, err
	}
	e.Seq = 0
	c.batch.Events, c.olds = append(c.batch.Events, e), append(c.olds, old)
	c.batch.Bodies = append(c.batch.Bodies, texts...)
	c.bytes += len(e.Data)
	for _, text := range texts {
		c.bytes += len(text)
	}
	if c.bytes > maxBatch || len(c.olds) > maxEvents {
		return false, c.flush()
	}
	return false, nil
}

// find returns the number of an event that an earlier process wrote, or 0.
// Events that it skips are gone for later calls: the order of both logs is the same.
func (c *copier) find(e *swarm.Event) (int64, error) {
	for !c.fresh {
		for i := range c.behind {
			if same(&c.behind[i], e) {
				seq := c.behind[i].Seq
				c.behind = c.behind[i+1:]
				return seq, nil
			}
		}
		more, err := c.log.Read(c.read, 1000)
		if err != nil {
			return 0, err
		}
		c.behind = append(c.behind, more...)
		if c.fresh = len(more) == 0; !c.fresh {
			c.read = more[len(more)-1].Seq
		}
	}
	return 0, nil
}

// same reports whether two events have the same content. The body of run_owned names a process, so
// it is not compared.
func same(a, b *swarm.Event) bool {
	return a.Kind == b.Kind && a.Agent == b.Agent && a.Task == b.Task && a.Turn == b.Turn && a.To == b.To && a.Key == b.Key &&
		(a.Kind == swarm.RunOwned || bytes.Equal(a.Data, b.Data))
}

// then calls a function after the next flush, when all events that were put so far are durable.
func (c *copier) then(do func()) { c.after = append(c.after, do) }

// flush appends the batch to the log, and returns when it is durable.
func (c *copier) flush() error {
	if c.err != nil {
		return c.err
	}
	if len(c.olds) > 0 {
		c.batch.Fence = c.fence
		seqs, err := c.log.Append(c.ctx, c.batch)
		if errors.Is(err, swarm.ErrConflict) {
			err = &swarm.Error{Kind: swarm.BadInput, File: c.file, Err: err,
				Msg:  "the run has something else in its log than this recording",
				Hint: "name the recording with which the replay was begun"}
		}
		if err != nil {
			c.err = err
			return err
		}
		olds := c.olds
		c.batch, c.olds, c.bytes = swarm.Batch{}, nil, 0
		for i, seq := range seqs {
			c.pair(olds[i], seq)
		}
	}
	after := c.after
	c.after = nil
	for _, do := range after {
		do()
	}
	return nil
}

// pair notes the number of a recorded event in the new log.
//
// Invariant: new numbers never fall as old numbers grow, so that ranges ("from", "up to") stay
// ranges.
//
// Owners have no pair: an owner is written lazily, so whether a process finds it in the log is a
// matter of time. Every process that drives the replay has to compute the same numbers.
func (c *copier) pair(old, seq int64) {
	if len(c.olds) > 0 {
		_ = c.flush() // The waiting events come first in pairs. c.err keeps the error.
	}
	if n := len(c.pairs); n > 0 {
		seq = max(seq, c.pairs[n-1].new)
	}
	if old > 0 && seq > 0 {
		c.pairs = append(c.pairs, pair{old, seq})
	}
}

// number returns the number in the new log of a recorded event. For an event that was left out, it
// is the number of the last event before it that was copied, which keeps "up to" true.
func (c *copier) number(old int64) int64 {
	new, _ := c.last(old)
	return new
}

// last returns the number in the new log of the last event up to a recorded one that was copied, and
// how far the recorded one is beyond it: 0 if it is that event itself.
func (c *copier) last(old int64) (new, beyond int64) {
	if len(c.olds) > 0 && slices.ContainsFunc(c.olds, func(waits int64) bool { return waits > 0 && waits <= old }) {
		_ = c.flush() // c.err keeps the error.
	}
	i, found := slices.BinarySearchFunc(c.pairs, old, func(p pair, old int64) int { return int(min(1, max(-1, p.old-old))) })
	switch {
	case found:
		return c.pairs[i].new, 0
	case i > 0:
		return c.pairs[i-1].new, old - c.pairs[i-1].old
	}
	return 0, old
}

// rewrite returns an event with a changed body. Keys may be made from bodies, so change may set the
// key too.
func rewrite[T any](e swarm.Event, change func(*swarm.Event, *T)) (swarm.Event, error) {
	body, err := swarm.Body[T](&e)
	if err != nil {
		return e, err
	}
	change(&e, &body)
	e.Data = swarm.Encode(body)
	return e, nil
}
