package repl

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/term"
)

// A transcript is what was typed, said and told, line by line. The oldest lines are dropped: the run's log keeps everything. A line
// is wrapped when it is first seen at a width, and never again; one that grows is wrapped on from its last row. So a screen costs
// what is visible, however much is said.
type transcript struct {
	lines []entry
	first int // the number of lines[0]; numbers are never used again
	bytes int
}

// An entry is a line of a transcript.
type entry struct {
	kind    kind
	who     string // the agent, or ""
	text    string // safe to print, without its end
	rows    []int  // where its rows begin
	columns int    // at this width
}

// A kind says what a line is.
type kind int

const (
	said      kind = iota // by an agent
	muttered              // on its standard error
	used                  // a tool, by an agent
	completed             // how an agent's task ended
	failed                //
	cancelled             //
	typed                 // by the user
	typedOn               // its further lines
	caret                 // points at something in the line above
	problem               // what was refused, and why
	hint                  // what to do about it
	note                  // what the user should know
	answer                // of a command
)

const (
	maxLines = 5000    // of a transcript
	maxBytes = 4 << 20 //
	maxLine  = 4 << 10 // of a line; a longer one goes on in another
)

// add puts a line at the end, and gives its number.
func (t *transcript) add(k kind, who, text string) int {
	t.lines = append(t.lines, entry{kind: k, who: who, text: text})
	t.bytes += len(text)
	t.drop()
	return t.first + len(t.lines) - 1
}

// addAll puts a text at the end, safe to print, line by line.
func (t *transcript) addAll(k kind, text string) {
	var s term.LineSplitter
	tell := func(part string, _ bool) { t.add(k, "", part) }
	s.Add(strings.TrimRight(text, "\n"), tell)
	s.End(tell)
}

// addTyped puts what the user typed at the end.
func (t *transcript) addTyped(text string) {
	if len(t.lines) > 0 {
		t.add(answer, "", "")
	}
	kind := typed
	for line := range strings.SplitSeq(text, "\n") {
		t.add(kind, "", show(line))
		kind = typedOn
	}
}

// grow adds to a line, and says whether it could: one that was dropped or is full cannot.
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

func (t *transcript) drop() {
	n := 0
	for len(t.lines)-n > maxLines || t.bytes > maxBytes && len(t.lines)-n > 1 {
		t.bytes -= len(t.lines[n].text)
		t.lines[n] = entry{}
		n++
	}
	t.lines, t.first = t.lines[n:], t.first+n
}

// end is the place after the last line.
func (t *transcript) end() int { return t.first + len(t.lines) }

// fold has a line wrapped for a width.
func (e *entry) fold(columns int) {
	if e.columns != columns {
		e.rows, e.columns = wrap(e.text, nil, columns, true), columns
	}
}

// row is the i-th row of a line that is wrapped.
func (e *entry) row(i int) string {
	end := len(e.text)
	if i+1 < len(e.rows) {
		end = e.rows[i+1]
	}
	return show(strings.TrimRight(e.text[e.rows[i]:end], " "))
}

// A place is a row of a transcript.
type place struct{ line, row int }

// A page is how a transcript is looked at.
type page struct {
	columns, rows int
	names         int // how wide the column of names is
	bottom        *place
	color         func(agent string) term.Style
	paint         term.Paint
}

// margin is how far from the left a line's text begins.
func (p page) margin(k kind) int {
	if k <= cancelled {
		return p.names + 3
	}
	return 2
}

func (p page) fold(e *entry) { e.fold(max(1, p.columns-p.margin(e.kind))) }

// draw is the last rows of the transcript, or those up to and with the page's bottom.
func (t *transcript) draw(p page) []string {
	rows := make([]string, p.rows)
	n := p.rows
	line, row := t.end()-1, -1
	if p.bottom != nil {
		line, row = p.bottom.line, p.bottom.row
	}
	for ; line >= t.first && n > 0; line-- {
		e := &t.lines[line-t.first]
		p.fold(e)
		if row < 0 || row >= len(e.rows) {
			row = len(e.rows) - 1
		}
		for ; row >= 0 && n > 0; row-- {
			n--
			rows[n] = p.paintRow(e, row, row == 0 && t.named(line) || n == 0)
		}
		row = -1
	}
	return rows[n:]
}

// named says whether a line shows who says it: the first one of several that the same agent says does.
func (t *transcript) named(line int) bool {
	i := line - t.first
	return i == 0 || t.lines[i-1].who != t.lines[i].who
}

func (p page) paintRow(e *entry, row int, named bool) string {
	text := e.row(row)
	if e.kind > cancelled {
		return strings.TrimRight(p.paintTold(e.kind, row, text), " ")
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
	case muttered:
		lead += p.paint.With(term.Dim, "┊")
		text = p.paint.With(term.Dim, text)
	case used:
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

// paintTold is a row that no agent says.
func (p page) paintTold(k kind, row int, text string) string {
	first := func(glyph string) string {
		if row == 0 {
			return glyph + " "
		}
		return "  "
	}
	switch k {
	case typed:
		return p.paint.With(term.Dim, first(">")) + p.paint.With(term.Bold, text)
	case typedOn:
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

// up is the place some rows above another one, and down below it; nil is the end.
func (t *transcript) up(p page, from *place, rows int) *place {
	at := place{t.end() - 1, -1}
	if from != nil {
		at = *from
	}
	top := t.top(p)
	for at.line >= t.first {
		e := &t.lines[at.line-t.first]
		p.fold(e)
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

// top is the highest place that a page's bottom can be at: the page is full then.
func (t *transcript) top(p page) place {
	rows := p.rows
	for i := range t.lines {
		p.fold(&t.lines[i])
		if n := len(t.lines[i].rows); n < rows {
			rows -= n
		} else {
			return place{t.first + i, rows - 1}
		}
	}
	return place{t.end(), 0}
}

func (t *transcript) down(p page, from *place, rows int) *place {
	if from == nil {
		return nil
	}
	at := *from
	for at.line < t.end() {
		if at.line >= t.first {
			e := &t.lines[at.line-t.first]
			p.fold(e)
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

// below is how many lines come after a place.
func (t *transcript) below(at *place) int {
	if at == nil {
		return 0
	}
	return t.end() - 1 - at.line
}

// caretUnder is blanks and carets that stand under a part of a text in one line.
func caretUnder(text string, start, end int) string {
	start = min(max(0, start), len(text))
	end = min(max(start, end), len(text))
	return strings.Repeat(" ", width(text[:start])) + strings.Repeat("^", max(1, width(text[start:end])))
}

// pointAt is the part of a text that has a place in it, in one line of at most this many columns, and the carets under it.
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
	return ansi.Truncate(show(line), columns, "…"), ansi.Truncate(carets, columns, "")
}
