// Package modeltest is a server for tests that speaks like models over HTTP: Anthropic's Messages
// at /v1/messages, OpenAI's Chat Completions at /v1/chat/completions and Responses at
// /v1/responses, and Gemini's API at /v1beta/models/. It gives the answers of a script, or fails as
// the script says, and keeps the requests.
//
// The real coding agents can use it as their model. Their side requests, such as a title for the
// conversation, are answered without using up the script.
package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"swarm"
)

// An Answer is what the server does with a request.
type Answer struct {
	Text      string  `json:"text,omitempty"` // {prompt} in it is the request's prompt
	Thinking  string  `json:"thinking,omitempty"`
	Signature string  `json:"signature,omitempty"` // of the thinking; in responses it is encrypted_content
	Calls     []Call  `json:"calls,omitempty"`
	Stop      string  `json:"stop,omitempty"` // why it ended, in the protocol's own word; "" = what fits
	Usage     Usage   `json:"usage,omitzero"`
	Plain     bool    `json:"plain,omitempty"`  // in one piece, even if a stream was asked for
	Status    int     `json:"status,omitempty"` // another than 200 is an error
	Type      string  `json:"type,omitempty"`   // the type of the error; "" = what fits
	Message   string  `json:"message,omitempty"`
	After     string  `json:"after,omitempty"`    // Retry-After
	AfterMS   float64 `json:"after_ms,omitempty"` // Retry-After-Ms
	Location  string  `json:"location,omitempty"` // of a redirect
	Trouble   Trouble `json:"trouble,omitempty"`
	// Headers are additional ones, such as anthropic-ratelimit-unified-reset.
	Headers map[string]string `json:"headers,omitempty"`
}

// A Call is a tool that the model calls.
type Call struct {
	ID string `json:"id"` // "" = a new one
	// Name is our own name of the tool. The client's name for it is found among the tools that it
	// offers: mcp__swarm__send_handoff for send_handoff.
	Name string `json:"name"`
	Args string `json:"args"` // as the model writes them: they need not be JSON
}

// Usage is the cost that the model reports.
type Usage struct {
	Input  int64           `json:"input"` // including what was cached
	Output int64           `json:"output"`
	Cached int64           `json:"cached"`
	Wrote  int64           `json:"wrote"` // into the cache
	Raw    json.RawMessage `json:"raw"`   // sent in place of the figures, as it is
}

// or returns the usage in a dialect's form, or the raw usage in its place.
func (u Usage) or(usual object) any {
	if u.Raw != nil {
		return u.Raw
	}
	return usual
}

// A Trouble is something that goes wrong with an answer.
type Trouble string

// The troubles. Late ones come after some of the text, if there is any.
const (
	Hangs     Trouble = "hangs"      // sends nothing, not even a header
	HangsLate Trouble = "hangs late" // stops in the middle
	Cut       Trouble = "cut"        // the connection breaks
	Ends      Trouble = "ends"       // the stream ends as if it were complete
	HalfJSON  Trouble = "half json"  // an incomplete event
	Overload  Trouble = "overload"   // an error in the stream, of the answer's type
)

// A Request is a request that the server has got.
type Request struct {
	Protocol string // anthropic, openai, responses or gemini
	Path     string
	Header   http.Header
	Body     json.RawMessage
	Model    string
	Stream   bool     // the answer is to come in pieces
	System   string   // the system prompt
	Said     []string // the user's messages, in order, without what the client added
	Prompt   string   // the last of them
	Tools    []string // that it offers; one in a group is group/name
	Results  []string // results of tools, in order
	Aside    string   // the purpose of a side request, or ""
	Busy     int      // number of requests in progress, including this one
}

// A Server answers requests. Make one with [Start] or [StartCues].
type Server struct {
	URL string
	// Reply makes the answers; nil = the cues do.
	Reply func(Request) Answer
	// Caches has the server count the tokens of answers without a usage as one that caches prompts.
	Caches bool

	cache    promptCache
	http     *httptest.Server
	mu       sync.Mutex
	more     *sync.Cond
	requests []Request
	asides   []Request
	strays   []string
	cues     []Cue
	busy     int
	gone     int // requests that the client has abandoned
	closed   chan struct{}
}

// Start starts a server that gives these answers one after the other, and then repeats the last
// one.
func Start(script ...Answer) *Server {
	if len(script) == 0 {
		script = []Answer{{}}
	}
	return StartCues(Cue{Answers: script})
}

// StartCues starts a server for a whole team. The first cue that fits a request answers it.
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

// A protocol is one API of models.
type protocol struct {
	name  string
	path  string
	read  func(body []byte, r *Request) error
	write func(s *stage, a Answer)
}

var protocols = []protocol{
	{"anthropic", "/v1/messages", readAnthropic, writeAnthropic},
	{"openai", "/v1/chat/completions", readOpenAI, writeOpenAI},
	{"responses", "/v1/responses", readResponses, writeResponses},
	{"gemini", "/v1beta/models/{call}", readGemini, writeGemini},
}

// Close ends the server and the requests that hang.
func (s *Server) Close() {
	close(s.closed)
	s.http.Close()
}

// Requests returns the requests of turns so far. A turn makes one more for each round of tools.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Asides returns the side requests.
func (s *Server) Asides() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asides)
}

// Strays returns the unknown requests, as method and path. The server refused them.
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

// AwaitGone waits until clients have abandoned n requests that hang.
func (s *Server) AwaitGone(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.gone < n {
		s.more.Wait()
	}
}

// serve handles the requests of one protocol.
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
		answer := s.record(&req)
		defer s.release()
		answer.Plain = answer.Plain || !req.Stream
		answer.Text = strings.ReplaceAll(answer.Text, "{prompt}", req.Prompt)
		answer.Calls = offered(answer.Calls, req.Tools)
		st := &stage{ResponseWriter: w, server: s, request: r, asked: req, answer: answer}
		st.play(p.write)
	}
}

// record notes a request and finds its answer.
func (s *Server) record(r *Request) Answer {
	r.Aside = sideRequest(*r)
	s.mu.Lock()
	s.busy++
	r.Busy = s.busy
	if r.Aside != "" {
		s.asides = append(s.asides, *r)
		s.mu.Unlock()
		return answerSideRequest(*r)
	}
	s.requests = append(s.requests, *r)
	var a Answer
	var counted Usage
	if s.Reply == nil {
		a = s.nextAnswer(*r)
	}
	if s.Caches {
		counted = s.cache.usage(r)
	}
	s.more.Broadcast()
	s.mu.Unlock()
	if s.Reply != nil {
		a = s.Reply(*r)
	}
	if s.Caches && a.Usage.Input == 0 && a.Usage.Raw == nil {
		a.Usage, a.Usage.Output = counted, swarm.EstimateTokens(int64(len(a.Text)))
	}
	return a
}

func (s *Server) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// hang waits until the client abandons the request, or the server ends.
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
