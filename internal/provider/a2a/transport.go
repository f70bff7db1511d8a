package a2a

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"swarm"
	"swarm/internal/provider"
)

// Limits of what a server may send, in bytes.
const (
	maxCard    = 1 << 20
	maxPlain   = 32 << 20 // an answer that comes in one piece
	maxProblem = 64 << 10 // an error answer
)

// maxAnswer is the number of bytes of text in one turn. It is a variable so that a test need not
// send as much.
var maxAnswer = 16 << 20

// A transport adds headers to requests, turns error statuses into errors of ours, and limits the
// size of answers.
type transport struct {
	remote *remote
	next   http.RoundTripper
}

// aliveKey is the context key of the function to call when data arrives.
type aliveKey struct{}

// RoundTrip does one request.
func (w *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	header, _, err := w.remote.headers()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	maps.Copy(r.Header, header)
	r.Header.Set("User-Agent", "swarm")
	if r.Header.Get(wire.SvcParamVersion) == "" {
		r.Header.Set(wire.SvcParamVersion, string(wire.Version))
	}
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, provider.NotReached(err, w.remote.base.Redacted(), w.remote.spec.Name)
	}
	if answer.StatusCode != http.StatusOK && !isProtocolError(r, answer) {
		defer answer.Body.Close()
		return nil, w.refusedError(answer)
	}
	stream := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
	if !stream && answer.StatusCode == http.StatusOK && r.Header.Get("Accept") == "text/event-stream" {
		// An error that came before the stream began.
		if err := asStream(answer); err != nil {
			return nil, err
		}
		return answer, nil
	}
	alive, _ := r.Context().Value(aliveKey{}).(func())
	left := int64(maxPlain)
	if stream {
		left = -1 // the library limits each event
	}
	answer.Body = &limitedBody{ReadCloser: answer.Body, left: left, alive: alive}
	return answer, nil
}

// isProtocolError says whether an answer is one of the protocol's own errors, which HTTP+JSON sends
// with an error status.
func isProtocolError(r *http.Request, answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnsupportedMediaType:
		return (strings.Contains(r.URL.Path, "/message:") || strings.Contains(r.URL.Path, "/tasks")) &&
			strings.HasPrefix(answer.Header.Get("Content-Type"), "application/")
	}
	return false
}

// asStream turns a plain answer into a stream of one event.
func asStream(answer *http.Response) error {
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxPlain))
	if err != nil {
		return err
	}
	var flat bytes.Buffer
	if json.Compact(&flat, text) != nil {
		return swarm.Errorf(swarm.Protocol, "the answer of the server is neither a stream nor JSON")
	}
	answer.Body = io.NopCloser(strings.NewReader("data: " + flat.String() + "\n\n"))
	answer.Header.Set("Content-Type", "text/event-stream")
	return nil
}

// A limitedBody fails where it would become too long.
type limitedBody struct {
	io.ReadCloser
	left  int64 // -1 = no limit
	alive func()
}

// Read reads from the body, and reports that the server is alive.
func (b *limitedBody) Read(p []byte) (int, error) {
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

// refusedError makes the error of an answer with an error status.
func (w *transport) refusedError(answer *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	f := provider.Refused(answer.StatusCode, errorText(data), "there is no agent")
	f.After = provider.RetryAfter(answer.Header)
	switch {
	case f.Err.Kind == swarm.NotSignedIn:
		f.Err.Hint = w.remote.signInHint()
	case f.Err.Kind == swarm.NotFound:
		f.Err.Hint = fmt.Sprintf("correct base_url of the provider %q", w.remote.spec.Name)
	case f.Err.Hint == "":
		f.Err.Hint = "see whether it speaks A2A " + string(wire.Version)
	}
	return f
}

// signInHint says how to give the provider a key.
func (r *remote) signInHint() string {
	for _, value := range r.spec.Headers {
		if at := strings.LastIndexByte(value, '$'); at >= 0 {
			return "set " + strings.Trim(value[at+1:], "{}") + " to a token that its server takes"
		}
	}
	return fmt.Sprintf(`write headers: {Authorization: Bearer $NAME} for the provider %q, and set NAME`, r.spec.Name)
}

// errorText returns the message in an error answer.
func errorText(data []byte) string {
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

// connect reads the agent's card, once, and chooses the way to reach it. Two turns may read it at
// the same time; the results are equal.
func (r *remote) connect(ctx context.Context) (*connection, error) {
	r.mu.Lock()
	c := r.conn
	r.mu.Unlock()
	if c != nil {
		return c, nil
	}
	card, err := r.readCard(ctx)
	if err == nil {
		c, err = r.chooseInterface(card)
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

// An agentCard is the part of a card that is needed to reach its agent, of A2A 1.0 or 0.3. The
// library's own type refuses cards whose security requirements are as the proto has them.
type agentCard struct {
	Name         string
	Version      string
	Capabilities struct{ Streaming bool }

	SupportedInterfaces []agentInterface

	// Before 1.0.
	URL                  string
	PreferredTransport   wire.TransportProtocol
	ProtocolVersion      string
	AdditionalInterfaces []struct {
		URL       string
		Transport wire.TransportProtocol
	}
}

// An agentInterface is one way to reach an agent.
type agentInterface struct {
	URL             string
	ProtocolBinding wire.TransportProtocol
	ProtocolVersion string
}

// interfaces lists the ways to reach the agent, those of the newest version first.
func (c *agentCard) interfaces() []agentInterface {
	all := slices.Clone(c.SupportedInterfaces)
	if len(all) == 0 && c.URL != "" {
		version := cmp.Or(c.ProtocolVersion, legacyVersion)
		all = append(all, agentInterface{c.URL, cmp.Or(c.PreferredTransport, wire.TransportProtocolJSONRPC), version})
		for _, more := range c.AdditionalInterfaces {
			all = append(all, agentInterface{more.URL, more.Transport, version})
		}
	}
	slices.SortStableFunc(all, func(a, b agentInterface) int { return strings.Compare(b.ProtocolVersion, a.ProtocolVersion) })
	return all
}

// readCard reads the card. base_url is its address, or the beginning of it.
func (r *remote) readCard(ctx context.Context) (*agentCard, error) {
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
		return nil, unwrapError(ctx, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxCard+1))
	if err != nil {
		return nil, unwrapError(ctx, err)
	}
	var card agentCard
	if len(text) > maxCard || json.Unmarshal(text, &card) != nil || card.Name == "" {
		return nil, swarm.Errorf(swarm.Protocol, "what is at %s is not the card of an agent", u.Redacted()).
			WithHint("correct base_url of the provider %q", r.spec.Name)
	}
	return &card, nil
}

// chooseInterface chooses the interface by which the agent is reached. Keys go only to the server
// that the user has named.
func (r *remote) chooseInterface(card *agentCard) (*connection, error) {
	c := &connection{name: card.Name, version: card.Version, streams: card.Capabilities.Streaming}
	var known []string
	for _, i := range card.interfaces() {
		known = append(known, string(i.ProtocolBinding)+" "+i.ProtocolVersion)
		u, err := url.Parse(i.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		current, old := strings.HasPrefix(i.ProtocolVersion, "1."), strings.HasPrefix(i.ProtocolVersion, legacyVersion)
		switch {
		case current && i.ProtocolBinding == wire.TransportProtocolJSONRPC:
			c.caller = a2aclient.NewJSONRPCTransport(i.URL, r.client)
		case current && i.ProtocolBinding == wire.TransportProtocolHTTPJSON:
			c.caller = a2aclient.NewRESTTransport(u, r.client)
		case old && i.ProtocolBinding == wire.TransportProtocolJSONRPC:
			c.caller = &legacy{i.URL, r.client}
		default:
			continue
		}
		if len(r.spec.Headers) > 0 && (u.Host != r.base.Host || u.Scheme != r.base.Scheme) {
			return nil, swarm.Errorf(swarm.Denied, "the card of %s says that it is at %s, and the keys are for %s", swarm.Quote(card.Name), u.Host, r.base.Host).
				WithHint("write the address that the card names as base_url, if you trust it")
		}
		return c, nil
	}
	return nil, swarm.Errorf(swarm.Protocol, "%s speaks %s, which swarm does not", swarm.Quote(card.Name), cmp.Or(strings.Join(known, ", "), "nothing")).
		WithHint("swarm speaks JSONRPC and HTTP+JSON of A2A 1.0, and JSONRPC of A2A 0.3")
}

// unwrapError returns the error of ours inside an error of others.
func unwrapError(ctx context.Context, err error) error {
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
