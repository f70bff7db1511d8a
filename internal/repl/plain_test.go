package repl

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// A plainDesk is a plain face, with a user who types.
type plainDesk struct {
	*fakeSession
	*termtest.Terminal
	plain *Plain
	left  chan Left
}

func newPlainDesk(t *testing.T, o Options) *plainDesk {
	d := &plainDesk{fakeSession: newFake(t), Terminal: termtest.NewTerminal(t), left: make(chan Left, 1)}
	o.In, o.Out, o.Now = d.In, d.Terminal, d.Now
	if o.Env == nil {
		o.Env = d.Env()
	}
	d.plain = NewPlain(d.fakeSession, view.New(termtest.RunID), o)
	d.begin(d.plain)
	go func() {
		left, err := d.plain.Run()
		if err != nil {
			t.Error(err)
		}
		d.left <- left
	}()
	return d
}

func (d *plainDesk) work(task, said string) {
	d.StartTask(task)
	d.plain.Delta(task, termtest.Text(said))
	d.Pass(1500 * time.Millisecond)
	d.complete(task)
}

func TestPlain(t *testing.T) {
	d := newPlainDesk(t, Options{Echo: true, Greeting: "Good\x07 morning"})
	d.Press("@pm Create a plan &\n")
	d.await("pm_1")
	d.Press("@builder-1,ba Implement $pm\n")
	d.WaitFor("@ba: waiting for @pm", 1)
	go func() {
		defer d.HangUp()
		d.Press("\n@builder-1 Implement $nonexistent\n/status\n/broken\n@writer notice this\r\n@reviewer the end")
	}()
	d.work("pm_1", "the plan\n\x1b[2J is 日本")
	d.StartTask("builder-1_1")
	d.plain.Delta("builder-1_1", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "bash", Input: []byte(`{"command":"ls"}`)}})
	d.plain.Delta("builder-1_1", swarm.Delta{Kind: swarm.DeltaStderr, Text: "hm\n"})
	d.FailTask("builder-1_1", "exit status 2")
	if got := len(d.lines()); got != 2 {
		t.Errorf("%d lines were read before the one in the foreground had ended", got)
	}
	d.work("ba_1", "all of it")
	d.WaitFor("! the last good", 1)
	d.work("writer_1", "noticed\n")
	d.await("reviewer_1")
	d.work("reviewer_1", "")
	if left := <-d.left; left != ByEnd {
		t.Errorf("left by %q", left)
	}
	if err := d.plain.Close(); err != nil {
		t.Error(err)
	}
	termtest.Golden(t, "plain/pipe.txt", d.Terminal.String())
}

func TestPlainAsks(t *testing.T) {
	d := newPlainDesk(t, Options{Prompt: true, Terminal: term.Terminal{Color: true}})
	d.WaitFor("> ", 1)
	d.Press("@pm in the back &\n")
	d.WaitFor("> ", 2)
	d.StartTask("pm_1") // while the user types
	d.WaitFor("> ", 3)
	d.Press("@pm $nosuch\n")
	d.WaitFor("for the text itself", 1)
	d.WaitFor("> ", 4)
	d.Press("@pm $other\n")
	d.WaitFor("> ", 5)
	d.complete("pm_1")
	d.WaitFor("> ", 6)
	d.HangUp()
	<-d.left
	termtest.Golden(t, "plain/prompt.txt", d.Terminal.String())
	if !strings.Contains(d.Terminal.String(), "\r\x1b[K\x1b[36m@pm\x1b[m: ") {
		t.Error("the prompt is not taken away before something is printed")
	}
}

// An unknown terminal gets no escape sequence.
func TestPlainOnDumbTerminal(t *testing.T) {
	d := newPlainDesk(t, Options{Prompt: true, Terminal: term.Terminal{Env: []string{"TERM=dumb"}}})
	d.Press("@pm in the back &\n")
	d.WaitFor("> ", 2)
	d.work("pm_1", "said\n")
	d.HangUp()
	<-d.left
	if strings.ContainsAny(d.Terminal.String(), "\r\x1b") {
		t.Errorf("%q was printed", d.Terminal.String())
	}
}

func TestPlainInterrupts(t *testing.T) {
	d := newPlainDesk(t, Options{Prompt: true})
	d.Press("@ba in the back &\n@pm in front\n")
	waitForeground(d.plain)
	d.StartTask("ba_1")
	d.StartTask("pm_1")
	d.WaitFor("@pm: executing", 1)
	d.plain.Interrupt()
	d.plain.Interrupt()
	if first, second := <-d.stops, <-d.stops; first != 1 || second != 2 {
		t.Errorf("the line in front was interrupted with %d and %d", first, second)
	}
	d.CancelTask("pm_1")
	d.WaitFor("> ", 3)
	d.plain.Interrupt()
	d.WaitFor("Ctrl-C again leaves", 1)
	d.Press("/status\n")
	d.WaitFor("pm_1  completed", 1)
	d.WaitFor("> ", 5)
	d.Press("\n") // an empty line is nothing that could be interrupted
	d.WaitFor("> ", 6)
	d.plain.Interrupt()
	d.WaitFor("Ctrl-C again leaves", 2)
	select {
	case left := <-d.left:
		t.Fatalf("left by %q", left)
	default:
	}
	d.plain.Interrupt()
	if left := <-d.left; left != ByInterrupt {
		t.Errorf("left by %q", left)
	}
}

// waitForeground waits until a line is in the foreground.
func waitForeground(p *Plain) {
	for {
		p.mu.Lock()
		there := p.foreground.tasks != nil
		p.mu.Unlock()
		if there {
			return
		}
		runtime.Gosched()
	}
}

func TestPlainLeaves(t *testing.T) {
	d := newPlainDesk(t, Options{})
	d.Press("@pm never ends\n")
	waitForeground(d.plain)
	d.plain.Interrupt() // no person types, so there is no line to go on with
	if left := <-d.left; left != ByInterrupt {
		t.Errorf("left by %q", left)
	}
	d = newPlainDesk(t, Options{})
	d.Press("/quit\n")
	if left := <-d.left; left != ByCommand {
		t.Errorf("left by %q", left)
	}
	d = newPlainDesk(t, Options{StopOnError: true, Numbered: true})
	d.Press("\n/status\n@nosuch\n")
	if left := <-d.left; left != ByRefusal {
		t.Errorf("left by %q", left)
	}
	d.WaitFor("  @nosuch\n  ^^^^^^^\nline 3: Unknown agent reference", 1)
	d = newPlainDesk(t, Options{})
	if err := d.plain.Close(); err != nil {
		t.Error(err)
	}
	if left := <-d.left; left != ByClose {
		t.Errorf("left by %q", left)
	}
}

func TestPlainReadsLines(t *testing.T) {
	long := strings.Repeat("x", maxEntry)
	d := newPlainDesk(t, Options{Numbered: true})
	go func() {
		d.Press("/a\r\n/b\rc\r\n" + "/" + long + "\n/" + long[1:] + "\n/last")
		d.HangUp()
	}()
	<-d.left
	want := []string{"/a", "/b\nc", "/" + long[1:], "/last"}
	got := d.lines()
	if len(got) != len(want) {
		t.Fatalf("%d lines were read", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d is %.20q", i, got[i])
		}
	}
	d.WaitFor("line 3: The line is longer than 1048576 bytes", 1)
}

func TestPlainTellsOfBrokenPaper(t *testing.T) {
	s := newFake(t)
	p := termtest.NewTerminal(t)
	p.Break(io.ErrClosedPipe)
	face := NewPlain(s, view.New("x"), Options{Terminal: term.Terminal{In: strings.NewReader("/status\n/status\n"), Out: p, Now: s.Now}})
	if _, err := face.Run(); err != io.ErrClosedPipe {
		t.Errorf("the error is %v", err)
	}
}

// Whatever is read, the session gets what was written, line by line, and the output is safe for a
// terminal.
func FuzzPlain(f *testing.F) {
	f.Add([]byte("@pm $nosuch \x1b[2J\n/x\r\ny\rz\n\xff\xfe"))
	f.Add([]byte("@nosuch\u202e\n\n\n& \x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		s := newFake(t)
		var out bytes.Buffer
		p := NewPlain(background{s}, view.New("x"), Options{Terminal: term.Terminal{In: bytes.NewReader(input), Out: &out, Now: s.Now}, Echo: true, Numbered: true})
		s.begin(p)
		if _, err := p.Run(); err != nil && !bytes.Contains(input, []byte("/panic")) {
			t.Error(err)
		}
		termtest.Safe(t, strings.ReplaceAll(out.String(), "\t", " "))
	})
}

// background is a session in which no line waits.
type background struct{ *fakeSession }

func (b background) Enter(text string) (Entered, error) {
	if strings.HasPrefix(text, "/panic") {
		return Entered{}, nil
	}
	e, err := b.fakeSession.Enter(text)
	e.Background = true
	return e, err
}
