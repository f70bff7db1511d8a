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

// Limits of a line, so that a file which is no recording cannot fill the memory. The longest line
// holds a text, and JSON may write each byte of it as six.
const (
	maxHeader = 1 << 20
	maxLine   = 64 << 20
)

// againHint is the hint for a recording that cannot be used.
const againHint = "record the run again: swarm up --record FILE"

// Open reads the recording in a file. O_NONBLOCK keeps it from waiting for the writer of a named
// pipe, which it then refuses.
func Open(file string) (*Recording, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the recorded run %s cannot be opened: %w", file, swarm.WithoutPath(err)).WithHint("make one with --record FILE")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the recorded run %s cannot be opened: %w", file, swarm.WithoutPath(err))
	}
	if !info.Mode().IsRegular() {
		what := "a device"
		switch {
		case info.IsDir():
			what = "a folder"
		case info.Mode()&os.ModeNamedPipe != 0:
			what = "a named pipe"
		}
		return nil, swarm.Errorf(swarm.BadInput, "%s is %s, and no recorded run", file, what).WithHint("make one with --record FILE")
	}
	return Read(f, file)
}

// Is reports whether a file is a recording of any version. It reads only the first line.
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

// versionOf returns the version in the first line of a recording, or nil. Unlike
// [strictjson.Decode] it accepts unknown fields.
func versionOf(text []byte) *int {
	var h struct {
		Version *int `json:"swarm_cassette"`
	}
	if json.Unmarshal(text, &h) != nil {
		return nil
	}
	return h.Version
}

// Read reads a whole recording. It is strict: a line that [Write] does not write is an error with
// the number of the line. The checksum covers all lines before the last one, so the reader sums a
// line only after it knows that the line is not the last.
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
	n     int  // the number of the line
	ended bool // the last line was read, and its checksum is right
}

// next returns the next line without its newline. If the file ends without one, whole is false.
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

// fail returns an error at the present line.
func (r *reader) fail(format string, args ...any) *swarm.Error {
	return &swarm.Error{Kind: swarm.BadInput, File: r.File, Line: r.n, Msg: fmt.Sprintf(format, args...), Hint: againHint}
}

// header reads the first line.
func (r *reader) header(text []byte) error {
	// A newer version may have fields that are unknown here. So the version is checked before the
	// fields.
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

// line reads any line after the first. sum is the checksum of the lines before it.
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

// end checks the last line. The count comes first: it tells a lost line from a changed one.
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

// text keeps a text, if it has the hash that its line names.
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

// event adds an event. Numbers grow, with gaps where [Write] left an event out.
func (r *reader) event(l *line) error {
	last := int64(0)
	if n := len(r.Events); n > 0 {
		last = r.Events[n-1].Seq
	}
	e := l.event()
	e.UseCurrentNames()
	switch {
	case !slices.Contains(swarm.EventKinds, e.Kind):
		return r.fail("there is no kind of events %s", swarm.Quote(string(e.Kind)))
	case last == 0 && e.Kind != swarm.RunStarted:
		return r.fail("the first event of a recording is %s, and this is %s", swarm.RunStarted, e.Kind)
	case l.Seq <= last:
		return r.fail("the event %d comes after the event %d", l.Seq, last)
	}
	e.Data = bytes.Clone(e.Data)
	r.Events = append(r.Events, e)
	return nil
}
