package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
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
func (t *turn) askModel(ctx context.Context) (a *answer, said swarm.ChatMessage, err error) {
	body, err := t.dialect.encodeRequest(&t.conversation)
	if err == nil && t.spec.Extra != nil {
		body = mergeObjects(body, t.spec.Extra)
	}
	if err != nil {
		return nil, said, swarm.Errorf(swarm.Protocol, "the request cannot be encoded: %w", err)
	}
	say := func(text string) { t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: t.redactor.String(text)}) }
	silent := 0 // requests that the server did not answer in time
	err = t.pace.Ask(ctx, provider.Tries, firstWait, say, func() error {
		began := time.Now()
		a, said, err = t.askOnce(ctx, body)
		t.noteRequest(ctx, began, a, err)
		f, ok := errors.AsType[*provider.Failure](err)
		if ok && errors.Is(f.Err, errSilent) {
			silent++
		}
		if ok && (a.shown || silent == maxSilent) {
			f.Again = false
		}
		switch {
		case err == nil:
			t.trouble = ""
		case ok && ctx.Err() == nil: // otherwise the request was cut
			t.trouble = f.Err.Msg
		}
		return err
	})
	if e, ok := errors.AsType[*swarm.Error](err); ok { // the server may have repeated the key
		e.Msg = t.redactor.String(e.Msg)
	}
	return a, said, err
}

// askOnce sends the request once. The answer is never nil.
func (t *turn) askOnce(ctx context.Context, body []byte) (a *answer, said swarm.ChatMessage, err error) {
	a, end := t.newAnswer()
	defer end()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	alarm := time.AfterFunc(silence, func() { cut(errSilent) })
	defer alarm.Stop()

	var connected atomic.Bool // the server may have received the request
	trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := http.NewRequestWithContext(trace, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return a, said, swarm.Errorf(swarm.BadInput, "the server cannot be asked: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream, application/json")
	r.Header.Set("User-Agent", "swarm")
	t.dialect.signRequest(r.Header, t.key)
	maps.Copy(r.Header, t.headers)
	w, err := t.client.Do(r)
	if err != nil {
		if ctx.Err() != nil && connected.Load() {
			t.addCut(a)
		}
		return a, said, t.unreachedError(ctx, err)
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return a, said, t.refusedError(w)
	}
	if err := t.checkPage(w); err != nil {
		return a, said, err
	}
	t.answered = true
	l := t.dialect.newListener(a)
	if err = readAnswer(l, a, w, func() { alarm.Reset(silence) }); err == nil && a.stop == stopNot {
		err = io.ErrUnexpectedEOF
	}
	t.addUsage(a, t.conversation.askedSize(len(body)))
	if err != nil {
		return a, said, t.brokenError(ctx, err)
	}
	if said, err = l.message(); err != nil {
		return a, said, t.brokenError(ctx, err)
	}
	if len(said.Raw) > 0 {
		said.From = t.conversation.from
	}
	return a, said, nil
}

var errSilent = errors.New("the server said nothing for too long")

// maxSilent is how often a server is asked that does not answer. Each request may be one that its
// model works on, and costs.
const maxSilent = 2

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
	page, _ := io.ReadAll(io.LimitReader(body, maxProblem))
	what, words := "plain text", string(page)
	if kind == "text/html" {
		what, words = "a web page", pageTitle(words)
	}
	return swarm.Errorf(swarm.Protocol, "the server at %s returns %s (%s) in place of a model's answer%s", t.url, what, kind, excerpt.Said(words)).
		WithHint("is base_url of the provider %q right?", t.spec.Name)
}

// pageTitle returns the title of a web page, or its first heading, or "".
func pageTitle(page string) string {
	for _, tag := range []string{"title", "h1"} {
		_, rest, _ := strings.Cut(page, "<"+tag)
		_, rest, _ = strings.Cut(rest, ">")
		if text, _, ok := strings.Cut(rest, "</"); ok {
			return html.UnescapeString(strings.TrimSpace(text))
		}
	}
	return ""
}

// A readCloser reads from one and closes the other.
type readCloser struct {
	io.Reader
	io.Closer
}

// readAnswer reads an answer to its end. alive is called for each event. An answer that came whole
// and makes no sense would come again, so it is not asked for again.
func readAnswer(l listener, a *answer, w *http.Response, alive func()) error {
	if kind, _, _ := mime.ParseMediaType(w.Header.Get("Content-Type")); kind == "application/json" {
		data, err := io.ReadAll(io.LimitReader(w.Body, maxPlain+1))
		switch {
		case err != nil:
			return err
		case len(data) > maxPlain:
			return swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxPlain>>20)
		}
		if err = l.handleWhole(data); isJSONError(err) || err == nil && a.stop == stopNot {
			return unreadable(data)
		}
		return err
	}
	e := events{r: bufio.NewReader(w.Body)}
	var first []byte
	for {
		data, err := e.next()
		if err == nil {
			alive()
			if first == nil {
				first = bytes.Clone(data[:min(len(data), maxQuoted)])
			}
			if err = l.handleEvent(data); errors.As(err, new(*json.UnmarshalTypeError)) {
				return unreadable(data)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && a.stop == stopNot && !a.heard && len(first)+len(e.stray) > 0:
			return unreadable(slices.Concat(first, e.stray))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// maxQuoted is the most of an answer that an error about it quotes.
const maxQuoted = 400

// unreadable makes the error of an answer that is not one of a model.
func unreadable(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return swarm.Errorf(swarm.Protocol, "the server's answer is empty")
	}
	return swarm.Errorf(swarm.Protocol, "the server's answer cannot be understood%s", excerpt.Said(string(data[:min(len(data), maxQuoted)])))
}

// unreachedError makes the error of a request that got no answer.
func (t *turn) unreachedError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return t.brokenError(ctx, errSilent)
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
		f.Err = swarm.Errorf(swarm.NoResult, "%w (%v)", errSilent, silence).
			WithHint("see whether the server works: the provider %q is at %s", t.spec.Name, t.url)
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

// refusedError makes the error of an answer with an error status.
func (t *turn) refusedError(w *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(w.Body, maxProblem))
	p := readProblem(data)
	if o := t.refusedOption(w.StatusCode, p); o != "" {
		t.leaveOut(o)
		return errOption
	}
	f := failureOf(w.StatusCode, p)
	f.After = cmp.Or(provider.RetryAfter(w.Header), resetAfter(f, data))
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
	case swarm.BadPrompt:
		f.Err.Hint = "ask for less at once"
		if len(t.request.History) > 0 {
			f.Err.Hint = fmt.Sprintf("send less of the session: context: {tokens: N} of the agent %q", t.request.Agent)
		}
		if n := providerkind.ContextWindow(t.conversation.model); n > 0 {
			f.Err.Hint += fmt.Sprintf("; prompt and answer of %s have at most %d tokens together", t.conversation.model, n)
		}
	case swarm.NotFound:
		f.Err.Hint = fmt.Sprintf("correct the model %q or base_url of the provider %q", t.conversation.model, t.spec.Name)
		if t.spec.API == providerkind.Responses {
			f.Err.Hint += ", or write api: chat"
		}
	}
	return f
}
