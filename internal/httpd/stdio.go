package httpd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
)

// Stdio is an MCP server on two pipes that offers what the server behind a door offers, for agents that know no other kind. It ends
// when the input ends, or with an error when the server goes away.
func Stdio(ctx context.Context, door swarm.ToolEndpoint, version string, in io.Reader, out io.Writer) error {
	far, err := connect(ctx, door, version)
	if err != nil {
		return err
	}
	defer far.session.Close()
	c, err := newCounter(far.Tools(), func() (Agent, error) { return far, nil }, func(error) {})
	if err != nil {
		return err
	}
	calls, end := context.WithCancel(ctx)
	defer end()
	near, err := c.server(calls, "", version).Connect(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: stayOpen{out}}, nil)
	if err != nil {
		return swarm.Errorf(swarm.Other, "cannot speak on standard input and output: %w", err)
	}
	hungUp, gone := make(chan struct{}), make(chan struct{})
	go func() {
		_ = near.Wait() // how they hung up makes no difference
		close(hungUp)
	}()
	go func() {
		_ = far.session.Wait()
		close(gone)
	}()
	select {
	case <-hungUp:
		return nil
	case <-gone:
		return swarm.Errorf(swarm.Other, "the server at %s has gone", door.URL).WithHint("its run has ended, or is driven by another process now")
	}
}

// stayOpen leaves the closing of an output to whoever opened it.
type stayOpen struct{ io.Writer }

// Close does nothing.
func (stayOpen) Close() error { return nil }

// A farAgent is ourselves behind a door.
type farAgent struct {
	session *mcp.ClientSession
	tools   []swarm.ToolSpec
	quiet   bool // whoever asks reads the answers and nothing beside them

	mu     sync.Mutex
	asides []string // what came beside answers and was not told yet
}

// connectTime is how long a server of this machine may take to say hello.
const connectTime = 10 * time.Second

func connect(ctx context.Context, door swarm.ToolEndpoint, version string) (*farAgent, error) {
	if u, err := url.Parse(door.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no address of a server", swarm.Quote(door.URL)).WithHint("it looks like http://127.0.0.1:7777")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	bearer := &bearer{token: door.Token, base: http.DefaultTransport}
	client := mcp.NewClient(&mcp.Implementation{Name: "swarm-mcp", Version: version}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:   door.URL + "/mcp",
		HTTPClient: &http.Client{Transport: bearer},
		MaxRetries: -1, // who is gone is gone: another process has other tokens
	}, nil)
	if err != nil {
		if e := bearer.refused(); e != nil {
			return nil, e
		}
		return nil, swarm.Errorf(swarm.NotFound, "the server at %s does not answer: %w", door.URL, swarm.WithoutURL(err)).WithHint("its run has ended, or is driven by another process now")
	}
	far := &farAgent{session: session}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, errors.Join(swarm.Errorf(swarm.Protocol, "the server at %s does not list its tools: %w", door.URL, err), session.Close())
		}
		takes, _ := json.Marshal(t.InputSchema) // it was JSON a moment ago
		far.tools = append(far.tools, swarm.ToolSpec{Name: t.Name, Description: t.Description, Schema: takes})
	}
	return far, nil
}

func (f *farAgent) Tools() []swarm.ToolSpec { return f.tools }

// Call passes a call on. Its answer is taken from the text, in which numbers are as they were written.
func (f *farAgent) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if f.quiet {
		params.Meta = mcp.Meta{quietly: true}
	}
	r, err := f.session.CallTool(ctx, params)
	if said := new(jsonrpc.Error); errors.As(err, &said) {
		return nil, swarm.Errorf(swarm.Other, "%s", said.Message)
	}
	if err != nil {
		return nil, swarm.Errorf(swarm.Other, "swarm does not answer: %w", err).WithHint("perhaps the run has ended")
	}
	var text string
	for i, c := range r.Content {
		t, ok := c.(*mcp.TextContent)
		switch {
		case ok && i == 0:
			text = t.Text
		case ok:
			f.mu.Lock()
			f.asides = append(f.asides, t.Text)
			f.mu.Unlock()
		}
	}
	var p problem
	if !r.IsError {
		return json.RawMessage(text), nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		p.Error = text
	}
	return nil, &swarm.Error{Kind: swarm.BadInput, Msg: p.Error, Hint: p.Hint}
}

// Aside passes on what came beside an answer.
func (f *farAgent) Aside(context.Context, string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.asides, "\n")
	f.asides = nil
	return text
}

// A bearer shows a token, and remembers what was said to it when it was turned away.
type bearer struct {
	token string
	base  http.RoundTripper

	mu   sync.Mutex
	said *swarm.Error
}

// RoundTrip sends a request.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := b.base.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized && answer.StatusCode != http.StatusForbidden {
		return answer, err
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxHead)) // what could be read says enough
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	p := problem{}
	if json.Unmarshal(text, &p) != nil || p.Error == "" {
		p.Error = "the server says " + answer.Status
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = &swarm.Error{Kind: swarm.NotSignedIn, Msg: p.Error, Hint: p.Hint}
	return answer, nil
}

func (b *bearer) refused() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.said == nil {
		return nil
	}
	return b.said
}
