// Package httpd is the one HTTP server of a process. It serves two kinds of clients:
//   - At /mcp each agent finds the tools by which it acts on its run, as an MCP server named
//     `swarm`. `swarm mcp` ([Stdio]) offers the same tools to programs that speak MCP on standard
//     input and output only.
//   - All other paths ([Options.Routes]) are for people and their programs. A person's browser finds
//     the page ([Options.Page]) there, and gets in by a one-time code: see [Server.OpenURL].
//
// [Start] starts the server, and [Server.Admit] admits the agents of a run.
//
// Every request is checked before it is routed: the Host header, the origin, the token, the size of
// the body. The Host check stops web pages whose name was pointed at this address (DNS rebinding).
// An agent's token stands for one agent of one run that this process drives, and opens only /mcp.
// The server's own key opens all other paths, but not /mcp, because it stands for no agent. Only the
// files of the page and the login need no token, after Host and Origin are checked.
package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"swarm"
)

// An Agent is a client that has an agent's token.
type Agent = swarm.ToolUser

// Serve starts a server on a free port of this machine, for agents' programs only.
func Serve(version string, fault func(error)) (swarm.ToolHost, error) {
	s, err := Start(Options{Listen: "127.0.0.1:0", Version: version, Fault: fault})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// An Informed is an agent that may get urgent information while it works, whatever tool it called.
type Informed interface {
	// Aside returns the text to add to a tool's answer; "" = none. It returns each piece of
	// information once.
	Aside(ctx context.Context, tool string) string
}

// A Refuser is an agent that lacks some tools and knows why.
type Refuser interface {
	// Refuse returns why the agent lacks this tool; nil = the tool does not exist.
	Refuse(tool string) error
}

// A Bound is an agent whose token not every process may use.
type Bound interface {
	// Admits returns an error if the client of this connection must not act as the agent.
	Admits(conn net.Conn) error
}

// Options configure a server.
type Options struct {
	Listen string // an address of this machine: 127.0.0.1:0
	// Agent maps a token to its agent, and returns an error for other tokens. The server asks again for
	// each request and each call. nil = see Admit.
	Agent  func(token string) (Agent, error)
	Routes http.Handler // all paths but /mcp, for clients with the key; nil = none
	Key    Key          // opens Routes
	// Refuse answers a request that is not admitted, if its path has a format of its own for errors.
	// Otherwise it returns false, and the answer is {error, hint}. nil = no path has one.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, err error) bool
	// CheckPeer returns an error if the client of a connection must not use the key; nil = all may.
	CheckPeer func(net.Conn) error
	// Page is the files of the page for browsers: index.html and assets/. nil = there is no page, and
	// no browser gets in.
	Page fs.FS
	// CheckBrowser is CheckPeer for one-time codes and cookies.
	CheckBrowser func(net.Conn) error
	// Again says how a person gets a new address of the page; "" = as of swarm serve.
	Again   string
	TLS     *tls.Certificate // nil = plain HTTP, on this machine only
	Version string           // of this program, shown to agents
	Fault   func(error)      // gets internal errors that no client sees, such as a panic; nil = dropped
}

// timeouts are the time limits of clients.
type timeouts struct {
	head, body time.Duration // to send a request
	shutdown   time.Duration // for running calls to end, when the server closes
}

var defaultTimeouts = timeouts{head: 5 * time.Second, body: 30 * time.Second, shutdown: 2 * time.Second}

// Size limits of requests, and the lifetime of unused connections.
const (
	maxHead  = 64 << 10
	MaxBody  = 4 << 20 // bytes
	idleTime = 2 * time.Minute
)

// A Server serves until it is closed. mu guards the fields below it.
type Server struct {
	options  Options
	timeouts timeouts
	http     http.Server
	scheme   string
	url      string
	port     string
	loopback net.IP // the address of this machine that it listens on; nil = another
	mcp      *mcpHandler
	page     *page // nil = none
	door     door
	served   sync.WaitGroup

	conns *connections

	mu       sync.Mutex
	admitted []*admittedAgents
}

// Start listens and serves in the background.
func Start(o Options) (*Server, error) { return start(o, defaultTimeouts) }

func start(o Options, p timeouts) (*Server, error) {
	listener, err := listen(o.Listen, o.TLS != nil)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, timeouts: p, scheme: "http", conns: newConnections()}
	if o.TLS != nil {
		s.scheme = "https"
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	s.port = port
	if ip := net.ParseIP(host); ip.IsLoopback() {
		s.loopback = ip
	}
	s.url = s.scheme + "://" + net.JoinHostPort(nameFor(host, o.TLS), port)
	s.mcp = newMCPHandler(s.agent, o.Version, s.fault)
	s.door.now = time.Now
	routes := http.NewServeMux()
	routes.Handle(mcpPath, s.mcp)
	if o.Page != nil {
		s.page = &page{files: o.Page}
		routes.HandleFunc("POST "+codesPath, s.giveCode)
	}
	if o.Routes != nil {
		routes.Handle("/", o.Routes)
	} else {
		routes.HandleFunc("/", notFound)
	}
	s.http = http.Server{
		Handler:           s.guard(routes),
		ReadHeaderTimeout: p.head,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHead,
		ConnState:         s.conns.track,
		ConnContext:       withConn,
		ErrorLog:          log.New(io.Discard, "", 0), // clients get their errors; the run's screen does not
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

// listen refuses addresses beyond this machine without TLS, because tokens would cross the network
// in plain text.
func listen(address string, secured bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no address to listen on", swarm.Quote(address)).
			WithHint("write 127.0.0.1:7777, or 127.0.0.1:0 for any free port")
	}
	if !secured && !isLoopback(host) {
		return nil, swarm.Errorf(swarm.BadInput, "%s could be reached from other machines", swarm.Quote(address)).
			WithHint("listen on 127.0.0.1, localhost or ::1, or with a certificate")
	}
	var c net.ListenConfig
	if isLoopback(host) {
		c.SetMultipathTCP(false) // to ask the kernel for it takes 0.1 ms of each run's start
	}
	l, err := c.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "cannot listen: %w", err).
			WithHint("perhaps another program listens there; to take any free port: --listen %s", net.JoinHostPort(host, "0"))
	}
	return l, nil
}

// nameFor returns the host of the server's URL. A server that listens on all addresses takes a name
// from its certificate.
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

// URL returns the server's address: http://127.0.0.1:PORT, or https.
func (s *Server) URL() string { return s.url }

// Close ends the server with all sessions and calls. When it returns, no call of a tool runs any
// more.
func (s *Server) Close() error {
	s.mcp.close(s.timeouts.shutdown)
	s.conns.closeStrangers() // Shutdown would wait for their first request
	ctx, cancel := context.WithTimeout(context.Background(), s.timeouts.shutdown)
	defer cancel()
	err := s.http.Shutdown(ctx) // answers under way are still sent
	if err != nil {
		err = s.http.Close()
	}
	s.served.Wait()
	return err
}

// fault reports an internal error, if anyone listens.
func (s *Server) fault(err error) {
	if s.options.Fault != nil {
		s.options.Fault(err)
	}
}
