package repl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm/internal/term"
	"swarm/internal/view"
)

// A stage is a screen whose program runs, on a terminal that only writes down.
type stage struct {
	*fakeSession
	t        *testing.T
	screen   *Screen
	terminal *paper
	keys     *io.PipeWriter
	frames   chan string
	left     chan Left
	err      error
}

func newStage(t *testing.T, o Options) *stage {
	in, keys := io.Pipe()
	s := &stage{fakeSession: newFake(t), t: t, terminal: newPaper(), keys: keys, frames: make(chan string, 10_000), left: make(chan Left, 1)}
	o.In, o.Out, o.Now = in, s.terminal, s.clock
	o.Env = []string{"TERM=xterm", "TERM_PROGRAM=Apple_Terminal"}
	o.Size = func() (int, int) { return 100, 24 }
	o.Drawn = func(f string) {
		select {
		case s.frames <- f:
		default:
		}
	}
	s.screen = NewScreen(s.fakeSession, view.New("20261115-0200-k7"), o)
	s.begin(s.screen)
	go func() {
		left, err := s.screen.Run()
		s.err = err
		s.left <- left
	}()
	t.Cleanup(func() { keys.Close() })
	return s
}

// waitFor waits for a frame that has all of these in it.
func (s *stage) waitFor(parts ...string) string {
	s.t.Helper()
	for {
		select {
		case f := <-s.frames:
			all := true
			for _, p := range parts {
				all = all && strings.Contains(f, p)
			}
			if all {
				return f
			}
		case <-time.After(20 * time.Second):
			s.t.Fatalf("no frame with %q", parts)
		}
	}
}

func (s *stage) press(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keys, text); err != nil {
		s.t.Fatal(err)
	}
}

// restored fails when the terminal is not as it was.
func (s *stage) restored() {
	s.t.Helper()
	got := s.terminal.String()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?25l": "\x1b[?25h"} {
		if strings.LastIndex(got, on) > strings.LastIndex(got, off) {
			s.t.Errorf("%q was not taken back by %q", on, off)
		}
	}
}

func TestScreen(t *testing.T) {
	s := newStage(t, Options{Terminal: term.Terminal{Color: true}})
	s.waitFor("text goes to @pm")
	s.press("@pm Pl\x1b[200~an\rthis\x1b[201~\r")
	s.waitFor("@pm\x1b[m:\x1b[2m starting")
	if got := s.lines(); len(got) != 1 || got[0] != "@pm Plan\nthis" {
		t.Errorf("%q was entered", got)
	}
	s.start("pm_1")
	s.screen.Delta("pm_1", text("the plan"))
	s.waitFor("executing", "the plan")
	s.press("typed ahead\r")
	s.waitFor("next: typed ahead")
	s.press("\x03")
	if n := <-s.stops; n != 1 {
		t.Errorf("interrupted %d times", n)
	}
	s.cancel("pm_1")
	s.waitFor("pm_1 cancelled", "> \x1b[m\x1b[1mtyped ahead", "starting")
	s.start("pm_2")
	s.screen.Interrupt()
	if n := <-s.stops; n != 1 {
		t.Errorf("the next line is interrupted for the %d. time", n)
	}
	s.complete("pm_2")
	s.waitFor("pm_2 completed")
	s.press("\x04")
	if left := <-s.left; left != ByEnd || s.err != nil {
		t.Errorf("left by %q, %v", left, s.err)
	}
	s.restored()
	end := s.terminal.String()[strings.LastIndex(s.terminal.String(), "\x1b[?1049l"):]
	if !strings.Contains(end, "✓") || !strings.Contains(end, "pm_2 completed") {
		t.Errorf("what was seen does not stay: %q", end)
	}
	s.complete("pm_2") // who feeds it need not know that it is over
	s.screen.Notice("x")
	if err := s.screen.Close(); err != nil {
		t.Error(err)
	}
}

func TestScreenIsLeft(t *testing.T) {
	s := newStage(t, Options{})
	s.waitFor("text goes to")
	s.keys.Close()
	if left := <-s.left; left != ByEnd || s.err != nil {
		t.Errorf("a terminal that is gone is left by %q, %v", left, s.err)
	}
	s = newStage(t, Options{})
	s.waitFor("text goes to")
	if err := s.screen.Close(); err != nil {
		t.Error(err)
	}
	if left := <-s.left; left != ByClose || s.err != nil {
		t.Errorf("Close is left by %q, %v", left, s.err)
	}
	s.restored()
}

func TestScreenIsClosedBeforeItBegins(t *testing.T) {
	f := newFake(t)
	s := NewScreen(f, view.New("x"), Options{Terminal: term.Terminal{In: strings.NewReader(""), Out: newPaper(), Now: f.clock}})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := s.Run(); left != ByClose || err != nil {
		t.Errorf("left by %q, %v", left, err)
	}
}

// A session that breaks down leaves the terminal as it was.
func TestScreenIsRestoredAfterPanic(t *testing.T) {
	s := newStage(t, Options{})
	s.waitFor("text goes to")
	s.press("/panic\r")
	<-s.left
	if !errors.Is(s.err, tea.ErrProgramPanic) {
		t.Errorf("the error is %v", s.err)
	}
	s.restored()

	s = newStage(t, Options{})
	s.waitFor("text goes to")
	s.screen.mu.Lock()
	s.screen.roster = nil // whatever is wrong in what is fed
	s.screen.mu.Unlock()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic was hidden")
			}
		}()
		s.screen.Delta("pm_1", text("x"))
	}()
	s.restored()
}

// A terminal that takes nothing must not stop the session.
func TestScreenNeverWaits(t *testing.T) {
	s := newStage(t, Options{})
	s.waitFor("text goes to")
	s.press("@pm talk\r")
	s.waitFor("starting")
	s.start("pm_1")
	s.terminal.mu.Lock()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				s.screen.Delta("pm_1", text(fmt.Sprintf("line %d\n", i)))
			}
		})
	}
	all.Wait()
	s.complete("pm_1")
	s.terminal.mu.Unlock()
	s.waitFor("pm_1 completed")
	if n := len(s.frames); n > 2000 {
		t.Errorf("%d frames were drawn for 20,000 lines", n)
	}
	s.press("/quit\r")
	<-s.left
}
