package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/process"
)

// start starts the program of a server that speaks MCP over standard input and output.
func (s *server) start(l *link) (mcp.Transport, error) {
	fail := func(err error) error {
		why := notRun(s.Command[0], err)
		return swarm.Errorf(swarm.NotFound, "the tool server %q did not start: %w", s.Name, why).
			WithHint("install it, or correct its command under tools.mcp")
	}
	environ, err := process.NewEnvironment(s.o.Environ, s.Env)
	if err != nil {
		return nil, err
	}
	mark := process.Mark{Run: s.o.Run, Turn: fmt.Sprintf("tools/%s/%d", s.Name, s.starts)}
	env, err := environ.Of(mark, nil, s.o.Dir)
	if err != nil {
		return nil, err
	}
	path, err := s.program()
	if err != nil {
		return nil, fail(err)
	}
	from, to := io.Pipe()
	life, kill := context.WithCancel(context.Background())
	lines := &messages{to: to, link: l}
	p, err := process.Job{
		Path: path, Argv: s.Command, Dir: s.o.Dir, Env: env, Talk: true, Grace: s.o.Grace, Run: mark.Run, Turn: mark.Turn,
		Stdout: func(piece string) {
			if !lines.forward(piece) {
				kill()
			}
		},
	}.Start()
	if err != nil {
		kill()
		return nil, fail(err)
	}
	ended := make(chan struct{})
	var status syscall.WaitStatus
	var lost error
	go func() {
		status, _, lost = p.Wait(life)
		_ = to.Close()
		close(ended)
	}()
	l.end = func() {
		p.CloseInput() // asks the program to end
		select {
		case <-ended:
		case <-after(s.o.Grace):
		}
		kill()
		<-ended
	}
	l.why = func() string {
		select {
		case <-ended:
			return lines.exitReason(status, lost, p.Stderr().Bytes())
		default:
			return "" // it still runs
		}
	}
	return &mcp.IOTransport{Reader: from, Writer: input{p}, MaxLineLength: maxMessage + 1024}, nil
}

// input is the standard input of a server's program.
type input struct{ *process.Process }

func (i input) Close() error {
	i.CloseInput()
	return nil
}

// messages filters a server's output. Some servers print log lines where only messages belong;
// these are dropped.
type messages struct {
	to   *io.PipeWriter
	link *link
	in   bool // inside a line
	drop bool // the line is not a message
	size int  // of the line
}

// forward forwards messages. It returns false if a message is too large, or the reader is gone.
func (m *messages) forward(piece string) bool {
	for piece != "" {
		line, rest, whole := strings.Cut(piece, "\n")
		if !m.in {
			if line = strings.TrimLeft(line, " \t\r\uFEFF"); line == "" {
				piece = rest
				continue
			}
			m.in, m.size, m.drop = true, 0, line[0] != '{' && line[0] != '['
		}
		if m.size += len(line); !m.drop && m.size > m.link.limit() {
			m.link.over.Store(int64(m.link.limit()))
			return false
		}
		if !m.drop {
			if whole {
				line += "\n"
			}
			if _, err := io.WriteString(m.to, line); err != nil {
				return false // the reader is gone
			}
		}
		m.in = !whole
		piece = rest
	}
	return true
}

// exitReason describes why a server has ended.
func (m *messages) exitReason(status syscall.WaitStatus, lost error, stderr []byte) string {
	if why := m.link.tooLarge(); why != "" {
		return why
	}
	how := fmt.Sprintf("exit status %d", status.ExitStatus())
	switch {
	case lost != nil:
		how = "exit status unknown"
	case status.Signaled():
		how = fmt.Sprintf("signal %d (%v)", int(status.Signal()), status.Signal())
	}
	return how + process.LastWords(stderr)
}

// dial prepares the connection to a server over HTTP.
func (s *server) dial(l *link) (mcp.Transport, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return nil, swarm.Errorf(swarm.BadInput, "the url of the tool server %q is none", s.Name).
			WithHint("write one such as http://127.0.0.1:8000/mcp")
	}
	header, err := s.header()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	b := &bounded{next: transport, header: header, link: l}
	l.end = transport.CloseIdleConnections
	l.why = l.tooLarge
	client := &http.Client{Transport: b, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != u.Host || r.URL.Scheme != u.Scheme || len(via) > maxRedirects {
			return errors.New("it leads to another server")
		}
		return nil
	}}
	// The standalone SSE stream is off: tools are listed anew for each turn, so notifications are not needed.
	t := &mcp.StreamableClientTransport{
		Endpoint: s.URL, HTTPClient: client, MaxRetries: 2, DisableStandaloneSSE: true, MaxEventSize: maxMessage,
	}
	if s.o.Logins != nil && header.Get("Authorization") == "" {
		t.OAuthHandler = &loginHandler{s, l, &logins{store: s.o.Logins, url: s.URL, http: &http.Client{Timeout: startTime}, told: s.given.addLogin}}
	}
	return t, nil
}

// header returns the headers of each request to the server.
func (s *server) header() (http.Header, error) {
	h, _, missing := process.Headers(s.o.Environ, s.Headers)
	if missing != "" {
		return nil, s.unset(missing)
	}
	return h, nil
}

// bounded limits the size of answers. In a stream the limit applies to each event.
type bounded struct {
	next   http.RoundTripper
	header http.Header
	link   *link
}

// RoundTrip adds the configured headers and limits the answer's body.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(b.header) > 0 {
		r = r.Clone(r.Context())
		maps.Copy(r.Header, b.header)
	}
	response, err := b.next.RoundTrip(r)
	if err == nil {
		stream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
		response.Body = &boundedBody{ReadCloser: response.Body, left: b.link.limit(), stream: stream, link: b.link}
		if response.StatusCode >= http.StatusBadRequest {
			explainRefusal(response, r.Header.Get("Mcp-Session-Id") != "")
		}
	}
	return response, err
}

// maxRefusal is the most of a refusal that is read to understand it.
const maxRefusal = 16 << 10

// explainRefusal makes a refusal one that the library understands.
func explainRefusal(r *http.Response, inSession bool) {
	text, _ := io.ReadAll(io.LimitReader(r.Body, maxRefusal))
	if inSession && forgetsSession(r.StatusCode, text) {
		_ = r.Body.Close()
		r.StatusCode, r.Body = http.StatusNotFound, http.NoBody
		return
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(withID(text)), r.Body), r.Body}
}

// withID gives an error of JSON-RPC an id. A server that refuses a message before it has read it has none to
// send. The library drops such an error with all its words, and takes the connection for broken.
func withID(text []byte) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields["error"] == nil || fields["id"] != nil && string(fields["id"]) != "null" {
		return text
	}
	fields["id"] = json.RawMessage("0") // any id will do: the answer belongs to its request
	return swarm.Encode(fields)
}

// forgetsSession reports whether a server does not know the session of a request. MCP wants a plain
// 404 then, which is all that the library understands. Many servers send an error of JSON-RPC with it,
// or 400 with a text about the session. Such a server has not done what it was asked.
func forgetsSession(status int, text []byte) bool {
	return status == http.StatusNotFound || status == http.StatusBadRequest && bytes.Contains(bytes.ToLower(text), []byte("session"))
}

type boundedBody struct {
	io.ReadCloser
	left   int
	stream bool
	link   *link
}

// Read starts the limit anew after each event of a stream, which a blank line ends.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.link.over.CompareAndSwap(0, int64(b.link.limit())) // the library may read once more after the call has failed
		return 0, errors.New("too much at once")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if at := bytes.LastIndex(p[:n], []byte("\n\n")); at >= 0 && b.stream {
		b.left = b.link.limit() - (n - at)
	}
	return n, err
}

// after fires when the grace period of an ending program is over.
func after(grace time.Duration) <-chan time.Time {
	if grace <= 0 {
		grace = process.DefaultGrace
	}
	return time.After(grace)
}
