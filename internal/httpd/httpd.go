// Package httpd is the one HTTP server of a running process. It has two doors. At /mcp an agent finds the tools by which it acts on
// its run, as an MCP server of the name `swarm`; `swarm mcp` carries the same to agents that know only standard input and output.
// Everything else is for people and their programs, where somebody has given the server something to say to them.
//
// Every request is checked before it is routed: the Host header (a web page whose name was pointed at
// this address sends its own), the origin, the token, the size of the body. An agent's token stands for
// one agent of one run of this process; it opens /mcp and nothing else. The server's own key opens the
// rest, and not /mcp: it is no agent.
package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"swarm"
)

// An Agent is a client that shows an agent's token.
type Agent = swarm.ToolUser

// Serve starts a server on a free port of this machine, for the programs of agents only.
func Serve(version string, fault func(error)) (swarm.ToolHost, error) {
	s, err := Start(Options{Listen: "127.0.0.1:0", Version: version, Fault: fault})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// An Informed is an agent who may have to be told something while he works, whatever he has asked for.
type Informed interface {
	// Aside is what he is told beside the answer of a tool; "" = nothing. What was told once is not told again.
	Aside(ctx context.Context, tool string) string
}

// A Refuser is an agent for whom some tools are not there. It knows why.
type Refuser interface {
	// Refuse is why the agent has no such tool; nil = there is none.
	Refuse(tool string) error
}

// Options say where the server listens, and to whom.
type Options struct {
	Listen  string                            // an address of this machine's own: 127.0.0.1:0
	Agent   func(token string) (Agent, error) // who has this token; an error = nobody. Asked anew for each request and each call; nil = see Admit
	Routes  http.Handler                      // everything but /mcp, for who has the key; nil = there is nothing else
	Key     Key                               // of Routes
	TLS     *tls.Certificate                  // nil = plain HTTP, which is spoken on this machine only
	Version string                            // of this program, as agents are told
	Fault   func(error)                       // is told of faults of our own that nobody else hears of, such as a tool that panics; nil = nobody
}

// A patience is how long a visitor may take.
type patience struct {
	head, body time.Duration // to say what he wants
	goodbye    time.Duration // to end, when we do
}

var usual = patience{head: 5 * time.Second, body: 30 * time.Second, goodbye: 2 * time.Second}

// How much a visitor may bring, and how long he may keep a connection that he does not use.
const (
	maxHead  = 64 << 10
	MaxBody  = 4 << 20 // bytes
	idleTime = 2 * time.Minute
)

// A Server serves until it is closed.
type Server struct {
	options  Options
	patience patience
	http     http.Server
	scheme   string
	url      string
	port     string
	mcp      *mcpDoor
	served   sync.WaitGroup

	mu       sync.Mutex
	silent   map[net.Conn]bool // connections on which nothing was said yet
	admitted []*admittedAgents
}

// Start listens and serves in the background.
func Start(o Options) (*Server, error) { return start(o, usual) }

func start(o Options, p patience) (*Server, error) {
	listener, err := listen(o.Listen, o.TLS != nil)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, patience: p, scheme: "http", silent: map[net.Conn]bool{}}
	if o.TLS != nil {
		s.scheme = "https"
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	s.port = port
	s.url = s.scheme + "://" + net.JoinHostPort(nameFor(host, o.TLS), port)
	s.mcp = newMCPDoor(s.agent, o.Version, s.fault)
	routes := http.NewServeMux()
	routes.Handle(mcpPath, s.mcp)
	if o.Routes != nil {
		routes.Handle("/", o.Routes)
	} else {
		routes.HandleFunc("/", nothingHere)
	}
	s.http = http.Server{
		Handler:           s.guard(routes),
		ReadHeaderTimeout: p.head,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHead,
		ConnState:         s.note,
		ErrorLog:          log.New(io.Discard, "", 0), // what visitors do wrong is told to them, not to the screen of the run
	}
	if o.TLS != nil {
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*o.TLS}, MinVersion: tls.VersionTLS12}
	}
	s.served.Go(func() {
		if err := s.serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.fault(swarm.Errorf(swarm.Other, "the server at %s ended: %w", s.url, err))
		}
	})
	return s, nil
}

func (s *Server) serve(l net.Listener) error {
	if s.options.TLS != nil {
		return s.http.ServeTLS(l, "", "")
	}
	return s.http.Serve(l)
}

func listen(address string, secured bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no address to listen on", swarm.Quote(address)).WithHint("write 127.0.0.1:7777, or 127.0.0.1:0 for any free port")
	}
	if !secured && !isLoopback(host) {
		return nil, swarm.Errorf(swarm.BadInput, "%s could be reached from other machines", swarm.Quote(address)).WithHint("listen on 127.0.0.1, localhost or ::1, or with a certificate")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "cannot listen: %w", err).WithHint("perhaps another program listens there; port 0 is any free one")
	}
	return l, nil
}

// nameFor is what a server is called by others: one that listens everywhere has no address of its own, but a certificate that names it.
func nameFor(host string, cert *tls.Certificate) string {
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() || cert == nil || cert.Leaf == nil {
		return host
	}
	for _, name := range cert.Leaf.DNSNames {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	for _, ip := range cert.Leaf.IPAddresses {
		return ip.String()
	}
	return "127.0.0.1"
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// URL is where the server is: http://127.0.0.1:PORT, or https.
func (s *Server) URL() string { return s.url }

// Close ends the server and everything that goes on in it. When it returns, no call of a tool runs any more.
func (s *Server) Close() error {
	s.mcp.close(s.patience.goodbye)
	s.mu.Lock()
	for c := range s.silent {
		_ = c.Close() // Shutdown would wait for what they may want to say
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.patience.goodbye)
	defer cancel()
	err := s.http.Shutdown(ctx) // answers that are under way still get out
	if err != nil {
		err = s.http.Close()
	}
	s.served.Wait()
	return err
}

// note keeps the silent connections.
func (s *Server) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == http.StateNew {
		s.silent[c] = true
	} else {
		delete(s.silent, c)
	}
}

func (s *Server) fault(err error) {
	if s.options.Fault != nil {
		s.options.Fault(err)
	}
}
