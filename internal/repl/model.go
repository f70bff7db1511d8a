package repl

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm/internal/term"
)

// A model is the content of a screen's window: the line being typed, and what becomes of it. The
// window's goroutine owns it. What it shares with the feeders of the screen is in Screen, under its
// lock.
type model struct {
	screen        *Screen
	width, height int // of the last frame
	team          Team
	input         editor
	history       history
	preview       Preview
	changes       int // Screen.changes when the preview was made
	choices       []Candidate
	choice        int
	bottom        *place

	queue      []string
	foreground foreground
	warning    string // what the user has to know before the next key
	leaving    Left   // how the user leaves if they repeat the key
	left       Left
}

type (
	interrupt   struct{}
	enterResult struct {
		text   string
		inTurn bool
		Entered
		err error
	}
)

func newModel(s *Screen) *model {
	m := &model{screen: s, history: newHistory(s.o.History), choice: -1, left: ByClose, input: editor{column: -1}}
	m.refreshTeam()
	m.refreshPreview()
	return m
}

// refreshTeam asks for the team, and gives its agents their colours.
func (m *model) refreshTeam() {
	m.team = m.screen.session.Team()
	m.screen.locked(func() {
		for _, name := range m.team.Agents {
			m.screen.colors.Of(name)
		}
	})
}

// refreshPreview asks what Enter would do with the text.
func (m *model) refreshPreview() {
	m.screen.locked(func() { m.changes = m.screen.changes })
	m.preview = Preview{}
	switch n := len(m.input.text); {
	case n > maxPreview:
		m.preview.Plan = "what this does is said when it is entered"
	case n > 0:
		m.preview = m.screen.session.Preview(m.input.text)
	}
}

// Update takes a key, a paste, or the result of a text.
func (m *model) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.handleKey(msg)
	case tea.PasteMsg:
		m.afterEdit(m.input.insert(msg.Content))
	case interrupt:
		return m.interrupt()
	case term.InputEnded:
		m.left = ByEnd
		return tea.Quit
	case term.Changed:
		return m.catchUp()
	case enterResult:
		return m.showResult(msg)
	}
	return nil
}

// catchUp checks whether the line in the foreground has ended, and whether the preview is out of
// date.
func (m *model) catchUp() tea.Cmd {
	var changed bool
	m.screen.locked(func() {
		changed = m.changes != m.screen.changes
		m.foreground.catchUp(m.screen.roster)
	})
	if changed {
		m.refreshPreview()
	}
	return m.enterNext()
}

// handleKey does what a key says.
func (m *model) handleKey(key tea.KeyPressMsg) tea.Cmd {
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
	m.clearWarning()
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
		m.afterEdit(m.input.insert("\n"))
	case "up", "ctrl+p":
		m.moveVertical(-1)
	case "down", "ctrl+n":
		m.moveVertical(1)
	default:
		if text := key.Key().Text; text != "" {
			m.afterEdit(m.input.insert(text))
		} else if m.input.key(name) {
			m.afterEdit(true)
		}
	}
	return nil
}

// afterEdit follows a change of the text.
func (m *model) afterEdit(fits bool) {
	m.clearWarning()
	if !fits {
		m.warning = fmt.Sprintf("a line can have %d bytes: that was not put in", maxEntry)
	}
	m.choices, m.choice = nil, -1
	m.refreshPreview()
}

// clearWarning forgets the warning and the request to leave.
func (m *model) clearWarning() { m.warning, m.leaving = "", "" }

// columns returns the width for the text being typed.
func (m *model) columns() int { return max(1, m.width-len(prompt)-1) }

// moveVertical moves between the rows of the text, and from its ends into the history. From an
// empty text it takes back the last queued line, to change it.
func (m *model) moveVertical(by int) {
	if m.input.vertical(by, m.columns()) {
		return
	}
	if n := len(m.queue); by < 0 && n > 0 && m.input.text == "" {
		m.input.set(m.queue[n-1])
		m.queue = m.queue[:n-1]
	} else if text, ok := m.history.step(by, m.input.text); ok {
		m.input.set(text)
	}
	m.afterEdit(true)
}

// scroll moves the transcript by half a page.
func (m *model) scroll(up bool) {
	now := m.screen.o.Now()
	m.screen.locked(func() {
		f := m.frame(now)
		page := f.page(f.layOut().rows)
		rows := max(1, page.rows/2)
		if up {
			m.bottom = m.screen.transcript.up(page, m.bottom, rows)
		} else {
			m.bottom = m.screen.transcript.down(page, m.bottom, rows)
		}
	})
}

// complete inserts the common part of all candidates, and then, key by key, each candidate.
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
		m.refreshPreview()
		return
	}
	found := m.screen.session.Complete(m.input.text, m.input.cursor)
	if len(found) == 0 {
		return
	}
	common := found[0].Text
	for _, c := range found[1:] {
		common = common[:commonPrefix(common, c.Text)]
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
	m.refreshPreview()
}

// commonPrefix returns the length of the common beginning of two texts.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// enter takes the text: now, or when the line in the foreground has ended.
func (m *model) enter() tea.Cmd {
	text := m.input.text
	if strings.TrimSpace(text) == "" {
		return nil
	}
	// An unknown command is refused at once, not when the line in the foreground has ended.
	atOnce := m.preview.AtOnce || m.preview.Problem != nil && text[0] == '/'
	m.input.set("")
	m.bottom = nil
	m.afterEdit(true)
	if m.history.add(text) && m.screen.o.Remember != nil {
		m.screen.o.Remember(text)
	}
	if atOnce {
		return m.enterText(text, false)
	}
	m.queue = append(m.queue, text)
	return m.enterNext()
}

// enterNext enters the next queued text, if no line is in the foreground.
func (m *model) enterNext() tea.Cmd {
	if m.foreground.busy() || len(m.queue) == 0 {
		return nil
	}
	text := m.queue[0]
	m.queue = m.queue[1:]
	m.foreground.enter()
	return m.enterText(text, true)
}

// enterText shows a text and gives it to the session. That happens in another goroutine, because
// the session waits for the disk.
func (m *model) enterText(text string, inTurn bool) tea.Cmd {
	m.screen.locked(func() {
		m.screen.transcript.addTyped(text)
	})
	session := m.screen.session
	return func() tea.Msg {
		done, err := session.Enter(text)
		return enterResult{text, inTurn, done, err}
	}
}

// showResult shows what became of a text.
func (m *model) showResult(e enterResult) tea.Cmd {
	m.screen.locked(func() {
		t := &m.screen.transcript
		if e.err != nil {
			m.showRefusal(t, e.text, e.err)
		}
		for _, n := range e.Notices {
			t.addAll(note, n)
		}
		if e.Answer != "" {
			t.addAll(answer, e.Answer)
		}
	})
	m.refreshTeam()
	var cut tea.Cmd
	if e.inTurn {
		cut = m.interruptSession(m.foreground.answer(e.Entered, e.err))
	}
	m.refreshPreview()
	if e.Quit {
		m.left = ByCommand
		return tea.Quit
	}
	return tea.Batch(cut, m.catchUp())
}

// showRefusal shows why a text was refused, and where. If the text is the last line of the
// transcript, the carets stand under it.
func (m *model) showRefusal(t *transcript, text string, err error) {
	r, placed := refused(err)
	columns := max(10, m.width-2)
	last := len(t.lines) - 1
	if placed {
		if t.lines[last].kind == typed && t.lines[last].text == safeText(text) && width(text) < columns {
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

// interrupt is Ctrl-C. It cancels the line in the foreground. Without one it clears the text.
// Without a text it leaves, the second time.
func (m *model) interrupt() tea.Cmd {
	switch {
	case m.foreground.busy():
		m.clearWarning()
		return m.interruptSession(m.foreground.interrupt())
	case m.input.text != "":
		m.input.set("")
		m.afterEdit(true)
		return nil
	}
	return m.leave(ByInterrupt, "Ctrl-C")
}

// interruptSession passes on how often the line in the foreground was interrupted; 0 = nothing to
// pass on.
func (m *model) interruptSession(n int) tea.Cmd {
	if n == 0 {
		return nil
	}
	session := m.screen.session
	return func() tea.Msg {
		session.Interrupt(n)
		return nil
	}
}

// leave leaves. If tasks are open it does so only the second time.
func (m *model) leave(by Left, key string) tea.Cmd {
	open := 0
	m.screen.locked(func() { open = len(m.screen.roster.open) })
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
		m.warning, m.leaving = again, by
		return nil
	}
	m.left = by
	return tea.Quit
}

// frame makes a frame. The caller holds the screen's lock until the frame is drawn.
func (m *model) frame(now time.Time) *frame {
	s := m.screen
	return &frame{
		width: m.width, height: m.height, now: now, paint: term.Paint(s.o.Color), team: m.team,
		title: s.roster.run.ID, started: s.roster.run.Started, usage: s.roster.usage(), status: s.roster.run.Status,
		agents: s.roster.states(m.team), color: s.colors.Of, transcript: &s.transcript, bottom: m.bottom,
		input: &m.input, preview: m.preview, queue: m.queue, choices: m.choices, choice: m.choice, warning: m.warning,
		busy: m.foreground.busy(), stopping: m.foreground.stops > 0,
	}
}

// Draw draws the screen.
func (m *model) Draw(width, height int) tea.View {
	m.width, m.height = width, height
	now := m.screen.o.Now()
	var d drawing
	m.screen.locked(func() { d = m.frame(now).draw() })
	v := tea.NewView(d.text)
	v.AltScreen = true
	v.Cursor = tea.NewCursor(d.x, d.y)
	return v
}
