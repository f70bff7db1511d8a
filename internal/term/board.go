package term

import (
	"io"
	"maps"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"swarm"
	"swarm/internal/view"
)

// A Board draws a run as a table that is redrawn in place, below what stands in the terminal already, and stays there when the
// run is over. Feeding it never waits for the terminal: what comes faster than it can be drawn is drawn together.
type Board struct {
	o       BoardOptions
	program *tea.Program
	wake    chan struct{} // something has changed
	over    chan struct{} // the program has ended
	err     error         // how, once over is closed

	mu       sync.Mutex // guards what follows
	run      *view.Run
	saying   map[string]*said
	answered map[string]bool // questions whose answer is under way, by id
	stops    int
	closed   bool
	trouble  string
}

// BoardOptions are what a board needs to know.
type BoardOptions struct {
	In        io.Reader
	Out       io.Writer
	Color     bool
	Now       func() time.Time
	Attached  bool                           // another process drives the run: Ctrl-C only leaves
	Env       []string                       // the environment, for what the terminal can do; nil = this process's
	Interrupt func(times int)                // Ctrl-C was pressed, for the n-th time: the terminal makes no signal of it
	Pause     func(on bool)                  // p was pressed
	Answer    func(id string, ok bool) error // a or d was pressed; nil = nobody can answer
	Size      func() (w, h int)              // the terminal's size when Out is none; nil = ask Out
	Drawn     func(frame string)             // sees each frame; nil = nobody does
}

// said is the end of what a running task has said.
type said struct {
	tail  []byte
	fresh bool // the line in tail has ended: the next text begins another
	at    time.Time
	usage swarm.Usage
}

const (
	tailBytes = 512
	frameTime = time.Second / 30
)

// NewBoard shows a run from where its fold stands. The fold belongs to the board from then on.
func NewBoard(run *view.Run, o BoardOptions) *Board {
	b := &Board{o: o, run: run, saying: map[string]*said{}, answered: map[string]bool{}, wake: make(chan struct{}, 1), over: make(chan struct{})}
	profile := colorprofile.Ascii
	if o.Color {
		profile = colorprofile.ANSI
	}
	options := []tea.ProgramOption{tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile), tea.WithFPS(60)}
	if o.Env != nil {
		options = append(options, tea.WithEnvironment(o.Env))
	}
	if o.Size != nil {
		options = append(options, tea.WithWindowSize(o.Size()))
	}
	b.program = tea.NewProgram(&model{board: b}, options...)
	go func() {
		defer close(b.over)
		_, b.err = b.program.Run()
	}()
	go b.pump()
	return b
}

// pump has the board redrawn when something has changed. After a frame it rests for ten times as long as the frame took, so
// that a large plan does not keep a core busy with being drawn.
func (b *Board) pump() {
	for {
		select {
		case <-b.over:
			return
		case <-b.wake:
		}
		begun := time.Now()
		drawn := make(chan struct{})
		b.program.Send(redraw{drawn})
		select {
		case <-drawn:
		case <-b.over:
			return
		}
		rest := time.NewTimer(max(frameTime, 10*time.Since(begun)))
		select {
		case <-rest.C:
		case <-b.over:
			rest.Stop()
			return
		}
	}
}

func (b *Board) changed() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Event shows the next event of the run's log.
func (b *Board) Event(e *swarm.Event) {
	b.mu.Lock()
	if err := b.run.Apply(e); err != nil {
		b.trouble = err.Error()
	}
	if e.Kind == swarm.TurnEnded { // not when one starts: what it says may come before the event that tells of its start
		delete(b.saying, e.Task)
	}
	b.mu.Unlock()
	b.changed()
}

// Delta shows what a task's turn does while it runs.
func (b *Board) Delta(task string, d swarm.Delta) {
	b.mu.Lock()
	s := b.saying[task]
	if s == nil {
		s = &said{}
		b.saying[task] = s
	}
	switch d.Kind {
	case swarm.DeltaText, swarm.DeltaThinking, swarm.DeltaStderr:
		s.add(d.Text)
		s.at = b.o.Now()
	case swarm.DeltaTool:
		if d.Tool != nil {
			s.add("\n" + ToolLine(d.Tool) + "\n")
			s.at = b.o.Now()
		}
	case swarm.DeltaUsage:
		s.usage = d.Usage
	}
	b.mu.Unlock()
	b.changed()
}

// add keeps the last line that is not empty.
func (s *said) add(text string) {
	if len(text) > 8*tailBytes { // of much text the end is enough
		text = text[len(text)-8*tailBytes:]
	}
	for len(text) > 0 {
		end := 0
		for end < len(text) && text[end] != '\n' && text[end] != '\r' {
			end++
		}
		if end > 0 {
			if s.fresh {
				s.tail, s.fresh = s.tail[:0], false
			}
			room := max(0, tailBytes-len(s.tail))
			s.tail = append(s.tail, text[:min(end, room)]...)
		}
		if end == len(text) {
			return
		}
		s.fresh = true
		text = text[end+1:]
	}
}

// frame is what there is to show now.
func (b *Board) frame(width, height int) Frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := Frame{Picture: b.run.Picture(), Saying: make(map[string]Saying, len(b.saying)), Now: b.o.Now(), Width: width, Height: height,
		Color: b.o.Color, Stops: b.stops, Over: b.closed, Trouble: b.trouble, Attached: b.o.Attached,
		Answers: b.o.Answer != nil, Answered: maps.Clone(b.answered)}
	for name, s := range b.saying {
		f.Saying[name] = Saying{Line: string(s.tail), At: s.at, Usage: s.usage}
	}
	return f
}

// Close draws the last picture, gives the terminal back and returns what went wrong with it.
func (b *Board) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.program.Quit()
	<-b.over
	return b.err
}

// interrupt passes Ctrl-C on.
func (b *Board) interrupt() {
	b.mu.Lock()
	b.stops++
	n := b.stops
	b.mu.Unlock()
	if b.o.Interrupt != nil {
		go b.o.Interrupt(n)
	}
}

// pause passes on the wish to pause, or to go on when the run is paused.
func (b *Board) pause() {
	b.mu.Lock()
	on := b.run.Status == swarm.Running
	b.mu.Unlock()
	if b.o.Pause != nil {
		go b.o.Pause(on)
	}
}

// A model is the board as bubbletea sees it.
type model struct {
	board         *Board
	width, height int
	drawn         string
	asked         string    // the question that is shown
	since         time.Time // and since when
}

type (
	redraw struct{ done chan struct{} }
	second struct{}
)

func everySecond() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return second{} }) }

func (m *model) Init() tea.Cmd { return everySecond() }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch msg.String() {
		case "ctrl+c":
			m.board.interrupt()
		case "p":
			m.board.pause()
		case "a", "d":
			m.answer(msg.String() == "a")
		default:
			return m, nil
		}
	case redraw:
		defer close(msg.done)
	case second:
		next = everySecond()
	case tea.QuitMsg:
	default:
		return m, nil
	}
	m.draw()
	return m, next
}

func (m *model) draw() {
	if m.width == 0 {
		return
	}
	f := m.board.frame(m.width, m.height)
	q, _ := f.question()
	m.asks(q.ID)
	m.drawn = f.Draw()
	if m.board.o.Drawn != nil {
		m.board.o.Drawn(m.drawn)
	}
}

func (m *model) View() tea.View {
	m.board.mu.Lock()
	closed := m.board.closed
	m.board.mu.Unlock()
	if closed {
		m.draw()
		return tea.NewView(m.drawn + "\n") // the line on which the terminal is given back
	}
	return tea.NewView(m.drawn)
}
