package process

import "sync"

// A stream is what a program says on one of its pipes.
type stream struct {
	tail Tail
	live func(string)
	held []byte // the beginning of a rune whose end has not come yet
}

// A chunk is as much as a pipe holds.
type chunk [64 << 10]byte

// chunks are what streams are read into. A program that says nothing has none.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// next is where the next bytes of the stream are read to: behind those that are held.
func (s *stream) next(buf *chunk) []byte { return buf[copy(buf[:], s.held):] }

// take keeps n bytes that were read to [stream.next], and passes on all whole runes.
func (s *stream) take(buf *chunk, n int) {
	piece := buf[:len(s.held)+n]
	_, _ = s.tail.Write(piece[len(s.held):])
	whole := wholeRunes(piece)
	if whole > 0 && s.live != nil {
		s.live(string(piece[:whole]))
	}
	s.held = append(s.held[:0], piece[whole:]...)
}

// flush passes on what is held, at the end of the stream.
func (s *stream) flush() {
	if len(s.held) > 0 && s.live != nil {
		s.live(string(s.held))
	}
	s.held = nil
}
