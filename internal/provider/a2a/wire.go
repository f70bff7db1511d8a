package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"swarm/internal/excerpt"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"swarm"
	"swarm/internal/provider"
)

// Bounds of what a server may say.
const (
	maxCard    = 1 << 20
	maxPlain   = 32 << 20 // of an answer that comes in one piece
	maxProblem = 64 << 10 // of what it says about an error
)

// maxAnswer is how much text one turn may bring. It is a variable so that a test need not bring it.
var maxAnswer = 16 << 20

// A failure is why a request was not answered.
type failure struct {
	err       *swarm.Error
	again     bool          // it may be better the next time
	throttled bool          // the server has too much to do
	after     time.Duration // when it wants to be asked again; 0 = it does not say
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// A wiretap signs requests, makes errors of ours out of answers that are none, and bounds the rest.
type wiretap struct {
	remote *remote
	next   http.RoundTripper
}

type aliveKey struct{}

// RoundTrip does one request.
func (w *wiretap) RoundTrip(r *http.Request) (*http.Response, error) {
	header, _, err := w.remote.header()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", "swarm")
	r.Header.Set(wire.SvcParamVersion, string(wire.Version))
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, w.unreached(err)
	}
	if answer.StatusCode != http.StatusOK && !isOwn(r, answer) {
		defer answer.Body.Close()
		return nil, w.refused(answer)
	}
	stream := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
	if !stream && answer.StatusCode == http.StatusOK && r.Header.Get("Accept") == "text/event-stream" { // an error that came before the stream began
		if err := asStream(answer); err != nil {
			return nil, err
		}
		return answer, nil
	}
	alive, _ := r.Context().Value(aliveKey{}).(func())
	left := int64(maxPlain)
	if stream {
		left = -1 // each of its events is bounded
	}
	answer.Body = &bounded{ReadCloser: answer.Body, left: left, alive: alive}
	return answer, nil
}

// isOwn says of an answer that it is one of the protocol's own errors, which HTTP+JSON tells by a status.
func isOwn(r *http.Request, answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnsupportedMediaType:
		return (strings.Contains(r.URL.Path, "/message:") || strings.Contains(r.URL.Path, "/tasks")) && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/")
	}
	return false
}

// asStream makes a stream of one event out of a plain answer.
func asStream(answer *http.Response) error {
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxPlain))
	if err != nil {
		return err
	}
	var flat bytes.Buffer
	if json.Compact(&flat, text) != nil {
		return swarm.Errorf(swarm.Protocol, "the server answers with what is neither a stream nor JSON")
	}
	answer.Body = io.NopCloser(strings.NewReader("data: " + flat.String() + "\n\n"))
	answer.Header.Set("Content-Type", "text/event-stream")
	return nil
}

// A bounded body ends where there would be too much of it.
type bounded struct {
	io.ReadCloser
	left  int64 // -1 = any amount
	alive func()
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.alive != nil && n > 0 {
		b.alive()
	}
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			return 0, swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxPlain>>20)
		}
	}
	return n, err
}

// unreached is why no server answered.
func (w *wiretap) unreached(err error) error {
	var dns *net.DNSError
	if errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dns) && dns.IsNotFound {
		return &failure{err: swarm.Errorf(swarm.NotFound, "nobody answers at %s", w.remote.base.Redacted()).
			WithHint("start the server, or correct base_url of the provider %q", w.remote.spec.Name)}
	}
	return &failure{again: true, err: swarm.Errorf(swarm.NoResult, "the server could not be asked: %w", err)}
}

// refused is why a server did not take a request.
func (w *wiretap) refused(answer *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	f := &failure{after: provider.RetryAfter(answer.Header)}
	status := answer.StatusCode
	because := func(kind swarm.ErrorKind, text, hint string) *failure {
		f.err = swarm.Errorf(kind, "%s (%d)%s", text, status, excerpt.Said(said(data))).WithHint("%s", hint)
		return f
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return because(swarm.NotSignedIn, "the server does not let us in", w.remote.signIn())
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		f.again, f.throttled = true, true
		return because(swarm.RateLimited, "the server has too much to do", "wait a while; with retries: N for the task it is tried again by itself")
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return because(swarm.NotFound, "there is no agent", fmt.Sprintf("correct base_url of the provider %q", w.remote.spec.Name))
	case status >= 300 && status < 400:
		return because(swarm.BadInput, "the server is somewhere else", "write its own address as base_url: nobody is sent on with a key")
	case status == http.StatusRequestTimeout, status >= 500:
		f.again = true
		return because(swarm.NoResult, "the server failed", "try again; with retries: N for the task that is done by itself")
	}
	return because(swarm.BadInput, "the server does not understand the request", "see whether it speaks A2A "+string(wire.Version))
}

func (r *remote) signIn() string {
	for _, value := range r.spec.Headers {
		if at := strings.LastIndexByte(value, '$'); at >= 0 {
			return "set " + strings.Trim(value[at+1:], "{}") + " to a token that its server takes"
		}
	}
	return fmt.Sprintf(`write headers: {Authorization: Bearer $NAME} for the provider %q, and set NAME`, r.spec.Name)
}

// said is what an answer that is an error says.
func said(data []byte) string {
	var told struct {
		Error   any    `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(data, &told) != nil {
		return string(data)
	}
	switch e := told.Error.(type) {
	case string:
		return e
	case map[string]any:
		text, _ := e["message"].(string)
		return text
	}
	return told.Message
}

// connect reads the agent's card, once, and finds a way to speak to it.
func (r *remote) connect(ctx context.Context) (*connection, error) {
	r.mu.Lock()
	c := r.conn
	r.mu.Unlock()
	if c != nil {
		return c, nil
	}
	card, err := r.card(ctx)
	if err == nil {
		c, err = r.choose(card)
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = c
	return c, nil
}

const wellKnown = "/.well-known/agent-card.json"

// card reads the card. base_url is where it is, or what that begins with.
func (r *remote) card(ctx context.Context) (*wire.AgentCard, error) {
	u := *r.base
	if !strings.HasSuffix(u.Path, ".json") {
		u.Path = strings.TrimRight(u.Path, "/") + wellKnown
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the server cannot be asked: %w", err)
	}
	answer, err := r.client.Do(q)
	if err != nil {
		return nil, plain(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxCard+1))
	if err != nil {
		return nil, plain(ctx, err)
	}
	var card wire.AgentCard
	if len(text) > maxCard || json.Unmarshal(text, &card) != nil || card.Name == "" {
		return nil, swarm.Errorf(swarm.Protocol, "what is at %s is no card of an agent", u.Redacted()).WithHint("correct base_url of the provider %q", r.spec.Name)
	}
	return &card, nil
}

// choose finds the interface by which the agent is spoken to. Keys go to the server that the user has named, and to no other.
func (r *remote) choose(card *wire.AgentCard) (*connection, error) {
	c := &connection{name: card.Name, version: card.Version, streams: card.Capabilities.Streaming}
	var known []string
	for _, i := range card.SupportedInterfaces {
		if i == nil {
			continue
		}
		known = append(known, string(i.ProtocolBinding)+" "+string(i.ProtocolVersion))
		u, err := url.Parse(i.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !strings.HasPrefix(string(i.ProtocolVersion), "1.") {
			continue
		}
		if len(r.spec.Headers) > 0 && (u.Host != r.base.Host || u.Scheme != r.base.Scheme) {
			return nil, swarm.Errorf(swarm.Denied, "the card of %s says that it is at %s, and the keys are for %s", swarm.Quote(card.Name), u.Host, r.base.Host).
				WithHint("write the address that the card names as base_url, if you trust it")
		}
		switch i.ProtocolBinding {
		case wire.TransportProtocolJSONRPC:
			c.Transport = a2aclient.NewJSONRPCTransport(i.URL, r.client)
			return c, nil
		case wire.TransportProtocolHTTPJSON:
			c.Transport = a2aclient.NewRESTTransport(u, r.client)
			return c, nil
		}
	}
	return nil, swarm.Errorf(swarm.Protocol, "%s speaks %s, and no way that is known here", swarm.Quote(card.Name), strings.Join(known, ", ")).
		WithHint("JSONRPC and HTTP+JSON of A2A 1.0 are spoken here")
}

// plain takes off what others have wrapped an error of ours in.
func plain(ctx context.Context, err error) error {
	var f *failure
	var e *swarm.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &f):
		return f
	case errors.As(err, &e):
		return e
	}
	return &failure{again: true, err: swarm.Errorf(swarm.NoResult, "the server could not be heard: %w", err)}
}
