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

// Plain is a session line by line, for pipes, and for terminals that are narrow or know no escape
// sequences. Text of agents comes line by line with the agent's name in front, and each change of
// an agent's state is a line. The next line is read when the one in the foreground has ended.
//
// Run and one goroutine that reads lines belong to it. more and lines hand over one line at a time,
// so nothing is read ahead.
type Plain struct {
	session Session
	o       Options
	erase   string        // removes the prompt
	wake    chan struct{} // has a value if a state has changed
	stop    chan Left     // the user leaves by a signal, or Close was called
	more    chan struct{} // asks for the next line
	lines   chan lineRead // delivers it
	done    chan struct{} // closed when no more lines are wanted

	mu          sync.Mutex // guards the fields below; only Out is called while it is held
	roster      *roster
	team        Team
	shown       map[string]string // the state of agents that was printed last
	printer     *term.Printer
	foreground  foreground
	entered     []task // Options.StopOnError: the tasks of all lines, until they have completed
	refusals    int    // lines that could not be used
	leaving     bool   // the user leaves if they repeat the key
	prompting   bool   // the prompt is shown
	undisturbed bool   // nothing was printed since the prompt
	err         error  // the first error of printing
}

// A task is a task that a line made.
type task struct {
	name string
	line int
}

// A lineRead is a line from the input, or the error of reading it.
type lineRead struct {
	text string
	long bool // it was too long and was dropped
	err  error
}

// NewPlain makes the plain face of a session from where the fold of its run stands. The face owns
// the fold from then on.
func NewPlain(session Session, run *view.Run, o Options) *Plain {
	p := &Plain{
		session: session,
		o:       o,
		erase:   "\r" + ansi.EraseLineRight,
		wake:    make(chan struct{}, 1),
		stop:    make(chan Left, 1),
		more: make(
			chan struct{},
		),
		lines:  make(chan lineRead),
		done:   make(chan struct{}),
		roster: newRoster(run),
		team:   session.Team(),
		shown:  map[string]string{},
	}
	p.printer = term.NewPrinter(term.Paint(o.Color), p.roster.agent)
	if o.dumb() {
		p.erase = "\n"
	}
	p.printer.Meet(p.team.Agents...)
	for _, a := range p.roster.states(p.team) {
		p.shown[a.Name] = a.Words
	}
	p.printText(o.Greeting)
	p.flush()
	return p
}

// dumb says whether the terminal may know no escape sequences.
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
	defer close(p.done)
	go p.read()
	for number := 1; ; number++ {
		p.showPrompt()
		var line lineRead
		select {
		case left := <-p.stop:
			return left, p.outputError()
		case p.more <- struct{}{}:
		}
		select {
		case left := <-p.stop:
			return left, p.outputError()
		case line = <-p.lines:
		}
		left, err := p.enterLine(line, number)
		if left == "" && err == nil {
			left, err = p.wait(), p.outputError()
		}
		if left == "" && err == nil && p.o.StopOnError {
			left = p.failedLine()
		}
		if left != "" || err != nil {
			return left, err
		}
	}
}

// Refusals returns the number of lines that could not be used.
func (p *Plain) Refusals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusals
}

func (p *Plain) outputError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// read reads a line each time it is asked to.
func (p *Plain) read() {
	in := bufio.NewReaderSize(p.o.In, 64<<10)
	for {
		select {
		case <-p.done:
			return
		case <-p.more:
		}
		line := readLine(in)
		select {
		case <-p.done:
			return
		case p.lines <- line:
		}
	}
}

// readLine reads a line. A line that is too long is read to its end and dropped.
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
		l.err = nil // the last line needs no newline; the next read finds the end again
	}
	l.text = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if len(l.text) > maxEntry {
		l.long, l.text = true, ""
	}
	l.text = strings.ReplaceAll(l.text, "\r", "\n") // old line ends within one entry
	return l
}

// enterLine gives a line to the session.
func (p *Plain) enterLine(l lineRead, number int) (Left, error) {
	p.noteLine(l)
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
			p.printNote(n)
		}
		p.printText(done.Answer)
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

// failedLine reports the first line so far that has failed, also in the background.
func (p *Plain) failedLine() Left {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.entered[:0]
	for _, e := range p.entered {
		switch t, ok := p.roster.run.Task(e.name); {
		case !ok || !t.Status.Ended():
			open = append(open, e)
		case t.Status != swarm.Completed:
			p.report(
				e.line,
				"",
				swarm.Errorf(t.Kind, "@%s %s, and no line after it is run", t.Agent, t.Status).
					WithHint("leave out --stop-on-error to run them"),
			)
			return ByFailure
		}
	}
	p.entered = open
	return ""
}

// Interrupt is Ctrl-C. It cancels the line in the foreground. Without one it leaves, the second
// time. If no person types, it leaves at once.
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
		p.printLine(term.Unstyled, "Ctrl-C again leaves")
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

// leave makes Run return. The first reason counts.
func (p *Plain) leave(by Left) {
	select {
	case p.stop <- by:
	default:
	}
}

// Close prints unfinished lines, makes Run return, and returns the first error of printing.
func (p *Plain) Close() error {
	p.leave(ByClose)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printer.EndAll()
	p.prompting = false
	p.flush()
	return p.err
}
