package httpd

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
)

// maxSessions limits the sessions of one agent. Killed programs do not close their sessions, so a
// new session replaces the one that was unused for longest.
const maxSessions = 8

const sessionHeader = "Mcp-Session-Id"

// An mcpHandler serves MCP over streamable HTTP. It keeps sessions for clients that speak a version
// before 2026-07-28: they can cancel a call only within a session. mu guards the fields below it.
type mcpHandler struct {
	agent     func(token string) (Agent, error)
	fault     func(error)
	newServer func(*session, Agent) (*mcp.Server, error) // makes the server of a new session
	handler   *mcp.StreamableHTTPHandler
	stateless *mcp.StreamableHTTPHandler // of clients that speak MCP 2026-07-28, which has no sessions

	mu       sync.Mutex
	closed   bool
	sessions map[string]map[string]*session // by token, then by id, so no other token finds it
	uses     int64
	answers  deliveries
	closing  sync.WaitGroup // replaced sessions that still close
}

// A session is one client of an agent, from initialize to its end.
type session struct {
	id, token string
	server    *mcp.Server
	ctx       context.Context // of its calls
	end       context.CancelFunc
	used      int64 // value of uses at its last request
	brief     bool  // it ends with its request, so it takes no place of the others
}

type sessionKey struct{}

func newMCPHandler(agent func(token string) (Agent, error), version string, fault func(error)) *mcpHandler {
	d := &mcpHandler{agent: agent, fault: fault, sessions: map[string]map[string]*session{}}
	d.newServer = func(s *session, a Agent) (*mcp.Server, error) {
		c, err := newToolset(a.Tools(), func() (Agent, error) { return d.agent(s.token) }, fault)
		if err != nil {
			return nil, err
		}
		c.answers = &d.answers
		return c.server(s.ctx, s.id, version), nil
	}
	find := func(r *http.Request) *mcp.Server {
		if s, ok := r.Context().Value(sessionKey{}).(*session); ok {
			return s.server
		}
		return nil
	}
	o := mcp.StreamableHTTPOptions{
		MaxRequestBodyBytes:        MaxBody,
		DisableLocalhostProtection: true, // the guard checks the Host, with the names in the certificate
	}
	d.handler = mcp.NewStreamableHTTPHandler(find, &o)
	o.Stateless, o.PropagateRequestCancellation = true, true // a client cancels a call by hanging up
	d.stateless = mcp.NewStreamableHTTPHandler(find, &o)
	return d
}

// The header with the protocol version of a request, and the first version without sessions.
const (
	versionHeader  = "Mcp-Protocol-Version"
	firstStateless = "2026-07-28"
)

// ServeHTTP finds or opens the session of a request.
func (d *mcpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, id := callerOf(r), r.Header.Get(sessionHeader)
	if r.Method == http.MethodPost {
		if !readRPCRequest(w, r) {
			return
		}
		var done func()
		w, r, done = d.answers.track(w, r)
		defer done()
	}
	switch {
	case id != "":
		s := d.find(caller.token, id)
		if s == nil {
			err := swarm.Errorf(swarm.NotFound, "you have no session %s", swarm.Quote(id)).
				WithHint("begin a new one: initialize, without %s", sessionHeader)
			Refuse(w, http.StatusNotFound, err)
			return
		}
		if r.Method == http.MethodDelete {
			s.end() // otherwise DELETE would wait for the calls that it cancels
			defer d.forget(s)
		}
		d.handler.ServeHTTP(w, s.request(r))
	case r.Method == http.MethodPost && r.Header.Get(versionHeader) >= firstStateless:
		s, err := d.open(caller, true)
		if err != nil {
			d.fault(err)
			Refuse(w, http.StatusServiceUnavailable, err)
			return
		}
		defer d.forget(s)
		d.stateless.ServeHTTP(w, s.request(r))
	case r.Method == http.MethodPost:
		s, err := d.open(caller, false)
		if err != nil {
			d.fault(err)
			Refuse(w, http.StatusServiceUnavailable, err)
			return
		}
		d.handler.ServeHTTP(w, s.request(r))
		if !s.begun() {
			d.forget(s) // the request was not an initialize
		}
	default:
		d.handler.ServeHTTP(w, r) // answers with what is missing
	}
}

// request attaches the session to a request, so that the SDK's handler finds its server.
func (s *session) request(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, s))
}

// begun reports whether the client has sent initialize.
func (s *session) begun() bool {
	for range s.server.Sessions() {
		return true
	}
	return false
}

// close cancels the running calls, and then closes the session.
func (s *session) close() {
	s.end()
	for on := range s.server.Sessions() {
		_ = on.Close() // the session is over in any case
	}
}

// find returns the session of a token with this id, and counts the use.
func (d *mcpHandler) find(token, id string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[token][id]
	if s != nil {
		d.use(s)
	}
	return s
}

func (d *mcpHandler) use(s *session) {
	d.uses++
	s.used = d.uses
}

// open registers a new session. The server is made before mu is taken, because the agent's Tools
// may be slow. closed is checked under mu, so that close misses no session.
func (d *mcpHandler) open(v caller, brief bool) (*session, error) {
	s := &session{id: rand.Text(), token: v.token, brief: brief}
	s.ctx, s.end = context.WithCancel(context.Background())
	var err error
	if s.server, err = d.newServer(s, v.agent); err != nil {
		s.end()
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		s.end()
		return nil, swarm.Errorf(swarm.Stopped, "the run has ended").WithHint("there is nothing more to do here")
	}
	mine := d.sessions[v.token]
	if mine == nil {
		mine = map[string]*session{}
		d.sessions[v.token] = mine
	}
	lasting := slices.DeleteFunc(slices.Collect(maps.Values(mine)), func(s *session) bool { return s.brief })
	if !brief && len(lasting) >= maxSessions {
		byUse := func(a, b *session) int { return cmp.Compare(a.used, b.used) }
		oldest := slices.MinFunc(lasting, byUse)
		delete(mine, oldest.id)
		d.closing.Go(oldest.close)
	}
	mine[s.id] = s
	d.use(s)
	return s, nil
}

// forget removes a session and cancels its calls.
func (d *mcpHandler) forget(s *session) {
	s.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions[s.token], s.id)
	if len(d.sessions[s.token]) == 0 {
		delete(d.sessions, s.token)
	}
}

// close closes all sessions for good.
func (d *mcpHandler) close(timeout time.Duration) {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.closeSessions(timeout, func(string) bool { return true })
	d.waitFor(timeout, &d.closing)
}

// closeSessions closes the sessions of some tokens, and waits until their calls have ended.
func (d *mcpHandler) closeSessions(timeout time.Duration, whose func(token string) bool) {
	var ending sync.WaitGroup
	d.mu.Lock()
	for token, mine := range d.sessions {
		if !whose(token) {
			continue
		}
		for _, s := range mine {
			ending.Go(s.close)
		}
		delete(d.sessions, token)
	}
	d.mu.Unlock()
	d.waitFor(timeout, &ending)
}

// waitFor waits for cancelled calls. A call that ignores its cancellation is reported after the
// timeout.
func (d *mcpHandler) waitFor(timeout time.Duration, ending *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		ending.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(timeout):
		d.fault(swarm.Errorf(swarm.Other, "a tool still runs, although it was told to end"))
	}
}
