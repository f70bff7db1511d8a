package statedir

import (
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// A stream is the output of one turn as it is produced. A turn's first MiB is its head, the last
// parts are its tail. What is between is dropped.
//
// The heads of all turns share one file, said.jsonl. It has groups: a line that names the turn,
// then the turn's records, a line each. The file said.index has the position of every group, so
// that one turn can be read without the others. A file per turn would cost more than everything
// else that a short turn writes.
//
// After its head, a turn writes files of its own, called parts. The last two parts stay and are the
// tail. Output of the tail is buffered and written in intervals. So even a very fast turn costs
// little, and at most the tail is kept in memory.
//
// Nothing is synced to disk and no turn waits for a write. After a crash, readers ignore output
// that the index does not name.
const (
	partSize  = 1 << 20                // size of the head, and the minimum that is kept of the tail
	pieceSize = 32 << 10               // the longest record
	soon      = 20 * time.Millisecond  // delay until readers see output of the head
	moment    = 100 * time.Millisecond // delay until readers see output of the tail
	maxHeads  = 256 << 10              // bytes of heads that may wait to be written

	saidName  = "said.jsonl"
	indexName = "said.index"
	entrySize = 24 // of the index: hash of the stream's name, position and length of the group
)

// A StreamsWriter writes the streams of a run's turns, so that other processes can watch them. It
// is safe for concurrent use. Lock order: StreamWriter.mu before StreamsWriter.mu.
type StreamsWriter struct {
	home *Home
	run  swarm.RunID

	mu      sync.Mutex
	said    *os.File // nil until the first output
	index   *os.File
	waiting []*StreamWriter // streams with unwritten heads, in the order of their first record
	bytes   int             // unwritten bytes of heads
	timer   bool            // a timer will write them
	err     error           // the first error; nothing is written after it
}

// WriteStreams returns the writer of a run's streams. It creates no file before the first output.
func (h *Home) WriteStreams(run swarm.RunID) *StreamsWriter { return &StreamsWriter{home: h, run: run} }

// Turn returns the writer of one turn, which was started for the n-th time.
func (s *StreamsWriter) Turn(turn string, start int) *StreamWriter {
	return &StreamWriter{all: s, name: streamName(turn, start)}
}

// add queues a line of a turn's head for writing.
func (s *StreamsWriter) add(w *StreamWriter, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.head) == 0 {
		s.waiting = append(s.waiting, w)
		w.head = appendHeader(w.head, w.name)
	}
	w.head = append(w.head, line...)
	s.bytes += len(line)
	switch {
	case s.bytes > maxHeads:
		s.write()
	case !s.timer:
		s.timer = true
		time.AfterFunc(soon, func() { _ = s.Flush() }) // Close returns its error
	}
}

// write writes the queued heads. The text comes before the index, so a group in the index always
// exists. The caller holds mu.
func (s *StreamsWriter) write() {
	var said, index []byte
	for _, w := range s.waiting {
		index = appendEntry(index, entry{hashOf(w.name), int64(len(said)), int64(len(w.head))})
		said = append(said, w.head...)
		w.head = w.head[:0]
	}
	s.waiting, s.bytes, s.timer = nil, 0, false
	if len(said) == 0 || s.err != nil {
		return
	}
	if s.said == nil {
		if s.err = s.open(); s.err != nil {
			return
		}
	}
	if _, s.err = s.said.Write(said); s.err != nil {
		return
	}
	// Another process that drove the run earlier, or drives it now, may append too. So the position
	// is known only after the write.
	end, err := s.said.Seek(0, io.SeekCurrent)
	if s.err = err; err == nil {
		moveEntries(index, end-int64(len(said)))
		_, s.err = s.index.Write(index)
	}
}

// Flush makes the heads visible to readers.
func (s *StreamsWriter) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write()
	return s.err
}

// open opens the files for appending. A crash may have left an incomplete index entry; it is
// padded, so that later entries stay aligned.
func (s *StreamsWriter) open() (err error) {
	dir := s.home.streamDir(s.run)
	if err := makeDir(dir); err != nil {
		return err
	}
	const flags = os.O_RDWR | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW
	if s.said, err = os.OpenFile(dir+"/"+saidName, flags, 0o600); err != nil {
		return err
	}
	if s.index, err = os.OpenFile(dir+"/"+indexName, flags, 0o600); err != nil {
		return err
	}
	info, err := s.index.Stat()
	if err == nil && info.Size()%entrySize != 0 {
		_, err = s.index.Write(make([]byte, entrySize-info.Size()%entrySize))
	}
	return err
}

// Close writes the queued heads and closes the files.
func (s *StreamsWriter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write()
	for _, f := range []*os.File{s.said, s.index} {
		if f != nil {
			if err := f.Close(); s.err == nil {
				s.err = err
			}
		}
	}
	s.said, s.index = nil, nil
	if s.err != nil {
		return s.failure(s.err)
	}
	s.err = os.ErrClosed // for streams that still write
	return nil
}

func (s *StreamsWriter) failure(err error) error {
	return storageError(s.home.streamDir(s.run), "what the turns say could not be written down", err)
}

// A StreamWriter writes the stream of one turn. It keeps the first and the last MiB of records. It
// is safe for concurrent use.
type StreamWriter struct {
	all  *StreamsWriter
	name string
	head []byte // unwritten bytes of the head; guarded by all.mu

	mu      sync.Mutex
	file    *os.File // the current part, after the head
	part    int
	size    int   // of the part
	said    int64 // bytes of text so far
	written int64 // bytes of text that are written, or known to be missing
	waiting []piece
	waits   int  // bytes in waiting
	timer   bool // a timer will write waiting
	closed  bool
	err     error // the first error; nothing is written after it
	line    []byte
}

// A piece is a record that is not written yet.
type piece struct {
	time time.Time
	kind string
	text string
	at   int64 // bytes of text before it
}

// streamName returns the prefix of a stream's file names.
func streamName(turn string, start int) string {
	return strings.ReplaceAll(turn, "/", "+") + "+" + strconv.Itoa(start)
}

func partName(name string, part int) string { return name + "." + strconv.Itoa(part) + ".jsonl" }

// Write adds a record of a kind: a provider's text, stderr, thinking, tool, …. It never fails,
// because a turn must not fail for its stream. Close returns the first error.
func (w *StreamWriter) Write(kind, text string) {
	if text == "" {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return
	}
	// Text that the tail would drop again is skipped.
	if skip := len(text) - 2*partSize; skip > 0 && w.part > 0 {
		skip = excerpt.CutAt(text, skip)
		w.said += int64(skip)
		text = text[skip:]
	}
	for len(text) > 0 {
		n := excerpt.CutAt(text, pieceSize)
		p := piece{now, kind, text[:n], w.said}
		w.said += int64(n)
		text = text[n:]
		if w.part == 0 {
			w.put(p)
		} else {
			w.enqueue(p)
		}
	}
}

// enqueue buffers a piece of the tail. If the buffer is full, it drops the oldest pieces.
func (w *StreamWriter) enqueue(p piece) {
	w.waiting = append(w.waiting, p)
	w.waits += len(p.text)
	drop := 0
	for w.waits-len(w.waiting[drop].text) > partSize {
		w.waits -= len(w.waiting[drop].text)
		w.waiting[drop] = piece{}
		drop++
	}
	w.waiting = w.waiting[drop:]
	if !w.timer {
		w.timer = true
		time.AfterFunc(moment, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.timer = false
			w.flush()
		})
	}
}

// flush writes the buffered pieces. The caller holds mu.
func (w *StreamWriter) flush() {
	for _, p := range w.waiting {
		w.put(p)
	}
	w.waiting, w.waits = nil, 0
}

// put writes a piece into the current part, and begins the next part when this one is full. A
// position line comes at the beginning of every part, and before a piece that follows a gap.
func (w *StreamWriter) put(p piece) {
	if w.err != nil || w.closed {
		return
	}
	w.line = w.line[:0]
	if p.at > w.written || w.size == 0 && w.part > 0 {
		w.line = appendAt(w.line, p.at)
	}
	w.line = appendRecord(w.line, p.time, p.kind, p.text)
	w.written = p.at + int64(len(p.text))
	if w.part == 0 {
		w.all.add(w, w.line)
	} else if w.write(); w.err != nil {
		return
	}
	if w.size += len(w.line); w.size >= partSize {
		w.next()
	}
}

// write writes the line into the part.
func (w *StreamWriter) write() {
	if w.file == nil {
		if w.file, w.err = w.open(); w.err != nil {
			return
		}
	}
	_, w.err = w.file.Write(w.line)
}

func (w *StreamWriter) open() (*os.File, error) {
	return os.OpenFile(w.path(w.part), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
}

func (w *StreamWriter) path(part int) string {
	return w.all.home.streamDir(w.all.run) + "/" + partName(w.name, part)
}

// next finishes the part. The part before it is deleted, unless it is the head.
func (w *StreamWriter) next() {
	if w.part == 0 {
		_ = w.all.Flush() // creates the folder
	} else {
		w.err = w.file.Close()
	}
	w.file, w.size = nil, 0
	if w.part > 1 {
		_ = os.Remove(w.path(w.part - 1))
	}
	w.part++
}

// Close writes the buffered pieces. Its error is no reason for the turn to fail.
func (w *StreamWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	if w.file != nil && !w.closed {
		if err := w.file.Close(); w.err == nil {
			w.err = err
		}
	}
	w.closed = true
	if err := w.all.Flush(); w.err == nil {
		w.err = err
	}
	if w.err != nil {
		return w.all.failure(w.err)
	}
	return nil
}
