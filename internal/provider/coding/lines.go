package coding

import (
	"bytes"
	"strings"

	"swarm"
)

// maxLine is the longest line that is read. An answer is one line, and so is what a tool has read.
const maxLine = 16 << 20

// lines puts together what comes in pieces.
type lines struct {
	rest []byte // the beginning of a line
	dead bool   // a line was too long: nothing after it is read
}

// write takes a piece and gives each line that it completes to hear, without its end. A line is only lent.
func (l *lines) write(piece string, hear func(line []byte)) error {
	if l.dead {
		return nil
	}
	for {
		end := strings.IndexByte(piece, '\n')
		if end < 0 {
			break
		}
		if len(l.rest)+end > maxLine {
			return l.tooLong()
		}
		l.rest = append(l.rest, piece[:end]...)
		piece = piece[end+1:]
		hear(bytes.TrimSuffix(l.rest, []byte("\r")))
		l.clear()
	}
	if len(l.rest)+len(piece) > maxLine {
		return l.tooLong()
	}
	l.rest = append(l.rest, piece...)
	return nil
}

// clear forgets a line, and the room of a long one.
func (l *lines) clear() {
	if l.rest = l.rest[:0]; cap(l.rest) > 1<<20 {
		l.rest = nil
	}
}

func (l *lines) tooLong() error {
	l.rest, l.dead = nil, true
	return swarm.Errorf(swarm.Protocol, "it wrote a line of more than %d MB", maxLine>>20).WithHint("look at what the program prints; ask for less at once")
}
