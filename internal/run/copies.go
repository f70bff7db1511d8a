package run

import (
	"sync"
	"time"

	"swarm/internal/flow"
)

const (
	copyDelay = 50 * time.Millisecond // how late the copy of an output is written
	maxCopies = 4 << 20               // bytes of outputs that wait: whoever adds more has them written
)

// copies writes the copies of outputs that people find as files. They are written in batches, after the loop has gone on: a new file
// between two syncs of the log makes the second one slow. A crash loses none, since [Sweep] makes them again from the log.
type copies struct {
	write func(task string, text []byte) error

	mu      sync.Mutex
	newest  map[string]flow.Call // by task: whose output is the last
	waiting map[string][]byte    // by task
	bytes   int                  // of what waits
	timer   bool                 // somebody will write what waits

	writing sync.Mutex // one batch at a time, in order
	err     error      // the first one
}

// add keeps the output of a turn. A later turn of the same task may have come here first: then it is the later one's that is kept.
func (c *copies) add(of flow.Call, text []byte) {
	c.mu.Lock()
	last, known := c.newest[of.Task]
	if known && (of.Iteration < last.Iteration || of.Iteration == last.Iteration && of.Attempt <= last.Attempt) {
		c.mu.Unlock()
		return
	}
	if c.newest == nil {
		c.newest, c.waiting = map[string]flow.Call{}, map[string][]byte{}
	}
	c.bytes += len(text) - len(c.waiting[of.Task])
	c.newest[of.Task], c.waiting[of.Task] = flow.Call{Iteration: of.Iteration, Attempt: of.Attempt}, text
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

// flush writes what waits.
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

// close writes what waits, and returns what went wrong.
func (c *copies) close() error {
	c.flush()
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.err
}
