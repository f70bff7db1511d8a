package process

import (
	"bytes"
	"strings"
)

// Lines splits a stream that arrives in pieces into lines of at most Max bytes.
type Lines struct {
	Max  int
	Rest []byte // the unfinished line
	dead bool   // a line was too long; the rest of the stream is dropped
}

// Write calls yield with each line that the piece completes, without its line ending. The line is
// valid only during the call. Write returns false, once, when a line is too long.
func (l *Lines) Write(piece string, yield func(line []byte)) bool {
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
		yield(bytes.TrimSuffix(l.Rest, []byte("\r")))
		if l.Rest = l.Rest[:0]; cap(l.Rest) > 1<<20 { // free the buffer of a long line
			l.Rest = nil
		}
		piece = rest
	}
	return true
}
