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

// A Terminal is what a screen is drawn on, and where its keys come from.
type Terminal struct {
	In    io.Reader
	Out   io.Writer
	Color bool
	Now   func() time.Time
	Env   []string           // the environment, for what the terminal can do; nil = this process's
	Size  func() (w, h int)  // the terminal's size when Out is none; nil = ask Out
	Drawn func(frame string) // sees each frame; nil = nobody does
}

// A Drawer is what a [Window] shows. The window calls it from one goroutine.
type Drawer interface {
	// Update takes a key, a paste, [Changed], [InputEnded] or a message of the drawer's own.
	Update(msg tea.Msg) tea.Cmd
	// Draw is the frame for a terminal of this size. It is asked for after every message, and once a second.
	Draw(width, height int) tea.View
}

type (
	// Changed tells a drawer that what it shows has changed.
	Changed struct{}
	// InputEnded tells a drawer that no key will come any more.
	InputEnded struct{}

	redraw struct{ done chan struct{} }
	second struct{}
)

// ErrClosed says that a window was closed before it was run.
var ErrClosed = errors.New("the window was closed before it was run")

// A Window draws on a terminal while many feed what it shows. Feeding it never waits for the terminal: what comes faster than it
// can be drawn is drawn together.
type Window struct {
	drawer  Drawer
	drawn   func(frame string)
	program *tea.Program
	inline  bool
	rest    time.Duration // between two frames

	soon chan struct{} // something has changed
	now  chan struct{} // and is to be seen at once
	over chan struct{} // the program has ended, and the terminal is given back
	err  error         // what went wrong, once it is over

	mu            sync.Mutex
	begun, closed bool

	// What follows belongs to the program's goroutine.
	width, height int
	view          tea.View
	tallest       int  // the frame with the most lines since the size changed
	settled       bool // the last frame may have fewer
}

// breath is the time between two frames when something is to be seen at once.
const breath = 2 * time.Millisecond

// NewWindow makes a window that takes the whole screen and draws 60 times a second, or, inline, one that stands below what is in
// the terminal already, stays there when it is closed, and draws 30 times a second.
func NewWindow(d Drawer, t Terminal, inline bool) *Window {
	w := &Window{drawer: d, drawn: t.Drawn, inline: inline, view: tea.View{AltScreen: !inline},
		soon: make(chan struct{}, 1), now: make(chan struct{}, 1), over: make(chan struct{})}
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

// begin says that Close has something to end from now on.
func (w *Window) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = !w.closed
	return w.begun
}

func (w *Window) run() error {
	defer close(w.over)
	go w.pump()
	_, w.err = w.program.Run()
	return w.err
}

// Close ends the program, waits until the terminal is given back, and says what went wrong with it. The last frame of an inline
// window stays there.
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
	<-w.over
	return w.err
}

// Send gives the drawer a message. It may wait for the program to begin.
func (w *Window) Send(msg tea.Msg) { w.program.Send(msg) }

// Change has the window redrawn: with the next frame, or at once if it is urgent.
func (w *Window) Change(urgent bool) {
	if urgent {
		nudge(w.now)
	} else {
		nudge(w.soon)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Restore is deferred by whoever feeds the window: it gives the terminal back before a panic goes on.
func (w *Window) Restore() {
	if r := recover(); r != nil {
		w.program.Kill()
		panic(r)
	}
}

// pump has the window redrawn when something has changed. After a frame it rests for ten times as long as the frame took, so
// that a large plan does not keep a core busy with being drawn. The program writes what has changed at its next frame.
func (w *Window) pump() {
	defer w.Restore()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-w.over:
			return
		case <-w.soon:
		case <-w.now:
		}
		begun := time.Now()
		drawn := make(chan struct{})
		w.program.Send(redraw{drawn})
		select {
		case <-drawn:
		case <-w.over:
			return
		}
		took := time.Since(begun)
		rest.Reset(breath)
		select {
		case <-w.over:
			return
		case <-rest.C:
		}
		rest.Reset(max(w.rest, 10*took) - breath)
		select {
		case <-w.over:
			return
		case <-rest.C:
		case <-w.now:
			nudge(w.now)
		}
	}
}

func everySecond() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return second{} }) }

// Init is for the program.
func (w *Window) Init() tea.Cmd { return everySecond() }

// Update is for the program.
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
		w.settled = w.settled || w.inline && msg == tea.ClearScreen()
		next = w.drawer.Update(msg)
	}
	w.draw()
	return w, next
}

// draw keeps an inline window as tall as it has been, with empty lines at its end. bubbletea forgets in which line the cursor
// stands when a frame has fewer lines than the one before, and leaves the top of the old frame above the new one. Only the last
// frame gets fewer lines: Close has the cursor moved to the top first, which is what ClearScreen does, so the frame before it
// must be the same one with the empty lines.
func (w *Window) draw() {
	if w.width == 0 {
		return
	}
	w.view = w.drawer.Draw(w.width, w.height)
	if w.drawn != nil {
		w.drawn(w.view.Content)
	}
	if w.inline && !w.settled {
		lines := strings.Count(w.view.Content, "\n") + 1
		w.tallest = max(w.tallest, lines)
		w.view.Content += strings.Repeat("\n", w.tallest-lines)
	}
}

// View is for the program.
func (w *Window) View() tea.View { return w.view }

// input is where keys come from. It tells when there are no more, which the program does not.
func (w *Window) input(in io.Reader) io.Reader {
	last := lastReader{in, func() { go w.program.Send(InputEnded{}) }}
	if f, ok := in.(*os.File); ok {
		return lastFile{f, last}
	}
	return last
}

type lastReader struct {
	in    io.Reader
	ended func()
}

func (r lastReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	if errors.Is(err, io.EOF) {
		r.ended()
	}
	return n, err
}

// A lastFile stays a file, so that its terminal can be found.
type lastFile struct {
	*os.File
	last lastReader
}

func (f lastFile) Read(b []byte) (int, error) { return f.last.Read(b) }
