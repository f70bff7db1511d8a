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
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/provider"
)

// How patient a turn is. They are variables so that tests need not be.
var (
	firstWait = provider.FirstWait
	silence   = provider.Silence
)

const (
	maxPlain   = 32 << 20 // of an answer that comes in one piece
	maxProblem = 64 << 10 // of what a server says about an error
)

// A failure is why a question was not answered.
type failure struct {
	err       *swarm.Error
	again     bool          // it may be better the next time
	throttled bool          // the server has too much to do
	after     time.Duration // when the server wants to be asked again; 0 = it does not say
}

func (f *failure) Error() string { return f.err.Error() }

// ask asks the model until it answers. What somebody has already seen of an answer is not taken back: then it is not asked again.
func (t *turn) ask(ctx context.Context) (*answer, any, error) {
	body, err := t.dialect.ask(&t.conversation)
	if err != nil {
		return nil, nil, swarm.Errorf(swarm.Protocol, "the question cannot be written: %w", err)
	}
	for try := 1; ; try++ {
		pass, err := t.pace.Enter(ctx)
		if err != nil {
			return nil, nil, err
		}
		a, said, failed := t.once(ctx, body)
		wait := time.Duration(0)
		if failed != nil {
			if wait = failed.after; wait == 0 {
				wait = provider.Backoff(firstWait, try)
			}
		}
		t.pace.Leave(pass, failed == nil, failed != nil && failed.throttled, min(wait, provider.LongestWait))
		switch {
		case failed == nil:
			return a, said, nil
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case !failed.again || a.shown || try == provider.Tries:
			return nil, nil, failed.err
		case wait > provider.LongestWait:
			return nil, nil, failed.err.WithHint("the server wants to be asked again in %v", wait.Round(time.Second))
		}
		t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: fmt.Sprintf("%s; asking again in %v\n", failed.err, wait.Round(time.Millisecond))})
		if !failed.throttled { // else the pace waits
			if err := provider.Sleep(ctx, wait); err != nil {
				return nil, nil, err
			}
		}
	}
}

// once asks once. The answer is never nil.
func (t *turn) once(ctx context.Context, body []byte) (*answer, any, *failure) {
	a, end := t.begin()
	defer end()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	alarm := time.AfterFunc(silence, func() { cut(errSilent) })
	defer alarm.Stop()

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return a, nil, &failure{err: t.problem(swarm.BadInput, "the server cannot be asked: %v", err)}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	r.Header.Set("User-Agent", "swarm")
	t.dialect.sign(r.Header, t.key)
	w, err := t.client.Do(r)
	if err != nil {
		return a, nil, t.unreached(ctx, err)
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return a, nil, t.refused(w)
	}
	t.answered = true
	l := t.dialect.listen(a)
	if err = hear(l, w, func() { alarm.Reset(silence) }); err == nil && a.stop == stopNot {
		err = io.ErrUnexpectedEOF
	}
	t.spend(a, int64(len(body)))
	if err != nil {
		return a, nil, t.broken(ctx, err)
	}
	said, err := l.said()
	if err != nil {
		return a, nil, t.broken(ctx, err)
	}
	return a, said, nil
}

var errSilent = errors.New("the server said nothing for too long")

// hear hears an answer to its end.
func hear(l listener, w *http.Response, alive func()) error {
	if kind, _, _ := mime.ParseMediaType(w.Header.Get("Content-Type")); kind == "application/json" {
		data, err := io.ReadAll(io.LimitReader(w.Body, maxPlain+1))
		switch {
		case err != nil:
			return err
		case len(data) > maxPlain:
			return swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxPlain>>20)
		}
		return l.whole(data)
	}
	e := events{r: bufio.NewReader(w.Body)}
	for {
		data, err := e.next()
		if err == nil {
			alive()
			err = l.event(data)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// problem is an error that holds no key.
func (t *turn) problem(kind swarm.ErrorKind, format string, args ...any) *swarm.Error {
	return swarm.Errorf(kind, "%s", t.hide.String(fmt.Sprintf(format, args...)))
}

// unreached is why no server answered at all.
func (t *turn) unreached(ctx context.Context, err error) *failure {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &dns) && dns.IsNotFound:
		return &failure{err: t.problem(swarm.NotFound, "nobody answers at %s", t.url).WithHint("start the server, or correct base_url of the provider %q", t.spec.Name)}
	case errors.Is(context.Cause(ctx), errSilent):
		err = errSilent
	}
	return &failure{again: true, err: t.problem(swarm.NoResult, "the server could not be asked: %v", err)}
}

// broken is why an answer that had begun came to no good end.
func (t *turn) broken(ctx context.Context, err error) *failure {
	var f *failure
	var e *swarm.Error
	switch {
	case errors.As(err, &f): // the server said in the middle of a stream what it should have said at its beginning
		f.err.Msg = t.hide.String(f.err.Msg)
		return f
	case errors.As(err, &e):
		return &failure{err: e}
	case errors.Is(context.Cause(ctx), errSilent):
		return &failure{again: true, err: t.problem(swarm.NoResult, "%v", errSilent)}
	case isJSON(err):
		return &failure{again: true, err: t.problem(swarm.Protocol, "the server sends what is not JSON: %v", err)}
	}
	return &failure{again: true, err: t.problem(swarm.NoResult, "the answer breaks off in the middle")}
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// A problem is an error as both protocols tell it.
type problem struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a text, a number or null
	Message string          `json:"message"`
}

func (p *problem) is(word string) bool {
	return p.Type == word || string(p.Code) == strconv.Quote(word)
}

// refused is why the server did not answer the question.
func (t *turn) refused(w *http.Response) *failure {
	data, _ := io.ReadAll(io.LimitReader(w.Body, maxProblem))
	var told struct{ Error problem }
	if json.Unmarshal(data, &told) != nil {
		told.Error.Message = string(data)
	}
	f := judge(w.StatusCode, &told.Error)
	f.after = provider.RetryAfter(w.Header)
	f.err.Msg = t.hide.String(f.err.Msg)
	switch f.err.Kind {
	case swarm.NotSignedIn:
		name := t.keyName
		if _, named, err := t.model.key(t.request.Env); err == nil && named != "" {
			name = named
		}
		f.err.Hint = t.signIn(name)
		if t.key == "" {
			f.err.Hint = fmt.Sprintf("write env: {%s: $NAME} for the provider %q, and set NAME", t.keyName, t.spec.Name)
		}
	case swarm.NotFound:
		f.err.Hint = fmt.Sprintf("correct the model %q or base_url of the provider %q", t.conversation.model, t.spec.Name)
	}
	return f
}

// judge makes an error of a status.
func judge(status int, p *problem) *failure {
	f := &failure{}
	because := func(kind swarm.ErrorKind, text string) *failure {
		f.err = swarm.Errorf(kind, "%s (%d)%s", text, status, excerpt.Said(p.Message))
		return f
	}
	switch {
	case p.is("insufficient_quota"):
		because(swarm.RateLimited, "the account has nothing left").err.Hint = "see to its billing"
	case status == 429, status == 503, status == 529, p.is("overloaded_error"), p.is("rate_limit_error"):
		f.again, f.throttled = true, true
		_ = because(swarm.RateLimited, "the server has too much to do")
	case status == 401, status == 403:
		_ = because(swarm.NotSignedIn, "the server does not take the key")
	case status == 404:
		_ = because(swarm.NotFound, "the server has no such model, or is none")
	case status == 413, p.is("context_length_exceeded"):
		_ = because(swarm.BadPrompt, "the prompt is too long for the model")
	case status == 408, status >= 500:
		f.again = true
		_ = because(swarm.NoResult, "the server failed")
	case status >= 300 && status < 400:
		because(swarm.BadInput, "the server is somewhere else").err.Hint = "write its own address as base_url: nobody is sent on with a key"
	default:
		_ = because(swarm.BadInput, "the server does not understand the question")
	}
	return f
}
