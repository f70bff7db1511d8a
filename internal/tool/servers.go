package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/excerpt"
)

// Limits of MCP servers.
const (
	callTime    = 5 * time.Minute // for one call
	stuckTime   = time.Second     // for a cancelled request to be read, before the server counts as stuck
	maxMessage  = 16 << 20        // bytes of one message while a tool is called
	maxList     = 2 << 20         // of any other message: decoding a list takes forty times its bytes
	maxResult   = 256 << 10       // bytes of a result for an agent; the middle is left out
	maxPages    = 200             // of a list of tools
	maxTools    = 10_000          // in all pages
	maxFailures = 3               // consecutive failed starts
)

// startTime is the timeout for starting a server, and for listing its tools. Tests change it.
var startTime = 10 * time.Second

// ServerOptions are common to the servers of a run.
type ServerOptions struct {
	Run     swarm.RunID   // the mark of their processes
	Dir     string        // their working folder; absolute
	Environ []string      // of this process; nil = os.Environ()
	Grace   time.Duration // for them to end; 0 = process.DefaultGrace
	Logins  LoginStore    // logins at servers over HTTP; nil = none
}

// Servers are the MCP servers of a run. A server is started, or connected to, on first use, and
// then shared by all agents of the run. The next use restarts a server that has died.
type Servers struct {
	names  []string
	byName map[string]*server
}

// NewServers returns the servers without starting any.
func NewServers(list []swarm.ToolServer, o ServerOptions) *Servers {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	s := &Servers{byName: map[string]*server{}}
	for _, spec := range list {
		s.names = append(s.names, spec.Name)
		s.byName[spec.Name] = serverOf(spec, o)
	}
	return s
}

// Names returns the servers' names, in the order of the file.
func (s *Servers) Names() []string {
	if s == nil {
		return nil
	}
	return s.names
}

// Close ends all servers, and keeps them from starting again.
func (s *Servers) Close() error {
	if s == nil {
		return nil
	}
	var all sync.WaitGroup
	for _, server := range s.byName {
		all.Go(server.close)
	}
	all.Wait()
	return nil
}

// A server is a declared server, running or not.
type server struct {
	swarm.ToolServer
	o     ServerOptions
	given *given

	// mutex guards the fields below. It is a channel, so that a caller can give up waiting during a slow start.
	mutex    chan struct{}
	link     *link
	starts   int
	failures int // consecutive failed starts
	failed   error
	closed   bool
}

func serverOf(spec swarm.ToolServer, o ServerOptions) *server {
	return &server{ToolServer: spec, o: o, given: newGiven(spec, o.Environ), mutex: make(chan struct{}, 1)}
}

// A link is a connection to a running server.
type link struct {
	session          *mcp.ClientSession
	end              func()                      // ends the program, if there is one, and waits for its end
	why              func() string               // why the server is gone; "" = unknown, or it runs
	gone             chan struct{}               // closed when the connection is
	announcesChanges bool                        // the server announces changes of its tools
	calls            atomic.Int32                // calls of tools under way
	refused          atomic.Pointer[swarm.Error] // the server wants a login
	over             atomic.Int64                // the limit that a message went over; 0 = none did
	tools            map[string]*mcp.Tool        // cache by name; nil = not listed yet, or changed
	order            []string                    // names in the server's order
	mu               sync.Mutex
}

// connected returns the link to the server, and connects if there is none.
func (s *server) connected(ctx context.Context) (*link, error) {
	select {
	case s.mutex <- struct{}{}:
	case <-ctx.Done():
		return nil, swarm.CutError(ctx)
	}
	defer func() { <-s.mutex }()
	if s.link != nil {
		select {
		case <-s.link.gone:
			s.link.end()
			s.link = nil
		default:
			return s.link, nil
		}
	}
	switch {
	case s.closed:
		return nil, swarm.Errorf(swarm.Stopped, "the tool server %q was ended with the run", s.Name)
	case s.failures >= maxFailures && s.URL == "": // a server over HTTP may be restarted by its people
		return nil, s.failed
	}
	s.starts++
	l, err := s.connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, swarm.CutError(ctx)
		}
		if swarm.KindOf(err) != swarm.NotSignedIn { // a person may sign in while the run goes on
			s.failures++
		}
		s.failed = err
		return nil, err
	}
	s.link = l
	return l, nil
}

// connect starts or reaches the server and initializes the session. Most servers know the released
// protocol version. Those that refuse it are offered the library's newest one.
func (s *server) connect(ctx context.Context) (l *link, err error) {
	for _, version := range []string{"2025-11-25", ""} {
		l, err = s.greet(ctx, version)
		if refusal(err) == nil {
			break
		}
	}
	return l, err
}

// greet makes one attempt with a protocol version. A failed attempt leaves no process behind.
func (s *server) greet(ctx context.Context, version string) (*link, error) {
	l := &link{gone: make(chan struct{})}
	open := s.dial
	if s.URL == "" {
		open, l.announcesChanges = s.start, true
	}
	transport, err := open(l)
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "swarm", Version: "1"}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { l.forget() },
	})
	soon, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	l.session, err = client.Connect(soon, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		l.end()
		return nil, s.notStarted(l, soon, err)
	}
	go func() {
		_ = l.session.Wait()
		close(l.gone)
	}()
	return l, nil
}

// notStarted explains a failed start: timeout, refusal, unreachable, or the program's own last
// words.
func (s *server) notStarted(l *link, soon context.Context, err error) error {
	if login := l.refused.Load(); login != nil {
		return login
	}
	refused := refusal(err)
	e := &swarm.Error{Kind: swarm.NotFound, Hint: "correct it under tools.mcp, or take it out of the agent's tools"}
	why := l.why()
	switch {
	case soon.Err() != nil:
		e.Kind, e.Msg = swarm.TimedOut, fmt.Sprintf("the tool server %q did not answer within %v", s.Name, startTime)
	case refused != nil:
		e.Msg, e.Err = fmt.Sprintf("the tool server %q refuses to begin", s.Name), refused
	case unknownVersion(err) != "": // the program has ended because we closed its input
		const msg = "the tool server %q answers with the MCP version %s, which swarm does not speak"
		e.Msg, why = fmt.Sprintf(msg, s.Name, swarm.Quote(unknownVersion(err))), ""
		e.Hint = "install a version of the server that speaks " + supportedVersions + ", or take it out of the agent's tools"
	case s.URL != "":
		e.Msg = fmt.Sprintf("the tool server %q cannot be reached: %s", s.Name, clip(swarm.WithoutURL(err).Error()))
	default:
		e.Msg = fmt.Sprintf("the tool server %q did not start", s.Name)
	}
	if why != "" && e.Err == nil {
		e.Msg += ": " + why
	}
	return e
}

// supportedVersions are the versions of MCP that the library negotiates.
const supportedVersions = "MCP 2024-11-05 to 2026-07-28"

// unknownVersion returns the protocol version of a server that the library does not know, or "". The
// library has no exported type for this error.
func unknownVersion(err error) string {
	_, version, found := strings.Cut(err.Error(), "unsupported protocol version: ")
	if !found {
		return ""
	}
	if text, err := strconv.Unquote(version); err == nil {
		return cmp.Or(clip(text), "(none)")
	}
	return clip(version)
}

// refusal returns the server's own error, or nil. The library uses the same type for requests that
// never reached the server.
func refusal(err error) *jsonrpc.Error {
	const rejected = -32005
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != rejected {
		return e
	}
	return nil
}

// close ends the server. It waits for the mutex, so a start under way is finished and then ended.
func (s *server) close() {
	s.mutex <- struct{}{}
	defer func() { <-s.mutex }()
	s.closed = true
	if s.link != nil {
		_ = s.link.session.Close()
		s.link.end()
		s.link = nil
	}
}

// forget drops the cached list of tools after the server announced a change.
func (l *link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = nil
}

// list returns the server's tools by name, and their names in its order.
func (s *server) list(ctx context.Context) (map[string]*mcp.Tool, []string, error) {
	tools, order, err := s.listed(ctx, false)
	return tools, order, s.given.clean(err)
}

// listed lists the tools, page by page. again marks the retry in a new session, so there is one retry
// only. A server over HTTP may refuse a session that it forgot with any status, and listing has no
// effect, so each refusal of such a server is followed by the retry. The limits on pages and tools
// stop a server that never ends its list.
func (s *server) listed(ctx context.Context, again bool) (map[string]*mcp.Tool, []string, error) {
	l, err := s.connected(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	tools, order := l.tools, l.order
	l.mu.Unlock()
	if tools != nil && l.announcesChanges {
		return tools, order, nil
	}
	soon, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	tools, order = map[string]*mcp.Tool{}, nil
	params := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := l.session.ListTools(soon, params)
		if err != nil && s.URL != "" && !again && soon.Err() == nil && l.refused.Load() == nil && l.calls.Load() == 0 { // calls of other turns go on
			l.close()
			return s.listed(ctx, true)
		}
		if err != nil {
			return nil, nil, s.callError(ctx, soon, l, "tools/list", err)
		}
		for _, t := range page.Tools {
			if tools[t.Name] == nil { // only the first of two tools with one name can be called
				t.Description = s.given.redact(t.Description)
				tools[t.Name] = t
				order = append(order, t.Name)
			}
		}
		if page.NextCursor == "" {
			l.mu.Lock()
			l.tools, l.order = tools, order
			l.mu.Unlock()
			return tools, order, nil
		}
		if params.Cursor = page.NextCursor; len(order) > maxTools {
			break
		}
	}
	return nil, nil, swarm.Errorf(swarm.Protocol, "the list of the tools of the server %q comes to no end", s.Name)
}

// call calls a tool. It returns after ctx or callTime, even if the server hangs. Credentials of the
// server are removed from results and errors.
func (s *server) call(ctx context.Context, tool string, args json.RawMessage) (string, error) {
	text, err := s.called(ctx, tool, args)
	return text, s.given.clean(err)
}

func (s *server) called(ctx context.Context, tool string, args json.RawMessage) (string, error) {
	within, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	for again := false; ; again = true {
		l, err := s.connected(ctx)
		if err != nil {
			return "", err
		}
		result, err := l.call(within, &mcp.CallToolParams{Name: tool, Arguments: args})
		if l.forgotten(err) && !again {
			continue
		}
		if err != nil {
			return "", s.callError(ctx, within, l, tool, err)
		}
		s.resetFailures()
		return formatResult(ctx, result, s.given.redact)
	}
}

// forgotten reports whether the server was restarted and does not know the session. The request had
// no effect then, so it is safe to retry. The link is closed.
func (l *link) forgotten(err error) bool {
	if !errors.Is(err, mcp.ErrSessionMissing) {
		return false
	}
	l.close()
	return true
}

// close closes the session and waits for its end.
func (l *link) close() {
	_ = l.session.Close()
	<-l.gone
}

// limit returns how large a message may be now. Only the result of a tool may be large.
func (l *link) limit() int {
	if l.calls.Load() > 0 {
		return maxMessage
	}
	return maxList
}

// tooLarge describes the message that went over the limit, or returns "".
func (l *link) tooLarge() string {
	if over := l.over.Load(); over > 0 {
		return fmt.Sprintf("it said more than %d MB at once", over>>20)
	}
	return ""
}

// call returns when ctx ends, even if the library's call does not. The library may block while it
// writes to a server that does not read.
func (l *link) call(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	type answer struct {
		result *mcp.CallToolResult
		err    error
	}
	done := make(chan answer, 1)
	l.calls.Add(1)
	go func() {
		result, err := l.session.CallTool(ctx, params)
		l.calls.Add(-1)
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		return a.result, a.err
	case <-ctx.Done():
	}
	go func() { // a server that does not even read its input is stuck, and is ended
		select {
		case <-done:
		case <-time.After(stuckTime):
			l.end()
		}
	}()
	return nil, ctx.Err()
}

// resetFailures forgets earlier failed starts. It does not wait for the mutex: if another caller holds it,
// the next successful call resets them.
func (s *server) resetFailures() {
	select {
	case s.mutex <- struct{}{}:
		s.failures = 0
		<-s.mutex
	default:
	}
}

// broken are the errors of a link that is closed or about to close.
var broken = []error{mcp.ErrConnectionClosed, io.EOF, io.ErrUnexpectedEOF, os.ErrClosed, syscall.EPIPE}

// callError classifies an error of a call. A broken link is closed here, so that the next call
// connects again.
func (s *server) callError(ctx, within context.Context, l *link, tool string, err error) error {
	refused := refusal(err)
	switch {
	case ctx.Err() != nil:
		return swarm.CutError(ctx)
	case l.refused.Load() != nil:
		l.close() // the next call takes the login that is stored then
		return l.refused.Load()
	case within.Err() != nil:
		return swarm.Errorf(swarm.TimedOut, "the tool server %q did not answer %s in time", s.Name, tool)
	case refused != nil:
		return swarm.Errorf(swarm.Other, "the tool server %q refuses %s: %s", s.Name, tool, clip(refused.Message))
	case l.why() != "" || slices.ContainsFunc(broken, func(b error) bool { return errors.Is(err, b) }):
		l.close()
		l.end()
		if why := l.why(); why != "" {
			return swarm.Errorf(swarm.Crashed, "the tool server %q has ended: %s", s.Name, why).
				WithHint("the next call starts it again")
		}
		return swarm.Errorf(swarm.Crashed, "the tool server %q is gone", s.Name).
			WithHint("the next call tries to reach it again")
	}
	why := clip(transportWords().ReplaceAllString(swarm.WithoutURL(err).Error(), ""))
	return swarm.Errorf(swarm.Protocol, "the tool server %q did not do %s: %s", s.Name, tool, why)
}

// transportWords are what the library puts before a server's words: the method, once or twice.
var transportWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:calling|sending) "[^"]*": )+`)
})

// clip shortens a server's text for an error.
func clip(text string) string {
	return excerpt.Head(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), 2000)
}

// formatResult returns a tool's result as text, without secrets. Content that is not text is named.
// Images go to a caller that can show them.
func formatResult(ctx context.Context, r *mcp.CallToolResult, redact func(string) string) (string, error) {
	out := &cappedOutput{most: maxResult}
	add := func(text string) {
		if text == "" {
			return
		}
		if out.head.Len() > 0 {
			out.add("\n")
		}
		out.add(redact(text))
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			add(c.Text)
		case *mcp.ImageContent:
			note := swarm.PassImage(ctx, swarm.ToolImage{MIMEType: c.MIMEType, Data: c.Data})
			add(fmt.Sprintf("[an image, %s, %d bytes%s]", c.MIMEType, len(c.Data), note))
		case *mcp.AudioContent:
			add(fmt.Sprintf("[a sound, %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *mcp.ResourceLink:
			add(fmt.Sprintf("[%s: %s]", c.Name, c.URI))
		case *mcp.EmbeddedResource:
			if c.Resource != nil && c.Resource.Blob != nil {
				add(fmt.Sprintf("[%s, %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob)))
			} else if c.Resource != nil {
				add(c.Resource.Text)
			}
		}
	}
	if out.head.Len() == 0 && r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return "", swarm.Errorf(swarm.Protocol, "the answer cannot be read: %w", err)
		}
		add(string(b))
	}
	text := out.String()
	if out.head.Len() == 0 {
		text = "(it said nothing)"
	}
	if r.IsError {
		return "", swarm.Errorf(swarm.Other, "%s", text)
	}
	return text, nil
}

// servers returns the servers that the agent may use, each once.
func (b *Box) servers() (names []string) {
	for _, r := range b.rules {
		if r.Server != "" && !slices.Contains(names, r.Server) {
			names = append(names, r.Server)
		}
	}
	return names
}
