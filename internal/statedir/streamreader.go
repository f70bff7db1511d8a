package statedir

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// A StreamReader reads the stream of one turn. Each call of Read returns what is new since the
// last.
type StreamReader struct {
	all  *StreamsReader
	name string

	part   int   // the current part; 0 is the head
	group  int32 // of the head: the number of the last group read
	offset int64 // in the part
	said   int64 // bytes of text before offset
	apart  bool  // the head has its own file, as in runs of an earlier version
}

// Read calls fn with the records that are new, and returns how many there were. It never waits: to
// follow a running turn, callers call it again later. An incomplete last line is left for the next
// call.
func (r *StreamReader) Read(fn func(Record) error) (n int, err error) {
	for {
		read := r.readPart
		if r.part == 0 && !r.apart {
			read = r.readHead
		}
		some, there, err := read(fn)
		n += some
		if err != nil {
			return n, err
		}
		// A part is finished when it is full. Without the head there are no other parts.
		if there && r.offset < partSize || !there && r.part == 0 {
			return n, nil
		}
		next, err := r.nextPart()
		if err != nil || next < 0 {
			return n, err
		}
		r.part, r.offset = next, 0
	}
}

// Newest calls fn with the last records of the stream: those of the newest group of the head, or the
// end of the last part. It is for callers that ask what a turn does now, because a long stream takes
// long to read.
func (r *StreamReader) Newest(fn func(Record) error) error {
	if err := r.all.readIndex(); err != nil {
		return err
	}
	newest := r.all.last[hashOf(r.name)]
	if newest == 0 { // nothing is said yet, or the head has its own file
		_, err := r.Read(fn)
		return err
	}
	var head int64
	for n := newest; n > 0; n = r.all.before[n-1] {
		head += r.all.groups[n-1].length
	}
	for head >= partSize {
		next, err := r.nextPart()
		if err != nil {
			return err
		}
		if next < 0 {
			break
		}
		r.part = next
	}
	if r.part > 0 {
		return r.readEnd(fn)
	}
	r.group = r.all.before[newest-1]
	_, _, err := r.readHead(fn)
	return err
}

// readEnd reads the last records of the current part, which has its own file.
func (r *StreamReader) readEnd(fn func(Record) error) error {
	f, err := r.all.open(partName(r.name, r.part))
	if f == nil || err != nil {
		return err
	}
	info, err := f.Stat()
	_ = f.Close()
	if err != nil {
		return r.all.unreadable(partName(r.name, r.part), err)
	}
	first := true
	if r.offset = info.Size() - 4*pieceSize; r.offset <= 0 {
		r.offset, first = 0, false
	}
	_, _, err = r.readPart(func(said Record) error {
		if first { // the line in which the piece begins
			first = false
			return nil
		}
		return fn(said)
	})
	return err
}

// readHead reads new records of the head.
func (r *StreamReader) readHead(fn func(Record) error) (n int, there bool, err error) {
	if err := r.all.readIndex(); err != nil {
		return 0, false, err
	}
	groups := r.all.since(r.name, r.group)
	switch {
	case len(groups) == 0 && r.group > 0:
		return 0, true, nil
	case len(groups) == 0:
		n, r.apart, err = r.readPart(fn)
		return n, r.apart, err
	}
	f, err := r.all.open(saidName)
	if f == nil || err != nil {
		return 0, false, err
	}
	defer f.Close()
	for _, r.group = range groups {
		e := r.all.groups[r.group-1]
		b := make([]byte, min(max(e.length, 0), 2*partSize))
		if _, err := f.ReadAt(b, e.offset); err != nil {
			continue // lost in a crash of the machine
		}
		lines, its := bytes.CutPrefix(b, appendHeader(nil, r.name))
		if !its {
			continue
		}
		for line := range bytes.Lines(lines) {
			told, err := r.emit(line, fn)
			n += told
			if err != nil {
				return n, true, err
			}
			r.offset += int64(len(line))
		}
	}
	return n, true, nil
}

// readPart reads new records of the current part, which has its own file.
func (r *StreamReader) readPart(fn func(Record) error) (n int, there bool, err error) {
	name := partName(r.name, r.part)
	f, err := r.all.open(name)
	if f == nil || err != nil {
		return 0, false, err
	}
	defer f.Close()
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return 0, true, r.all.unreadable(name, err)
	}
	lines := bufio.NewReaderSize(f, pieceSize)
	for {
		b, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return n, true, nil
		}
		if err != nil {
			return n, true, r.all.unreadable(name, err)
		}
		told, err := r.emit(b, fn)
		n += told
		if err != nil {
			return n, true, err
		}
		r.offset += int64(len(b))
	}
}

// emit calls fn with the record of a line.
func (r *StreamReader) emit(b []byte, fn func(Record) error) (n int, err error) {
	l, ok := parseLine(bytes.TrimSuffix(b, []byte("\n")))
	switch {
	case !ok: // damaged, or lost in a crash of the machine; lines are independent, so the next one counts
		return 1, fn(Record{Kind: Gap, Gap: int64(len(b))})
	case l.At != nil:
		gap := *l.At - r.said
		if gap <= 0 {
			return 0, nil
		}
		r.said = *l.At
		return 1, fn(Record{Kind: Gap, Gap: gap})
	}
	if l.Bytes == 0 {
		l.Bytes = len(l.Text)
	}
	r.said += int64(l.Bytes)
	return 1, fn(Record{Time: time.UnixMicro(l.Time).UTC(), Kind: l.Kind, Text: l.Text})
}

// nextPart returns the number of the next existing part, or -1.
func (r *StreamReader) nextPart() (int, error) {
	if _, err := os.Lstat(r.all.dir + "/" + partName(r.name, r.part+1)); err == nil {
		return r.part + 1, nil
	}
	// The next part may be deleted already, if the turn is faster than the reader.
	names, err := namesIn(r.all.dir)
	if err != nil {
		return -1, err
	}
	next := -1
	for _, name := range names {
		number, found := strings.CutPrefix(name, r.name+".")
		number, is := strings.CutSuffix(number, ".jsonl")
		part, err := strconv.Atoi(number)
		if found && is && err == nil && part > r.part && (next < 0 || part < next) {
			next = part
		}
	}
	return next, nil
}
