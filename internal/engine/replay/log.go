package replay

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"swarm"
)

// A copier writes the log of the new run. It knows which number each recorded event has there.
//
// A replay that was killed is begun again from the start of the recording. It comes to write the same events in the same order,
// so an event that is there already, behind the last one that was found, is not written again.
type copier struct {
	ctx   context.Context
	log   swarm.Log
	fence int64
	file  string // the recording's

	behind []swarm.Event // of the log: those that were read and not found yet
	read   int64         // up to which event
	fresh  bool          // no event is there already any more

	batch swarm.Batch
	olds  []int64 // the recorded numbers of its events
	bytes int
	after []func() // to be done when it is written

	pairs []pair // in the order of their old numbers
	err   error  // the first one of number
}

type pair struct{ old, new int64 }

// maxBatch is how many bytes, or events, wait for the next flush.
const (
	maxBatch  = 1 << 20
	maxEvents = 500
)

// put writes an event, unless it is there: then before says so. Its old number is 0 if it was not recorded.
func (c *copier) put(old int64, e swarm.Event, texts ...[]byte) (before bool, err error) {
	if c.err != nil {
		return false, c.err
	}
	if seq, err := c.find(&e); err != nil || seq > 0 {
		c.pair(old, seq)
		return true, err
	}
	e.Seq = 0
	c.batch.Events, c.batch.Bodies, c.olds = append(c.batch.Events, e), append(c.batch.Bodies, texts...), append(c.olds, old)
	c.bytes += len(e.Data)
	for _, text := range texts {
		c.bytes += len(text)
	}
	if c.bytes > maxBatch || len(c.olds) > maxEvents {
		return false, c.flush()
	}
	return false, nil
}

// find is the number of an event that is there already, or 0.
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

// same says whether two events say the same. Which process drives the run is no part of it.
func same(a, b *swarm.Event) bool {
	return a.Kind == b.Kind && a.Agent == b.Agent && a.Task == b.Task && a.Turn == b.Turn && a.To == b.To && a.Key == b.Key &&
		(a.Kind == swarm.RunOwned || bytes.Equal(a.Data, b.Data))
}

// then has something done when what was put so far is on disk.
func (c *copier) then(do func()) { c.after = append(c.after, do) }

// flush writes what waits, and returns when it is on disk.
func (c *copier) flush() error {
	if c.err != nil {
		return c.err
	}
	if len(c.olds) > 0 {
		c.batch.Fence = c.fence
		seqs, err := c.log.Append(c.ctx, c.batch)
		if errors.Is(err, swarm.ErrConflict) {
			err = (&swarm.Error{Kind: swarm.BadInput, File: c.file, Msg: "the run has something else in its log than this recording", Err: err}).
				WithHint("name the recording with which the replay was begun")
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

// pair notes the number of a recorded event in the new log. Numbers only grow: the new run's first owner comes before what others
// had sent by then, and up to that owner is up to all of it.
func (c *copier) pair(old, seq int64) {
	if len(c.olds) > 0 {
		_ = c.flush() // what waits comes before it; err keeps the error
	}
	if n := len(c.pairs); n > 0 {
		seq = max(seq, c.pairs[n-1].new)
	}
	if old > 0 && seq > 0 {
		c.pairs = append(c.pairs, pair{old, seq})
	}
}

// number is the number in the new log of a recorded event, or of the last one before it that is there: "up to" an event that was
// left out is up to that one.
func (c *copier) number(old int64) int64 {
	if len(c.olds) > 0 && slices.ContainsFunc(c.olds, func(waits int64) bool { return waits > 0 && waits <= old }) {
		_ = c.flush() // err keeps the error
	}
	i, found := slices.BinarySearchFunc(c.pairs, old, func(p pair, old int64) int { return int(min(1, max(-1, p.old-old))) })
	switch {
	case found:
		return c.pairs[i].new
	case i > 0:
		return c.pairs[i-1].new
	}
	return 0
}

// rewrite is an event with a body that was changed.
func rewrite[T any](e swarm.Event, change func(*swarm.Event, *T)) (swarm.Event, error) {
	body, err := swarm.Body[T](&e)
	if err != nil {
		return e, err
	}
	change(&e, &body)
	e.Data = swarm.Encode(body)
	return e, nil
}
