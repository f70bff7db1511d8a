package process

import (
	"bytes"
	"strings"
)

// Lines puts the lines of a stream together, which comes in pieces. Of a line no more than Max bytes are kept.
type Lines struct {
	Max  int
	Rest []byte // the line that has begun
	dead bool   // a line was too long: nothing after it is read
}

// Write gives each line that a piece completes to hear, without its end. A line is only lent. false says, once, that a line is too
// long.
func (l *Lines) Write(piece string, hear func(line []byte)) bool {
	for !l.dead {
		line, rest, whole := strings.Cut(piece, "\n")
		if l.dead = len(l.Rest)+len(line) > l.Max; l.dead {
			l.Rest = nil
			return false
		}
		l.Rest = append(l.Rest, line...)
		if !whole {
			break
		}
		hear(bytes.TrimSuffix(l.Rest, []byte("\r")))
		if l.Rest = l.Rest[:0]; cap(l.Rest) > 1<<20 { // the room of a long line is not kept
			l.Rest = nil
		}
		piece = rest
	}
	return true
}
