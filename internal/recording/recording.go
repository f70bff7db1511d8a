// Package recording is the file that a run is recorded in: its log, in the log's order, with the texts that it refers to. A
// recording is written once, when the run is left, and read whole. [swarm/internal/engine/replay] walks it.
//
// The file is lines of JSON. The first is a [Header]. Then come events, and texts, each text before the first event that
// refers to it. The last line has the number of events and the SHA-256 of all that stands before it, so that a byte which was
// changed, and a line which was lost, are noticed.
package recording

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"swarm"
)

// Version is the one that this program writes and reads.
const Version = 2

// A Recording is a recorded run.
type Recording struct {
	Header Header
	File   string        // the name that it was opened by
	Events []swarm.Event // in the order of the log, under the numbers that they had there
	texts  map[swarm.Hash][]byte
}

// A Header is the first line.
type Header struct {
	Version int         `json:"swarm_cassette"`
	Run     swarm.RunID `json:"run,omitempty"`     // the run that was recorded
	Name    string      `json:"name,omitempty"`    // its pipeline, or its goal
	Program string      `json:"program,omitempty"` // the version of the program that recorded it
}

// Text is the text with this hash, as far as the recording has it.
func (r *Recording) Text(h swarm.Hash) ([]byte, bool) {
	if h == swarm.NoText {
		return nil, true
	}
	text, ok := r.texts[h]
	return text, ok
}

// Texts are the texts that an event refers to, as far as the recording has them.
func (r *Recording) Texts(e *swarm.Event) (all [][]byte) {
	for _, h := range references(e.Data) {
		if text, ok := r.texts[h]; ok {
			all = append(all, text)
		}
	}
	return all
}

// references are the hashes of texts that a body may name: every word of it that looks like one. So a body that gains a
// reference is recorded with its text, and a word that only looks like one is none, because no text has that hash.
func references(body json.RawMessage) (all []swarm.Hash) {
	const digits = len(swarm.NoText)
	for i := 0; i < len(body); i++ {
		n := 0
		for i+n < len(body) && isHex(body[i+n]) {
			n++
		}
		if n == digits && i > 0 && body[i-1] == '"' && i+n < len(body) && body[i+n] == '"' {
			all = append(all, swarm.Hash(body[i:i+n]))
		}
		i += n
	}
	return all
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

// A line is any line after the first. One of its three parts is there.
type line struct {
	// An event.
	Seq   int64           `json:"seq,omitempty"`
	Time  time.Time       `json:"time,omitzero"`
	Kind  swarm.EventKind `json:"kind,omitempty"`
	Agent string          `json:"agent,omitempty"`
	Task  string          `json:"task,omitempty"`
	Turn  swarm.TurnID    `json:"turn,omitempty"`
	To    string          `json:"to,omitempty"`
	Key   string          `json:"key,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`

	// A text, or its bytes if they are not UTF-8: then JSON has no string for them.
	Hash   swarm.Hash `json:"hash,omitempty"`
	Text   string     `json:"text,omitempty"`
	Base64 []byte     `json:"base64,omitempty"`

	// The end.
	Events *int   `json:"events,omitempty"`
	Sum    string `json:"sha256,omitempty"` // of all lines before this one
}

func eventLine(e *swarm.Event) line {
	return line{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, To: e.To, Key: e.Key, Data: e.Data}
}

func (l *line) event() swarm.Event {
	return swarm.Event{Seq: l.Seq, Time: l.Time, Kind: l.Kind, Agent: l.Agent, Task: l.Task, Turn: l.Turn, To: l.To, Key: l.Key, Data: l.Data}
}

func textLine(h swarm.Hash, text []byte) line {
	if utf8.Valid(text) {
		return line{Hash: h, Text: string(text)}
	}
	return line{Hash: h, Base64: text}
}
