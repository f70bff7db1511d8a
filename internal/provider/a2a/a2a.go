// Package a2a reaches agents that others publish over A2A: a prompt becomes a message, what comes back streams out, and the remote
// task's conversation is the session with which a later turn goes on. Whatever ends a turn here ends the task there.
//
// Such an agent has no door into our run: it has none of our tools and writes to nobody. What it says is its output.
package a2a

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2aclient"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// How patient a turn is. They are variables so that tests need not be.
var (
	tries     = provider.Tries
	firstWait = provider.FirstWait
	askAgain  = 250 * time.Millisecond // for a task whose agent does not stream; later less often
)

const (
	cancelMax = 5 * time.Second  // and how long the remote agent is given for it
	checkFor  = 10 * time.Second // how long doctor waits for a card
)

// A remote is a provider whose agent is somebody else's.
type remote struct {
	spec    swarm.ProviderSpec
	base    *url.URL
	environ []string
	client  *http.Client
	pace    provider.Pace
	leaving sync.WaitGroup // tasks that are being cancelled

	mu   sync.Mutex
	conn *connection // once the card was read
}

// A connection is how the agent is spoken to, by its card.
type connection struct {
	a2aclient.Transport
	name, version string
	streams       bool
}

// Open makes the provider that spec describes. It reaches nobody.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	r := &remote{spec: spec, environ: opt.Environ}
	u, err := url.Parse(spec.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, swarm.Errorf(swarm.BadInput, "the base_url of the provider %q is no address of an agent", spec.Name).
			WithHint("write where its card is, or what that begins with: base_url: http://127.0.0.1:7777/a2a/coder")
	}
	r.base = u
	r.client = provider.NewClient(func(next http.RoundTripper) http.RoundTripper { return &wiretap{remote: r, next: next} })
	return r, nil
}

// Check says whether the agent's card can be read, and who it is.
func (r *remote) Check(ctx context.Context) provider.Health {
	ctx, stop := context.WithTimeout(ctx, checkFor)
	defer stop()
	c, err := r.connect(ctx)
	if err != nil {
		h := provider.Health{Problem: err.Error()}
		if e := new(swarm.Error); errors.As(err, &e) {
			h.Problem, h.Hint = e.Text(), e.Hint
		}
		if swarm.KindOf(err) == swarm.NotSignedIn {
			h.Found, h.Signed = true, "no"
		}
		return h
	}
	return provider.Health{Found: true, Path: r.base.String(), Version: strings.TrimSpace(c.name + " " + c.version)}
}

// Turn gives the agent a message, and listens until it is done.
func (r *remote) Turn(ctx context.Context, req provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if ctx.Err() != nil {
		return provider.Reply{}, swarm.CutError(ctx)
	}
	hide, err := r.hider()
	if err != nil {
		return provider.Reply{Free: true}, err
	}
	t := &turn{remote: r, request: req, live: live, hide: hide, said: hide.Stream(), texts: map[string]*strings.Builder{}}
	err = t.run(ctx)
	t.flush()
	if err != nil {
		t.abandon() // nobody will hear what else it says
		if err = t.clean(err); ctx.Err() != nil {
			err = swarm.CutError(ctx)
		}
	}
	return t.reply(), err
}

// Close waits until tasks that were cut have been told so.
func (r *remote) Close() error {
	r.leaving.Wait()
	return nil
}

// header is what each request carries, and the keys in it.
func (r *remote) header() (h http.Header, held map[string]string, err error) {
	h, held, missing := process.Headers(r.environ, r.spec.Headers)
	if missing != "" {
		return nil, nil, swarm.Errorf(swarm.NotSignedIn, "the provider %q has no key: %s is not set, or holds what cannot be one", r.spec.Name, missing).
			WithHint("export %s=… with the token of its server", missing)
	}
	return h, held, nil
}

// hider takes the keys out of texts.
func (r *remote) hider() (*secret.Redactor, error) {
	_, held, err := r.header()
	if err != nil || len(held) == 0 {
		return nil, err
	}
	return secret.New(nil, held), nil
}
