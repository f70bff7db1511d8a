package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

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
	maps.Copy(r.Header, header)
	r.Header.Set("User-Agent", "swarm")
	r.Header.Set(wire.SvcParamVersion, string(wire.Version))
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, provider.NotReached(err, w.remote.base.Redacted(), w.remote.spec.Name)
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

// refused is why a server did not take a request.
func (w *wiretap) refused(answer *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	f := provider.Refused(answer.StatusCode, said(data), "there is no agent")
	f.After = provider.RetryAfter(answer.Header)
	switch {
	case f.Err.Kind == swarm.NotSignedIn:
		f.Err.Hint = w.remote.signIn()
	case f.Err.Kind == swarm.NotFound:
		f.Err.Hint = fmt.Sprintf("correct base_url of the provider %q", w.remote.spec.Name)
	case f.Err.Hint == "":
		f.Err.Hint = "see whether it speaks A2A " + string(wire.Version)
	}
	return f
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
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f, ok := errors.AsType[*provider.Failure](err); ok {
		return f
	}
	if e, ok := errors.AsType[*swarm.Error](err); ok {
		return e
	}
	return &provider.Failure{Again: true, Err: swarm.Errorf(swarm.NoResult, "the server could not be heard: %w", err)}
}
