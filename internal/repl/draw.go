package repl

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A frame is everything that a screen shows at one moment. Drawing it is a pure function of it.
type frame struct {
	width, height int
	now           time.Time
	paint         term.Paint
	team          Team
	title         swarm.RunID // the session's id
	started       time.Time
	usage         swarm.Usage
	status        swarm.Status
	agents        []agentState
	color         func(agent string) term.Style

	transcript *transcript
	bottom     *place // nil = the end

	input    *editor
	preview  Preview
	queue    []string    // lines typed ahead
	choices  []Candidate // for the word at the cursor
	choice   int         // the candidate that is inserted; -1 = none yet
	warning  string      // what the user has to know before the next key, or ""
	busy     bool        // a line is in the foreground
	stopping bool        // and is being cancelled
}

const (
	prompt    = "> "
	maxNames  = 16 // the widest column of names
	maxQueued = 3  // lines typed ahead that are shown
)

// A drawing is a frame as text, with the position of the cursor.
type drawing struct {
	text string
	x, y int
}

// A layout has the parts of a frame from top to bottom. The transcript gets the rest.
type layout struct {
	head, panel, queue, input, hint []string
	rows                            int // of the transcript
	row, x                          int // of the cursor, in the input
}

// layOut lays the frame out from the bottom: first the text being typed, then the agents, and the
// rest is the transcript. The heights depend on the team and on the typed text, never on output, so
// nothing jumps.
func (f *frame) layOut() (l layout) {
	f.width, f.height = max(f.width, 10), max(f.height, 1)
	l.rows = f.height
	take := func(rows []string, least int) []string {
		rows = rows[:max(0, min(len(rows), l.rows-least))]
		l.rows -= len(rows)
		return rows
	}
	l.input, l.row, l.x = f.inputRows()
	l.input = take(l.input, 0)
	l.row = min(l.row, len(l.input)-1)
	l.hint = take([]string{f.hint()}, 1)
	l.queue = take(f.queueRows(), 4)
	panel := f.panelRows(min(len(f.agents), max(1, (f.height-5)/3)))
	ruled := f.height >= minRows
	if ruled {
		panel = slices.Concat([]string{f.rule(f.moreBelow())}, panel, []string{f.rule("")})
	}
	l.panel = take(panel, 3)
	if ruled {
		l.head = take([]string{f.head()}, 1)
	}
	return l
}

// draw draws the frame.
func (f *frame) draw() drawing {
	l := f.layOut()
	rows := f.transcript.draw(f.page(l.rows))
	for len(rows) < l.rows {
		rows = append(rows, "")
	}
	above := slices.Concat(l.head, rows, l.panel, l.queue)
	return drawing{strings.Join(slices.Concat(above, l.input, l.hint), "\n"), l.x, len(above) + l.row}
}

// page returns the view of the transcript with so many rows.
func (f *frame) page(rows int) page {
	names := 2
	for _, a := range f.agents {
		names = max(names, min(maxNames, len(a.Name)))
	}
	return page{columns: f.width, rows: rows, names: names, bottom: f.bottom, color: f.color, paint: f.paint}
}

// head draws the first line: the session, its time and its cost.
func (f *frame) head() string {
	h := term.Head{Name: "swarm", ID: f.title, Usage: f.usage}
	if f.status != swarm.Running {
		h.Status = f.status
	}
	if !f.started.IsZero() {
		h.Elapsed = term.Duration(f.now.Sub(f.started).Truncate(time.Second))
	}
	return h.Line(f.paint, f.width)
}

// rule draws a horizontal line, with a word in it.
func (f *frame) rule(word string) string {
	if word == "" {
		return f.paint.With(term.Dim, strings.Repeat("─", f.width))
	}
	word = " " + word + " "
	return f.paint.With(
		term.Dim, strings.Repeat("─", max(0, f.width-ansi.StringWidth(word)-2))) + f.paint.With(
		term.Yellow,
		word,
	) + f.paint.With(
		term.Dim, "──")
}

// moreBelow says that the transcript goes on below.
func (f *frame) moreBelow() string {
	switch n := f.transcript.below(f.bottom); {
	case f.bottom == nil:
		return ""
	case n == 0:
		return "more below · PgDn"
	case n == 1:
		return "1 line below · PgDn"
	default:
		return fmt.Sprintf("%d lines below · PgDn", n)
	}
}

// panelRows draws the agents. They are in the team's order if all have room. Otherwise the most
// important ones are shown, and the number of others.
func (f *frame) panelRows(room int) []string {
	agents := f.agents
	more := ""
	if len(agents) > room {
		agents = slices.Clone(agents)
		slices.SortStableFunc(
			agents,
			func(a, b agentState) int { return view.Telling(b.Status) - view.Telling(a.Status) },
		)
		var words []string
		for _, a := range agents[room-1:] {
			word, _, _ := strings.Cut(a.Words, " ")
			words = append(words, strings.TrimSuffix(word, ":"))
		}
		more = term.More(words)
		agents = agents[:room-1]
	}
	var rows []string
	for i := range agents {
		rows = append(rows, f.agentRow(&agents[i]))
	}
	if more != "" {
		rows = append(rows, "  "+f.paint.With(term.Dim, term.Fit(more, f.width-2)))
	}
	return rows
}

// Columns of an agent's row.
const (
	leadColumn = 4  // the mark
	minStatus  = 24 // with less room than this, a status gets all of it
	noteColumn = 26 // the task
	timeColumn = 8
	costColumn = 7
)

// agentRow draws the state of an agent: its status, and to the right its task, the time and the
// cost.
func (f *frame) agentRow(a *agentState) string {
	about, took := a.about(f.now)
	status := "@" + a.Name + ": " + a.Words
	room, right := f.width-leadColumn, ""
	if room-timeColumn-costColumn >= minStatus {
		room -= timeColumn + costColumn
		right = f.paint.With(term.Dim, term.PadLeft(took, timeColumn)) + term.PadLeft(term.Tokens(a.Usage), costColumn)
	}
	if room-noteColumn >= max(minStatus, ansi.StringWidth(status)) { // the status matters more than the task
		room -= noteColumn
		right = f.paint.With(term.Dim, term.PadLeft(term.Fit(about, noteColumn-1), noteColumn)) + right
	}
	status = term.Fit(status, room)
	name, words, _ := strings.Cut(status, ":")
	lead := "  "
	if a.Default {
		lead = f.paint.With(term.Cyan, "▸ ")
	}
	lead += f.paint.Status(a.Status, term.Sign(a.Status)) + " " + f.paint.With(f.color(a.Name), name)
	if len(name) < len(status) {
		lead += ":" + f.paint.Status(a.Status, words)
	}
	return strings.TrimRight(lead+strings.Repeat(" ", max(0, room-ansi.StringWidth(status)))+right, " ")
}

// about returns the task of an agent's row, and how long it has taken.
func (a *agentState) about(now time.Time) (about, took string) {
	switch {
	case a.Task != "":
		about = a.Task
		if a.Queue > 0 {
			about += fmt.Sprintf(" +%d queued", a.Queue)
		}
		if !a.Since.IsZero() {
			took = term.Duration(max(0, now.Sub(a.Since)).Truncate(time.Second))
		}
	case a.Last.task != "":
		about = a.Last.task + " " + string(a.Last.status)
		if a.Last.took > 0 {
			took = term.Duration(a.Last.took)
		}
	}
	return about, took
}

// queueRows draws the lines typed ahead.
func (f *frame) queueRows() []string {
	var rows []string
	for i, text := range f.queue {
		if i == maxQueued-1 && len(f.queue) > maxQueued {
			rows = append(rows, f.paint.With(term.Dim, fmt.Sprintf("  %d more are next", len(f.queue)-i)))
			break
		}
		rows = append(rows, "  "+f.paint.With(term.Dim, term.Fit("next: "+text, f.width-2)))
	}
	return rows
}

// inputRows draws the text being typed in its colours, as much of it around the cursor as has room.
// It also returns the position of the cursor.
func (f *frame) inputRows() (rows []string, row, x int) {
	columns := max(1, f.width-len(prompt)-1)
	spans, row, x := f.input.rows(columns)
	room := max(1, min(len(spans), f.height/3))
	from := max(0, row-room+1)
	for i := from; i < from+room; i++ {
		lead := "  "
		if i == 0 {
			lead = f.paint.With(term.Bold, prompt)
		}
		rows = append(rows, lead+f.coloredRow(spans[i]))
	}
	return rows, row - from, x + len(prompt)
}

// coloredRow colours a row of the text by its tokens.
func (f *frame) coloredRow(s span) string {
	var b strings.Builder
	at := s.start
	for _, t := range f.preview.Tokens {
		start, end := max(t.Start, at), min(t.End, s.end)
		if start >= end {
			continue
		}
		b.WriteString(safeText(f.input.text[at:start]))
		b.WriteString(f.token(t.Kind, safeText(f.input.text[start:end])))
		at = end
	}
	b.WriteString(safeText(f.input.text[at:s.end]))
	return b.String()
}

// token colours a token. Without colours, references are underlined and errors are reversed.
func (f *frame) token(k TokenKind, text string) string {
	switch {
	case bool(f.paint):
		return f.paint.With(k.style(), text)
	case k == ReferenceToken:
		return term.Paint(true).With(term.Underline, text)
	case k == WrongToken:
		return term.Paint(true).With(term.Reverse, text)
	}
	return text
}

// hint draws the last row: a warning, the candidates, what Enter would do, or what can be typed.
func (f *frame) hint() string {
	columns := f.width - 2
	line := func(s term.Style, text string) string { return "  " + f.paint.With(s, term.Fit(text, columns)) }
	switch {
	case f.warning != "":
		return line(term.Yellow, f.warning)
	case len(f.choices) > 1:
		return "  " + f.choiceRow(columns)
	case f.input.text != "" && f.preview.Problem != nil:
		return line(term.Yellow, f.preview.Problem.Msg)
	case f.input.text != "":
		return line(term.Dim, f.preview.Plan)
	case f.stopping:
		return line(term.Dim, "cancelling · Ctrl-C again ends it at once")
	case f.busy:
		return line(
			term.Dim,
			"Ctrl-C cancels the line · what you type now comes after it · a line that ends with & does not wait",
		)
	}
	to := ""
	if f.team.Default != "" {
		to = "text goes to @" + f.team.Default + " · "
	}
	return line(term.Dim, to+"@agent · $agent is its output · -> then · & in the background · Tab · /help")
}

// choiceRow draws the candidates for the word at the cursor, around the one that is inserted.
func (f *frame) choiceRow(columns int) string {
	from := 0
	for used, i := 0, 0; i <= f.choice; i++ {
		used += ansi.StringWidth(term.OneLine(f.choices[i].Text)) + 2
		if used > columns {
			from, used = i, 0
		}
	}
	var b strings.Builder
	for i := from; i < len(f.choices); i++ {
		text := strings.TrimSpace(term.OneLine(f.choices[i].Text))
		if f.choices[i].Note != "" && i == f.choice {
			text += " " + term.OneLine(f.choices[i].Note)
		}
		if i == f.choice {
			b.WriteString(term.Paint(true).With(term.Reverse, text))
		} else {
			b.WriteString(f.paint.With(term.Dim, text))
		}
		b.WriteString("  ")
	}
	return ansi.Truncate(strings.TrimRight(b.String(), " "), columns, "…")
}
