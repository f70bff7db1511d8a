package httpd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"swarm"
)

// A caller is the sender of an admitted request. agent is nil for the server's own key, and for a
// browser that has a session.
type caller struct {
	token   string
	agent   Agent
	browser bool // it has a cookie, not the key
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	v, _ := r.Context().Value(callerKey{}).(caller)
	return v
}

// challenge says in a 401 which credentials count.
const challenge = `Bearer realm="swarm"`

// mcpPath is the path of the agents' tools.
const mcpPath = "/mcp"

// a2aJSON is the media type that A2A recommends for JSON. A web page cannot send it to another
// origin unasked, no more than application/json.
const a2aJSON = "application/a2a+json"

// guard checks every request before it is routed: Host, Origin, token, content type, size. The
// order matters, because only admitted callers may learn which paths exist. It also reads the body,
// within a timeout, so that a slow client holds up no handler.
//
// After Host and Origin, the files of the page and the login are for everybody.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = &errorWriter{ResponseWriter: w}
		defer s.recoverPanic(w, r)
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(s.timeouts.body))
		head := w.Header()
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Content-Security-Policy", answerPolicy)
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Referrer-Policy", "no-referrer")
		if !s.isOwnName(r.Host) {
			err := swarm.Errorf(swarm.Denied, "this server is not called %s", swarm.Quote(r.Host)).WithHint("it is %s", s.url)
			s.refuse(w, r, http.StatusForbidden, err)
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if host, ok := strings.CutPrefix(origin, s.scheme+"://"); !ok || !s.isOwnName(host) {
				err := swarm.Errorf(swarm.Denied, "requests from %s are not taken", swarm.Quote(origin)).
					WithHint("leave out the Origin header, or come from %s", s.url)
				s.refuse(w, r, http.StatusForbidden, err)
				return
			}
		}
		switch {
		case s.page == nil:
		case isPagePath(r.URL.Path):
			head.Set("Connection", "close") // a stranger keeps no connection
			s.page.serve(w, r)
			return
		case r.URL.Path == loginPath && r.Method == http.MethodPost:
			s.login(w, r)
			return
		}
		v, err := s.authenticate(r)
		if err != nil {
			head.Set("WWW-Authenticate", challenge)
			head.Set("Connection", "close") // a stranger keeps no connection
			s.refuse(w, r, http.StatusUnauthorized, err)
			return
		}
		check := s.options.CheckPeer
		if v.browser {
			check = s.options.CheckBrowser
		}
		if err := connOf(r).admit(v, check); err != nil {
			s.refuse(w, r, http.StatusForbidden, err)
			return
		}
		if !s.conns.admit(r) {
			head.Set("Connection", "close")
			err := swarm.Errorf(swarm.Other, "this server has as many connections as it may hold").
				WithHint("close some, or raise the limit of open files (ulimit -n)")
			s.refuse(w, r, http.StatusServiceUnavailable, err)
			return
		}
		if err := checkJSON(r); err != nil {
			s.refuse(w, r, http.StatusUnsupportedMediaType, err)
			return
		}
		body, status, err := s.readBody(w, r, MaxBody)
		if err != nil {
			s.refuse(w, r, status, err)
			return
		}
		_ = connection.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, v)))
	})
}

// checkJSON refuses to read what is not sent as JSON.
func checkJSON(r *http.Request) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Method == http.MethodPost && kind != "application/json" && kind != a2aJSON {
		return swarm.Errorf(swarm.BadInput, "only JSON is taken").WithHint("send it with Content-Type: application/json")
	}
	return nil
}

// isOwnName reports whether host is one of our own names, with our port. This check defeats DNS
// rebinding. The names in our certificate count too.
func (s *Server) isOwnName(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // the default port may be left out
		name, port = strings.Trim(host, "[]"), map[string]string{"http": "80", "https": "443"}[s.scheme]
	}
	if port != s.port {
		return false
	}
	if strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil && ip.Equal(s.loopback) { // such as 127.0.0.2
		return true
	}
	return s.options.TLS != nil && s.options.TLS.Leaf != nil && s.options.TLS.Leaf.VerifyHostname(name) == nil
}

// authenticate finds the caller by their token, or a browser by its cookie. The path decides which
// count: agents' tokens for /mcp, the key for the rest.
func (s *Server) authenticate(r *http.Request) (caller, error) {
	where := "in $SWARM_AGENT_TOKEN"
	forAgents := r.URL.Path == mcpPath || s.options.Routes == nil
	if !forAgents {
		where = "that `swarm serve` was started with"
	}
	shown := r.Header.Values("Authorization")
	if v, ok := s.session(r); ok {
		return v, nil
	}
	if len(shown) == 0 && s.page != nil && forBrowsers(r.URL.Path) && len(r.Header.Values("Sec-Fetch-Site")) > 0 { // it is a browser
		return caller{}, s.errNoSession("this browser is not logged in, or the server was restarted since")
	}
	if len(shown) == 0 {
		return caller{}, swarm.Errorf(swarm.NotSignedIn, "no token was sent").
			WithHint("send Authorization: Bearer with the token %s", where)
	}
	scheme, token, _ := strings.Cut(shown[0], " ")
	if token = strings.TrimSpace(token); len(shown) == 1 && strings.EqualFold(scheme, "Bearer") && token != "" {
		if !forAgents && s.options.Key.Opens(token) {
			return caller{token: token}, nil
		}
		if agent, err := s.agent(token); forAgents && err == nil && agent != nil {
			return caller{token: token, agent: agent}, nil
		}
	}
	err := swarm.Errorf(swarm.NotSignedIn, "the token is nobody's")
	if !forAgents {
		return caller{}, err.WithHint(
			"send Authorization: Bearer with the token %s; an agent's token opens only %s", where, mcpPath)
	}
	return caller{}, err.WithHint("send Authorization: Bearer with the token %s; "+
		"it is good for one agent, as long as its run is driven by the same process", where)
}

// readBody reads the request's body, within the size limit and the read deadline.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, most int64) (body []byte, status int, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	switch large := new(http.MaxBytesError); {
	case err == nil:
		return body, http.StatusOK, nil
	case errors.As(err, &large):
		err := swarm.Errorf(swarm.BadInput, "the request is larger than %d bytes", most).
			WithHint("send it in parts, or put it into an artifact and send its reference")
		return nil, http.StatusRequestEntityTooLarge, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		err := swarm.Errorf(swarm.TimedOut, "the request did not come to an end").
			WithHint("send all of it within %v", s.timeouts.body)
		return nil, http.StatusRequestTimeout, err
	}
	return nil, http.StatusBadRequest, swarm.Errorf(swarm.BadInput, "the request could not be read").WithHint("send it again")
}

// recoverPanic answers in place of a handler that panicked. If its answer had begun, the connection
// is closed, so that the client cannot take it for complete.
func (s *Server) recoverPanic(w http.ResponseWriter, r *http.Request) {
	switch why := recover(); why {
	case nil:
	case http.ErrAbortHandler:
		panic(why) // net/http's own way to abort a handler
	default:
		s.fault(swarm.Errorf(swarm.Other, "%s %s panicked: %v\n%s", r.Method, r.URL.Path, why, debug.Stack()))
		if w.(*errorWriter).begun {
			panic(http.ErrAbortHandler)
		}
		err := swarm.Errorf(swarm.Other, "something here broke down").WithHint("it is not your fault; try once more")
		s.refuse(w, r, http.StatusInternalServerError, err)
	}
}

// notFound is the handler of unknown paths on a server without Routes.
func notFound(w http.ResponseWriter, r *http.Request) {
	err := swarm.Errorf(swarm.NotFound, "there is nothing at %s", swarm.Quote(r.URL.Path)).WithHint("MCP is at /mcp")
	Refuse(w, http.StatusNotFound, err)
}

// A problem is an error as clients get it.
type problem struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func problemOf(err error) problem {
	return problem{err.Error(), swarm.HintOf(err)}
}

// Refuse answers with an error: {error, hint}.
func Refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s\n", swarm.Encode(problemOf(err)))
}

// refuse answers with an error, in the format of the path.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	if s.options.Refuse == nil || !s.options.Refuse(w, r, status, err) {
		Refuse(w, status, err)
	}
}

// An errorWriter converts plain-text errors of other packages to JSON.
type errorWriter struct {
	http.ResponseWriter
	begun bool // the header is written
	plain bool // the body is a plain-text error
}

// Unwrap lets http.ResponseController find the underlying writer.
func (w *errorWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *errorWriter) WriteHeader(status int) {
	w.begun = true
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.plain = true
		w.Header().Set("Content-Type", "application/json")
		w.Header().Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *errorWriter) Write(b []byte) (int, error) {
	w.begun = true
	if !w.plain {
		return w.ResponseWriter.Write(b)
	}
	w.plain = false
	_, err := fmt.Fprintf(w.ResponseWriter, "%s\n", swarm.Encode(problem{Error: strings.TrimSpace(string(b))}))
	return len(b), err
}
