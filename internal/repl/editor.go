package repl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// An editor holds the text being typed. The text is kept as it was typed or pasted; only its
// display is made safe.
type editor struct {
	text   string
	cursor int    // in bytes, never inside a character
	cut    string // the last text that was cut, for ctrl+y
	column int    // target of moving up and down, or -1
}

// set replaces everything.
func (e *editor) set(text string) { e.text, e.cursor, e.column = text, len(text), -1 }

// insert inserts a text at the cursor, with every line end as a newline. A text that would make the
// whole too long is refused.
func (e *editor) insert(text string) bool {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if len(e.text)+len(text) > maxEntry {
		return false
	}
	e.replace(e.cursor, e.cursor, text)
	return true
}

// replace replaces a part of the text, and puts the cursor behind it.
func (e *editor) replace(start, end int, text string) {
	start = min(max(0, start), len(e.text))
	end = min(max(start, end), len(e.text))
	e.text = e.text[:start] + text + e.text[end:]
	e.cursor, e.column = start+len(text), -1
}

// left and right return the places beside the cursor.
func (e *editor) left() int {
	at := strings.LastIndexByte(e.text[:e.cursor], '\n') + 1
	if at == e.cursor {
		return max(0, e.cursor-1)
	}
	for {
		n, _ := cell(e.text[at:e.cursor])
		if at+n >= e.cursor {
			return at
		}
		at += n
	}
}

func (e *editor) right() int {
	if e.cursor == len(e.text) {
		return e.cursor
	}
	n, _ := cell(e.text[e.cursor:])
	return min(len(e.text), e.cursor+n)
}

// wordLeft and wordRight return the places where words begin and end.
func (e *editor) wordLeft() int {
	text := strings.TrimRightFunc(e.text[:e.cursor], gap)
	return strings.LastIndexFunc(text, gap) + sizeAtLast(text)
}

// sizeAtLast returns the length of the last gap's character, to step over it.
func sizeAtLast(text string) int {
	i := strings.LastIndexFunc(text, gap)
	if i < 0 {
		return 1
	}
	_, n := utf8.DecodeRuneInString(text[i:])
	return n
}

func (e *editor) wordRight() int {
	rest := e.text[e.cursor:]
	word := strings.TrimLeftFunc(rest, gap)
	if i := strings.IndexFunc(word, gap); i >= 0 {
		return e.cursor + len(rest) - len(word) + i
	}
	return len(e.text)
}

func gap(r rune) bool { return unicode.IsSpace(r) || r == ',' }

// lineStart and lineEnd return the ends of the line with the cursor.
func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.cursor], '\n') + 1 }

func (e *editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.cursor:], '\n'); i >= 0 {
		return e.cursor + i
	}
	return len(e.text)
}

// move moves the cursor and forgets the column of vertical moves.
func (e *editor) move(to int) { e.cursor, e.column = to, -1 }

// remove removes the text between the cursor and another place. keep makes it available to ctrl+y.
func (e *editor) remove(to int, keep bool) {
	start, end := min(to, e.cursor), max(to, e.cursor)
	if keep && end > start {
		e.cut = e.text[start:end]
	}
	e.replace(start, end, "")
}

// key does what a key says. It returns false if the key is not one of the editor's.
func (e *editor) key(name string) bool {
	switch name {
	case "left", "ctrl+b":
		e.move(e.left())
	case "right", "ctrl+f":
		e.move(e.right())
	case "ctrl+left", "alt+left", "alt+b":
		e.move(e.wordLeft())
	case "ctrl+right", "alt+right", "alt+f":
		e.move(e.wordRight())
	case "home", "ctrl+a":
		e.move(e.lineStart())
	case "end", "ctrl+e":
		e.move(e.lineEnd())
	case "backspace", "ctrl+h", "shift+backspace":
		e.remove(e.left(), false)
	case "delete":
		e.remove(e.right(), false)
	case "ctrl+w", "alt+backspace", "ctrl+backspace":
		e.remove(e.wordLeft(), true)
	case "alt+d":
		e.remove(e.wordRight(), true)
	case "ctrl+u":
		e.remove(e.lineStart(), true)
	case "ctrl+k":
		e.remove(e.lineEnd(), true)
	case "ctrl+y":
		e.insert(e.cut)
	default:
		return false
	}
	return true
}

// A span is a row of the text as it is shown.
type span struct{ start, end int }

// rows wraps the text to a width, and returns the row and the column of the cursor.
func (e *editor) rows(columns int) (rows []span, row, column int) {
	for start := 0; ; {
		end := len(e.text)
		if i := strings.IndexByte(e.text[start:], '\n'); i >= 0 {
			end = start + i
		}
		begins := wrap(e.text[start:end], nil, columns, false)
		for i, b := range begins {
			s := span{start + b, end}
			if i+1 < len(begins) {
				s.end = start + begins[i+1]
			}
			rows = append(rows, s)
		}
		if end == len(e.text) {
			break
		}
		start = end + 1
	}
	for row = len(rows) - 1; row > 0 && e.cursor < rows[row].start; row-- {
	}
	column = width(e.text[rows[row].start:e.cursor])
	if column >= columns { // the row is just full, so the next character begins another one
		if row+1 == len(rows) || rows[row+1].start != e.cursor {
			rows = append(rows[:row+1], append([]span{{e.cursor, e.cursor}}, rows[row+1:]...)...)
		}
		row, column = row+1, 0
	}
	return rows, row, column
}

// vertical moves the cursor by a row, and says whether there was one.
func (e *editor) vertical(by, columns int) bool {
	rows, row, column := e.rows(columns)
	to := row + by
	if to < 0 || to >= len(rows) {
		return false
	}
	if e.column < 0 {
		e.column = column
	}
	at, end := rows[to].start, rows[to].end
	for used := 0; at < end; {
		n, w := cell(e.text[at:end])
		if used+w > e.column {
			break
		}
		at, used = at+n, used+w
	}
	e.cursor = at
	return true
}

// A history is the texts that were entered before.
type history struct {
	texts []string
	at    int    // which one is shown; len(texts) = none
	draft string // the text that was being typed
}

func newHistory(texts []string) history {
	return history{texts: append([]string(nil), texts...), at: len(texts)}
}

// add keeps a text, unless it repeats the last one, and says whether it did.
func (p *history) add(text string) bool {
	fresh := len(p.texts) == 0 || p.texts[len(p.texts)-1] != text
	if fresh {
		p.texts = append(p.texts, text)
	}
	p.at, p.draft = len(p.texts), ""
	return fresh
}

// step goes back (-1) or on (1) from the current text.
func (p *history) step(by int, now string) (string, bool) {
	to := p.at + by
	if to < 0 || to > len(p.texts) {
		return now, false
	}
	if p.at == len(p.texts) {
		p.draft = now
	}
	if p.at = to; to == len(p.texts) {
		return p.draft, true
	}
	return p.texts[to], true
}
