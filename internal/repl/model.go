package repl

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm/internal/term"
)

// A model is what the window of a screen draws: what is typed, and what becomes of it. It belongs to the window's goroutine.
type model struct {
	screen        *Screen
	width, height int // as it was drawn last
	team          Team
	input         editor
	past          past
	preview       Preview
	changes       int // the standing that the preview was made for
	choices       []Candidate
	choice        int
	bottom        *place

	queue      []string
	foreground foreground
	asked      string // what the user has to know before the next key
	leaving    Left   // how they want to leave, if they ask again
	left       Left
}

type (
	interrupt struct{}
	entered   struct {
		text   string
		inTurn bool
		Entered
		err error
	}
)

func newModel(s *Screen) *model {
	m := &model{screen: s, past: newPast(s.o.History), choice: -1, left: ByClose, input: editor{column: -1}}
	m.meet()
	m.look()
	return m
}

// meet asks who is in the team, and gives the colours out.
func (m *model) meet() {
	m.team = m.screen.session.Team()
	m.screen.hold(func() {
		for _, name := range m.team.Agents {
			m.screen.colors.Of(name)
		}
	})
}

// look asks what Enter would make of what is typed.
func (m *model) look() {
	m.screen.hold(func() { m.changes = m.screen.changes })
	m.preview = Preview{}
	switch n := len(m.input.text); {
	case n > maxPreview:
		m.preview.Plan = "what this does is said when it is entered"
	case n > 0:
		m.preview = m.screen.session.Preview(m.input.text)
	}
}

// Update takes a key, a paste, or what became of a text.
func (m *model) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.press(msg)
	case tea.PasteMsg:
		m.edited(m.input.insert(msg.Content))
	case interrupt:
		return m.interrupt()
	case term.InputEnded:
		m.left = ByEnd
		return tea.Quit
	case term.Changed:
		return m.catchUp()
	case entered:
		return m.answer(msg)
	}
	return nil
}

// catchUp looks whether the line in the foreground has ended, and whether the plan of what is typed is still the same.
func (m *model) catchUp() tea.Cmd {
	var changed bool
	m.screen.hold(func() {
		changed = m.changes != m.screen.changes
		m.foreground.catchUp(m.screen.roster)
	})
	if changed {
		m.look()
	}
	return m.next()
}

// press does what a key says.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch name {
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		if m.input.text == "" {
			return m.leave(ByEnd, "Ctrl-D")
		}
		name = "delete"
	}
	m.calm()
	switch name {
	case "tab", "shift+tab":
		m.complete(name == "shift+tab")
		return nil
	case "esc":
		m.choices, m.choice, m.bottom = nil, -1, nil
		return nil
	case "pgup", "pgdown":
		m.scroll(name == "pgup")
		return nil
	case "ctrl+l":
		return tea.ClearScreen
	case "enter":
		return m.enter()
	case "alt+enter", "shift+enter", "ctrl+j", "ctrl+enter":
		m.edited(m.input.insert("\n"))
	case "up", "ctrl+p":
		m.vertical(-1)
	case "down", "ctrl+n":
		m.vertical(1)
	default:
		if text := key.Key().Text; text != "" {
			m.edited(m.input.insert(text))
		} else if m.input.key(name) {
			m.edited(true)
		}
	}
	return nil
}

// edited follows a change of what is typed.
func (m *model) edited(fits bool) {
	m.calm()
	if !fits {
		m.asked = fmt.Sprintf("a line can have %d bytes: that was not put in", maxEntry)
	}
	m.choices, m.choice = nil, -1
	m.look()
}

// calm forgets what was asked.
func (m *model) calm() { m.asked, m.leaving = "", "" }

// columns is how wide what is typed can be.
func (m *model) columns() int { return max(1, m.width-len(prompt)-1) }

// vertical moves between the rows of what is typed, and from its ends to what was typed before. From nothing it goes back to what
// was typed ahead, which can be changed then.
func (m *model) vertical(by int) {
	if m.input.vertical(by, m.columns()) {
		return
	}
	if n := len(m.queue); by < 0 && n > 0 && m.input.text == "" {
		m.input.set(m.queue[n-1])
		m.queue = m.queue[:n-1]
	} else if text, ok := m.past.step(by, m.input.text); ok {
		m.input.set(text)
	}
	m.edited(true)
}

// scroll moves the transcript by a page.
func (m *model) scroll(up bool) {
	now := m.screen.o.Now()
	m.screen.hold(func() {
		f := m.frame(now)
		page := f.page(f.lay().rows)
		rows := max(1, page.rows/2)
		if up {
			m.bottom = m.screen.transcript.up(page, m.bottom, rows)
		} else {
			m.bottom = m.screen.transcript.down(page, m.bottom, rows)
		}
	})
}

// complete puts in what the word at the cursor must become, and then, key by key, what it can.
func (m *model) complete(back bool) {
	if len(m.choices) > 1 {
		by := 1
		if back {
			by = -1
			if m.choice < 0 {
				m.choice = 0
			}
		}
		old := m.choices[max(0, m.choice)]
		end := old.End
		if m.choice >= 0 {
			end = old.Start + len(old.Text)
		}
		m.choice = (m.choice + by + len(m.choices)) % len(m.choices)
		m.input.replace(old.Start, end, m.choices[m.choice].Text)
		m.look()
		return
	}
	found := m.screen.session.Complete(m.input.text, m.input.cursor)
	if len(found) == 0 {
		return
	}
	common := found[0].Text
	for _, c := range found[1:] {
		common = common[:same(common, c.Text)]
	}
	start, end := found[0].Start, found[0].End
	if start < 0 || end < start || end > len(m.input.text) {
		return
	}
	if len(found) == 1 || len(common) > end-start {
		m.input.replace(start, end, common)
		end = start + len(common)
	}
	m.choices, m.choice = nil, -1
	if len(found) > 1 {
		for i := range found {
			found[i].Start, found[i].End = start, end
		}
		m.choices = found
	}
	m.look()
}

// same is how many bytes two texts begin with alike.
func same(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// enter takes what is typed: now, or when the line in the foreground has ended.
func (m *model) enter() tea.Cmd {
	text := m.input.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	atOnce := m.preview.AtOnce || m.preview.Problem != nil && text[0] == '/' // a command that is none need not wait to be told so
	m.input.set("")
	m.bottom = nil
	m.edited(true)
	if m.past.add(text) && m.screen.o.Remember != nil {
		m.screen.o.Remember(text)
	}
	if atOnce {
		return m.send(text, false)
	}
	m.queue = append(m.queue, text)
	return m.next()
}

// next takes what was typed ahead, when nothing is in the foreground any more.
func (m *model) next() tea.Cmd {
	if m.foreground.busy() || len(m.queue) == 0 {
		return nil
	}
	text := m.queue[0]
	m.queue = m.queue[1:]
	m.foreground.enter()
	return m.send(text, true)
}

// send shows a text and gives it to the session, beside the keys: its disk may be slow.
func (m *model) send(text string, inTurn bool) tea.Cmd {
	m.screen.hold(func() {
		m.screen.transcript.addTyped(text)
	})
	session := m.screen.session
	return func() tea.Msg {
		done, err := session.Enter(text)
		return entered{text, inTurn, done, err}
	}
}

// answer shows what became of a text.
func (m *model) answer(e entered) tea.Cmd {
	m.screen.hold(func() {
		t := &m.screen.transcript
		if e.err != nil {
			m.refuse(t, e.text, e.err)
		}
		for _, n := range e.Notices {
			t.addAll(note, n)
		}
		if e.Answer != "" {
			t.addAll(answer, e.Answer)
		}
	})
	m.meet()
	var cut tea.Cmd
	if e.inTurn {
		cut = m.cut(m.foreground.answer(e.Entered, e.err))
	}
	m.look()
	if e.Quit {
		m.left = ByCommand
		return tea.Quit
	}
	return tea.Batch(cut, m.catchUp())
}

// refuse shows why a text was refused, and where. The text stands right above if nobody has said anything since.
func (m *model) refuse(t *transcript, text string, err error) {
	r, placed := refused(err)
	columns := max(10, m.width-2)
	last := len(t.lines) - 1
	if placed {
		if t.lines[last].kind == typed && t.lines[last].text == show(text) && width(text) < columns {
			t.add(caret, "", caretUnder(text, r.Start, r.End))
		} else {
			part, carets := pointAt(text, r.Start, r.End, columns)
			t.add(answer, "", part)
			t.add(caret, "", carets)
		}
	}
	t.addAll(problem, r.Msg)
	if r.Hint != "" {
		t.addAll(hint, r.Hint)
	}
}

// interrupt is Ctrl-C: it cancels the line in the foreground; with none it throws away what is typed; with nothing typed it
// leaves, when it is asked twice.
func (m *model) interrupt() tea.Cmd {
	switch {
	case m.foreground.busy():
		m.calm()
		return m.cut(m.foreground.interrupt())
	case m.input.text != "":
		m.input.set("")
		m.edited(true)
		return nil
	}
	return m.leave(ByInterrupt, "Ctrl-C")
}

// cut passes on how often the line in the foreground was interrupted; 0 = there is nothing to pass on.
func (m *model) cut(n int) tea.Cmd {
	if n == 0 {
		return nil
	}
	session := m.screen.session
	return func() tea.Msg {
		session.Interrupt(n)
		return nil
	}
}

// leave leaves, at the second time if something is lost by it.
func (m *model) leave(by Left, key string) tea.Cmd {
	open := 0
	m.screen.hold(func() { open = len(m.screen.roster.open) })
	again := key + " again leaves"
	switch {
	case open == 1:
		again += ": 1 task has not ended, and goes on when the session is resumed"
	case open > 1:
		again += fmt.Sprintf(": %d tasks have not ended, and go on when the session is resumed", open)
	case by == ByEnd:
		m.left = by
		return tea.Quit
	}
	if m.leaving != by {
		m.asked, m.leaving = again, by
		return nil
	}
	m.left = by
	return tea.Quit
}

// frame is what there is to show now. The screen's lock is held, and until the frame is drawn.
func (m *model) frame(now time.Time) *frame {
	s := m.screen
	return &frame{
		width: m.width, height: m.height, now: now, paint: term.Paint(s.o.Color), team: m.team,
		title: s.roster.run.ID, started: s.roster.run.Started, usage: s.roster.usage(), status: s.roster.run.Status,
		agents: s.roster.states(m.team), color: s.colors.Of, transcript: &s.transcript, bottom: m.bottom,
		input: &m.input, preview: m.preview, queue: m.queue, choices: m.choices, choice: m.choice, asked: m.asked,
		busy: m.foreground.busy(), stopping: m.foreground.stops > 0,
	}
}

// Draw is the screen as it stands now.
func (m *model) Draw(width, height int) tea.View {
	m.width, m.height = width, height
	now := m.screen.o.Now()
	var d drawing
	m.screen.hold(func() { d = m.frame(now).draw() })
	v := tea.NewView(d.text)
	v.AltScreen = true
	v.Cursor = tea.NewCursor(d.x, d.y)
	return v
}
