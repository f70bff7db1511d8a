package process

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// A pipe has an end that is ours and one that is the program's.
type pipe struct{ ours, theirs *os.File }

// pipes are a program's standard input, output and error.
type pipes [3]pipe

// openPipes makes them; without an input there is nothing to read from the first.
func openPipes(input bool) (ps pipes, err error) {
	if input {
		ps[0].theirs, ps[0].ours, err = os.Pipe()
	} else {
		ps[0].theirs, err = os.Open(os.DevNull)
	}
	for i := 1; i < len(ps) && err == nil; i++ {
		ps[i].ours, ps[i].theirs, err = os.Pipe()
	}
	if err != nil {
		ps.closeOurs()
		ps.closeTheirs()
	}
	return ps, err
}

func (ps *pipes) closeOurs() {
	for _, p := range ps {
		p.ours.Close() // closing nil is an error that says so, and nothing else
	}
}

func (ps *pipes) closeTheirs() {
	for _, p := range ps {
		p.theirs.Close()
	}
}

// writeSome writes as much as the pipe has room for and returns the rest. Most prompts fit, and then nobody has to wait for
// the program to read.
func writeSome(f *os.File, text string) (rest string) {
	conn, err := f.SyscallConn()
	if err != nil {
		return text
	}
	_ = conn.Write(func(fd uintptr) bool {
		for text != "" {
			n, err := syscall.Write(int(fd), []byte(text[:min(len(text), len(chunk{}))]))
			if err != nil {
				break
			}
			text = text[n:]
		}
		return true
	})
	return text
}

// A stream is what a program says on one of its pipes.
type stream struct {
	from *os.File
	tail Tail
	live func(string)
	one  *sync.Mutex // both streams of a program share the listener
}

// A chunk is as much as a pipe holds.
type chunk [64 << 10]byte

// chunks are what streams read into.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

// read passes on what comes, in pieces that do not cut a rune in two, until the stream ends.
func (s *stream) read(closed chan<- struct{}) {
	buf := chunks.Get().(*chunk)
	held := 0 // bytes at the beginning of buf that are a part of a rune
	for {
		n, err := s.from.Read(buf[held:])
		_, _ = s.tail.Write(buf[held : held+n])
		piece := buf[:held+n]
		whole := len(piece)
		if err == nil {
			whole = wholeRunes(piece)
		}
		if whole > 0 && s.live != nil {
			s.one.Lock()
			s.live(string(piece[:whole]))
			s.one.Unlock()
		}
		if err != nil {
			break
		}
		held = copy(buf[:], piece[whole:])
	}
	s.from.Close()
	chunks.Put(buf)
	closed <- struct{}{}
}

// abandon ends the reading, though somebody holds the other end.
func (s *stream) abandon() { _ = s.from.SetReadDeadline(time.Unix(1, 0)) }
