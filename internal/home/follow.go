package home

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"swarm"
)

// A Position is a place in a stream. The zero one is its beginning.
type Position struct {
	Part   int   // which file
	Offset int64 // in it
	Said   int64 // bytes of text before it
}

// A StreamReader reads what a turn said, and can be asked again for what it has said since.
type StreamReader struct {
	At Position // where the next Read begins

	dir  string
	name string
}

// ReadStream calls fn with what a turn has said so far. A turn that has said nothing has no stream, which is no error.
func (h *Home) ReadStream(run, turn string, start int, fn func(Record) error) error {
	_, err := h.StreamFrom(run, turn, start, Position{}).Read(fn)
	return err
}

// StreamFrom reads a stream from a place on.
func (h *Home) StreamFrom(run, turn string, start int, at Position) *StreamReader {
	return &StreamReader{At: at, dir: h.streamDir(run), name: streamName(turn, start)}
}

// Read calls fn with what there is and was not read yet, and returns how many records that were. It never waits: to follow a
// running turn, call it again after a moment. A last line that is only half there is left for the next time.
func (r *StreamReader) Read(fn func(Record) error) (n int, err error) {
	for {
		some, there, err := r.readPart(fn)
		n += some
		if err != nil {
			return n, err
		}
		// A part is through when it is full. Without the first there are no others.
		if there && r.At.Offset < partSize || !there && r.At.Part == 0 {
			return n, nil
		}
		next, err := r.nextPart()
		if err != nil || next < 0 {
			return n, err
		}
		r.At.Part, r.At.Offset = next, 0
	}
}

// readPart reads what is new in the present part.
func (r *StreamReader) readPart(fn func(Record) error) (n int, there bool, err error) {
	path := r.dir + "/" + partName(r.name, r.At.Part)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the stream cannot be read", Err: swarm.WithoutPath(err)}
	}
	defer f.Close()
	if _, err := f.Seek(r.At.Offset, io.SeekStart); err != nil {
		return 0, true, &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the stream cannot be read", Err: swarm.WithoutPath(err)}
	}
	lines := bufio.NewReaderSize(f, pieceSize)
	for {
		b, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, true, &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the stream cannot be read", Err: swarm.WithoutPath(err)}
		}
		told, err := r.tell(b, fn)
		n += told
		if err != nil {
			return n, true, err
		}
		r.At.Offset += int64(len(b))
	}
}

// tell calls fn with what a line says.
func (r *StreamReader) tell(b []byte, fn func(Record) error) (n int, err error) {
	l, ok := parseLine(bytes.TrimSuffix(b, []byte("\n")))
	switch {
	case !ok: // lost in a crash of the machine; whatever was in it, the next line stands by itself
		return 0, nil
	case l.At != nil:
		gap := *l.At - r.At.Said
		if gap <= 0 {
			return 0, nil
		}
		r.At.Said = *l.At
		return 1, fn(Record{Kind: Gap, Gap: gap})
	}
	if l.Bytes == 0 {
		l.Bytes = len(l.Text)
	}
	r.At.Said += int64(l.Bytes)
	return 1, fn(Record{Time: time.UnixMicro(l.Time).UTC(), Kind: l.Kind, Text: l.Text})
}

// nextPart is the number of the first part after the present one, or -1.
func (r *StreamReader) nextPart() (int, error) {
	if _, err := os.Lstat(r.dir + "/" + partName(r.name, r.At.Part+1)); err == nil {
		return r.At.Part + 1, nil
	}
	// The next one may be there no longer: a slow reader, and a fast turn.
	names, err := namesIn(r.dir)
	if err != nil {
		return -1, err
	}
	next := -1
	for _, name := range names {
		number, found := strings.CutPrefix(name, r.name+".")
		number, is := strings.CutSuffix(number, ".jsonl")
		part, err := strconv.Atoi(number)
		if found && is && err == nil && part > r.At.Part && (next < 0 || part < next) {
			next = part
		}
	}
	return next, nil
}
