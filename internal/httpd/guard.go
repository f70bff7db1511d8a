package httpd

import (
	"bytes"
	"context"
	"encoding/json"
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

// A visitor is who was let in.
type visitor struct {
	token string
	agent Agent
}

type visitorKey struct{}

func visitorOf(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
}

// mcpPath is the agents' door.
const mcpPath = "/mcp"

// guard lets in who calls us by our name, comes from nowhere else, has a token, and brings JSON. What he brings is read here, within
// its time: a visitor who never finishes his sentence keeps nobody waiting.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = &errorWriter{ResponseWriter: w}
		defer s.mend(w, r)
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(time.Now().Add(s.patience.body))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !s.isUs(r.Host) {
			Refuse(w, http.StatusForbidden, swarm.Errorf(swarm.Denied, "this server is not called %s", swarm.Quote(r.Host)).WithHint("it is %s", s.url))
			return
		}
		for _, origin := range r.Header.Values("Origin") {
			if host, ok := strings.CutPrefix(origin, s.scheme+"://"); !ok || !s.isUs(host) {
				Refuse(w, http.StatusForbidden, swarm.Errorf(swarm.Denied, "requests from %s are not taken", swarm.Quote(origin)).WithHint("leave out the Origin header, or come from %s", s.url))
				return
			}
		}
		v, err := s.admit(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="swarm"`)
			Refuse(w, http.StatusUnauthorized, err)
			return
		}
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost && kind != "application/json" {
			Refuse(w, http.StatusUnsupportedMediaType, swarm.Errorf(swarm.BadInput, "only JSON is taken").WithHint("send it with Content-Type: application/json"))
			return
		}
		body, status, err := s.readBody(w, r)
		if err != nil {
			Refuse(w, status, err)
			return
		}
		_ = connection.SetReadDeadline(time.Time{})
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
	})
}

// isUs tells whether it is one of our own names, with our port. Those in our certificate are ours too.
func (s *Server) isUs(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil { // nobody writes the port that everybody knows
		name, port = strings.Trim(host, "[]"), map[string]string{"http": "80", "https": "443"}[s.scheme]
	}
	if port != s.port {
		return false
	}
	if strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1" {
		return true
	}
	return s.options.TLS != nil && s.options.TLS.Leaf != nil && s.options.TLS.Leaf.VerifyHostname(name) == nil
}

// admit finds who has the token that is shown. Which tokens are good depends on the door: agents' for /mcp, the key for the rest.
func (s *Server) admit(r *http.Request) (visitor, error) {
	where := "in $SWARM_AGENT_TOKEN"
	forAgents := r.URL.Path == mcpPath || s.options.Routes == nil
	if !forAgents {
		where = "that `swarm serve` was started with"
	}
	shown := r.Header.Values("Authorization")
	if len(shown) == 0 {
		return visitor{}, swarm.Errorf(swarm.NotSignedIn, "no token was sent").WithHint("send Authorization: Bearer with the token %s", where)
	}
	scheme, token, _ := strings.Cut(shown[0], " ")
	if token = strings.TrimSpace(token); len(shown) == 1 && strings.EqualFold(scheme, "Bearer") && token != "" {
		if !forAgents && s.options.Key.Opens(token) {
			return visitor{token: token}, nil
		}
		if agent, err := s.agent(token); forAgents && err == nil && agent != nil {
			return visitor{token, agent}, nil
		}
	}
	err := swarm.Errorf(swarm.NotSignedIn, "the token is nobody's")
	if !forAgents {
		return visitor{}, err.WithHint("send Authorization: Bearer with the token %s; an agent's token opens only %s", where, mcpPath)
	}
	return visitor{}, err.WithHint("send Authorization: Bearer with the token %s; it is good for one agent, as long as its run is driven by the same process", where)
}

// readBody reads what a visitor brings.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	switch large := new(http.MaxBytesError); {
	case err == nil:
		return body, http.StatusOK, nil
	case errors.As(err, &large):
		return nil, http.StatusRequestEntityTooLarge, swarm.Errorf(swarm.BadInput, "the request is larger than %d bytes", MaxBody).WithHint("send it in parts, or put it into an artifact and send its reference")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, http.StatusRequestTimeout, swarm.Errorf(swarm.TimedOut, "the request did not come to an end").WithHint("send all of it within %v", s.patience.body)
	}
	return nil, http.StatusBadRequest, swarm.Errorf(swarm.BadInput, "the request could not be read").WithHint("send it again")
}

// mend answers in the place of a handler that broke down. If its answer had begun, the connection ends in the middle of it.
func (s *Server) mend(w http.ResponseWriter, r *http.Request) {
	switch why := recover(); why {
	case nil:
	case http.ErrAbortHandler:
		panic(why) // that is how a handler says it
	default:
		s.fault(swarm.Errorf(swarm.Other, "%s %s panicked: %v\n%s", r.Method, r.URL.Path, why, debug.Stack()))
		if w.(*errorWriter).begun {
			panic(http.ErrAbortHandler)
		}
		Refuse(w, http.StatusInternalServerError, swarm.Errorf(swarm.Other, "something here broke down").WithHint("it is not your fault; try once more"))
	}
}

func nothingHere(w http.ResponseWriter, r *http.Request) {
	Refuse(w, http.StatusNotFound, swarm.Errorf(swarm.NotFound, "there is nothing at %s", swarm.Quote(r.URL.Path)).WithHint("MCP is at /mcp"))
}

// A problem is an error as others are told of it.
type problem struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func problemOf(err error) problem {
	return problem{err.Error(), swarm.HintOf(err)}
}

// json is the problem as one JSON object.
func (p problem) json() []byte {
	b, _ := json.Marshal(p) // two texts always can be
	return b
}

// Refuse answers with an error: {error, hint}.
func Refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s\n", problemOf(err).json())
}

// An errorWriter makes errors of ours out of those that others write as plain text.
type errorWriter struct {
	http.ResponseWriter
	begun bool // the answer is on its way
	plain bool // an error is written as plain text
}

// Unwrap is how http.ResponseController finds what is behind.
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
	_, err := fmt.Fprintf(w.ResponseWriter, "%s\n", problem{Error: strings.TrimSpace(string(b))}.json())
	return len(b), err
}
