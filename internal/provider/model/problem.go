package model

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
)

// A problem is an error as a server describes it.
type problem struct {
	Type    string
	Code    string // a word, or a status
	Message string
}

// is says whether the error has this type or code. Servers use one or the other.
func (p *problem) is(word string) bool { return p.Type == word || p.Code == word }

// problemOf finds the error in an answer, or returns nil. Servers have different forms for it:
//
//	{"error": {"type", "code", "message"}}           OpenAI, Anthropic
//	[{"error": {"status", "code", "message"}}]       Gemini
//	{"error": {"message", "metadata": {"raw"}}}      OpenRouter, with the words of the model's server
//	{"error": "text"}                                Ollama
//	{"object": "error", "type", "code", "message"}   vLLM, Mistral
//	{"detail": "text" or a list}                     FastAPI
//	{"type": "error", "code", "message"}             OpenAI, in a stream of the Responses API
func problemOf(data []byte) *problem {
	data = bytes.TrimSpace(data)
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 {
		data = list[0]
	}
	var f fields
	if json.Unmarshal(data, &f) != nil {
		return nil
	}
	e := f["error"]
	if !isNull(e) {
		if e[0] != '{' {
			return &problem{Message: rawText(e)}
		}
		f = nil
		_ = json.Unmarshal(e, &f) // it is an object, and valid
	}
	p := &problem{Type: decodeText(f["type"]), Code: rawText(f["code"])}
	switch p.Type {
	case "":
		p.Type = decodeText(f["status"])
	case "error": // of an event, which says nothing about the error
		p.Type = ""
	}
	for _, name := range []string{"message", "Message", "detail"} {
		if p.Message == "" && !isNull(f[name]) {
			p.Message = rawText(f[name])
		}
	}
	var metadata struct{ Raw json.RawMessage }
	if json.Unmarshal(f["metadata"], &metadata) == nil && !isNull(metadata.Raw) {
		p.Message = strings.TrimSpace(p.Message + ": " + rawText(metadata.Raw))
	}
	if p.Message == "" && isNull(e) {
		return nil
	}
	return p
}

// failureIn makes the failure of an answer that has an error in the place of a text.
func failureIn(data []byte) error {
	p := readProblem(data)
	f := failureOf(statusOf(p), p)
	f.After = resetAfter(f, data)
	return f
}

// resetAfter returns how long an error says that a limit lasts, as [provider.IfLong] says.
func resetAfter(f *provider.Failure, data []byte) time.Duration {
	if !f.Throttled {
		return 0
	}
	now := time.Now()
	return provider.IfLong(provider.ResetAt(string(data), now).Sub(now))
}

// readProblem finds the error in an answer that is known to be one, whatever its form is.
func readProblem(data []byte) *problem {
	if p := problemOf(data); p != nil {
		return p
	}
	return &problem{Message: string(data)}
}

// rawText returns a text, or any other value as JSON.
func rawText(raw json.RawMessage) string {
	switch {
	case isNull(raw):
		return ""
	case raw[0] == '"':
		return decodeText(raw)
	}
	return string(raw)
}

// statuses are the words of servers for errors, and the status that each would have had before the
// stream began.
var statuses = map[string]int{
	"overloaded_error": 529, "rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429,
	"authentication_error": 401, "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
	"invalid_request_error": 400, "invalid_prompt": 400, "BadRequestError": 400, "NotFoundError": 404,
	"server_is_overloaded": 529, "slow_down": 503, "context_length_exceeded": 400, "model_not_found": 404,
}

// statusOf returns the status that an error would have had before the stream began. It is 0 if the
// server gives no class and its words tell none: such an error is not known to pass.
func statusOf(p *problem) int {
	if n, err := strconv.Atoi(p.Code); err == nil && n >= 400 && n < 600 {
		return n
	}
	for word, status := range statuses {
		if p.is(word) {
			return status
		}
	}
	switch status, limit, login := provider.Blame(p.Message); {
	case status >= 400:
		return status
	case limit:
		return http.StatusTooManyRequests
	case login:
		return http.StatusUnauthorized
	case p.Type != "" || p.Code != "" || words().passing.MatchString(p.Message):
		return http.StatusInternalServerError
	}
	return 0
}

// words are what servers say that give no code for it.
var words = sync.OnceValue(func() (w struct{ tooLong, unpaid, passing *regexp.Regexp }) {
	w.tooLong = regexp.MustCompile(`(?i)(prompt|input|request) is too long|maximum context length|context.?(length|size|window)|` +
		`token count.{0,40}exceeds|exceed_context_size`)
	w.unpaid = regexp.MustCompile(`(?i)credit balance is too low|insufficient.?(balance|credits?|funds)|requires more credits`)
	w.passing = regexp.MustCompile(`(?i)internal (server )?error|temporar|try again|timed? ?out|unavailable`)
	return w
})

// failureOf makes a failure of a status and of the server's words for it.
func failureOf(status int, p *problem) *provider.Failure {
	said := excerpt.Said(p.Message)
	client := status == 0 || status >= 400 && status < 500
	code := ""
	if status != 0 {
		code = " (" + strconv.Itoa(status) + ")"
	}
	switch {
	case p.is("insufficient_quota"), status == http.StatusPaymentRequired, client && words().unpaid.MatchString(p.Message):
		return &provider.Failure{
			Err: swarm.Errorf(swarm.RateLimited, "the account has no credit left%s%s", code, said).
				WithHint("check its billing"),
		}
	case !provider.Busy(status) && (p.is("overloaded_error") || p.is("rate_limit_error")):
		status = http.StatusTooManyRequests
	case status == http.StatusRequestEntityTooLarge, p.is("context_length_exceeded"),
		client && status != http.StatusTooManyRequests && words().tooLong.MatchString(p.Message+" "+p.Type):
		return &provider.Failure{
			Err: swarm.Errorf(swarm.BadPrompt, "the prompt is too long for the model%s%s", code, said),
		}
	case status == 0:
		return &provider.Failure{Err: swarm.Errorf(swarm.NoResult, "the server reports an error%s", said)}
	}
	return provider.Refused(status, p.Message, "the server has no such model, or is none")
}
