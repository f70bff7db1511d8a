package repl

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A paper keeps what is printed on it, and can be waited for.
type paper struct {
	mu    sync.Mutex
	more  *sync.Cond
	got   bytes.Buffer
	fails error
}

func newPaper() *paper {
	p := &paper{}
	p.more = sync.NewCond(&p.mu)
	return p
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.more.Broadcast()
	if p.fails != nil {
		return 0, p.fails
	}
	return p.got.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got.String()
}

// waitFor waits until a text was printed so often.
func (p *paper) waitFor(t *testing.T, part string, times int) {
	t.Helper()
	late := time.AfterFunc(20*time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fails = fmt.Errorf("no %q was printed", part)
		p.more.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for strings.Count(p.got.String(), part) < times {
		if p.fails != nil {
			t.Fatalf("%v; this was:\n%s", p.fails, p.got.String())
		}
		p.more.Wait()
	}
}

// A desk of paper: a plain face, with a user who types.
type plainDesk struct {
	*fakeSession
	plain *Plain
	t     *testing.T
	paper *paper
	typed *io.PipeWriter
	left  chan Left
}

func newPlainDesk(t *testing.T, o Options) *plainDesk {
	in, typed := io.Pipe()
	d := &plainDesk{fakeSession: newFake(t), t: t, paper: newPaper(), typed: typed, left: make(chan Left, 1)}
	o.In, o.Out, o.Now = in, d.paper, d.clock
	if o.Env == nil {
		o.Env = []string{"TERM=xterm"}
	}
	d.plain = NewPlain(d.fakeSession, view.New("20261115-0200-k7"), o)
	d.begin(d.plain)
	go func() {
		left, err := d.plain.Run()
		if err != nil {
			t.Error(err)
		}
		d.left <- left
	}()
	t.Cleanup(func() { typed.Close() })
	return d
}

func (d *plainDesk) enter(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d.typed, line); err != nil {
		d.t.Fatal(err)
	}
}

// The start is told after the first word is heard, as it can be.
func (d *plainDesk) work(task, said string) {
	d.plain.Delta(task, text(said))
	d.start(task)
	d.pass(1500 * time.Millisecond)
	d.complete(task)
}

func TestPlain(t *testing.T) {
	d := newPlainDesk(t, Options{Echo: true, Greeting: "Good\x07 morning"})
	d.enter("@pm Create a plan &\n")
	d.await("pm_1")
	d.enter("@builder-1,ba Implement $pm\n")
	d.paper.waitFor(t, "@ba: waiting for @pm", 1)
	go func() {
		defer d.typed.Close()
		d.enter("\n@builder-1 Implement $nonexistent\n/status\n/broken\n@writer notice this\r\n@reviewer the end")
	}()
	d.work("pm_1", "the plan\n\x1b[2J is 日本")
	d.start("builder-1_1")
	d.plain.Delta("builder-1_1", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "bash", Input: []byte(`{"command":"ls"}`)}})
	d.plain.Delta("builder-1_1", swarm.Delta{Kind: swarm.DeltaStderr, Text: "hm\n"})
	d.fail("builder-1_1", "exit status 2")
	if got := len(d.lines()); got != 2 {
		t.Errorf("%d lines were read before the one in the foreground had ended", got)
	}
	d.work("ba_1", "all of it")
	d.paper.waitFor(t, "! the last good", 1)
	d.work("writer_1", "noticed\n")
	d.await("reviewer_1")
	d.work("reviewer_1", "")
	if left := <-d.left; left != ByEnd {
		t.Errorf("left by %q", left)
	}
	if err := d.plain.Close(); err != nil {
		t.Error(err)
	}
	golden(t, "plain/pipe.txt", d.paper.String())
}

func TestPlainAsks(t *testing.T) {
	d := newPlainDesk(t, Options{Prompt: true, Terminal: term.Terminal{Color: true}})
	d.paper.waitFor(t, "> ", 1)
	d.enter("@pm in the back &\n")
	d.paper.waitFor(t, "> ", 2)
	d.start("pm_1") // while the user types
	d.paper.waitFor(t, "> ", 3)
	d.enter("@pm $nosuch\n")
	d.paper.waitFor(t, "for the text itself", 1)
	d.paper.waitFor(t, "> ", 4)
	d.enter("@pm $other\n")
	d.paper.waitFor(t, "> ", 5)
	d.complete("pm_1")
	d.paper.waitFor(t, "> ", 6)
	d.typed.Close()
	<-d.left
	golden(t, "plain/prompt.txt", d.paper.String())
	if !strings.Contains(d.paper.String(), "\r\x1b[K\x1b[36m@pm\x1b[m: ") {
		t.Error("the prompt is not taken away before something is printed")
	}
}

// A terminal of which nothing is known gets no escape sequence.
func TestPlainOnDumbTerminal(t *testing.T) {
	d := newPlainDesk(t, Options{Prompt: true, Terminal: term.Terminal{Env: []string{"TERM=dumb"}}})
	d.enter("@pm in the back &\n")
	d.paper.waitFor(t, "> ", 2)
	d.work("pm_1", "said\n")
	d.typed.Close()
	<-d.left
	if strings.ContainsAny(d.paper.String(), "\r\x1b") {
		t.Errorf("%q was printed", d.paper.String())
	}
}

func TestPlainInterrupts(t *testing.T) {
	d := newPlainDesk(t, Options{Prompt: true})
	d.enter("@ba in the back &\n@pm in front\n")
	waitForeground(d.plain)
	d.start("ba_1")
	d.start("pm_1")
	d.paper.waitFor(t, "@pm: executing", 1)
	d.plain.Interrupt()
	d.plain.Interrupt()
	if first, second := <-d.stops, <-d.stops; first != 1 || second != 2 {
		t.Errorf("the line in front was interrupted with %d and %d", first, second)
	}
	d.cancel("pm_1")
	d.paper.waitFor(t, "> ", 3)
	d.plain.Interrupt()
	d.paper.waitFor(t, "Ctrl-C again leaves", 1)
	d.enter("/status\n")
	d.paper.waitFor(t, "pm_1  completed", 1)
	d.paper.waitFor(t, "> ", 5)
	d.plain.Interrupt()
	d.paper.waitFor(t, "Ctrl-C again leaves", 2)
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
		there := p.foreground != nil
		p.mu.Unlock()
		if there {
			return
		}
		runtime.Gosched()
	}
}

func TestPlainLeaves(t *testing.T) {
	d := newPlainDesk(t, Options{})
	d.enter("@pm never ends\n")
	waitForeground(d.plain)
	d.plain.Interrupt() // nobody types: there is no line to go on with
	if left := <-d.left; left != ByInterrupt {
		t.Errorf("left by %q", left)
	}
	d = newPlainDesk(t, Options{})
	d.enter("/quit\n")
	if left := <-d.left; left != ByCommand {
		t.Errorf("left by %q", left)
	}
	d = newPlainDesk(t, Options{StopOnError: true, Numbered: true})
	d.enter("\n/status\n@nosuch\n")
	if left := <-d.left; left != ByRefusal {
		t.Errorf("left by %q", left)
	}
	d.paper.waitFor(t, "  @nosuch\n  ^^^^^^^\nline 3: Unknown agent reference", 1)
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
		d.enter("/a\r\n/b\rc\r\n" + "/" + long + "\n/" + long[1:] + "\n/last")
		d.typed.Close()
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
	d.paper.waitFor(t, "line 3: The line is longer than 1048576 bytes", 1)
}

func TestPlainTellsOfBrokenPaper(t *testing.T) {
	s := newFake(t)
	p := newPaper()
	p.fails = io.ErrClosedPipe
	face := NewPlain(s, view.New("x"), Options{Terminal: term.Terminal{In: strings.NewReader("/status\n/status\n"), Out: p, Now: s.clock}})
	if _, err := face.Run(); err != io.ErrClosedPipe {
		t.Errorf("the error is %v", err)
	}
}

// Whatever is read, the session gets what was written, line by line, and what is printed does nothing to a terminal.
func FuzzPlain(f *testing.F) {
	f.Add([]byte("@pm $nosuch \x1b[2J\n/x\r\ny\rz\n\xff\xfe"))
	f.Add([]byte("@nosuch\u202e\n\n\n& \x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		s := newFake(t)
		var out bytes.Buffer
		p := NewPlain(background{s}, view.New("x"), Options{Terminal: term.Terminal{In: bytes.NewReader(input), Out: &out, Now: s.clock}, Echo: true, Numbered: true})
		s.begin(p)
		if _, err := p.Run(); err != nil && !bytes.Contains(input, []byte("/panic")) {
			t.Error(err)
		}
		safe(t, strings.ReplaceAll(out.String(), "\t", " "))
	})
}

// background is a session in which nobody waits for anything.
type background struct{ *fakeSession }

func (b background) Enter(text string) (Entered, error) {
	if strings.HasPrefix(text, "/panic") {
		return Entered{}, nil
	}
	e, err := b.fakeSession.Enter(text)
	e.Background = true
	return e, err
}
