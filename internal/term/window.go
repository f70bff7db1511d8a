package term

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// A Terminal is where a screen is drawn and where its keys come from.
type Terminal struct {
	In    io.Reader
	Out   io.Writer
	Color bool
	Now   func() time.Time
	Env   []string           // the environment, for the terminal's capabilities; nil = this process's
	Size  func() (w, h int)  // the size if Out is not a terminal; nil = ask Out
	Drawn func(frame string) // sees each frame; may be nil
}

// A Drawer draws the content of a [Window]. The window calls it from one goroutine.
type Drawer interface {
	// Update takes a key, a paste, [Changed], [InputEnded] or a message of the drawer's own.
	Update(msg tea.Msg) tea.Cmd
	// Draw draws the frame for a terminal of this size. The window calls it after every message,
	// and once a second.
	Draw(width, height int) tea.View
}

type (
	// Changed tells a drawer that the content has changed.
	Changed struct{}
	// InputEnded tells a drawer that no more keys will come.
	InputEnded struct{}

	redraw struct{ done chan struct{} }
	second struct{}
)

// ErrClosed says that a window was closed before it was run.
var ErrClosed = errors.New("the window was closed before it was run")

// A Window draws on a terminal while many goroutines feed its content. Feeding never waits for the
// terminal: changes that come faster than they can be drawn are drawn together.
type Window struct {
	drawer  Drawer
	drawn   func(frame string)
	program *tea.Program
	inline  bool
	rest    time.Duration // between two frames

	changed chan struct{} // has a value if something has changed
	urgent  chan struct{} // has a value if it is to be seen at once
	done    chan struct{} // closed when the program has ended and the terminal is given back
	err     error         // of drawing; set before done is closed

	mu            sync.Mutex
	begun, closed bool

	// The fields below belong to the program's goroutine.
	width, height int
	view          tea.View
	tallest       int  // the most lines of a frame since the size changed
	mayShrink     bool // the last frame may be shorter
}

// urgentRest is the time between two frames when a change is urgent.
const urgentRest = 2 * time.Millisecond

// NewWindow makes a window. It takes the whole screen and draws 60 times a second. An inline window
// stands below what is in the terminal already, stays there when it is closed, and draws 30 times a
// second.
func NewWindow(d Drawer, t Terminal, inline bool) *Window {
	w := &Window{drawer: d, drawn: t.Drawn, inline: inline, view: tea.View{AltScreen: !inline},
		changed: make(chan struct{}, 1), urgent: make(chan struct{}, 1), done: make(chan struct{})}
	frames := 60
	if inline {
		frames = 30
	}
	w.rest = time.Second / time.Duration(frames)
	profile := colorprofile.Ascii
	if t.Color {
		profile = colorprofile.ANSI
	}
	options := []tea.ProgramOption{tea.WithInput(w.input(t.In)), tea.WithOutput(t.Out), tea.WithoutSignalHandler(),
		tea.WithColorProfile(profile), tea.WithFPS(2 * frames)}
	if t.Env != nil {
		options = append(options, tea.WithEnvironment(t.Env))
	}
	if t.Size != nil {
		options = append(options, tea.WithWindowSize(t.Size()))
	}
	w.program = tea.NewProgram(w, options...)
	return w
}

// Run draws and reads keys until the drawer quits or the window is closed.
func (w *Window) Run() error {
	if !w.begin() {
		return ErrClosed
	}
	return w.run()
}

// begin says that Close has something to end from now on. It is false if the window is closed.
func (w *Window) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = !w.closed
	return w.begun
}

// run draws until the program ends. begin must have been called.
func (w *Window) run() error {
	defer close(w.done)
	go w.redrawLoop()
	_, w.err = w.program.Run()
	return w.err
}

// Close ends the program, waits until the terminal is given back, and returns the error of drawing.
// The last frame of an inline window stays.
func (w *Window) Close() error {
	w.mu.Lock()
	w.closed = true
	begun := w.begun
	w.mu.Unlock()
	if !begun {
		return nil
	}
	if w.inline {
		w.program.Send(redraw{make(chan struct{})})
		w.program.Send(tea.ClearScreen()) // see draw
	}
	w.program.Quit()
	<-w.done
	return w.err
}

// Send gives the drawer a message. It may wait for the program to begin.
func (w *Window) Send(msg tea.Msg) { w.program.Send(msg) }

// Change has the window redrawn: with the next frame, or at once if it is urgent.
func (w *Window) Change(urgent bool) {
	if urgent {
		nudge(w.urgent)
	} else {
		nudge(w.changed)
	}
}

// nudge sets a flag that a channel of size 1 holds. A flag that is set already stays set.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Restore is for a defer in every function that feeds the window. It gives the terminal back before
// a panic goes on.
func (w *Window) Restore() {
	if r := recover(); r != nil {
		w.program.Kill()
		panic(r)
	}
}

// redrawLoop redraws the window when something has changed. After a frame it rests for ten times as
// long as the frame took, so that drawing a large plan does not keep a core busy. The program
// writes the changes at its next frame.
func (w *Window) redrawLoop() {
	defer w.Restore()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-w.changed:
		case <-w.urgent:
		}
		begun := time.Now()
		drawn := make(chan struct{})
		w.program.Send(redraw{drawn})
		select {
		case <-drawn:
		case <-w.done:
			return
		}
		took := time.Since(begun)
		// Urgent changes wait only for this short rest. It lets several of them share a frame.
		rest.Reset(urgentRest)
		select {
		case <-w.done:
			return
		case <-rest.C:
		}
		rest.Reset(max(w.rest, 10*took) - urgentRest)
		select {
		case <-w.done:
			return
		case <-rest.C:
		case <-w.urgent:
			nudge(w.urgent) // for the next round of the loop
		}
	}
}

// everySecond redraws elapsed times.
func everySecond() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return second{} }) }

// Init implements tea.Model.
func (w *Window) Init() tea.Cmd { return everySecond() }

// Update implements tea.Model.
func (w *Window) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		w.width, w.height, w.tallest = msg.Width, msg.Height, 0
	case redraw:
		defer close(msg.done)
		next = w.drawer.Update(Changed{})
	case second:
		next = everySecond()
	default:
		w.mayShrink = w.mayShrink || w.inline && msg == tea.ClearScreen()
		next = w.drawer.Update(msg)
	}
	w.draw()
	return w, next
}

// draw draws a frame. It keeps an inline window as tall as it has been, with empty lines at its
// end. bubbletea loses the line of the cursor when a frame has fewer lines than the one before, and
// leaves the top of the old frame above the new one. Only the last frame is shorter: Close sends
// ClearScreen first, which moves the cursor to the top. The frame before it must therefore be the
// same frame with the empty lines.
func (w *Window) draw() {
	if w.width == 0 {
		return
	}
	w.view = w.drawer.Draw(w.width, w.height)
	if w.drawn != nil {
		w.drawn(w.view.Content)
	}
	if w.inline && !w.mayShrink {
		lines := strings.Count(w.view.Content, "\n") + 1
		w.tallest = max(w.tallest, lines)
		w.view.Content += strings.Repeat("\n", w.tallest-lines)
	}
}

// View implements tea.Model.
func (w *Window) View() tea.View { return w.view }

// input reads keys. It also reports the end of the input, which the program does not.
func (w *Window) input(in io.Reader) io.Reader {
	last := eofReader{in, func() { go w.program.Send(InputEnded{}) }}
	if f, ok := in.(*os.File); ok {
		return eofFile{f, last}
	}
	return last
}

// An eofReader calls ended at the end of the input.
type eofReader struct {
	in    io.Reader
	ended func()
}

func (r eofReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	if errors.Is(err, io.EOF) {
		r.ended()
	}
	return n, err
}

// An eofFile stays an *os.File, so that bubbletea finds its terminal.
type eofFile struct {
	*os.File
	reader eofReader
}

func (f eofFile) Read(b []byte) (int, error) { return f.reader.Read(b) }
