package model

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"swarm"
)

// maxEvent is the length of the longest event that is read.
const maxEvent = 8 << 20

// events reads server-sent events. Only their data matters: in both protocols the data says what
// kind of event it is.
type events struct {
	r    *bufio.Reader
	line []byte
	data []byte
	// stray is the beginning of what is no event: a page, or a text for people
	stray []byte
}

// next returns the data of the next event, which is valid until the next call. The end of the
// stream is io.EOF between two events, and io.ErrUnexpectedEOF within one.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	begun := false
	for {
		line, err := e.readLine()
		if err != nil {
			if errors.Is(err, io.EOF) && (len(line) > 0 || begun) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if len(line) == 0 {
			if begun {
				return e.data, nil
			}
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok { // a comment, a name, an id
			if !bytes.Contains(line[:min(len(line), len("event: "))], []byte(":")) && len(e.stray) < maxQuoted {
				e.stray = append(append(e.stray, line[:min(len(line), maxQuoted)]...), ' ')
			}
			continue
		}
		if begun {
			e.data = append(e.data, '\n')
		}
		begun = true
		e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		if len(e.data) > maxEvent {
			return nil, tooLong()
		}
	}
}

// readLine returns the next line without its end.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		piece, err := e.r.ReadSlice('\n')
		e.line = append(e.line, piece...)
		switch {
		case len(e.line) > maxEvent:
			return nil, tooLong()
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return e.line, err
		}
		return bytes.TrimSuffix(e.line[:len(e.line)-1], []byte("\r")), nil
	}
}

func tooLong() error {
	return swarm.Errorf(swarm.Protocol, "the server sends a piece of more than %d MB", maxEvent>>20)
}
