package repl

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"

	"swarm/internal/term"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// A stage is a screen whose program runs.
type stage struct {
	*fakeSession
	*termtest.Terminal
	screen *Screen
	left   chan Left
	err    error
}

func newStage(t *testing.T, o Options) *stage {
	s := &stage{fakeSession: newFake(t), Terminal: termtest.NewTerminal(t), left: make(chan Left, 1)}
	o.In, o.Out, o.Now, o.Env, o.Drawn = s.In, s.Terminal, s.Now, s.Env(), s.Drawn
	o.Size = func() (int, int) { return 100, 24 }
	s.screen = NewScreen(s.fakeSession, view.New(termtest.RunID), o)
	s.begin(s.screen)
	go func() {
		left, err := s.screen.Run()
		s.err = err
		s.left <- left
	}()
	return s
}

// restored fails if the terminal is not as it was.
func (s *stage) restored() {
	s.t.Helper()
	got := s.Terminal.String()
	for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?25l": "\x1b[?25h"} {
		if strings.LastIndex(got, on) > strings.LastIndex(got, off) {
			s.t.Errorf("%q was not taken back by %q", on, off)
		}
	}
}

func TestScreen(t *testing.T) {
	s := newStage(t, Options{Terminal: term.Terminal{Color: true}})
	s.WaitForFrame("text goes to @pm")
	s.Press("@pm Pl\x1b[200~an\rthis\x1b[201~\r")
	s.WaitForFrame("@pm\x1b[m:\x1b[2m starting")
	if got := s.lines(); len(got) != 1 || got[0] != "@pm Plan\nthis" {
		t.Errorf("%q was entered", got)
	}
	s.StartTask("pm_1")
	s.screen.Delta("pm_1", termtest.Text("the plan"))
	s.WaitForFrame("executing", "the plan")
	s.Press("typed ahead\r")
	s.WaitForFrame("next: typed ahead")
	s.Press("\x03")
	if n := <-s.stops; n != 1 {
		t.Errorf("interrupted %d times", n)
	}
	s.CancelTask("pm_1")
	s.WaitForFrame("pm_1 cancelled", "> \x1b[m\x1b[1mtyped ahead", "starting")
	s.StartTask("pm_2")
	s.screen.Interrupt()
	if n := <-s.stops; n != 1 {
		t.Errorf("the next line is interrupted for the %d. time", n)
	}
	s.complete("pm_2")
	s.WaitForFrame("pm_2 completed")
	s.Press("\x04")
	if left := <-s.left; left != ByEnd || s.err != nil {
		t.Errorf("left by %q, %v", left, s.err)
	}
	s.restored()
	end := s.Terminal.String()[strings.LastIndex(s.Terminal.String(), "\x1b[?1049l"):]
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
	s.WaitForFrame("text goes to")
	s.HangUp()
	if left := <-s.left; left != ByEnd || s.err != nil {
		t.Errorf("a terminal that is gone is left by %q, %v", left, s.err)
	}
	s = newStage(t, Options{})
	s.WaitForFrame("text goes to")
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
	s := NewScreen(f, view.New("x"), Options{Terminal: term.Terminal{In: strings.NewReader(""), Out: termtest.NewTerminal(t), Now: f.Now}})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := s.Run(); left != ByClose || err != nil {
		t.Errorf("left by %q, %v", left, err)
	}
}

// A session that panics leaves the terminal as it was.
func TestScreenIsRestoredAfterPanic(t *testing.T) {
	s := newStage(t, Options{})
	s.WaitForFrame("text goes to")
	s.Press("/panic\r")
	<-s.left
	if !errors.Is(s.err, tea.ErrProgramPanic) {
		t.Errorf("the error is %v", s.err)
	}
	s.restored()

	s = newStage(t, Options{})
	s.WaitForFrame("text goes to")
	s.screen.mu.Lock()
	s.screen.roster = nil // whatever is wrong in what is fed
	s.screen.mu.Unlock()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic was hidden")
			}
		}()
		s.screen.Delta("pm_1", termtest.Text("x"))
	}()
	s.restored()
}

// A blocked terminal must not stop the session.
func TestScreenNeverWaits(t *testing.T) {
	s := newStage(t, Options{})
	s.WaitForFrame("text goes to")
	s.Press("@pm talk\r")
	s.WaitForFrame("starting")
	s.StartTask("pm_1")
	release := s.Hold()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				s.screen.Delta("pm_1", termtest.Text(fmt.Sprintf("line %d\n", i)))
			}
		})
	}
	all.Wait()
	s.complete("pm_1")
	release()
	s.WaitForFrame("pm_1 completed")
	if n := s.Frames(); n > 2000 {
		t.Errorf("%d frames were drawn for 20,000 lines", n)
	}
	s.Press("/quit\r")
	<-s.left
}

// The full screen begins at 60 columns.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		width, height int
		fits          bool
	}{{60, 12, true}, {200, 50, true}, {59, 50, false}, {60, 11, false}, {0, 0, false}} {
		if got := Fits(c.width, c.height); got != c.fits {
			t.Errorf("%d×%d: %v", c.width, c.height, got)
		}
	}
}
