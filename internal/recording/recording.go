// Package recording reads and writes the file of a recorded run: its log, in order, with the texts
// that the log refers to. [Create] writes the file once, when the process leaves the run. [Open]
// reads it whole, and [swarm/internal/engine/replay] runs a loop from it. A [Recording] does not
// change after it is read.
//
// The file is lines of JSON, in this order:
//   - the [Header];
//   - events and texts, each text before the first event that refers to it;
//   - the end: the number of events, and the SHA-256 of all lines before it.
//
// The end makes a truncated file, a changed byte and a lost line an error. It is no signature: it
// protects against damage only.
package recording

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"swarm"
)

// Version is the version of the format that this program writes and reads.
const Version = 2

// A Recording is a recorded run.
type Recording struct {
	Header Header
	File   string        // the name under which it was opened, for errors
	Events []swarm.Event // in the order of the log, with the numbers of the recorded run
	texts  map[swarm.Hash][]byte
}

// A Header is the first line.
type Header struct {
	Version int         `json:"swarm_cassette"`
	Run     swarm.RunID `json:"run,omitempty"`     // the run that was recorded
	Name    string      `json:"name,omitempty"`    // its pipeline, or its goal
	Program string      `json:"program,omitempty"` // the version of the program that recorded it
}

// Text returns the text with this hash, if the recording has it.
func (r *Recording) Text(h swarm.Hash) ([]byte, bool) {
	if h == swarm.NoText {
		return nil, true
	}
	text, ok := r.texts[h]
	return text, ok
}

// Texts returns the texts that an event refers to, as far as the recording has them.
func (r *Recording) Texts(e *swarm.Event) (all [][]byte) {
	for _, h := range references(e.Data) {
		if text, ok := r.texts[h]; ok {
			all = append(all, text)
		}
	}
	return all
}

// references returns the hashes of texts that a body may refer to: every JSON string in it that
// looks like a hash. So no list of fields has to be kept: a body that gains a reference is recorded
// with its text. A string that only looks like a hash does no harm, because the log has no text
// under it.
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

// A line is any line after the first. It holds one of three things: an event, a text, or the end.
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

	// A text. Bytes that are not UTF-8 are in Base64, because a JSON string cannot hold them.
	Hash   swarm.Hash `json:"hash,omitempty"`
	Text   string     `json:"text,omitempty"`
	Base64 []byte     `json:"base64,omitempty"`

	// The end.
	Events *int   `json:"events,omitempty"`
	Sum    string `json:"sha256,omitempty"` // of all lines before this one
}

func eventLine(e *swarm.Event) line {
	return line{Seq: e.Seq, Time: e.Time, Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn,
		To: e.To, Key: e.Key, Data: e.Data}
}

func (l *line) event() swarm.Event {
	return swarm.Event{Seq: l.Seq, Time: l.Time, Kind: l.Kind, Agent: l.Agent, Task: l.Task, Turn: l.Turn,
		To: l.To, Key: l.Key, Data: l.Data}
}

func textLine(h swarm.Hash, text []byte) line {
	if utf8.Valid(text) {
		return line{Hash: h, Text: string(text)}
	}
	return line{Hash: h, Base64: text}
}
