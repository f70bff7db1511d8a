// Package a2a reaches agents that others publish over A2A. A prompt becomes a message, and the
// answer streams out. The remote conversation is the session, which a later turn continues. When a
// turn ends here, for whatever reason, its task there is cancelled.
//
// Remote agents get no swarm tools and cannot message other agents. Their text is their output.
package a2a

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// Timeouts and retries of a turn. They are variables so that tests need not wait.
var (
	tries     = provider.Tries
	firstWait = provider.FirstWait
	pollWait  = 250 * time.Millisecond // first wait before asking again for a task of an agent that does not stream
)

const (
	cancelTime = 5 * time.Second  // for the request that cancels a remote task
	checkTime  = 10 * time.Second // for `swarm doctor` to read a card
)

// A remote is a provider whose agent is published by others. It serves many turns at once.
type remote struct {
	spec       swarm.ProviderSpec
	base       *url.URL
	environ    []string
	client     *http.Client
	pace       provider.Pace
	cancelling sync.WaitGroup // requests that cancel tasks

	mu   sync.Mutex
	conn *connection // set once the card was read
}

// A connection is the way to reach the agent that its card names.
type connection struct {
	caller
	name, version string
	streams       bool
}

// A caller does the calls of the protocol that a turn needs. The library's transports are callers.
type caller interface {
	SendMessage(context.Context, a2aclient.ServiceParams, *wire.SendMessageRequest) (wire.SendMessageResult, error)
	SendStreamingMessage(context.Context, a2aclient.ServiceParams, *wire.SendMessageRequest) iter.Seq2[wire.Event, error]
	GetTask(context.Context, a2aclient.ServiceParams, *wire.GetTaskRequest) (*wire.Task, error)
	CancelTask(context.Context, a2aclient.ServiceParams, *wire.CancelTaskRequest) (*wire.Task, error)
	SubscribeToTask(context.Context, a2aclient.ServiceParams, *wire.SubscribeToTaskRequest) iter.Seq2[wire.Event, error]
}

// Open makes the provider that spec describes. It makes no connection.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	r := &remote{spec: spec, environ: opt.Environ}
	u, err := url.Parse(spec.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, swarm.Errorf(swarm.BadInput, "the base_url of the provider %q is not the address of an agent", spec.Name).
			WithHint("write where its card is, or what that begins with: base_url: http://127.0.0.1:7777/a2a/coder")
	}
	r.base = u
	r.client = provider.NewClient(
		func(next http.RoundTripper) http.RoundTripper { return &transport{remote: r, next: next} },
	)
	return r, nil
}

// Check reports whether the agent's card can be read, and the name in it.
func (r *remote) Check(ctx context.Context) provider.Health {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	c, err := r.connect(ctx)
	if err != nil {
		h := provider.Health{Problem: err.Error(), Hint: swarm.HintOf(err)}
		if swarm.KindOf(err) == swarm.NotSignedIn {
			h.Found, h.Signed = true, "no"
		}
		return h
	}
	return provider.Health{Found: true, Path: r.base.String(), Version: strings.TrimSpace(c.name + " " + c.version)}
}

// Turn sends the agent a message and reads events until its task has ended.
func (r *remote) Turn(ctx context.Context, req provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if ctx.Err() != nil {
		return provider.Reply{}, swarm.CutError(ctx)
	}
	hide, err := r.newRedactor()
	if err != nil {
		return provider.Reply{Free: true}, err
	}
	t := &turn{
		remote:     r,
		request:    req,
		live:       live,
		redactor:   hide,
		textStream: hide.Stream(),
		texts:      map[string]*strings.Builder{},
	}
	err = t.run(ctx)
	t.flush()
	if err != nil {
		t.cancelTask() // its later output has no reader
		if err = t.cleanError(err); ctx.Err() != nil {
			err = swarm.CutError(ctx)
		}
	}
	return t.reply(), err
}

// Close waits until the tasks of turns that were cut are cancelled.
func (r *remote) Close() error {
	r.cancelling.Wait()
	return nil
}

// headers returns the headers of each request, and the keys in them.
func (r *remote) headers() (h http.Header, held map[string]string, err error) {
	h, held, missing := process.Headers(r.environ, r.spec.Headers)
	if missing != "" {
		return nil, nil, swarm.Errorf(swarm.NotSignedIn, "the provider %q has no key: %s is not set, or holds what cannot be one", r.spec.Name, missing).
			WithHint("export %s=… with the token of its server", missing)
	}
	return h, held, nil
}

// newRedactor removes the keys from texts.
func (r *remote) newRedactor() (*secret.Redactor, error) {
	_, held, err := r.headers()
	if err != nil || len(held) == 0 {
		return nil, err
	}
	return secret.New(nil, held), nil
}
