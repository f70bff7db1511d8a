package home

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"swarm"
)

// What a turn says goes into parts, files of JSON lines. Part 0 is the head and stays; of the others the last two stay, which is
// the tail. After the head, what is said waits in memory and is written every moment: however fast it comes, no more than the
// tail is kept, and it costs next to nothing. Nothing is synced, and nobody waits for it.
const (
	partSize  = 1 << 20                // the head, and the least that is kept of the tail
	pieceSize = 32 << 10               // the longest record
	moment    = 100 * time.Millisecond // how late a reader sees what comes after the head
)

// A StreamWriter writes down what a running turn says, so that others can watch it. It keeps the first and the last MiB of records. It may
// be used by many at once.
type StreamWriter struct {
	home *Home
	run  string
	name string

	mu      sync.Mutex
	file    *os.File // nil until something is said
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

// Stream writes what a turn says that was started for the n-th time. Nothing is made before the first word.
func (h *Home) Stream(run, turn string, start int) *StreamWriter {
	return &StreamWriter{home: h, run: run, name: streamName(turn, start)}
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
		skip = wholeRune(text, skip)
		w.said += int64(skip)
		text = text[skip:]
	}
	for len(text) > 0 {
		n := wholeRune(text, min(len(text), pieceSize))
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

// wholeRune is the last place up to n where text can be cut without cutting a rune.
func wholeRune(text string, n int) int {
	for i := n; i > max(0, n-utf8.UTFMax) && i < len(text); i-- {
		if utf8.RuneStart(text[i]) {
			return i
		}
	}
	return n
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
	if w.file == nil {
		if w.file, w.err = w.open(); w.err != nil {
			return
		}
	}
	if _, w.err = w.file.Write(w.line); w.err != nil {
		return
	}
	if w.size += len(w.line); w.size >= partSize {
		w.next()
	}
}

func (w *StreamWriter) open() (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC | syscall.O_NOFOLLOW
	dir := w.home.streamDir(w.run)
	path := dir + "/" + partName(w.name, w.part)
	f, err := os.OpenFile(path, flags, 0o600)
	if os.IsNotExist(err) {
		if err := made(dir); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, flags, 0o600)
	}
	return f, err
}

// next ends the part. The one before it is no longer needed, unless it is the head.
func (w *StreamWriter) next() {
	w.err = w.file.Close()
	w.file, w.size = nil, 0
	if w.part > 1 {
		_ = os.Remove(w.home.streamDir(w.run) + "/" + partName(w.name, w.part-1))
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
	if w.err != nil {
		return &swarm.Error{Kind: swarm.Storage, File: w.name, Msg: "what the turn said could not be written down", Err: w.err}
	}
	return nil
}
