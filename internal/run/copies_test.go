package run

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"swarm/internal/flow"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// The copy is the output of a task's last turn, in whatever order the outputs come.
func TestCopies(t *testing.T) {
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	s := newStreams(h, "run", nil, nil)
	for _, turn := range []struct {
		iteration, attempt int
		text               string
	}{{1, 1, "first"}, {2, 2, "last"}, {2, 1, "before it"}, {1, 3, "long before it"}} {
		s.Output(flow.Call{Task: "a", Iteration: turn.iteration, Attempt: turn.attempt}, []byte(turn.text))
	}
	s.Output(flow.Call{Task: "b", Iteration: 1, Attempt: 1}, nil)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(h.OutputPath("run", "a")); err != nil || string(got) != "last" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(h.OutputPath("run", "b")); !os.IsNotExist(err) {
		t.Errorf("a task that said nothing has a file: %v", err)
	}
}

// The queue is bounded: the turn that fills it writes it.
func TestManyCopies(t *testing.T) {
	written := 0
	c := copies{write: func(string, []byte) error { written++; return errors.New("the disk is full") }}
	for i := range 100 {
		c.add(flow.Call{Task: strconv.Itoa(i), Iteration: 1, Attempt: 1}, make([]byte, 100<<10))
		c.mu.Lock() // on a slow machine the timer writes meanwhile
		waiting := c.bytes
		c.mu.Unlock()
		if waiting > maxCopies {
			t.Fatalf("%d bytes wait", waiting)
		}
	}
	if err := c.close(); err == nil || written != 100 {
		t.Errorf("%d were written, %v", written, err)
	}
}
