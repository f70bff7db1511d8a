package run

import (
	"sync"
	"time"

	"swarm/internal/flow"
)

const (
	copyDelay = 50 * time.Millisecond // how late the copy of an output is written
	maxCopies = 4 << 20               // bytes that may wait; the turn that exceeds them writes them all
)

// copies writes outputs as files for people. They are written in batches, after the loop has gone
// on: a new file between two syncs of the log makes the second sync slow. A crash loses none,
// because [Sweep] writes them again from the log.
type copies struct {
	write func(task string, text []byte) error

	mu      sync.Mutex
	newest  map[string]place  // by task: the turn of its newest output
	waiting map[string][]byte // by task: the output to write
	bytes   int               // the size of the waiting outputs
	timer   bool              // a flush is scheduled

	writing sync.Mutex // held before mu: one batch at a time, in order; guards err
	err     error      // the first error
}

// A place is where a turn stands among those of its task. A run may have 100,000 tasks, so it is
// small.
type place struct{ iteration, attempt int }

// add queues the output of a turn. Turns of one task may arrive out of order: the later turn wins.
func (c *copies) add(of flow.Call, text []byte) {
	turn := place{of.Iteration, of.Attempt}
	c.mu.Lock()
	last, known := c.newest[of.Task]
	if known && (turn.iteration < last.iteration || turn.iteration == last.iteration && turn.attempt <= last.attempt) {
		c.mu.Unlock()
		return
	}
	if c.newest == nil {
		c.newest, c.waiting = map[string]place{}, map[string][]byte{}
	}
	c.bytes += len(text) - len(c.waiting[of.Task])
	c.newest[of.Task], c.waiting[of.Task] = turn, text
	full := c.bytes > maxCopies
	if !c.timer {
		c.timer = true
		time.AfterFunc(copyDelay, c.flush)
	}
	c.mu.Unlock()
	if full {
		c.flush()
	}
}

// flush writes the waiting outputs.
func (c *copies) flush() {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	batch := c.waiting
	c.waiting, c.bytes, c.timer = map[string][]byte{}, 0, false
	c.mu.Unlock()
	for task, text := range batch {
		if err := c.write(task, text); c.err == nil {
			c.err = err
		}
	}
}

// close writes the waiting outputs and returns the first error.
func (c *copies) close() error {
	c.flush()
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.err
}
