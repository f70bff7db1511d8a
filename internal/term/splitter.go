package term

import (
	"strings"

	"swarm/internal/excerpt"
)

// A LineSplitter splits a stream of text into lines. The stream comes in pieces that may end
// anywhere, even inside a character.
type LineSplitter struct{ held string }

// Add takes the next piece. It calls give with each part of a line, safe to print, and whether the
// part ends its line.
func (s *LineSplitter) Add(piece string, give func(part string, ends bool)) {
	piece = s.held + piece
	whole := len(piece) - unfinished(piece)
	s.held = piece[whole:]
	split(piece[:whole], give)
}

// End gives the part that was held back, at the end of the stream.
func (s *LineSplitter) End(give func(part string, ends bool)) {
	held := s.held
	s.held = ""
	split(held, give)
}

// split gives the parts of lines in a whole piece.
func split(text string, give func(part string, ends bool)) {
	text = Escape(text)
	for text != "" {
		part, rest, ends := strings.Cut(text, "\n")
		give(part, ends)
		text = rest
	}
}

// unfinished returns how many bytes at the end may change their meaning with the next piece: a part
// of a character, or a \r.
func unfinished(text string) int {
	if strings.HasSuffix(text, "\r") {
		return 1
	}
	return len(text) - excerpt.WholeRunes(text)
}
