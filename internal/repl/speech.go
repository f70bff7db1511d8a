package repl

import (
	"strings"
	"unicode/utf8"

	"swarm"
	"swarm/internal/term"
)

// A speech is what one agent says in one tone. It comes in pieces that end anywhere, also inside of a character.
type speech struct{ held string }

// add takes the next piece, and tells the parts of lines that are in it, safe to print, and whether they end their line.
func (s *speech) add(piece string, tell func(part string, ends bool)) {
	piece = s.held + piece
	whole := len(piece) - unfinished(piece)
	s.held = piece[whole:]
	s.tell(piece[:whole], tell)
}

// end takes what was held back: nothing follows any more.
func (s *speech) end(tell func(part string, ends bool)) {
	s.tell(s.held, tell)
	s.held = ""
}

func (s *speech) tell(text string, tell func(part string, ends bool)) {
	text = term.Escape(text)
	for text != "" {
		part, rest, ends := strings.Cut(text, "\n")
		if part != "" || ends {
			tell(part, ends)
		}
		text = rest
	}
}

// unfinished is how many bytes at the end may mean something else with what follows: a part of a character, or a \r.
func unfinished(text string) int {
	if strings.HasSuffix(text, "\r") {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRuneInString(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// toolLine is the use of a tool in one line, and failedLine why it has failed.
func toolLine(u *swarm.ToolUse) string { return inLine(u.Name + " " + string(u.Input)) }

func failedLine(u *swarm.ToolUse) string { return inLine(u.Name + ": " + u.Output) }

func inLine(text string) string {
	const most = 200
	text = oneLine(text)
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
