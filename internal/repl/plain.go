package repl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/view"
)

// Plain is a session in lines, for pipes, for terminals that can do nothing else, and for narrow ones. What agents say comes line
// by line with the agent's name in front, and each change of where one stands is a line. The next line is read when the one in the
// foreground has ended.
type Plain struct {
	session Session
	o       Options
	erase   string        // takes the prompt away
	wake    chan struct{} // somebody's standing has changed
	stop    chan Left     // the user leaves by a signal, or Close was called
	more    chan struct{} // the next line may be read
	lines   chan lineRead // and was
	over    chan struct{} // nothing is to be read any more

	mu          sync.Mutex // guards what follows; nothing of others but Out is called while it is held
	roster      *roster
	team        Team
	shown       map[string]string // where agents stand, as it was said last
	printer     *term.Printer
	foreground  foreground
	entered     []task // Options.StopOnError: the tasks of all lines, until they are seen to have completed
	refusals    int    // lines that could not be used
	leaving     bool   // the user wants to leave, if they ask again
	asking      bool   // the prompt stands there
	undisturbed bool   // and nothing has been printed since
	err         error  // of printing
}

// A task is one that a line made.
type task struct {
	name string
	line int
}

type lineRead struct {
	text string
	long bool // it was too long, and is not there
	err  error
}

// NewPlain makes the plain face of a session that stands where the fold of its run does. The fold belongs to it from then on.
func NewPlain(session Session, run *view.Run, o Options) *Plain {
	p := &Plain{session: session, o: o, erase: "\r" + ansi.EraseLineRight, wake: make(chan struct{}, 1), stop: make(chan Left, 1),
		more: make(chan struct{}), lines: make(chan lineRead), over: make(chan struct{}), roster: newRoster(run), team: session.Team(),
		shown: map[string]string{}}
	p.printer = term.NewPrinter(term.Paint(o.Color), p.roster.agent)
	if o.dumb() {
		p.erase = "\n"
	}
	p.printer.Meet(p.team.Agents...)
	for _, a := range p.roster.states(p.team) {
		p.shown[a.Name] = a.Words
	}
	p.tell(o.Greeting)
	p.flush()
	return p
}

// dumb says whether the terminal may know no escape sequence at all.
func (o Options) dumb() bool {
	kind := os.Getenv("TERM")
	for _, v := range o.Env {
		if value, ok := strings.CutPrefix(v, "TERM="); ok {
			kind = value
		}
	}
	return kind == "" || kind == "dumb"
}

// Run reads lines until there are no more, or the user leaves.
func (p *Plain) Run() (Left, error) {
	defer close(p.over)
	go p.read()
	for number := 1; ; number++ {
		p.ask()
		var line lineRead
		select {
		case left := <-p.stop:
			return left, p.failure()
		case p.more <- struct{}{}:
		}
		select {
		case left := <-p.stop:
			return left, p.failure()
		case line = <-p.lines:
		}
		left, err := p.take(line, number)
		if left == "" && err == nil {
			left, err = p.wait(), p.failure()
		}
		if left == "" && err == nil && p.o.StopOnError {
			left = p.failedLine()
		}
		if left != "" || err != nil {
			return left, err
		}
	}
}

// Refusals is how many lines could not be used.
func (p *Plain) Refusals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusals
}

func (p *Plain) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// read reads a line each time that it is told to.
func (p *Plain) read() {
	in := bufio.NewReaderSize(p.o.In, 64<<10)
	for {
		select {
		case <-p.over:
			return
		case <-p.more:
		}
		line := readLine(in)
		select {
		case <-p.over:
			return
		case p.lines <- line:
		}
	}
}

// readLine reads a line. One that is too long is read to its end and not kept.
func readLine(in *bufio.Reader) (l lineRead) {
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		if l.long = l.long || len(text)+len(part) > maxEntry+len("\r\n"); l.long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.err = err
		break
	}
	if errors.Is(l.err, io.EOF) && (len(text) > 0 || l.long) {
		l.err = nil // the last line need not be ended; whoever reads on finds the end again
	}
	l.text = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if len(l.text) > maxEntry {
		l.long, l.text = true, ""
	}
	l.text = strings.ReplaceAll(l.text, "\r", "\n") // a text whose lines end as they did on old systems is one entry
	return l
}

// take gives what was read to the session.
func (p *Plain) take(l lineRead, number int) (Left, error) {
	p.answered(l)
	switch {
	case errors.Is(l.err, io.EOF):
		return ByEnd, nil
	case l.err != nil:
		return ByEnd, l.err
	case l.long:
		return p.refuse("", number, &Refused{Msg: fmt.Sprintf("The line is longer than %d bytes", maxEntry)}), nil
	case strings.TrimSpace(l.text) == "":
		return "", nil
	}
	if p.o.Remember != nil {
		p.o.Remember(l.text)
	}
	done, err := p.session.Enter(l.text)
	if err != nil {
		return p.refuse(l.text, number, err), nil
	}
	team := p.session.Team()
	p.mu.Lock()
	p.team = team
	interrupts := p.foreground.answer(done, nil)
	if p.o.Outcome != nil {
		p.o.Outcome(number, done, nil)
	} else {
		for _, n := range done.Notices {
			p.note(n)
		}
		p.tell(done.Answer)
		p.flush()
	}
	for _, name := range done.Tasks {
		if p.o.StopOnError {
			p.entered = append(p.entered, task{name, number})
		}
	}
	p.mu.Unlock()
	if interrupts > 0 {
		p.session.Interrupt(interrupts)
	}
	if done.Quit {
		return ByCommand, nil
	}
	return "", nil
}

// wait waits until the line in the foreground has ended.
func (p *Plain) wait() Left {
	for {
		p.mu.Lock()
		busy := p.foreground.catchUp(p.roster)
		p.mu.Unlock()
		if !busy {
			return ""
		}
		select {
		case <-p.wake:
		case left := <-p.stop:
			return left
		}
	}
}

// failedLine says whether one of the lines so far has failed, those in the background too, and tells which.
func (p *Plain) failedLine() Left {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.entered[:0]
	for _, e := range p.entered {
		switch t, ok := p.roster.run.Task(e.name); {
		case !ok || !t.Status.Ended():
			open = append(open, e)
		case t.Status != swarm.Completed:
			p.report(e.line, "", swarm.Errorf(t.Kind, "@%s %s, and no line after it is run", t.Agent, t.Status).WithHint("leave out --stop-on-error to run them"))
			return ByFailure
		}
	}
	p.entered = open
	return ""
}

// Interrupt is Ctrl-C: it cancels the line in the foreground, and leaves when there is none and it is asked again. Where nobody
// types it leaves at once.
func (p *Plain) Interrupt() {
	p.mu.Lock()
	cut, leave := 0, !p.o.Prompt
	switch {
	case leave:
	case p.foreground.busy():
		cut = p.foreground.interrupt()
	case p.leaving:
		leave = true
	default:
		p.leaving = true
		p.say(term.Unstyled, "Ctrl-C again leaves")
		p.flush()
	}
	p.mu.Unlock()
	if cut > 0 {
		p.session.Interrupt(cut)
	}
	if leave {
		p.leave(ByInterrupt)
	}
}

func (p *Plain) leave(by Left) {
	select {
	case p.stop <- by:
	default:
	}
}

// Close prints what was begun, has Run return, and gives the first error of printing.
func (p *Plain) Close() error {
	p.leave(ByClose)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printer.EndAll()
	p.asking = false
	p.flush()
	return p.err
}
