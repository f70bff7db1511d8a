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

// What the turns of a run say goes into one file, said.jsonl, in groups: a line that names the turn, and the turn's records, a line each.
// Beside it said.index has the place of every group, so that one turn can be read without the others. A file for each turn would cost more
// than everything else that a short turn writes.
//
// That file has the head of each turn. What a turn says after its head goes into parts of its own, files of records. Of them the last
// two stay, which is the tail. After the head, what is said waits in memory and is written every moment: however fast it comes, no more
// than the tail is kept, and it costs next to nothing.
//
// Nothing is synced, and nobody waits for it. What an index does not tell of was never said, as far as readers know.
const (
	partSize  = 1 << 20                // the head, and the least that is kept of the tail
	pieceSize = 32 << 10               // the longest record
	soon      = 20 * time.Millisecond  // how late a reader sees what belongs to the head
	moment    = 100 * time.Millisecond // and what comes after it
	maxHeads  = 256 << 10              // how much of heads may wait to be written

	saidName  = "said.jsonl"
	indexName = "said.index"
	entrySize = 24 // of the index: the hash of the turn's name, the place of the group, its length
)

// A StreamsWriter writes down what the turns of a run say, so that others can watch them. It may be used by many at once.
type StreamsWriter struct {
	home *Home
	run  swarm.RunID

	mu      sync.Mutex
	said    *os.File // nil until something is said
	index   *os.File
	waiting []*StreamWriter // those with a head that waits to be written, in the order of their first word
	bytes   int             // how much waits
	timer   bool            // somebody will write it
	err     error           // the first one; nothing is written after it
}

// WriteStreams writes what the turns of a run say. Nothing is made before the first word.
func (h *Home) WriteStreams(run swarm.RunID) *StreamsWriter { return &StreamsWriter{home: h, run: run} }

// Turn writes what a turn says that was started for the n-th time.
func (s *StreamsWriter) Turn(turn string, start int) *StreamWriter {
	return &StreamWriter{all: s, name: streamName(turn, start)}
}

// add has a line of a turn's head written soon.
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
		time.AfterFunc(soon, func() { _ = s.Flush() }) // Close says what went wrong
	}
}

// write writes the heads that wait: first what was said, then where it is, so that a reader who knows of a group finds it.
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
	// Another process may have written, too, which drove the run before or does since: the place is known afterwards.
	end, err := s.said.Seek(0, io.SeekCurrent)
	if s.err = err; err == nil {
		moveEntries(index, end-int64(len(said)))
		_, s.err = s.index.Write(index)
	}
}

// Flush has readers see the heads as they are now.
func (s *StreamsWriter) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write()
	return s.err
}

// open opens the files to write at their ends. What a crash has left there, half a line or half an entry, is made whole.
func (s *StreamsWriter) open() (err error) {
	dir := s.home.streamDir(s.run)
	if err := made(dir); err != nil {
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

// Close writes what waits.
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
	s.err = os.ErrClosed // for those who still speak
	return nil
}

func (s *StreamsWriter) failure(err error) error {
	return &swarm.Error{Kind: swarm.Storage, File: s.home.streamDir(s.run), Msg: "what the turns say could not be written down", Err: swarm.WithoutPath(err)}
}

// A StreamWriter writes down what one turn says. It keeps the first and the last MiB of records. It may be used by many at once.
type StreamWriter struct {
	all  *StreamsWriter
	name string
	head []byte // what waits to be written of the head; all guards it

	mu      sync.Mutex
	file    *os.File // of a part after the head
	part    int
	size    int   // of the part
	said    int64 // bytes of text, all in all
	written int64 // of them, those that were written or are known to be missing
	waiting []piece
	waits   int  // bytes in waiting
	timer   bool // somebody will write what waits
	closed  bool
	err     error // the first one; nothing is written after it
	line    []byte
}

type piece struct {
	time time.Time
	kind string
	text string
	at   int64 // how much was said before it
}

// streamName is the beginning of the names of a stream's parts.
func streamName(turn string, start int) string {
	return strings.ReplaceAll(turn, "/", "+") + "+" + strconv.Itoa(start)
}

func partName(name string, part int) string { return name + "." + strconv.Itoa(part) + ".jsonl" }

// Write adds a record of a kind: a provider's text, stderr, thinking, tool, …. It cannot fail: what cannot be written is not kept,
// and Close says why.
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
	// What would not stay anyhow is not looked at.
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
			w.wait(p)
		}
	}
}

// wait keeps a piece for the next moment, and forgets the oldest ones when there are too many.
func (w *StreamWriter) wait(p piece) {
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

// flush writes what waits.
func (w *StreamWriter) flush() {
	for _, p := range w.waiting {
		w.put(p)
	}
	w.waiting, w.waits = nil, 0
}

// put writes a piece into the part, and begins the next part when this one is full. In front of a piece before which something
// is missing, and at the beginning of every part, a line says how much was said before it.
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

// next ends the part. The one before it is no longer needed, unless it is the head.
func (w *StreamWriter) next() {
	if w.part == 0 {
		_ = w.all.Flush() // the folder is there then
	} else {
		w.err = w.file.Close()
	}
	w.file, w.size = nil, 0
	if w.part > 1 {
		_ = os.Remove(w.path(w.part - 1))
	}
	w.part++
}

// Close writes what waits. It returns what went wrong, which is no reason for a turn to fail.
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
