package recording

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"swarm"
	"swarm/internal/strictjson"
)

// How long lines may be. The longest has a text, each of whose bytes may be written as six.
const (
	maxHeader = 1 << 20
	maxLine   = 64 << 20
)

// againHint is what to type when a recording cannot be used.
const againHint = "record the run again: swarm up --record FILE"

// Open reads the recording in a file. It does not wait, should there be a pipe.
func Open(file string) (*Recording, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the recorded run %s cannot be opened: %w", file, swarm.WithoutPath(err)).WithHint("make one with --record FILE")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no recorded run, nor any file", file).WithHint("make one with --record FILE")
	}
	return Read(f, file)
}

// Is says whether a file is a recording, of whatever version.
func Is(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	r := &reader{lines: bufio.NewReader(f)}
	text, _, err := r.next(maxHeader)
	return err == nil && versionOf(text) != nil
}

// versionOf is the version that the first line of a recording names.
func versionOf(text []byte) *int {
	var h struct {
		Version *int `json:"swarm_cassette"`
	}
	if json.Unmarshal(text, &h) != nil {
		return nil
	}
	return h.Version
}

// Read reads a recording. It is strict: a line that is not what [Write] writes is an error that names it.
func Read(from io.Reader, file string) (*Recording, error) {
	r := &reader{Recording: Recording{File: file, texts: map[swarm.Hash][]byte{}}, lines: bufio.NewReaderSize(from, 64<<10)}
	sum := sha256.New()
	for longest := maxHeader; ; longest = maxLine {
		r.n++
		text, whole, err := r.next(longest)
		switch {
		case err != nil:
			return nil, &swarm.Error{Kind: swarm.BadInput, File: file, Line: r.n, Msg: "the recording cannot be read", Err: err}
		case len(text) == 0 && !whole && r.n == 1:
			return nil, r.fail("the recording is empty")
		case !whole && r.n > 1:
			return nil, r.fail("the recording is cut off here").WithHint("copy it again, or record the run again: swarm up --record FILE")
		case r.n == 1:
			err = r.header(text)
		default:
			err = r.line(text, sum.Sum(nil))
		}
		if err != nil {
			return nil, err
		}
		if r.ended {
			break
		}
		sum.Write(text)
		sum.Write([]byte{'\n'})
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
		r.n++
		return nil, r.fail("the recording goes on after its end")
	}
	return &r.Recording, nil
}

// A reader reads the lines of a recording.
type reader struct {
	Recording
	lines *bufio.Reader
	n     int // the line
	ended bool
}

// next is the next line without its newline; whole is whether there was one.
func (r *reader) next(longest int) (text []byte, whole bool, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > longest:
			return nil, false, fmt.Errorf("a line is longer than %d KB", longest>>10)
		case err == nil:
			return text[:len(text)-1], true, nil
		case errors.Is(err, io.EOF):
			return text, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

func (r *reader) fail(format string, args ...any) *swarm.Error {
	return &swarm.Error{Kind: swarm.BadInput, File: r.File, Line: r.n, Msg: fmt.Sprintf(format, args...), Hint: againHint}
}

func (r *reader) header(text []byte) error {
	// A header with more in it is a newer one; which version it has is worth saying before what else is wrong with it.
	version := versionOf(text)
	if version == nil {
		return r.fail("this is no recording: its first line is not {\"swarm_cassette\":%d,…}", Version).WithHint("make one with --record FILE")
	}
	if *version != Version {
		return r.fail("the recording has version %d, and this program reads version %d", *version, Version)
	}
	if err := strictjson.Decode(text, &r.Header); err != nil {
		return r.fail("the header of the recording: %v", err)
	}
	return nil
}

func (r *reader) line(text, sum []byte) error {
	var l line
	if err := strictjson.Decode(text, &l); err != nil {
		return r.fail("this is no line of a recording: %v", err)
	}
	switch {
	case l.Events != nil:
		return r.end(&l, sum)
	case l.Hash != "":
		return r.text(&l)
	}
	return r.event(&l)
}

func (r *reader) end(l *line, sum []byte) error {
	switch {
	case *l.Events != len(r.Events):
		return r.fail("the recording has %d events here, and had %d when it was made", len(r.Events), *l.Events)
	case l.Sum != hex.EncodeToString(sum):
		return r.fail("the recording was changed after it was made: its checksum is another")
	case len(r.Events) == 0:
		return r.fail("the recording has no events")
	}
	r.ended = true
	return nil
}

func (r *reader) text(l *line) error {
	text := []byte(l.Text)
	if l.Base64 != nil {
		text = l.Base64
	}
	if swarm.HashOf(text) != l.Hash {
		return r.fail("the text was changed after it was recorded: its hash is another")
	}
	r.texts[l.Hash] = text
	return nil
}

func (r *reader) event(l *line) error {
	last := int64(0)
	if n := len(r.Events); n > 0 {
		last = r.Events[n-1].Seq
	}
	switch {
	case !slices.Contains(swarm.EventKinds, l.Kind):
		return r.fail("there is no kind of events %s", swarm.Quote(string(l.Kind)))
	case last == 0 && l.Kind != swarm.RunStarted:
		return r.fail("the first event of a recording is %s, and this is %s", swarm.RunStarted, l.Kind)
	case l.Seq <= last:
		return r.fail("the event %d comes after the event %d", l.Seq, last)
	}
	e := l.event()
	e.Data = bytes.Clone(e.Data)
	r.Events = append(r.Events, e)
	return nil
}
