package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/process"
)

const (
	maxLine    = 8 << 20 // bytes of one message
	maxServing = 64      // requests of the program that are being answered at once
)

// A conn is a JSON-RPC 2.0 connection to a program, one message on a line. Both sides send requests
// and notifications.
//
// The goroutine that reads from the program never waits for a write to it. Otherwise two sides that
// write at the same time could deadlock. Requests of the program are therefore answered in
// goroutines of their own, and messages to it go through the outbox.
//
// The connection of the protocol's Go SDK is not used. It logs stray lines instead of handing them
// over, answers any number of requests at once, ends when 1,024 notifications wait, and blocks on a
// write to a program that does not read.
type conn struct {
	// onNotice takes a notification: in order, and before any answer that comes after it.
	onNotice func(method string, params json.RawMessage)
	// onRequest answers a request, in a goroutine of its own.
	onRequest func(method string, params json.RawMessage) (any, *rpcError)
	onStray   func(line string) // takes a line that is not a message

	outbox chan []byte
	lines  process.Lines

	mu       sync.Mutex
	lastID   int64 // the id of our last request
	waiting  map[int64]chan message
	serving  int
	closeErr error         // why the connection is closed
	closed   chan struct{} // closed when nothing more is read or written
}

// newConn makes a connection. Its handlers must be set before it reads or writes.
func newConn() *conn {
	return &conn{
		lines:   process.Lines{Max: maxLine},
		outbox:  make(chan []byte, maxServing),
		waiting: map[int64]chan message{},
		closed:  make(chan struct{}),
	}
}

// A message is a request, an answer or a notification.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// An rpcError is an error answer.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns all that the error says, including its data: agents put the cause there.
func (c *rpcError) Error() string {
	text := c.Message
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Kind    string `json:"errorKind"`
	}
	more := []string{outputText(c.Data)}
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

// Codes of errors.
const (
	codeNotSignedIn = -32000
	codeNotFound    = -32002
	codeNoMethod    = -32601
	codeBadParams   = -32602
	codeFailed      = -32603
)

// writeOutbox writes the messages to the program until the connection is closed. A failed write is
// no error here: the end of the program says what happened.
func (c *conn) writeOutbox(to io.Writer) {
	for {
		select {
		case line := <-c.outbox:
			_, _ = to.Write(line)
		case <-c.closed:
			return
		}
	}
}

// send puts a message into the outbox.
func (c *conn) send(ctx context.Context, m message) error {
	m.Version = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case c.outbox <- append(line, '\n'):
		return nil
	case <-c.closed:
		return c.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notify sends a notification.
func (c *conn) notify(ctx context.Context, method string, params any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.send(ctx, message{Method: method, Params: body})
}

// call sends a request and waits for the answer.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	// The channel has room for one answer, so that the reading goroutine never waits for a caller
	// that has given up.
	answer := make(chan message, 1)
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := c.send(ctx, message{ID: strconv.AppendInt(nil, id, 10), Method: method, Params: body}); err != nil {
		return err
	}
	var m message
	select {
	case m = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		select {
		case m = <-answer: // it came just before the end
		default:
			return c.closeErr
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

// close closes the connection. The first reason counts.
func (c *conn) close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeErr == nil {
		c.closeErr = why
		close(c.closed)
	}
}

// isClosed says whether the connection is closed.
func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// readPiece takes a piece of the program's output.
func (c *conn) readPiece(piece string) {
	ok := c.lines.Write(piece, func(line []byte) {
		if !c.isClosed() {
			c.handleLine(line)
		}
	})
	if !ok {
		c.close(swarm.Errorf(swarm.Protocol, "it wrote a line of more than %d MB", maxLine>>20).
			WithHint("see whether its arguments make it speak the Agent Client Protocol"))
	}
}

// handleLine dispatches a message. A line that is no message is stray output of the program.
func (c *conn) handleLine(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	var m message
	if line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Method == "" && m.ID == nil {
		c.onStray(string(line))
		return
	}
	switch {
	case m.Method == "":
		c.deliverAnswer(m)
	case m.ID == nil:
		c.onNotice(m.Method, m.Params)
	default:
		c.answerRequest(m)
	}
}

// deliverAnswer gives an answer to the call that waits for it. A late answer is dropped.
func (c *conn) deliverAnswer(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.waiting[id]; answer != nil {
		delete(c.waiting, id)
		answer <- m
	}
}

// answerRequest answers a request of the program. The number of requests at once is limited,
// because each is a goroutine and an entry in the outbox.
func (c *conn) answerRequest(m message) {
	c.mu.Lock()
	c.serving++
	many := c.serving > maxServing
	c.mu.Unlock()
	if many {
		c.close(swarm.Errorf(swarm.Protocol, "it sent more than %d requests without reading the answers", maxServing))
		return
	}
	go func() {
		answer := message{ID: m.ID}
		result, no := c.onRequest(m.Method, m.Params)
		// The lock orders the work of the answer before the turn's end, which is read under it too.
		c.mu.Lock()
		if answer.Error = no; no == nil {
			answer.Result, _ = json.Marshal(result) // our own types, which can be encoded
		}
		c.mu.Unlock()
		_ = c.send(context.Background(), answer)
		c.mu.Lock()
		c.serving--
		c.mu.Unlock()
	}()
}
