package term

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/view"
)

// A boardMode is what a board shows below its first line.
type boardMode int

const (
	showsTasks boardMode = iota
	showsTask            // one task: its wait and its words
	showsHelp
	takesMessage // a person writes to an agent
)

// A selection is what a person has chosen on a board. Drawing it is a pure function of it.
type selection struct {
	Mode   boardMode
	Chosen string // the task that keys are about; "" = none
	Letter letter // the message that is being written
	Words  string // the last words of the chosen task
}

// A letter is a message of a person to an agent. What it answers is settled when the person begins to
// write: a question that comes later must not get an answer that was meant for another.
type letter struct {
	Agent    string // who gets it
	Question string // the id of the question that it answers; "" = none
	Typed    string
}

// keptWords is how many bytes of its last words are kept of a task, and speakers of how many tasks. A run
// may have 100,000 tasks.
const (
	keptWords = 8 << 10
	speakers  = 64
)

// A wordBook keeps the last words of the tasks that spoke last.
type wordBook struct {
	words map[string][]byte
	order []string // by who spoke last, the last one at the end
}

// add appends to the words of a task.
func (b *wordBook) add(task, text string) {
	if b.words == nil {
		b.words = map[string][]byte{}
	}
	if n := len(b.order); n == 0 || b.order[n-1] != task {
		b.order = append(slices.DeleteFunc(b.order, func(name string) bool { return name == task }), task)
	}
	if len(b.order) > speakers {
		delete(b.words, b.order[0])
		b.order = b.order[1:]
	}
	words := append(b.words[task], text...)
	if over := len(words) - keptWords; over > 0 {
		words = append(words[:0], words[over:]...)
	}
	b.words[task] = words
}

// key handles a key of the board. Ctrl-C works whatever the board shows.
func (d *boardDrawer) key(key tea.KeyPressMsg) {
	name := key.String()
	switch {
	case name == "ctrl+c", name == "ctrl+alt+c": // Esc just before it looks like Alt
		d.board.interrupt()
	case d.Mode == takesMessage:
		d.edit(key)
	case name == "esc":
		if d.Mode == showsTasks {
			d.Chosen = ""
		}
		d.Mode = showsTasks
	case name == "?":
		d.Mode = showsHelp
	case name == "up", name == "k":
		d.move(-1)
	case name == "down", name == "j":
		d.move(1)
	case name == "enter" && d.Mode == showsTasks:
		if d.Chosen == "" {
			d.move(1)
		}
		if d.Chosen != "" {
			d.Mode = showsTask
		}
	case name == "enter":
		d.Mode = showsTasks
	case name == "m" && d.board.o.Send != nil:
		if to := d.board.letterTo(d.Chosen); to.Agent != "" {
			d.Mode, d.Letter = takesMessage, to
		}
	case name == "p":
		d.board.pause()
	case name == "a", name == "d":
		d.answer(name == "a")
	}
}

// edit handles a key while a message is written.
func (d *boardDrawer) edit(key tea.KeyPressMsg) {
	switch key.String() {
	case "esc":
		d.Mode = showsTasks
	case "enter":
		if strings.TrimSpace(d.Letter.Typed) != "" {
			d.board.send(d.Letter)
		}
		d.Mode = showsTasks
	case "backspace":
		if typed := []rune(d.Letter.Typed); len(typed) > 0 {
			d.Letter.Typed = string(typed[:len(typed)-1])
		}
	case "ctrl+u":
		d.Letter.Typed = ""
	default:
		d.Letter.Typed += key.Text
	}
}

// move chooses the next task, or the one before.
func (d *boardDrawer) move(by int) {
	names := d.board.taskNames()
	if len(names) == 0 {
		return
	}
	at := slices.Index(names, d.Chosen)
	switch {
	case at < 0 && by < 0:
		at = len(names) - 1
	case at < 0:
		at = 0
	default:
		at = (at + by + len(names)) % len(names)
	}
	d.Chosen = names[at]
	if d.Mode == showsHelp {
		d.Mode = showsTasks
	}
}

// taskNames returns the tasks in the order of the board.
func (b *Board) taskNames() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.run.Len() {
		names = append(names, b.run.At(i).Name)
	}
	return names
}

// letterTo begins a message to the agent of a task: the answer to its first question, which is the one
// that the board shows, or a new message. Without a task, it is for the first agent that asks a person,
// or else for the first.
func (b *Board) letterTo(task string) letter {
	f := b.frame(80, 24)
	if i := slices.IndexFunc(f.Tasks, func(t view.Task) bool { return t.Name == task }); i >= 0 {
		f.Tasks = f.Tasks[i : i+1]
	}
	if t, w := f.personsReply(); t != nil {
		return letter{Agent: t.Agent, Question: w.Reason}
	}
	if len(f.Tasks) > 0 {
		return letter{Agent: f.Tasks[0].Agent}
	}
	return letter{}
}

// send passes a message on.
func (b *Board) send(l letter) {
	go func() {
		note := ""
		if err := b.o.Send(l.Agent, l.Question, strings.TrimSpace(l.Typed)); err != nil {
			note = "the message did not reach the run: " + swarm.Errorf("", "%w", err).Msg
			if hint := swarm.HintOf(err); hint != "" {
				note += " (" + hint + ")"
			}
		}
		b.mu.Lock()
		b.trouble = note
		b.mu.Unlock()
		b.window.Change(true)
	}()
}

// chosenLines draws what a person has chosen to see in the place of the tasks, in at most so many lines.
func (f Frame) chosenLines(room int) []string {
	p := Paint(f.Color)
	switch f.Mode {
	case showsHelp:
		return f.helpLines()
	case takesMessage:
		text := "to @" + f.Letter.Agent + ": " + OneLine(f.Letter.Typed+"▏")
		if f.Letter.Question != "" {
			text = "answer " + text
		}
		lines := strings.Split(ansi.Hardwrap(text, f.Width, true), "\n")
		return lines[max(0, len(lines)-room):]
	}
	i := slices.IndexFunc(f.Tasks, func(t view.Task) bool { return t.Name == f.Chosen })
	if i < 0 {
		return nil
	}
	t := f.Tasks[i]
	row := boardRow{t, &f, t.Name}
	lines := []string{row.draw(f.layout([]boardRow{row}))}
	if why := view.Waiting(t.Waits); why != "" {
		for _, line := range wrapWords("waits for "+OneLine(why), f.Width) {
			lines = append(lines, p.With(Yellow, line))
		}
	}
	var said []string
	for line := range strings.Lines(Escape(f.Words)) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")
		if line == "" {
			continue
		}
		for _, part := range strings.Split(ansi.Hardwrap(line, f.Width-2, true), "\n") {
			said = append(said, p.With(Dim, "| ")+part)
		}
	}
	if len(said) == 0 {
		said = []string{p.With(Dim, "it has said nothing yet")}
	}
	if most := max(1, room-len(lines)); len(said) > most {
		said = said[len(said)-most:]
	}
	lines = append(lines, said...)
	return lines[:min(len(lines), max(0, room))]
}

// helpLines explain all keys. They fit 40 columns.
func (f Frame) helpLines() []string {
	stop := "Ctrl-C  stop the run; twice kills it"
	if f.Attached {
		stop = "Ctrl-C  leave; the run goes on"
	}
	lines := []string{
		"↑ ↓     choose a task",
		"Enter   look into it: words and waits",
		"m       write to its agent, or answer it",
		"a, d    allow or deny what is asked",
		"p       pause the run, or go on",
		stop,
		"Esc     back",
	}
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, f.Width, "…")
	}
	return lines
}
