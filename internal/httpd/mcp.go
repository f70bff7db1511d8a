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

// maxSessions is how many sessions an agent has at once. Programs that are killed do not say goodbye, so the one that was silent
// for longest makes room for a new one.
const maxSessions = 8

const sessionHeader = "Mcp-Session-Id"

// An mcpDoor is MCP over streamable HTTP. It keeps sessions, although most of our tools could do without: only within a session can a
// client take back a call that it waits for, and the clients of today expect one.
type mcpDoor struct {
	agent   func(token string) (Agent, error)
	fault   func(error)
	offer   func(*session, Agent) (*mcp.Server, error) // what a new session is served with
	handler *mcp.StreamableHTTPHandler

	mu       sync.Mutex
	closed   bool
	sessions map[string]map[string]*session // by token, then by id: who has another token does not find it
	uses     int64
	answers  deliveries
	closing  sync.WaitGroup // sessions that made room for others
}

// A session is one client of an agent, from initialize to its end.
type session struct {
	id, token string
	server    *mcp.Server
	ctx       context.Context // of its calls
	end       context.CancelFunc
	used      int64 // grows with each request, over all sessions
}

type sessionKey struct{}

func newMCPDoor(agent func(token string) (Agent, error), version string, fault func(error)) *mcpDoor {
	d := &mcpDoor{agent: agent, fault: fault, sessions: map[string]map[string]*session{}}
	d.offer = func(s *session, a Agent) (*mcp.Server, error) {
		c, err := newCounter(a.Tools(), func() (Agent, error) { return d.agent(s.token) }, fault)
		if err != nil {
			return nil, err
		}
		c.answers = &d.answers
		return c.server(s.ctx, s.id, version), nil
	}
	d.handler = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		if s, ok := r.Context().Value(sessionKey{}).(*session); ok {
			return s.server
		}
		return nil
	}, &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: MaxBody, DisableLocalhostProtection: true}) // the guard has asked for our name, and knows all of them
	return d
}

// ServeHTTP finds or opens the session that a request belongs to.
func (d *mcpDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	visitor, id := visitorOf(r), r.Header.Get(sessionHeader)
	if r.Method == http.MethodPost {
		var done func()
		w, r, done = d.answers.await(w, r)
		defer done()
	}
	switch {
	case id != "":
		s := d.find(visitor.token, id)
		if s == nil {
			Refuse(w, http.StatusNotFound, swarm.Errorf(swarm.NotFound, "you have no session %s", swarm.Quote(id)).WithHint("begin a new one: initialize, without %s", sessionHeader))
			return
		}
		if r.Method == http.MethodDelete {
			s.end() // else the goodbye would wait for what it takes back
			defer d.forget(s)
		}
		d.handler.ServeHTTP(w, s.request(r))
	case r.Method == http.MethodPost:
		s, err := d.open(visitor)
		if err != nil {
			d.fault(err)
			Refuse(w, http.StatusServiceUnavailable, err)
			return
		}
		d.handler.ServeHTTP(w, s.request(r))
		if !s.begun() {
			d.forget(s) // whatever it was, it was no initialize
		}
	default:
		d.handler.ServeHTTP(w, r) // says what is missing
	}
}

func (s *session) request(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, s))
}

func (s *session) begun() bool {
	for range s.server.Sessions() {
		return true
	}
	return false
}

// close ends the calls that run, and then the session.
func (s *session) close() {
	s.end()
	for on := range s.server.Sessions() {
		_ = on.Close() // it is over either way
	}
}

func (d *mcpDoor) find(token, id string) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[token][id]
	if s != nil {
		d.use(s)
	}
	return s
}

func (d *mcpDoor) use(s *session) {
	d.uses++
	s.used = d.uses
}

func (d *mcpDoor) open(v visitor) (*session, error) {
	s := &session{id: rand.Text(), token: v.token}
	s.ctx, s.end = context.WithCancel(context.Background())
	var err error
	if s.server, err = d.offer(s, v.agent); err != nil {
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
	if len(mine) >= maxSessions {
		silent := slices.MinFunc(slices.Collect(maps.Values(mine)), func(a, b *session) int { return cmp.Compare(a.used, b.used) })
		delete(mine, silent.id)
		d.closing.Go(silent.close)
	}
	mine[s.id] = s
	d.use(s)
	return s, nil
}

func (d *mcpDoor) forget(s *session) {
	s.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions[s.token], s.id)
	if len(d.sessions[s.token]) == 0 {
		delete(d.sessions, s.token)
	}
}

// close ends all sessions for good.
func (d *mcpDoor) close(patience time.Duration) {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.dismiss(patience, func(string) bool { return true })
	d.await(patience, &d.closing)
}

// dismiss ends the sessions of some tokens and waits until their calls have ended.
func (d *mcpDoor) dismiss(patience time.Duration, whose func(token string) bool) {
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
	d.await(patience, &ending)
}

// await waits for calls that were told to end; one that does not obey gets no more than its time.
func (d *mcpDoor) await(patience time.Duration, ending *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		ending.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		d.fault(swarm.Errorf(swarm.Other, "a tool still runs, although it was told to end"))
	}
}
