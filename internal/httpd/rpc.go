package httpd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"swarm"
	"swarm/internal/strictjson"
)

// The fields of a JSON-RPC message. Package agentapi and the SDK check what stands in the free ones.
var (
	rpcFields = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	rpcFree   = []string{"params", "result", "error"}
)

// readRPC checks a JSON-RPC message, or a batch of them, before the SDK sees it, and returns it in
// canonical form. The SDK would take the last of two equal keys, and ignore text after the message:
// then it could execute another call than the one that a proxy or a log has seen.
func readRPC(text []byte) (json.RawMessage, *jsonrpc.Error) {
	value, err := strictjson.ReadMessage(text, rpcFields, rpcFree)
	if err != nil {
		return nil, rpcError(jsonrpc.CodeParseError, err)
	}
	messages := []json.RawMessage{value}
	if value[0] == '[' {
		if err := json.Unmarshal(value, &messages); err != nil {
			return nil, rpcError(jsonrpc.CodeParseError, err)
		}
	}
	if len(messages) == 0 {
		return nil, rpcError(jsonrpc.CodeInvalidRequest, swarm.Errorf(swarm.BadInput, "the batch is empty"))
	}
	for _, m := range messages {
		if err := checkRPC(m); err != nil {
			return nil, rpcError(jsonrpc.CodeInvalidRequest, err)
		}
	}
	return value, nil
}

// checkRPC checks the shape of one message: a request, a notification, or an answer.
func checkRPC(text json.RawMessage) error {
	var m struct {
		JSONRPC                           any
		ID, Method, Params, Result, Error json.RawMessage
	}
	if text[0] != '{' || json.Unmarshal(text, &m) != nil {
		return swarm.Errorf(swarm.BadInput, "a message is one JSON object")
	}
	switch {
	case m.JSONRPC != "2.0":
		return swarm.Errorf(swarm.BadInput, `the field "jsonrpc" must be "2.0"`)
	case !isRPCID(m.ID):
		return swarm.Errorf(swarm.BadInput, `the field "id" must be a string or a whole number`)
	case m.Method == nil && (m.ID == nil || (m.Result == nil) == (m.Error == nil)):
		return swarm.Errorf(swarm.BadInput, `a message has a "method", or an "id" with a "result" or an "error"`)
	case m.Method != nil && (m.Result != nil || m.Error != nil):
		return swarm.Errorf(swarm.BadInput, `a message with a "method" has neither "result" nor "error"`)
	case m.Method != nil && (m.Method[0] != '"' || len(m.Method) == len(`""`)):
		return swarm.Errorf(swarm.BadInput, `the field "method" must be a string that names a method`)
	case m.Params != nil && m.Params[0] != '{' && m.Params[0] != '[' && string(m.Params) != "null":
		return swarm.Errorf(swarm.BadInput, `the field "params" must be an object`)
	}
	return nil
}

// isRPCID reports whether a value is an id. The SDK holds numbers as float64: a larger number would
// come back as another id.
func isRPCID(id json.RawMessage) bool {
	const most = 1 << 53
	if id == nil || id[0] == '"' || string(id) == "null" {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && -most <= n && n <= most
}

func rpcError(code int64, err error) *jsonrpc.Error {
	text := err.Error()
	if hint := swarm.HintOf(err); hint != "" {
		text += ": " + hint
	}
	return &jsonrpc.Error{Code: code, Message: text}
}

// rpcAnswer is the answer to a message that was not executed. It has the id of the message, so that
// the client can tell which of its calls failed, or null if the message does not have exactly one.
func rpcAnswer(text []byte, err *jsonrpc.Error) (answer []byte, known bool) {
	id := rpcID(text)
	return append(swarm.Encode(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, err}), '\n'), id != nil
}

// rpcID returns the id of a call that is not executed, or nil.
func rpcID(text []byte) (id json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil || key == "id" && id != nil {
			return nil
		}
		if key == "id" {
			id = value
		}
	}
	if !isRPCID(id) || string(id) == "null" {
		return nil
	}
	return id
}

// readRPCRequest replaces the body of a request by its canonical form. It answers the request
// itself, and returns false, if the body is not one JSON-RPC message. The answer to a call with an id
// has the status 200: MCP clients give up their session at any other.
func readRPCRequest(w http.ResponseWriter, r *http.Request) bool {
	text, _ := io.ReadAll(r.Body) // the guard has read it into memory
	good, wrong := readRPC(text)
	if wrong != nil {
		answer, known := rpcAnswer(text, wrong)
		w.Header().Set("Content-Type", "application/json")
		if !known {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = w.Write(answer) // an error means that the client is gone
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(good))
	return true
}

// An rpcLines reads JSON-RPC messages, one per line, and passes on those that readRPC accepts. It
// answers the others itself.
type rpcLines struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of the current line
}

// Read returns the accepted lines.
func (l *rpcLines) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.next()
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		good, wrong := readRPC(line)
		if wrong != nil {
			answer, _ := rpcAnswer(line, wrong)
			if _, err := l.out.Write(answer); err != nil {
				return 0, err
			}
			continue
		}
		l.rest = append(good, '\n')
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line of at most MaxBody bytes. A longer one ends the session, because its end may
// never come.
func (l *rpcLines) next() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > MaxBody:
			return nil, swarm.Errorf(swarm.BadInput, "a message is larger than %d bytes", MaxBody)
		}
	}
}

// A sharedWriter takes one write at a time, from the SDK and from rpcLines. It leaves closing the
// output to its owner.
type sharedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *sharedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// Close does nothing.
func (*sharedWriter) Close() error { return nil }
