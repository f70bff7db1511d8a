package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// A stage is one answer on its way.
type stage struct {
	http.ResponseWriter
	server  *Server
	request *http.Request
	answer  Answer
}

func (s *stage) play(tell func(*stage, Answer)) {
	a := s.answer
	if a.Trouble == Hangs {
		s.server.hang(s.request)
	}
	if a.After != "" {
		s.Header().Set("Retry-After", a.After)
	}
	if a.AfterMS != 0 {
		s.Header().Set("Retry-After-Ms", strconv.FormatFloat(a.AfterMS, 'f', -1, 64))
	}
	if a.Location != "" {
		s.Header().Set("Location", a.Location)
	}
	if a.Status != 0 && a.Status != http.StatusOK {
		s.Header().Set("Content-Type", "application/json")
		s.WriteHeader(a.Status)
		s.write(object{"type": "error", "error": object{"type": a.errorType(), "message": a.Message, "code": nil}})
		return
	}
	if a.Plain {
		s.Header().Set("Content-Type", "application/json")
	} else {
		s.Header().Set("Content-Type", "text/event-stream")
	}
	tell(s, a)
}

func (a Answer) errorType() string {
	if a.Type != "" {
		return a.Type
	}
	switch a.Status {
	case 401:
		return "authentication_error"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	return "api_error"
}

type object map[string]any

func (s *stage) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it holds nothing but what JSON can
	}
	_, _ = s.Write(b) // who no longer reads is part of the test
}

// event sends one, at once. Anthropic's have names.
func (s *stage) event(name string, v object) {
	if name != "" {
		fmt.Fprintf(s, "event: %s\n", name)
		v["type"] = name
	}
	fmt.Fprint(s, "data: ")
	s.write(v)
	fmt.Fprint(s, "\n\n")
	s.ResponseWriter.(http.Flusher).Flush()
}

// pieces are about four parts of a text.
func pieces(text string) (all []string) {
	runes := []rune(text)
	for size := len(runes)/4 + 1; len(runes) > 0; {
		n := min(size, len(runes))
		all, runes = append(all, string(runes[:n])), runes[n:]
	}
	return all
}

// trouble makes it, when half of n pieces were said.
func (s *stage) trouble(i, n int) (over bool) {
	if s.answer.Trouble == "" || i < n/2 {
		return false
	}
	switch s.answer.Trouble {
	case HangsLate:
		s.ResponseWriter.(http.Flusher).Flush()
		s.server.hang(s.request)
	case Cut:
		s.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case HalfJSON:
		fmt.Fprint(s, "data: {\"type\":\"content_block_delta\",\"choices\":[{\"del\n\n")
	case Overload:
		s.event("error", object{"error": object{"type": "overloaded_error", "message": "Overloaded"}})
	}
	return true
}
