package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// A stage is one answer being written.
type stage struct {
	http.ResponseWriter
	server  *Server
	request *http.Request
	asked   Request
	answer  Answer
}

// play writes the answer, or fails as the answer says.
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
	for name, value := range a.Headers {
		s.Header().Set(name, value)
	}
	if a.Location != "" {
		s.Header().Set("Location", a.Location)
	}
	if a.Plain && a.Trouble == Overload { // there is no stream for the error
		a.Status, a.Message = 529, cmp.Or(a.Message, "Overloaded")
		s.answer = a
	}
	if a.Status != 0 && a.Status != http.StatusOK {
		s.Header().Set("Content-Type", "application/json")
		s.WriteHeader(a.Status)
		s.write(s.problem())
		return
	}
	if a.Plain {
		s.Header().Set("Content-Type", "application/json")
	} else {
		s.Header().Set("Content-Type", "text/event-stream")
	}
	if a.Plain && s.trouble(0, 0) {
		return
	}
	tell(s, a)
}

// problem makes an error in the form of the protocol.
func (s *stage) problem() object {
	a := s.answer
	if s.asked.Protocol != "gemini" {
		return object{"type": "error", "error": object{"type": a.errorType(), "message": a.Message, "code": nil}}
	}
	words := map[int]string{
		400: "INVALID_ARGUMENT",
		401: "UNAUTHENTICATED",
		403: "PERMISSION_DENIED",
		404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED",
		500: "INTERNAL",
		503: "UNAVAILABLE",
		529: "UNAVAILABLE",
	}
	e := object{"code": a.Status, "message": a.Message, "status": cmp.Or(a.Type, words[a.Status], "UNKNOWN")}
	if a.After != "" {
		e["details"] = []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": a.After + "s"}}
	}
	return object{"error": e}
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
		panic(err) // only values that JSON can hold
	}
	_, _ = s.Write(b) // a client that no longer reads is part of the test
}

// event sends an event, at once. The events of Anthropic and Responses have names.
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

// pieces splits a text into about four parts.
func pieces(text string) (all []string) {
	runes := []rune(text)
	for size := len(runes)/4 + 1; len(runes) > 0; {
		n := min(size, len(runes))
		all, runes = append(all, string(runes[:n])), runes[n:]
	}
	return all
}

// trouble fails as the answer says, after half of n pieces.
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
		s.overload()
	}
	return true
}

// overload sends an error after the answer has begun.
func (s *stage) overload() {
	a := s.answer
	message := cmp.Or(a.Message, "Overloaded")
	switch s.asked.Protocol {
	case "responses":
		s.event(
			"response.failed",
			object{"response": object{"object": "response", "status": "failed", "output": []any{},
				"error": object{"code": cmp.Or(a.Type, "server_is_overloaded"), "message": message}}},
		)
	case "gemini":
		s.event("", object{"error": object{"code": 503, "message": message, "status": cmp.Or(a.Type, "UNAVAILABLE")}})
	default:
		s.event("error", object{"error": object{"type": cmp.Or(a.Type, "overloaded_error"), "message": message}})
	}
}
