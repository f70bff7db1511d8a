package sandbox

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/hostrule"
)

// A relay carries the connections of a program that has no network of its own. It runs outside of
// the sandbox and accepts on listeners inside of it.

// relayDial is the timeout of a connection to a host.
const relayDial = 30 * time.Second

// doors returns the addresses of this machine that the program reaches at the same address inside:
// our own server, and what the network list names on the loopback interface.
func (p *policy) doors(ownURL string) (addresses []string) {
	if u, err := url.Parse(ownURL); err == nil && u.Port() != "" {
		addresses = append(addresses, u.Host)
	}
	for _, r := range p.rules() {
		if addr, err := netip.ParseAddr(r.Host); r.Port != "" && (r.Host == "localhost" || err == nil && addr.IsLoopback()) {
			addresses = append(addresses, net.JoinHostPort(r.Host, r.Port))
		}
	}
	return addresses
}

// rules parses the network list. Compiling the file has checked it.
func (p *policy) rules() (list hostrule.List) {
	for _, entry := range p.Hosts {
		if r, err := ParseHost(entry); err == nil {
			list = append(list, r)
		}
	}
	return list
}

// serveDoor carries every connection of a listener to one address.
func serveDoor(l net.Listener, address string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			out, err := net.DialTimeout("tcp", address, relayDial)
			if err != nil {
				c.Close()
				return
			}
			splice(c, out)
		}()
	}
}

// splice copies both ways until both ends have said all.
func splice(a, b net.Conn) {
	done := make(chan struct{})
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	go func() {
		carry(a, b)
		close(done)
	}()
	carry(b, a)
	<-done
	a.Close()
	b.Close()
}

// A proxy is the HTTP proxy of a program. It reaches the listed hosts only.
type proxy struct {
	hosts   hostrule.List
	forward *httputil.ReverseProxy
}

func newProxy(hosts hostrule.List) *proxy {
	p := &proxy{hosts: hosts}
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {},
		Transport:     &http.Transport{DialContext: p.dial, ForceAttemptHTTP2: false},
		FlushInterval: -1, // streams are passed on as they come
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) },
	}
	return p
}

// dial connects to a host of the list. The address is checked when it is dialled.
func (p *proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !p.hosts.AllowsHost(host, port) {
		return nil, p.denied(address)
	}
	dialer := &net.Dialer{
		Timeout: relayDial,
		ControlContext: func(_ context.Context, _, dialled string, _ syscall.RawConn) error {
			if at, err := netip.ParseAddrPort(dialled); err != nil || !p.hosts.AllowsAddr(at) {
				return p.denied(dialled)
			}
			return nil
		},
	}
	return dialer.DialContext(ctx, network, address)
}

func (p *proxy) denied(address string) error {
	return swarm.Errorf(swarm.Denied, "the sandbox does not allow %s", swarm.Quote(address)).
		WithHint("its network list has %s", p.hosts)
}

// ServeHTTP answers CONNECT, which HTTPS needs, and requests for whole URLs.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is the proxy of a sandbox", http.StatusBadRequest)
	}
}

func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	out, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		refuse(w, err)
		return
	}
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		out.Close()
		return
	}
	// What the program has sent early is in the buffer.
	early := make([]byte, buffered.Reader.Buffered())
	_, _ = io.ReadFull(buffered, early)
	if _, err = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		_, err = out.Write(early)
	}
	if err != nil {
		in.Close()
		out.Close()
		return
	}
	splice(in, out)
}

// refuse answers a request that was not let through, or whose host did not answer.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if swarm.KindOf(err) == swarm.Denied {
		status = http.StatusForbidden
	}
	text := err.Error()
	if hint := swarm.HintOf(err); hint != "" {
		text += "; " + hint
	}
	http.Error(w, strings.ReplaceAll(text, "\n", " "), status)
}
