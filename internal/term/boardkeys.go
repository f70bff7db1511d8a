package term

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/plan"
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
	Typed  string // the message that is being written
	Words  string // the last words of the chosen task
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
		if d.Chosen == "" {
			d.Chosen = d.board.receiver()
		}
		d.Mode, d.Typed = takesMessage, ""
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
		if text := strings.TrimSpace(d.Typed); text != "" && d.Chosen != "" {
			d.board.send(d.Chosen, text)
		}
		d.Mode = showsTasks
	case "backspace":
		if typed := []rune(d.Typed); len(typed) > 0 {
			d.Typed = string(typed[:len(typed)-1])
		}
	case "ctrl+u":
		d.Typed = ""
	default:
		d.Typed += key.Text
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

// receiver returns the task whose agent gets a message if none is chosen: one that asks a person, or
// else the first.
func (b *Board) receiver() string {
	f := b.frame(80, 24)
	if t, _ := f.personsReply(); t != nil {
		return t.Name
	}
	if len(f.Tasks) > 0 {
		return f.Tasks[0].Name
	}
	return ""
}

// send passes a message on: the answer to what the agent of a task asks, or a new one.
func (b *Board) send(task, text string) {
	f := b.frame(80, 24)
	i := slices.IndexFunc(f.Tasks, func(t view.Task) bool { return t.Name == task })
	if i < 0 {
		return
	}
	agent, question := f.Tasks[i].Agent, ""
	for _, w := range f.Tasks[i].Waits {
		if w.For == plan.ForReply && w.Question != "" {
			question = w.Reason // the first is the one that the board shows
			break
		}
	}
	go func() {
		note := ""
		if err := b.o.Send(agent, question, text); err != nil {
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
		text := "to @" + f.agentOf(f.Chosen) + ": " + OneLine(f.Typed+"▏")
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

// agentOf returns the agent of a task.
func (f Frame) agentOf(task string) string {
	for i := range f.Tasks {
		if f.Tasks[i].Name == task {
			return f.Tasks[i].Agent
		}
	}
	return task
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
