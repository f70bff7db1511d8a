package line

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarm/internal/excerpt"

	"swarm"
)

// An Error says what is wrong with a line, and where.
type Error struct {
	Msg        string
	Hint       string // what to write instead; each of its lines is one
	Start, End int    // bytes in the line
}

func (e *Error) Error() string { return e.Msg }

// Unwrap is the error without its place, so that a line is bad input like any other.
func (e *Error) Unwrap() error {
	return &swarm.Error{Kind: swarm.BadInput, Msg: e.Msg, Hint: e.Hint}
}

func errorAt(start, end int, format string, args ...any) *Error {
	return &Error{Msg: fmt.Sprintf(format, args...), Start: start, End: end}
}

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Picture is the place in the text, as two lines: what stands there, and carets below it. Long lines are cut around the place,
// and whatever could move a cursor is replaced, so that the carets stand where they should.
func (e *Error) Picture(text string) string {
	const around = 60 // bytes on each side
	start := max(0, min(e.Start, len(text)))
	end := max(start, min(e.End, len(text)))
	from := strings.LastIndexAny(text[:start], "\r\n") + 1
	to := len(text)
	if n := strings.IndexAny(text[start:], "\r\n"); n >= 0 {
		to = start + n
	}
	end = min(max(end, start), to)
	before, behind := "", ""
	if start-from > around {
		from, before = start-around, "…"
	}
	if end-start > around {
		end = start + around
	}
	if to-end > around {
		to, behind = end+around, "…"
	}
	shown := before + plain(text[from:start])
	place, rest := plain(text[start:end]), plain(text[end:to])
	return shown + place + rest + behind + "\n" + strings.Repeat(" ", width(shown)) + strings.Repeat("^", max(1, width(place)))
}

// plain is text in which every character has its place: blanks for tabs, U+FFFD for what cannot be shown or was cut in two.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// width is how many columns a text takes in a terminal: two for the letters of East Asia and for pictures, none for marks that
// stand on the letter before them.
func width(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
			r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
			n += 2
		default:
			n++
		}
	}
	return n
}

// checkText refuses what no line may be made of.
func checkText(text string) error {
	if len(text) > MaxLine {
		return errorAt(MaxLine, len(text), "the line is too long: it has %d bytes, and %d are allowed", len(text), MaxLine).
			hint("write the text to a file, and tell the agent where it is")
	}
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return errorAt(i, i+1, "the byte 0x%02X is not UTF-8", text[i]).hint("take it out, or convert the text to UTF-8")
		case unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r':
			return errorAt(i, i+utf8.RuneLen(r), "the control character U+%04X cannot stand in a line", r).hint("take it out")
		}
	}
	return nil
}

// list is the team as messages name it.
func (t *Team) list() string {
	if len(t.Agents) == 0 {
		return "none"
	}
	return excerpt.List(t.Agents, 50)
}

// short cuts what a user wrote, so that a message stays one line.
func short(word string) string { return excerpt.Head(word, swarm.MaxName) }
