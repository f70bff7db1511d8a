package httpd

import (
	"bufio"
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

// Stdio is an MCP server on two pipes that offers the tools of the server behind an endpoint. It is
// for programs that speak no other transport. It returns when the input ends, or with an error when
// the server goes away.
func Stdio(ctx context.Context, endpoint swarm.ToolEndpoint, version string, in io.Reader, out io.Writer) error {
	remote, err := connect(ctx, endpoint, version)
	if err != nil {
		return err
	}
	defer remote.session.Close()
	left, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() {
		_ = remote.session.Wait()
		lose(swarm.Errorf(swarm.Other, "the server at %s has gone", endpoint.URL).
			WithHint("its run has ended, or is driven by another process now"))
	}()
	return ServePipes(left, remote, instructions, version, in, out)
}

// ServePipes is an MCP server on two pipes that offers the tools of a user. about describes them as a
// whole. It returns nil when the input ends, and the cause when ctx ends.
func ServePipes(ctx context.Context, user Agent, about, version string, in io.Reader, out io.Writer) error {
	c, err := newToolset(user.Tools(), func() (Agent, error) { return user, nil }, func(error) {})
	if err != nil {
		return err
	}
	c.about = about
	calls, end := context.WithCancel(ctx)
	defer end()
	writer := &sharedWriter{out: out}
	pipes := &mcp.IOTransport{Reader: io.NopCloser(&rpcLines{in: bufio.NewReader(in), out: writer}), Writer: writer}
	near, err := c.server(calls, "", version).Connect(context.WithoutCancel(ctx), pipes, nil)
	if err != nil {
		return swarm.Errorf(swarm.Other, "cannot speak on standard input and output: %w", err)
	}
	hungUp := make(chan struct{})
	go func() {
		_ = near.Wait() // either way the client is gone
		close(hungUp)
	}()
	select {
	case <-hungUp:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A remoteAgent is an agent whose tools are at another process's server.
type remoteAgent struct {
	session *mcp.ClientSession
	tools   []swarm.ToolSpec
	quiet   bool // the caller reads answers only, no asides

	mu     sync.Mutex
	asides []string // texts that came with answers and were not passed on yet
}

// connectTime is the timeout for connecting to a server of this machine.
const connectTime = 10 * time.Second

// connect opens a session at a server and lists its tools. A refused token gives the server's own
// error, because that says what to do.
func connect(ctx context.Context, endpoint swarm.ToolEndpoint, version string) (*remoteAgent, error) {
	if u, err := url.Parse(endpoint.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, swarm.Errorf(swarm.BadInput, "%s is no address of a server", swarm.Quote(endpoint.URL)).
			WithHint("it looks like http://127.0.0.1:7777")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	bearer := &bearer{token: endpoint.Token, base: http.DefaultTransport}
	client := mcp.NewClient(&mcp.Implementation{Name: "swarm-mcp", Version: version}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:   endpoint.URL + "/mcp",
		HTTPClient: &http.Client{Transport: bearer},
		MaxRetries: -1, // no retry: after a restart, our token is not valid any more
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}) // its session tells when the server has gone
	if err != nil {
		if e := bearer.refused(); e != nil {
			return nil, e
		}
		return nil, swarm.Errorf(swarm.NotFound, "the server at %s does not answer: %w", endpoint.URL, swarm.WithoutURL(err)).
			WithHint("its run has ended, or is driven by another process now")
	}
	remote := &remoteAgent{session: session}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			err = swarm.Errorf(swarm.Protocol, "the server at %s does not list its tools: %w", endpoint.URL, err)
			return nil, errors.Join(err, session.Close())
		}
		takes, _ := json.Marshal(t.InputSchema) // it was decoded from JSON
		remote.tools = append(remote.tools, swarm.ToolSpec{Name: t.Name, Description: t.Description, Schema: takes})
	}
	return remote, nil
}

func (f *remoteAgent) Tools() []swarm.ToolSpec { return f.tools }

// Call forwards a call. It takes the answer from the text, where numbers keep their notation.
func (f *remoteAgent) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	if f.quiet {
		params.Meta = mcp.Meta{quietMeta: true}
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

// Aside returns the texts that came with answers, once.
func (f *remoteAgent) Aside(context.Context, string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.asides, "\n")
	f.asides = nil
	return text
}

// A bearer sends the token with each request, and keeps the error of a refused one.
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
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxHead)) // the part that was read is enough
	_ = answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	p := problem{}
	if json.Unmarshal(text, &p) != nil || p.Error == "" {
		p.Error = "the server says " + answer.Status
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = &swarm.Error{Kind: swarm.NotSignedIn, Msg: p.Error, Hint: p.Hint}
	if answer.StatusCode == http.StatusForbidden {
		b.said.Kind = swarm.Denied
	}
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
