// Package modeltest is a server on this machine that speaks as models over HTTP do: Anthropic's Messages at /v1/messages, OpenAI's
// Chat Completions at /v1/chat/completions and Responses at /v1/responses, and Gemini's at /v1beta/models/. It says what it is told
// to, or goes wrong as it is told to, and keeps what it was asked. The real coding agents take it for their model: what they ask
// beside their turns, a title for the conversation say, is answered without touching the script. Only tests use it.
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
	// Headers are more of them, such as anthropic-ratelimit-unified-reset.
	Headers map[string]string `json:"headers,omitempty"`
}

// A Call is a tool that the model calls.
type Call struct {
	ID   string `json:"id"`   // "" = a new one
	Name string `json:"name"` // as we call it; whatever the client calls it is found in its offer: mcp__swarm__send_handoff for send_handoff
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
	Overload  Trouble = "overload"   // an error in the stream, of the answer's type
)

// A Request is one that the server was asked.
type Request struct {
	Protocol string // anthropic, openai, responses or gemini
	Path     string
	Header   http.Header
	Body     json.RawMessage
	Model    string
	Stream   bool     // the answer shall come in pieces
	System   string   // the system's prompt
	Said     []string // what the user said, in order, without what the client put in by itself
	Prompt   string   // the last of it
	Tools    []string // that it was offered; one in a group is group/name
	Results  []string // what tools said, in order
	Aside    string   // what it is for, where it is no turn of the agent
	Busy     int      // how many requests are being answered, with this one
}

// A Server answers. Make one with [Start] or [StartCues].
type Server struct {
	URL string
	// Reply says what is answered; nil = the cues.
	Reply func(Request) Answer

	http     *httptest.Server
	mu       sync.Mutex
	more     *sync.Cond
	requests []Request
	asides   []Request
	strays   []string
	cues     []Cue
	busy     int
	gone     int // requests that whoever asked has left
	closed   chan struct{}
}

// Start starts a server that gives these answers one after the other, and the last one to all that follow.
func Start(script ...Answer) *Server {
	if len(script) == 0 {
		script = []Answer{{}}
	}
	return StartCues(Cue{Answers: script})
}

// StartCues starts a server that serves a whole team: each request is answered by the first cue that it fits.
func StartCues(cues ...Cue) *Server {
	s := &Server{cues: slices.Clone(cues), closed: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	mux := http.NewServeMux()
	for _, p := range protocols {
		mux.HandleFunc("POST "+p.path, s.serve(p))
	}
	s.serveRest(mux)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL
	return s
}

// A protocol is one way to speak with a model.
type protocol struct {
	name string
	path string
	read func(body []byte, r *Request) error
	tell func(s *stage, a Answer)
}

var protocols = []protocol{
	{"anthropic", "/v1/messages", readAnthropic, tellAnthropic},
	{"openai", "/v1/chat/completions", readOpenAI, tellOpenAI},
	{"responses", "/v1/responses", readResponses, tellResponses},
	{"gemini", "/v1beta/models/{call}", readGemini, tellGemini},
}

// Close ends the server and whatever hangs.
func (s *Server) Close() {
	close(s.closed)
	s.http.Close()
}

// Requests are the turns that were asked for so far: an agent's turn asks once more for each round of tools.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Asides are the requests that were no turns.
func (s *Server) Asides() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asides)
}

// Strays are the requests that the server does not know, as method and path. It refused them.
func (s *Server) Strays() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.strays)
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

func (s *Server) serve(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		req := Request{Protocol: p.name, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
		if err == nil {
			err = p.read(body, &req)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if len(req.Said) > 0 {
			req.Prompt = req.Said[len(req.Said)-1]
		}
		answer := s.enter(&req)
		defer s.leave()
		answer.Plain = answer.Plain || !req.Stream
		answer.Text = strings.ReplaceAll(answer.Text, "{prompt}", req.Prompt)
		answer.Calls = offered(answer.Calls, req.Tools)
		st := &stage{ResponseWriter: w, server: s, request: r, asked: req, answer: answer}
		st.play(p.tell)
	}
}

func (s *Server) enter(r *Request) Answer {
	r.Aside = aside(*r)
	s.mu.Lock()
	s.busy++
	r.Busy = s.busy
	if r.Aside != "" {
		s.asides = append(s.asides, *r)
		s.mu.Unlock()
		return blandly(*r)
	}
	s.requests = append(s.requests, *r)
	var a Answer
	if s.Reply == nil {
		a = s.cued(*r)
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
