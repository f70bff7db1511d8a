package repl

import (
	"errors"
	"io"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A Screen is the split screen.
type Screen struct {
	session Session
	o       Options
	model   *model
	window  *term.Window

	mu         sync.Mutex // guards what follows; nothing of others is called while it is held
	roster     *roster
	transcript transcript
	outputs    map[string]*turnOutput
	colors     term.Palette
	changes    int // how often somebody's standing has changed
}

// A turnOutput is what a task's turn says.
type turnOutput struct {
	tones [2]term.LineSplitter // its output, and its standard error
	lines [2]int               // the lines that they go on in
	open  [2]bool              // whether there are such lines
}

// NewScreen makes a screen of a session that stands where the fold of its run does. The fold belongs to the screen from then on.
func NewScreen(session Session, run *view.Run, o Options) *Screen {
	roster := newRoster(run)
	roster.typed = true
	s := &Screen{session: session, o: o, roster: roster, outputs: map[string]*turnOutput{}, colors: term.Palette{}}
	if o.Greeting != "" {
		s.transcript.addAll(hint, o.Greeting)
	}
	s.model = newModel(s)
	s.window = term.NewWindow(s.model, o.Terminal, false)
	return s
}

// Run draws the screen and reads keys until the user leaves. What was seen last stays in the terminal.
func (s *Screen) Run() (Left, error) {
	switch err := s.window.Run(); {
	case errors.Is(err, term.ErrClosed):
		return ByClose, nil
	case err != nil:
		return ByClose, err
	}
	_, err := io.WriteString(s.o.Out, s.farewell())
	return s.model.left, err
}

// farewell is the end of the transcript, for the screen that the terminal shows when this one is gone.
func (s *Screen) farewell() string {
	now := s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.model.frame(now)
	f.bottom = nil
	rows := s.transcript.draw(f.page(max(1, f.height-2)))
	return strings.Join(rows, "\n") + "\n"
}

// hold does something while the lock is held, and lets it go also when that breaks down: who feeds the screen must not wait for ever.
func (s *Screen) hold(do func()) {
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
		s.speak(e.Task, 0, output)
	}
	if e.Kind == swarm.TurnEnded {
		s.hush(e.Task)
	}
	over, agent, err := s.roster.apply(e)
	if agent != "" {
		s.transcript.add(endKind(over.status), agent, over.task+" "+over.ending())
	}
	if text := describe(e); text != "" {
		s.transcript.add(note, "", text)
	}
	if n := len(s.roster.run.Approvals); e.Kind == swarm.ApprovalAsked && n > 0 { // the panel has room for its beginning only
		q := s.roster.run.Approvals[n-1]
		s.transcript.add(note, "", term.OneLine("may "+q.Task+" "+view.DescribeApproval(q.Approval)+"? /approve "+q.ID+", or /deny "+q.ID))
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

// describe is what a person should know of an event that no status shows.
func describe(e *swarm.Event) string {
	switch e.Kind {
	case swarm.TaskRetrying, swarm.TaskBlocked:
		return term.OneLine(e.Task + " " + view.DescribeEvent(e))
	case swarm.Notice, swarm.BudgetSpent, swarm.RunPausing, swarm.RunPaused, swarm.RunUnpaused, swarm.RunInterrupted:
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
		s.speak(task, 0, d.Text)
	case swarm.DeltaStderr:
		s.speak(task, 1, d.Text)
	case swarm.DeltaTool:
		if d.Tool != nil {
			s.transcript.add(used, s.roster.agent(task), term.ToolLine(d.Tool))
		}
	case swarm.DeltaToolDone:
		if d.Tool == nil || !d.Tool.Failed {
			return
		}
		s.transcript.add(used, s.roster.agent(task), term.FailedToolLine(d.Tool))
	case swarm.DeltaUsage:
		s.roster.delta(task, d)
	default:
		return
	}
	s.window.Change(false)
}

// speak has a line grow that is said, and begins others.
func (s *Screen) speak(task string, tone int, text string) {
	if text == "" {
		return
	}
	v := s.outputs[task]
	if v == nil {
		v = &turnOutput{}
		s.outputs[task] = v
	}
	v.tones[tone].Add(text, s.teller(task, tone, v))
}

func (s *Screen) teller(task string, tone int, v *turnOutput) func(string, bool) {
	return func(part string, ends bool) {
		for part != "" || !v.open[tone] {
			piece := part[:excerpt.CutAt(part, maxLine)]
			if !v.open[tone] || !s.transcript.grow(v.lines[tone], piece) {
				v.lines[tone], v.open[tone] = s.transcript.add([]kind{said, muttered}[tone], s.roster.agent(task), piece), true
			}
			part = part[len(piece):]
		}
		v.open[tone] = !ends
	}
}

// hush ends the lines of a turn that is over.
func (s *Screen) hush(task string) {
	if v := s.outputs[task]; v != nil {
		for tone := range v.tones {
			v.tones[tone].End(s.teller(task, tone, v))
		}
		delete(s.outputs, task)
	}
}

// Notice says something to the user that no event tells.
func (s *Screen) Notice(text string) {
	s.hold(func() { s.transcript.addAll(note, text) })
	s.window.Change(true)
}

// Interrupt is Ctrl-C from outside.
func (s *Screen) Interrupt() { go s.window.Send(interrupt{}) }

// Close has Run return, and gives the terminal back.
func (s *Screen) Close() error {
	_ = s.window.Close() // Run says what went wrong
	return nil
}
