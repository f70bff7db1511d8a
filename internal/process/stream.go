package process

import (
	"sync"

	"swarm/internal/excerpt"
)

// A stream is one output of a program. tail keeps its end; live gets it piece by piece.
type stream struct {
	tail Tail
	live func(string)
	held []byte // the beginning of a rune whose rest has not arrived
}

// A chunk is as large as a pipe's buffer.
type chunk [64 << 10]byte

// chunks are the read buffers. A stream takes one only while it reads, so a silent program has
// none.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// next returns the part of buf to read into. It starts after the held bytes, which next copies
// there.
func (s *stream) next(buf *chunk) []byte { return buf[copy(buf[:], s.held):] }

// deliver handles n bytes that were read into the result of [stream.next]: tail gets all, live only
// whole runes.
func (s *stream) deliver(buf *chunk, n int) {
	piece := buf[:len(s.held)+n]
	_, _ = s.tail.Write(piece[len(s.held):])
	whole := excerpt.WholeRunes(piece)
	if whole > 0 && s.live != nil {
		s.live(string(piece[:whole]))
	}
	s.held = append(s.held[:0], piece[whole:]...)
}

// flush delivers the held bytes at the end of the stream.
func (s *stream) flush() {
	if len(s.held) > 0 && s.live != nil {
		s.live(string(s.held))
	}
	s.held = nil
}
