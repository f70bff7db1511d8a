package term

import (
	"cmp"
	"errors"
	"io"
	"os"
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

// A Scroller is the drawer of an inline window that also prints lines above its frame. They stay in the
// terminal.
type Scroller interface {
	Drawer
	// TakeLines returns the lines that are new, each with its newline, for a terminal of this width; 0 =
	// it is not known.
	TakeLines(width int) string
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
	inline  *inlineRenderer // nil = bubbletea draws on the whole screen
	rest    time.Duration   // between two frames

	changed chan struct{} // has a value if something has changed
	urgent  chan struct{} // has a value if it is to be seen at once
	done    chan struct{} // closed when the program has ended and the terminal is given back
	err     error         // of drawing; set before done is closed

	mu            sync.Mutex
	begun, closed bool

	// The fields below belong to the program's goroutine.
	width, height int
	view          tea.View
	failed        error // of drawing an inline frame
}

// urgentRest is the time between two frames when a change is urgent.
const urgentRest = 2 * time.Millisecond

// NewWindow makes a window. It takes the whole screen and draws 60 times a second.
func NewWindow(d Drawer, t Terminal) *Window { return newWindow(d, t, nil) }

// NewInlineWindow makes a window that stands below what is in the terminal already, and disappears when
// it is closed. It draws 30 times a second.
func NewInlineWindow(d Scroller, t Terminal) *Window {
	return newWindow(d, t, &inlineRenderer{out: t.Out, above: d.TakeLines})
}

func newWindow(d Drawer, t Terminal, inline *inlineRenderer) *Window {
	w := &Window{drawer: d, drawn: t.Drawn, inline: inline, view: tea.View{AltScreen: inline == nil},
		changed: make(chan struct{}, 1), urgent: make(chan struct{}, 1), done: make(chan struct{})}
	// bubbletea looks for changes at its own rate, and an idle screen pays for that. Below an inline
	// window it draws nothing.
	frames, rate, out := 60, 60, t.Out
	if inline != nil {
		frames, rate, out = 30, 1, mute(t.Out)
	}
	w.rest = time.Second / time.Duration(frames)
	profile := colorprofile.Ascii
	if t.Color {
		profile = colorprofile.ANSI
	}
	options := []tea.ProgramOption{tea.WithInput(w.input(t.In)), tea.WithOutput(out), tea.WithoutSignalHandler(),
		tea.WithColorProfile(profile), tea.WithFPS(rate)}
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
	if w.inline != nil {
		w.err = cmp.Or(w.failed, w.err)
		if err := w.inline.end(w.inline.above(w.width), w.width, w.height); w.err == nil {
			w.err = err
		}
	}
	return w.err
}

// Close ends the program, waits until the terminal is given back, and returns the error of drawing.
func (w *Window) Close() error {
	w.mu.Lock()
	w.closed = true
	begun := w.begun
	w.mu.Unlock()
	if !begun {
		return nil
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
		if w.inline != nil {
			_, _ = io.WriteString(w.inline.out, giveKeys) // the panic says more than its error
		}
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
		w.width, w.height = msg.Width, msg.Height
	case redraw:
		defer close(msg.done)
		next = w.drawer.Update(Changed{})
	case second:
		next = everySecond()
	default:
		next = w.drawer.Update(msg)
	}
	if err := w.draw(); err != nil && w.failed == nil {
		w.failed = err
		next = tea.Quit
	}
	return w, next
}

// draw draws a frame.
func (w *Window) draw() (err error) {
	if w.width == 0 {
		return nil
	}
	w.view = w.drawer.Draw(w.width, w.height)
	if w.drawn != nil {
		w.drawn(w.view.Content)
	}
	if w.inline != nil {
		err = w.inline.draw(w.inline.above(w.width), w.view.Content, w.width, w.height)
		w.view = tea.View{}
	}
	return err
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
