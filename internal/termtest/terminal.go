package termtest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// A Terminal writes down what it is told. Its keys are pressed by a test.
type Terminal struct {
	In *io.PipeReader

	t      testing.TB
	keys   *io.PipeWriter
	frames chan string
	mu     sync.Mutex
	more   *sync.Cond
	got    bytes.Buffer
	fails  error
}

// NewTerminal makes a terminal whose keys end with the test.
func NewTerminal(t testing.TB) *Terminal {
	x := &Terminal{t: t, frames: make(chan string, 10_000)}
	x.In, x.keys = io.Pipe()
	x.more = sync.NewCond(&x.mu)
	t.Cleanup(x.HangUp)
	return x
}

// Env is the environment of a terminal that answers no question.
func (x *Terminal) Env() []string { return []string{"TERM=xterm", "TERM_PROGRAM=Apple_Terminal"} }

// Write takes what is printed.
func (x *Terminal) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.more.Broadcast()
	if x.fails != nil {
		return 0, x.fails
	}
	return x.got.Write(b)
}

// String is all that was printed.
func (x *Terminal) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.got.String()
}

// Break has all printing fail from now on.
func (x *Terminal) Break(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.fails = err
	x.more.Broadcast()
}

// Hold has printing wait until it is released.
func (x *Terminal) Hold() (release func()) {
	x.mu.Lock()
	return x.mu.Unlock
}

// WaitFor waits until a text was printed so often.
func (x *Terminal) WaitFor(part string, times int) {
	x.t.Helper()
	late := time.AfterFunc(patience, func() { x.Break(fmt.Errorf("no %q was printed", part)) })
	defer late.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for strings.Count(x.got.String(), part) < times {
		if x.fails != nil {
			x.t.Fatalf("%v; this was:\n%s", x.fails, x.got.String())
		}
		x.more.Wait()
	}
}

// Press presses keys.
func (x *Terminal) Press(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.keys, keys); err != nil {
		x.t.Fatal(err)
	}
}

// HangUp ends the keys.
func (x *Terminal) HangUp() { _ = x.keys.Close() }

// Drawn takes a frame.
func (x *Terminal) Drawn(frame string) {
	select {
	case x.frames <- frame:
	default:
	}
}

// Frames is how many frames were drawn that nobody has waited for.
func (x *Terminal) Frames() int { return len(x.frames) }

// WaitForFrame waits for a frame that has all of these in it.
func (x *Terminal) WaitForFrame(parts ...string) string {
	x.t.Helper()
	for {
		select {
		case f := <-x.frames:
			if containsAll(f, parts) {
				return f
			}
		case <-time.After(patience):
			x.t.Fatalf("no frame with %q", parts)
		}
	}
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
