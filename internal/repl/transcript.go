package repl

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/term"
)

// A transcript is what was typed, said and reported, line by line. The oldest lines are dropped;
// the run's log keeps everything. A line is wrapped once for each width, and a line that grows is
// wrapped on from its last row. So drawing costs as much as is visible, however much is said.
type transcript struct {
	lines []entry
	first int // the number of lines[0]; numbers are never reused
	bytes int
}

// An entry is a line of a transcript.
type entry struct {
	kind    kind
	who     string // the agent, or ""
	text    string // safe to print, without its newline
	rows    []int  // the beginnings of its rows
	columns int    // at this width
}

// A kind is the kind of a line.
type kind int

const (
	said      kind = iota // by an agent
	onStderr              // on its standard error
	usedTool              // a tool, by an agent
	completed             // the end of an agent's task
	failed
	cancelled
	typed     // by the user
	typedMore // its further lines
	caret     // points at something in the line above
	problem   // why a text was refused
	hint      // what to do about it
	note      // something that the user should know
	answer    // of a command
)

const (
	maxLines = 5000 // of a transcript
	maxBytes = 4 << 20
	maxLine  = 4 << 10 // of a line; a longer one is several
)

// add appends a line, and returns its number.
func (t *transcript) add(k kind, who, text string) int {
	t.lines = append(t.lines, entry{kind: k, who: who, text: text})
	t.bytes += len(text)
	t.drop()
	return t.first + len(t.lines) - 1
}

// addAll appends a text, made safe to print, line by line.
func (t *transcript) addAll(k kind, text string) {
	var s term.LineSplitter
	tell := func(part string, _ bool) { t.add(k, "", part) }
	s.Add(strings.TrimRight(text, "\n"), tell)
	s.End(tell)
}

// addTyped appends what the user typed.
func (t *transcript) addTyped(text string) {
	if len(t.lines) > 0 {
		t.add(answer, "", "")
	}
	kind := typed
	for line := range strings.SplitSeq(text, "\n") {
		t.add(kind, "", safeText(line))
		kind = typedMore
	}
}

// grow adds to a line, and says whether it could: a line that was dropped or is full cannot grow.
func (t *transcript) grow(number int, text string) bool {
	i := number - t.first
	if i < 0 || i >= len(t.lines) || len(t.lines[i].text) >= maxLine {
		return false
	}
	e := &t.lines[i]
	e.text += text
	t.bytes += len(text)
	if e.columns > 0 {
		e.rows = wrap(e.text, e.rows, e.columns, true)
	}
	t.drop()
	return true
}

// drop removes the oldest lines beyond the limits. Numbers of lines stay valid, because first
// grows.
func (t *transcript) drop() {
	n := 0
	for len(t.lines)-n > maxLines || t.bytes > maxBytes && len(t.lines)-n > 1 {
		t.bytes -= len(t.lines[n].text)
		t.lines[n] = entry{}
		n++
	}
	t.lines, t.first = t.lines[n:], t.first+n
}

// end returns the number after the last line.
func (t *transcript) end() int { return t.first + len(t.lines) }

// wrapTo wraps the line for a width.
func (e *entry) wrapTo(columns int) {
	if e.columns != columns {
		e.rows, e.columns = wrap(e.text, nil, columns, true), columns
	}
}

// row returns the i-th row of a wrapped line.
func (e *entry) row(i int) string {
	end := len(e.text)
	if i+1 < len(e.rows) {
		end = e.rows[i+1]
	}
	return safeText(strings.TrimRight(e.text[e.rows[i]:end], " "))
}

// A place is a row of a transcript.
type place struct{ line, row int }

// A page is a view of a transcript.
type page struct {
	columns, rows int
	names         int // the width of the column of names
	bottom        *place
	color         func(agent string) term.Style
	paint         term.Paint
}

// margin returns the column at which a line's text begins.
func (p page) margin(k kind) int {
	if k <= cancelled {
		return p.names + 3
	}
	return 2
}

// wrapTo wraps a line for the page.
func (p page) wrapTo(e *entry) { e.wrapTo(max(1, p.columns-p.margin(e.kind))) }

// draw draws the last rows of the transcript, or those up to the page's bottom.
func (t *transcript) draw(p page) []string {
	rows := make([]string, p.rows)
	n := p.rows
	line, row := t.end()-1, -1
	if p.bottom != nil {
		line, row = p.bottom.line, p.bottom.row
	}
	for ; line >= t.first && n > 0; line-- {
		e := &t.lines[line-t.first]
		p.wrapTo(e)
		if row < 0 || row >= len(e.rows) {
			row = len(e.rows) - 1
		}
		for ; row >= 0 && n > 0; row-- {
			n--
			rows[n] = p.paintRow(e, row, row == 0 && t.showsName(line) || n == 0)
		}
		row = -1
	}
	return rows[n:]
}

// showsName says whether a line shows its agent: only the first of several lines of the same agent
// does.
func (t *transcript) showsName(line int) bool {
	i := line - t.first
	return i == 0 || t.lines[i-1].who != t.lines[i].who
}

// paintRow draws a row of a line.
func (p page) paintRow(e *entry, row int, named bool) string {
	text := e.row(row)
	if e.kind > cancelled {
		return strings.TrimRight(p.paintOther(e.kind, row, text), " ")
	}
	name := ""
	if named {
		name = term.Fit(e.who, p.names)
	}
	who := p.color(e.who)
	lead := p.paint.With(who, term.PadRight(name, p.names)) + " "
	switch e.kind {
	case said:
		lead += p.paint.With(who, "│")
	case onStderr:
		lead += p.paint.With(term.Dim, "┊")
		text = p.paint.With(term.Dim, text)
	case usedTool:
		lead += p.paint.With(term.Dim, "›")
		text = p.paint.With(term.Dim, text)
	case completed, failed, cancelled:
		status := map[kind]swarm.Status{completed: swarm.Completed, failed: swarm.Failed, cancelled: swarm.Cancelled}[e.kind]
		glyph := " "
		if row == 0 {
			glyph = term.Sign(status)
		}
		lead += p.paint.Status(status, glyph)
		text = p.paint.Status(status, text)
	}
	return strings.TrimRight(lead+" "+text, " ")
}

// paintOther draws a row that is not an agent's.
func (p page) paintOther(k kind, row int, text string) string {
	first := func(glyph string) string {
		if row == 0 {
			return glyph + " "
		}
		return "  "
	}
	switch k {
	case typed:
		return p.paint.With(term.Dim, first(">")) + p.paint.With(term.Bold, text)
	case typedMore:
		return "  " + p.paint.With(term.Bold, text)
	case caret:
		return "  " + p.paint.With(term.Wrong, text)
	case problem:
		return p.paint.With(term.Wrong, first("✗")) + p.paint.With(term.Red, text)
	case note:
		return p.paint.With(term.Yellow, first("!")+text)
	case hint:
		return "  " + p.paint.With(term.Dim, text)
	}
	return "  " + text
}

// up returns the place some rows above another one, and down below it; nil is the end.
func (t *transcript) up(p page, from *place, rows int) *place {
	at := place{t.end() - 1, -1}
	if from != nil {
		at = *from
	}
	top := t.top(p)
	for at.line >= t.first {
		e := &t.lines[at.line-t.first]
		p.wrapTo(e)
		if at.row < 0 || at.row >= len(e.rows) {
			at.row = len(e.rows) - 1
		}
		if at.row >= rows {
			at.row -= rows
			break
		}
		rows -= at.row + 1
		at = place{at.line - 1, -1}
	}
	if at.line < top.line || at.line == top.line && at.row < top.row {
		at = top
	}
	return t.down(p, &at, 0)
}

// top returns the highest place for a page's bottom at which the page is full.
func (t *transcript) top(p page) place {
	rows := p.rows
	for i := range t.lines {
		p.wrapTo(&t.lines[i])
		if n := len(t.lines[i].rows); n < rows {
			rows -= n
		} else {
			return place{t.first + i, rows - 1}
		}
	}
	return place{t.end(), 0}
}

// down returns the place some rows below another one. A place at or after the end becomes nil, so
// that the page follows new output again.
func (t *transcript) down(p page, from *place, rows int) *place {
	if from == nil {
		return nil
	}
	at := *from
	for at.line < t.end() {
		if at.line >= t.first {
			e := &t.lines[at.line-t.first]
			p.wrapTo(e)
			if last := len(e.rows) - 1; at.row+rows <= last && (at.line < t.end()-1 || at.row+rows < last) {
				at.row += rows
				return &at
			}
			rows = max(0, rows-(len(e.rows)-at.row))
		}
		at = place{at.line + 1, 0}
	}
	return nil
}

// below returns the number of lines after a place.
func (t *transcript) below(at *place) int {
	if at == nil {
		return 0
	}
	return t.end() - 1 - at.line
}

// caretUnder returns carets that stand under a part of a one-line text.
func caretUnder(text string, start, end int) string {
	start = min(max(0, start), len(text))
	end = min(max(start, end), len(text))
	return strings.Repeat(" ", width(text[:start])) + strings.Repeat("^", max(1, width(text[start:end])))
}

// pointAt returns the part of a text around a place, in one line of at most this many columns, and
// the carets under it.
func pointAt(text string, start, end, columns int) (part, carets string) {
	start = min(max(0, start), len(text))
	end = min(max(start, end), len(text))
	from := strings.LastIndexByte(text[:start], '\n') + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	start, end = start-from, min(end-from, len(line))
	if skip := start - columns/2; skip > 0 && len(line) > columns {
		skip += excerpt.RestOfRune(line[skip:start])
		line, start, end = "…"+line[skip:], start-skip+len("…"), end-skip+len("…")
	}
	carets = caretUnder(line, start, end)
	return ansi.Truncate(safeText(line), columns, "…"), ansi.Truncate(carets, columns, "")
}
