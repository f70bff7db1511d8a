package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
)

// Timeouts of a turn. They are variables so that tests need not wait.
var (
	firstWait = provider.FirstWait
	silence   = provider.Silence
)

const (
	maxPlain   = 32 << 20 // bytes of an answer that comes in one piece
	maxProblem = 64 << 10 // bytes of an error answer
)

// askModel sends the request until the model answers. Once text of an answer was shown, the request
// is not retried: observers would see the text twice.
func (t *turn) askModel(ctx context.Context) (a *answer, said any, err error) {
	body, err := t.dialect.encodeRequest(&t.conversation)
	if err != nil {
		return nil, nil, swarm.Errorf(swarm.Protocol, "the request cannot be encoded: %w", err)
	}
	say := func(text string) { t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: t.redactor.String(text)}) }
	err = t.pace.Ask(ctx, provider.Tries, firstWait, say, func() error {
		a, said, err = t.askOnce(ctx, body)
		if f, ok := errors.AsType[*provider.Failure](err); ok && a.shown {
			f.Again = false
		}
		return err
	})
	if e, ok := errors.AsType[*swarm.Error](err); ok { // the server may have repeated the key
		e.Msg = t.redactor.String(e.Msg)
	}
	return a, said, err
}

// askOnce sends the request once. The answer is never nil.
func (t *turn) askOnce(ctx context.Context, body []byte) (*answer, any, error) {
	a, end := t.newAnswer()
	defer end()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	alarm := time.AfterFunc(silence, func() { cut(errSilent) })
	defer alarm.Stop()

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return a, nil, swarm.Errorf(swarm.BadInput, "the server cannot be asked: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	r.Header.Set("User-Agent", "swarm")
	t.dialect.signRequest(r.Header, t.key)
	w, err := t.client.Do(r)
	if err != nil {
		return a, nil, t.unreachedError(ctx, err)
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return a, nil, t.refusedError(w)
	}
	if err := t.checkPage(w); err != nil {
		return a, nil, err
	}
	t.answered = true
	l := t.dialect.newListener(a)
	if err = readAnswer(l, w, func() { alarm.Reset(silence) }); err == nil && a.stop == stopNot {
		err = io.ErrUnexpectedEOF
	}
	t.addUsage(a, int64(len(body)))
	if err != nil {
		return a, nil, t.brokenError(ctx, err)
	}
	said, err := l.message()
	if err != nil {
		return a, nil, t.brokenError(ctx, err)
	}
	return a, said, nil
}

var errPrefill = errors.New("the model does not go on from the beginning of an answer")

var errSilent = errors.New("the server said nothing for too long")

// checkPage returns an error if an answer is a text for people: something else than a model's server
// is there. Events under the type of plain text are read as what they are.
func (t *turn) checkPage(w *http.Response) error {
	kind, _, _ := mime.ParseMediaType(w.Header.Get("Content-Type"))
	if kind != "text/html" && kind != "text/plain" {
		return nil
	}
	body := bufio.NewReader(w.Body)
	begin, _ := body.Peek(len("event:"))
	w.Body = readCloser{body, w.Body}
	if kind == "text/plain" && (bytes.HasPrefix(begin, []byte("data:")) || bytes.HasPrefix(begin, []byte("event:")) || bytes.HasPrefix(begin, []byte(":"))) {
		return nil
	}
	what := "a text"
	if kind == "text/html" {
		what = "a web page"
	}
	return swarm.Errorf(swarm.Protocol, "the server at %s answers with %s (%s), and not as a model", t.url, what, kind).
		WithHint("is base_url of the provider %q right?", t.spec.Name)
}

// A readCloser reads from one and closes the other.
type readCloser struct {
	io.Reader
	io.Closer
}

// readAnswer reads an answer to its end. alive is called for each event.
func readAnswer(l listener, w *http.Response, alive func()) error {
	if kind, _, _ := mime.ParseMediaType(w.Header.Get("Content-Type")); kind == "application/json" {
		data, err := io.ReadAll(io.LimitReader(w.Body, maxPlain+1))
		switch {
		case err != nil:
			return err
		case len(data) > maxPlain:
			return swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxPlain>>20)
		}
		return l.handleWhole(data)
	}
	e := events{r: bufio.NewReader(w.Body)}
	for {
		data, err := e.next()
		if err == nil {
			alive()
			err = l.handleEvent(data)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// unreachedError makes the error of a request that got no answer.
func (t *turn) unreachedError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	return provider.NotReached(err, t.url, t.spec.Name)
}

// brokenError makes the error of an answer that broke off.
func (t *turn) brokenError(ctx context.Context, err error) error {
	if errors.As(err, new(*provider.Failure)) || errors.As(err, new(*swarm.Error)) { // it is explained already
		return err
	}
	f := &provider.Failure{Again: true, Err: swarm.Errorf(swarm.NoResult, "the answer breaks off in the middle")}
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		f.Err = swarm.Errorf(swarm.NoResult, "%w", errSilent)
	case isJSONError(err):
		f.Err = swarm.Errorf(swarm.Protocol, "the server sends what is not JSON: %w", err)
	}
	return f
}

// isJSONError says whether an error comes from decoding JSON.
func isJSONError(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// A problem is an error in the form that both protocols share.
type problem struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a text, a number or null
	Message string          `json:"message"`
}

// is says whether the error has this type or code. Servers use one or the other.
func (p *problem) is(word string) bool {
	return p.Type == word || string(p.Code) == strconv.Quote(word)
}

// refusedError makes the error of an answer with an error status.
func (t *turn) refusedError(w *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(w.Body, maxProblem))
	var told struct{ Error problem }
	if json.Unmarshal(data, &told) != nil {
		told.Error.Message = string(data)
	}
	if w.StatusCode == http.StatusBadRequest && t.conversation.prefill != "" && strings.Contains(strings.ToLower(told.Error.Message), "prefill") {
		return errPrefill
	}
	f := failureOf(w.StatusCode, &told.Error)
	f.After = provider.RetryAfter(w.Header)
	switch f.Err.Kind {
	case swarm.NotSignedIn:
		name := t.keyName
		if _, named, err := t.model.findKey(t.request.Env); err == nil && named != "" {
			name = named
		}
		f.Err.Hint = t.signInHint(name)
		if t.key == "" {
			f.Err.Hint = fmt.Sprintf("write env: {%s: $NAME} for the provider %q, and set NAME", t.keyName, t.spec.Name)
		}
	case swarm.BadInput:
		if f.Err.Hint == "" {
			f.Err.Hint = fmt.Sprintf("correct the model %q or the settings of the provider %q", t.conversation.model, t.spec.Name)
		}
	case swarm.NotFound:
		f.Err.Hint = fmt.Sprintf(
			"correct the model %q or base_url of the provider %q", t.conversation.model, t.spec.Name)
	}
	return f
}

// failureOf makes a failure of a status and of the server's word for it.
func failureOf(status int, p *problem) *provider.Failure {
	said := excerpt.Said(p.Message)
	switch {
	case p.is("insufficient_quota"):
		return &provider.Failure{
			Err: swarm.Errorf(swarm.RateLimited, "the account has no credit left (%d)%s", status, said).
				WithHint("check its billing"),
		}
	case !provider.Busy(status) && (p.is("overloaded_error") || p.is("rate_limit_error")):
		status = http.StatusTooManyRequests
	case status == http.StatusRequestEntityTooLarge, p.is("context_length_exceeded"):
		return &provider.Failure{
			Err: swarm.Errorf(swarm.BadPrompt, "the prompt is too long for the model (%d)%s", status, said),
		}
	}
	return provider.Refused(status, p.Message, "the server has no such model, or is none")
}
