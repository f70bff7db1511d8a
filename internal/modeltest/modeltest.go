// Package modeltest is a server on this machine that speaks as models over HTTP do: Anthropic's Messages API at /v1/messages and
// OpenAI's Chat Completions at /v1/chat/completions. It says what it is told to, or goes wrong as it is told to, and keeps what it
// was asked. Only tests use it.
package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// An Answer is what the server does with a request.
type Answer struct {
	Text      string  `json:"text,omitempty"` // {prompt} in it is the request's prompt
	Thinking  string  `json:"thinking,omitempty"`
	Signature string  `json:"signature,omitempty"` // of what it thought; only anthropic's
	Calls     []Call  `json:"calls,omitempty"`
	Stop      string  `json:"stop,omitempty"` // why it ended, in the protocol's own word; "" = what fits
	Usage     Usage   `json:"usage,omitzero"`
	Plain     bool    `json:"plain,omitempty"`  // in one piece, though a stream was asked for
	Status    int     `json:"status,omitempty"` // another than 200 is an error
	Type      string  `json:"type,omitempty"`   // and of which type; "" = what fits
	Message   string  `json:"message,omitempty"`
	After     string  `json:"after,omitempty"`    // Retry-After
	AfterMS   float64 `json:"after_ms,omitempty"` // Retry-After-Ms
	Location  string  `json:"location,omitempty"` // of a status that sends on
	Trouble   Trouble `json:"trouble,omitempty"`
}

// A Call is a tool that the model calls.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"` // as the model writes them: they need not be JSON
}

// Usage is what the model says that it has cost.
type Usage struct {
	Input  int64 `json:"input"` // with what was cached
	Output int64 `json:"output"`
	Cached int64 `json:"cached"`
	Wrote  int64 `json:"wrote"` // into the cache
}

// A Trouble is something that goes wrong with an answer.
type Trouble string

// The troubles. Those that come late do so when some of the text was said, if there is any.
const (
	Hangs     Trouble = "hangs"      // says nothing, not even a header
	HangsLate Trouble = "hangs late" // and does not go on
	Cut       Trouble = "cut"        // the connection breaks
	Ends      Trouble = "ends"       // the stream ends as if that were all
	HalfJSON  Trouble = "half json"  // an event that is not all there
	Overload  Trouble = "overload"   // an error in the stream
)

// A Request is one that the server was asked.
type Request struct {
	Protocol string // anthropic or openai
	Header   http.Header
	Body     json.RawMessage
	Model    string
	Prompt   string
	Tools    []string // that it was offered
	Results  []string // what tools said, in order
	Busy     int      // how many requests are being answered, with this one
}

// A Server answers. Make one with [Start].
type Server struct {
	URL string
	// Reply says what is answered; nil = the script.
	Reply func(Request) Answer

	http     *httptest.Server
	mu       sync.Mutex
	more     *sync.Cond
	requests []Request
	script   []Answer
	busy     int
	gone     int // requests that whoever asked has left
	closed   chan struct{}
}

// Start starts a server that gives these answers one after the other, and the last one to all that follow.
func Start(script ...Answer) *Server {
	s := &Server{script: script, closed: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.serve("anthropic", readAnthropic, tellAnthropic))
	mux.HandleFunc("POST /v1/chat/completions", s.serve("openai", readOpenAI, tellOpenAI))
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// Close ends the server and whatever hangs.
func (s *Server) Close() {
	close(s.closed)
	s.http.Close()
}

// Requests are those that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await waits until n requests have come.
func (s *Server) Await(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.requests) < n {
		s.more.Wait()
	}
}

// AwaitGone waits until whoever asked has left n requests that hang.
func (s *Server) AwaitGone(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.gone < n {
		s.more.Wait()
	}
}

func (s *Server) serve(protocol string, read func([]byte, *Request) error, tell func(*stage, Answer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := Request{Protocol: protocol, Header: r.Header.Clone(), Body: body}
		if err == nil {
			err = read(body, &req)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer := s.enter(&req)
		defer s.leave()
		answer.Text = strings.ReplaceAll(answer.Text, "{prompt}", req.Prompt)
		st := &stage{ResponseWriter: w, server: s, request: r, answer: answer}
		st.play(tell)
	}
}

func (s *Server) enter(r *Request) Answer {
	s.mu.Lock()
	s.busy++
	r.Busy = s.busy
	s.requests = append(s.requests, *r)
	var a Answer
	if s.Reply == nil && len(s.script) > 0 {
		a = s.script[0]
		if len(s.script) > 1 {
			s.script = s.script[1:]
		}
	}
	s.more.Broadcast()
	s.mu.Unlock()
	if s.Reply != nil {
		a = s.Reply(*r)
	}
	return a
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// hang waits until whoever asked has left, or the server ends.
func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
		s.mu.Lock()
		s.gone++
		s.more.Broadcast()
		s.mu.Unlock()
	case <-s.closed:
	}
	panic(http.ErrAbortHandler)
}
