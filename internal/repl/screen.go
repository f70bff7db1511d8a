package repl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A Screen is the split screen. The window's goroutine draws it and handles keys; other goroutines
// feed it.
type Screen struct {
	session Session
	o       Options
	model   *model
	window  *term.Window

	mu         sync.Mutex // guards the fields below; nothing outside is called while it is held
	roster     *roster
	transcript transcript
	outputs    map[string]*turnOutput
	colors     term.Palette
	changes    int // number of changes of states
}

// A turnOutput is the output of a task's turn.
type turnOutput struct {
	streams [2]term.LineSplitter // standard output and standard error
	lines   [2]int               // the lines that they continue
	open    [2]bool              // whether there are such lines
}

// NewScreen makes the screen of a session from where the fold of its run stands. The screen owns
// the fold from then on.
func NewScreen(session Session, run *view.Run, o Options) *Screen {
	roster := newRoster(run)
	roster.canType = true
	s := &Screen{session: session, o: o, roster: roster, outputs: map[string]*turnOutput{}, colors: term.Palette{}}
	if o.Greeting != "" {
		s.transcript.addAll(hint, o.Greeting)
	}
	s.model = newModel(s)
	s.window = term.NewWindow(s.model, o.Terminal)
	return s
}

// Run draws the screen and reads keys until the user leaves. The last page stays in the terminal.
func (s *Screen) Run() (Left, error) {
	switch err := s.window.Run(); {
	case errors.Is(err, term.ErrClosed):
		return ByClose, nil
	case err != nil:
		return ByClose, err
	}
	_, err := io.WriteString(s.o.Out, s.lastPage())
	return s.model.left, err
}

// lastPage returns the end of the transcript, for the terminal's normal screen.
func (s *Screen) lastPage() string {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.model.frame(now)
	f.bottom = nil
	rows := s.transcript.draw(f.page(max(1, f.height-2)))
	return strings.Join(rows, "\n") + "\n"
}

// locked calls a function with the lock held. A panic releases the lock, so that goroutines that
// feed the screen do not wait for ever.
func (s *Screen) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// Event shows the next event of the run's log.
func (s *Screen) Event(e *swarm.Event) {
	defer s.window.Restore()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Recall != nil {
		line, output := s.o.Recall(e)
		if line != "" {
			s.transcript.addTyped(line)
		}
		s.addOutput(e.Task, 0, output)
	}
	if e.Kind == swarm.TurnEnded {
		s.endOutput(e.Task)
	}
	over, agent, err := s.roster.apply(e)
	if agent != "" {
		s.transcript.add(endKind(over.status), agent, over.task+" "+over.describe())
	}
	if text := describe(e); text != "" {
		s.transcript.add(note, "", text)
	}
	if n := len(s.roster.run.Approvals); e.Kind == swarm.ApprovalAsked && n > 0 { // the panel shows only its beginning
		q := s.roster.run.Approvals[n-1]
		s.transcript.add(
			note, "",
			term.OneLine(fmt.Sprintf("%s /approve %[2]s, or /deny %[2]s", view.AskApproval(q.Task, q.Approval), s.roster.questionName(q))))
	}
	if e.Kind == swarm.ApprovalAnswered { // a resumed session shows its old questions, and they are not open
		a, _ := swarm.Body[swarm.ApprovalAnswer](e)
		s.transcript.add(note, "", term.OneLine(e.Task+": "+view.DescribeAnswer(a)))
	}
	if err != nil {
		s.transcript.add(problem, "", term.OneLine(err.Error()))
	}
	s.changes++
	s.window.Change(true)
}

func endKind(s swarm.Status) kind {
	switch s {
	case swarm.Completed:
		return completed
	case swarm.Failed:
		return failed
	}
	return cancelled
}

// describe describes an event that no status shows.
func describe(e *swarm.Event) string {
	switch e.Kind {
	case swarm.TaskRetrying, swarm.LimitReached, swarm.TaskBlocked, swarm.DeskOpened, swarm.DeskChanged:
		if text := view.DescribeEvent(e); text != "" {
			return term.OneLine(e.Task + " " + text)
		}
	case swarm.Notice, swarm.LimitEnded, swarm.BudgetSpent, swarm.RunPausing, swarm.RunPaused, swarm.RunUnpaused, swarm.RunInterrupted:
		return term.OneLine(view.DescribeEvent(e))
	}
	return ""
}

// Delta shows what a task's turn does while it runs.
func (s *Screen) Delta(task string, d swarm.Delta) {
	defer s.window.Restore()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d.Kind {
	case swarm.DeltaText:
		s.addOutput(task, 0, d.Text)
	case swarm.DeltaStderr:
		s.addOutput(task, 1, d.Text)
	case swarm.DeltaTool:
		if d.Tool != nil {
			s.transcript.add(usedTool, s.roster.agent(task), term.ToolLine(d.Tool))
		}
	case swarm.DeltaToolDone:
		if d.Tool == nil || !d.Tool.Failed {
			return
		}
		s.transcript.add(usedTool, s.roster.agent(task), term.FailedToolLine(d.Tool))
	case swarm.DeltaUsage:
		s.roster.delta(task, d)
	default:
		return
	}
	s.window.Change(false)
}

// addOutput adds to the line of a stream, and begins new lines.
func (s *Screen) addOutput(task string, tone int, text string) {
	if text == "" {
		return
	}
	v := s.outputs[task]
	if v == nil {
		v = &turnOutput{}
		s.outputs[task] = v
	}
	v.streams[tone].Add(text, s.lineAdder(task, tone, v))
}

// lineAdder returns the function that puts parts of lines into the transcript. A part continues the
// open line of its stream, even if other agents have said something since. A line that is full or
// dropped is continued in a new one.
func (s *Screen) lineAdder(task string, tone int, v *turnOutput) func(string, bool) {
	return func(part string, ends bool) {
		for part != "" || !v.open[tone] {
			piece := part[:excerpt.CutAt(part, maxLine)]
			if !v.open[tone] || !s.transcript.grow(v.lines[tone], piece) {
				v.lines[tone], v.open[tone] = s.transcript.add(
					[]kind{said, onStderr}[tone], s.roster.agent(task), piece), true
			}
			part = part[len(piece):]
		}
		v.open[tone] = !ends
	}
}

// endOutput ends the lines of a turn that is over.
func (s *Screen) endOutput(task string) {
	if v := s.outputs[task]; v != nil {
		for tone := range v.streams {
			v.streams[tone].End(s.lineAdder(task, tone, v))
		}
		delete(s.outputs, task)
	}
}

// Notice shows the user something that no event reports.
func (s *Screen) Notice(text string) {
	s.locked(func() { s.transcript.addAll(note, text) })
	s.window.Change(true)
}

// Interrupt is Ctrl-C from outside.
func (s *Screen) Interrupt() { go s.window.Send(interrupt{}) }

// Close makes Run return and gives the terminal back.
func (s *Screen) Close() error {
	_ = s.window.Close() // Run returns the error
	return nil
}
