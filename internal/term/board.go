package term

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm"
	"swarm/internal/view"
)

// A Board draws a run as a table that is redrawn in place, below what is in the terminal already. What
// agents say and what becomes of their tasks scrolls above it, as [Lines] print it. The table
// disappears when the run is over.
type Board struct {
	*boardRun
	o      BoardOptions
	window *Window

	mu       sync.Mutex      // guards the fields below, and all runs on the board
	answered map[string]bool // approvals whose answer is on its way, by id
	stops    int
	trouble  string
	above    scrollback
}

// A scrollback holds the lines that are to be printed above a board. A terminal that is too slow for
// them must not stop the agents, so the oldest are left out if there are too many.
type scrollback struct {
	text []byte
	left int // how many lines were left out
}

const maxScrollback = 256 << 10 // bytes between two frames

func (s *scrollback) Write(lines []byte) (int, error) {
	s.text = append(s.text, lines...)
	if over := len(s.text) - maxScrollback; over > 0 {
		if end := bytes.IndexByte(s.text[over:], '\n'); end >= 0 {
			over += end + 1
		}
		s.left += bytes.Count(s.text[:over], []byte("\n"))
		s.text = append(s.text[:0], s.text[over:]...)
	}
	return len(lines), nil
}

// take returns the lines since the last call.
func (s *scrollback) take(id swarm.RunID) string {
	text := string(s.text)
	if s.left > 0 {
		text = fmt.Sprintf("… %s dropped, the terminal was too slow: swarm logs %s\n", Plural(s.left, "line"), OneLine(string(id))) + text
	}
	s.text, s.left = s.text[:0], 0
	return text
}

// A boardRun is a run on a board: the one that it shows, or a swarm that does one of its tasks.
type boardRun struct {
	board    *Board
	run      *view.Run
	lines    *Lines // above the board
	spoken   wordBook
	saying   map[string]*lastLine
	children map[string]*boardRun // by task
}

func newBoardRun(b *Board, run *view.Run, lines *Lines) *boardRun {
	return &boardRun{board: b, run: run, lines: lines, saying: map[string]*lastLine{}, children: map[string]*boardRun{}}
}

// Child shows the agents of a swarm below the task that it does.
func (r *boardRun) Child(task string, run *view.Run) Screen {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	child := newBoardRun(r.board, run, r.lines.child(task, run))
	r.children[task] = child
	return child
}

// Close does nothing: the rows of a swarm go with its task's turn.
func (r *boardRun) Close() error { return nil }

// BoardOptions configure a board.
type BoardOptions struct {
	Terminal
	Attached  bool                           // another process drives the run: Ctrl-C only leaves
	Interrupt func(times int)                // Ctrl-C was pressed, for the n-th time; the terminal sends no signal
	Pause     func(on bool)                  // p was pressed
	Answer    func(id string, ok bool) error // a or d was pressed; nil = keys answer nothing

	// Send sends a message that a person has written to an agent: the answer to a question, or a new
	// one if question is "". nil = nobody writes.
	Send func(agent, question, text string) error
}

// A lastLine is the last line that a running task has said.
type lastLine struct {
	tail  []byte
	fresh bool // the line in tail has ended: the next text begins another
	at    time.Time
	usage swarm.Usage
}

const tailBytes = 512

// NewBoard shows a run from where its fold stands. The board owns the fold from then on.
func NewBoard(run *view.Run, o BoardOptions) *Board {
	b := &Board{o: o, answered: map[string]bool{}}
	lines := linesOf(&linesOutput{w: &b.above, print: newRunPrinter(o.Color)}, "", run)
	lines.hidesWaits = true
	b.boardRun = newBoardRun(b, run, lines)
	b.window = NewInlineWindow(&boardDrawer{board: b}, o.Terminal)
	b.window.begin()                   // before Close can be called
	go func() { _ = b.window.run() }() // Close returns the error
	return b
}

// Event shows the next event of the run's log.
func (r *boardRun) Event(e *swarm.Event) {
	b := r.board
	defer b.window.Restore()
	b.mu.Lock()
	err := r.run.Apply(e)
	if err != nil {
		b.trouble = err.Error()
	}
	r.lines.show(e, err)
	if e.Kind == swarm.DeskChanged {
		_ = swarm.UseBody(e, func(s swarm.DeskStatus) { // Apply has reported an event that cannot be read
			r.lineOf(e.Task).add("\n" + view.DescribeProgress(s) + "\n")
		})
	}
	if e.Kind == swarm.TurnEnded {
		delete(r.saying, e.Task)
		delete(r.children, e.Task)
	}
	b.mu.Unlock()
	b.window.Change(false)
}

// Delta shows what a task's turn does while it runs.
func (r *boardRun) Delta(task string, d swarm.Delta) {
	b := r.board
	defer b.window.Restore()
	b.mu.Lock()
	r.lines.say(task, d)
	s := r.lineOf(task)
	switch d.Kind {
	case swarm.DeltaText, swarm.DeltaThinking, swarm.DeltaStderr:
		s.add(d.Text)
		r.spoken.add(task, d.Text)
		s.at = b.o.Now()
	case swarm.DeltaTool:
		if d.Tool != nil {
			s.add("\n" + ToolLine(d.Tool) + "\n")
			r.spoken.add(task, "\n> "+ToolLine(d.Tool)+"\n")
			s.at = b.o.Now()
		}
	case swarm.DeltaUsage:
		s.usage = d.Usage
	}
	b.mu.Unlock()
	b.window.Change(false)
}

// lineOf returns the last line of a task.
func (r *boardRun) lineOf(task string) *lastLine {
	s := r.saying[task]
	if s == nil {
		s = &lastLine{}
		r.saying[task] = s
	}
	return s
}

// add keeps the last line that is not empty.
func (s *lastLine) add(text string) {
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

// frame makes a frame of the current state.
func (b *Board) frame(width, height int) Frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.boardRun.frame()
	f.Width, f.Height = width, height
	f.Stops, f.Trouble = b.stops, b.trouble
	f.Attached, f.Answers, f.Answered = b.o.Attached, b.o.Answer != nil, maps.Clone(b.answered)
	return f
}

// frame makes a frame of the run, and of the swarms that do its tasks.
func (r *boardRun) frame() Frame {
	f := Frame{Picture: r.run.Picture(), Saying: make(map[string]Saying, len(r.saying)), Now: r.board.o.Now(), Color: r.board.o.Color}
	for name, s := range r.saying {
		f.Saying[name] = Saying{Line: string(s.tail), At: s.at, Usage: s.usage}
	}
	for task, child := range r.children {
		if f.Children == nil {
			f.Children = map[string]Frame{}
		}
		f.Children[task] = child.frame()
	}
	return f
}

// Close prints the unfinished lines, removes the table, gives the terminal back and returns the error of
// drawing.
func (b *Board) Close() error {
	b.mu.Lock()
	b.lines.print.EndAll()
	b.lines.flush()
	b.mu.Unlock()
	return b.window.Close()
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

// pause asks to pause the run, or to continue it if it is paused.
func (b *Board) pause() {
	b.mu.Lock()
	on := b.run.Status == swarm.Running
	b.mu.Unlock()
	if b.o.Pause != nil {
		go b.o.Pause(on)
	}
}

// A boardDrawer draws a board and handles its keys. The window's goroutine owns it.
type boardDrawer struct {
	board *Board
	selection
	asked string    // the id of the question that is shown
	since time.Time // since when it is shown
}

// Update handles a key, or text that is pasted into a message.
func (d *boardDrawer) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		d.key(msg)
	case tea.PasteMsg:
		if d.Mode == takesMessage {
			d.Letter.Typed += strings.Join(strings.Fields(msg.Content), " ")
		}
	}
	return nil
}

// Draw draws the board. It leaves a third of a terminal to the lines above it.
func (d *boardDrawer) Draw(width, height int) tea.View {
	f := d.board.frame(width, min(height, max(12, height*2/3)))
	f.selection = d.selection
	if d.Mode == showsTask {
		f.Words = d.board.wordsOf(d.Chosen)
	}
	q, _ := f.question()
	d.noteQuestion(q.ID)
	return tea.NewView(f.Draw())
}

// wordsOf returns the last words of a task.
func (b *Board) wordsOf(task string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.spoken.words[task])
}

// TakeLines returns what is to be printed above the board. A line that is too long goes on below its
// first word, right of the column of names.
func (d *boardDrawer) TakeLines(width int) string {
	d.board.mu.Lock()
	defer d.board.mu.Unlock()
	indent := d.board.lines.print.column + len(barText)
	return hangingLines(d.board.above.take(d.board.run.ID), width, min(indent, width/3))
}
