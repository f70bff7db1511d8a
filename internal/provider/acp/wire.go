package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"sync"

	"swarm/internal/excerpt"
	"swarm/internal/process"

	"swarm"
)

const (
	maxLine    = 8 << 20 // bytes of one message
	maxServing = 64      // questions of the program that are being answered at once
)

// A wire is what is said between us and a program: JSON-RPC 2.0, a message on a line. Each side may ask the other, and tell it
// things. Nothing that we say is waited for where the program is listened to, so that two who talk at once never block each other.
type wire struct {
	hear  func(method string, params json.RawMessage)                   // what it tells, in order, and before any answer that comes later
	serve func(method string, params json.RawMessage) (any, *complaint) // what it asks, in a goroutine of its own
	noise func(line string)                                             // what is no message

	outbox chan []byte
	lines  process.Lines

	mu      sync.Mutex
	last    int64 // the id of our last question
	waiting map[int64]chan message
	serving int
	why     error         // it is over
	over    chan struct{} // closed when it is: nothing more is heard or said
}

func newWire() *wire {
	return &wire{lines: process.Lines{Max: maxLine}, outbox: make(chan []byte, maxServing), waiting: map[int64]chan message{}, over: make(chan struct{})}
}

// A message is a question, an answer or a notice.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *complaint      `json:"error,omitempty"`
}

// A complaint is how one side says that it does not do what it was asked.
type complaint struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error is all that the complaint says: agents put what happened into its data.
func (c *complaint) Error() string {
	text := c.Message
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Kind    string `json:"errorKind"`
	}
	more := []string{plain(c.Data)}
	if json.Unmarshal(c.Data, &data) == nil {
		more = []string{data.Details, data.Message, data.Kind}
	}
	for _, m := range more {
		if m != "" && !strings.Contains(text, m) {
			text += ": " + m
		}
	}
	return excerpt.Head(excerpt.OneLine(text), maxTitle)
}

// Codes of complaints.
const (
	codeNotSignedIn = -32000
	codeNotFound    = -32002
	codeNoMethod    = -32601
	codeBadParams   = -32602
	codeFailed      = -32603
)

// write passes on to the program what is said, until it is over. A program that no longer reads has not failed: how it ends tells.
func (w *wire) write(to io.Writer) {
	for {
		select {
		case line := <-w.outbox:
			_, _ = to.Write(line)
		case <-w.over:
			return
		}
	}
}

// say puts a message into the outbox.
func (w *wire) say(ctx context.Context, m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case w.outbox <- append(line, '\n'):
		return nil
	case <-w.over:
		return w.why
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tell says something that has no answer.
func (w *wire) tell(ctx context.Context, method string, params any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return w.say(ctx, message{Method: method, Params: body})
}

// ask says something and waits for the answer.
func (w *wire) ask(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan message, 1)
	w.mu.Lock()
	w.last++
	id := w.last
	w.waiting[id] = answer
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.waiting, id)
		w.mu.Unlock()
	}()
	if err := w.say(ctx, message{ID: strconv.AppendInt(nil, id, 10), Method: method, Params: body}); err != nil {
		return err
	}
	var m message
	select {
	case m = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.over:
		select {
		case m = <-answer: // it came with the last words
		default:
			return w.why
		}
	}
	if m.Error != nil {
		return m.Error
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return swarm.Errorf(swarm.Protocol, "its answer to %s cannot be read: %w", method, err)
	}
	return nil
}

// end makes it over, for this reason unless there is one already.
func (w *wire) end(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = why
		close(w.over)
	}
}

func (w *wire) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// take is given what the program says, in pieces.
func (w *wire) take(piece string) {
	ok := w.lines.Write(piece, func(line []byte) {
		if !w.isOver() {
			w.understand(line)
		}
	})
	if !ok {
		w.end(swarm.Errorf(swarm.Protocol, "it said a line of more than %d MB", maxLine>>20).
			WithHint("a message has less; perhaps the program does not speak the Agent Client Protocol as it was started"))
	}
}

func (w *wire) understand(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	var m message
	if line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Method == "" && m.ID == nil {
		w.noise(string(line))
		return
	}
	switch {
	case m.Method == "":
		w.answered(m)
	case m.ID == nil:
		w.hear(m.Method, m.Params)
	default:
		w.asked(m)
	}
}

// answered gives an answer to whoever waits for it. One that nobody waits for is too late.
func (w *wire) answered(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if answer := w.waiting[id]; answer != nil {
		delete(w.waiting, id)
		answer <- m
	}
}

// asked answers a question of the program.
func (w *wire) asked(m message) {
	w.mu.Lock()
	w.serving++
	many := w.serving > maxServing
	w.mu.Unlock()
	if many {
		w.end(swarm.Errorf(swarm.Protocol, "it asked more than %d things without reading the answers", maxServing))
		return
	}
	go func() {
		answer := message{ID: m.ID}
		result, no := w.serve(m.Method, m.Params)
		// Under the lock by which the turn's end is read: what was done to answer happens before that.
		w.mu.Lock()
		if answer.Error = no; no == nil {
			answer.Result, _ = json.Marshal(result) // of our own types, which can be written
		}
		w.mu.Unlock()
		_ = w.say(context.Background(), answer)
		w.mu.Lock()
		w.serving--
		w.mu.Unlock()
	}()
}
