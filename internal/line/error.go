package line

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarm"
	"swarm/internal/excerpt"
)

// An Error is a mistake in a line, with its position.
type Error struct {
	Msg        string
	Hint       string // what to write instead; one suggestion per line
	Start, End int    // bytes in the line
	Unfinished bool   // nothing is wrong but that the text ends here; Hint says what follows
}

func (e *Error) Error() string { return e.Msg }

// Unwrap returns the error without its position, so that callers see bad input like any other.
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

// checkText refuses text that no line may contain.
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

// list returns the agents' names for a message.
func (t *Team) list() string {
	if len(t.Agents) == 0 {
		return "none"
	}
	return excerpt.List(t.Agents, 50)
}

// short shortens a user's word, so that a message stays one line.
func short(word string) string { return excerpt.Head(word, swarm.MaxName) }
