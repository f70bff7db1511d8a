package term

import (
	"strings"
	"swarm/internal/excerpt"
)

// A LineSplitter splits a stream of text into lines. The stream comes in pieces that end anywhere, also inside of a character.
type LineSplitter struct{ held string }

// Add takes the next piece, and gives the parts of lines in it, safe to print, and whether they end their line.
func (s *LineSplitter) Add(piece string, give func(part string, ends bool)) {
	piece = s.held + piece
	whole := len(piece) - unfinished(piece)
	s.held = piece[whole:]
	split(piece[:whole], give)
}

// End gives what was held back: the stream is over.
func (s *LineSplitter) End(give func(part string, ends bool)) {
	held := s.held
	s.held = ""
	split(held, give)
}

func split(text string, give func(part string, ends bool)) {
	text = Escape(text)
	for text != "" {
		part, rest, ends := strings.Cut(text, "\n")
		give(part, ends)
		text = rest
	}
}

// unfinished is how many bytes at the end may mean something else with what follows: a part of a character, or a \r.
func unfinished(text string) int {
	if strings.HasSuffix(text, "\r") {
		return 1
	}
	return len(text) - excerpt.WholeRunes(text)
}
