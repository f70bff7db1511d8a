package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// Hints that several kinds of providers give.
const (
	ComeBack = "wait a while; with retries: N for the task it is tried again by itself"
	TryAgain = "try again; with retries: N for the task that is done by itself"
)

// ErrSaidNothing is the cause of an error of a turn that the agent has ended without a word and
// without using a tool.
var ErrSaidNothing = errors.New("said nothing")

// A Failure is the reason why a server did not answer a request.
type Failure struct {
	Err       *swarm.Error
	Again     bool          // a retry may succeed
	Nobody    bool          // no server is there
	Throttled bool          // the server reported a rate limit
	After     time.Duration // when the server accepts a retry; 0 = it does not say
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error that people see.
func (f *Failure) Unwrap() error { return f.Err }

// NewClient makes a client for one server. wrap may change each request; it may be nil. The client
// follows no redirect, because a key must go to no other server.
func NewClient(wrap func(http.RoundTripper) http.RoundTripper) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024 // all turns of a team go to one host
	transport.DisableCompression = true                             // a stream is shown as it comes
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if wrap != nil {
		client.Transport = wrap(transport)
	}
	return client
}

// Ask sends a request, and retries it as long as it fails with a [Failure] that a retry may cure.
// say gets a text about each retry.
//
// A rate limit that lasts longer than [ShortWait], or than the time that ctx has, ends the turn with
// the time at which the limit resets. The loops then hold the provider's turns back, where people see
// it and no timeout counts it.
func (g *Pace) Ask(ctx context.Context, tries int, first time.Duration, say func(string), send func() error) error {
	for try := 1; ; try++ {
		pass, err := g.Enter(ctx)
		if err != nil {
			return err
		}
		err = send()
		f, known := errors.AsType[*Failure](err)
		wait := Backoff(first, try)
		if known && f.After > 0 {
			wait = f.After
		}
		tooLong := wait > LongestWait
		if deadline, ok := ctx.Deadline(); known && f.Throttled && f.After > 0 {
			tooLong = wait > ShortWait || ok && time.Now().Add(wait).After(deadline)
		}
		g.Leave(pass, err == nil, known && f.Throttled && !tooLong, wait)
		switch {
		case !known || ctx.Err() != nil:
			return err
		case !f.Again:
			return f.Err
		case tooLong: // the turn ends, and waits without a slot or a timeout
			f.Err.Until = time.Now().Add(wait)
			return f.Err.WithHint("the server wants to be asked again in %v", wait.Round(time.Second))
		case try == tries:
			return f.Err
		}
		say(fmt.Sprintf("%s; asking again in %v\n", f.Err.Msg, wait.Round(time.Millisecond)))
		if !f.Throttled { // else Enter waits
			if err := Sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
}

// NotReached makes the failure of a request that no server answered.
func NotReached(err error, url, provider string) *Failure {
	dns, unknown := errors.AsType[*net.DNSError](err)
	if errors.Is(err, syscall.ECONNREFUSED) || unknown && dns.IsNotFound {
		return &Failure{
			Nobody: true,
			Err: swarm.Errorf(swarm.Unreachable, "nobody answers at %s", url).
				WithHint("start the server, or correct base_url of the provider %q", provider),
		}
	}
	return &Failure{Again: true, Err: swarm.Errorf(swarm.NoResult, "the server could not be asked: %w", err)}
}

// Refused makes the failure of a request that a server answered with an error: its status, and its
// text. missing says what does not exist when the status is 404.
func Refused(status int, said, missing string) *Failure {
	f := &Failure{}
	kind, text, hint := swarm.BadInput, "the server does not understand the request", ""
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		kind, text = swarm.NotSignedIn, "the server does not let us in"
	case Busy(status):
		f.Again, f.Throttled = true, true
		kind, text, hint = swarm.RateLimited, "the server has too much to do", ComeBack
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		kind, text = swarm.NotFound, missing
	case status == http.StatusRequestTimeout, status >= 500:
		f.Again = true
		kind, text, hint = swarm.NoResult, "the server failed", TryAgain
	case status >= 300 && status < 400:
		text, hint = "the server is somewhere else", "write its own address as base_url: a key is not sent to another server"
	}
	f.Err = swarm.Errorf(kind, "%s (%d)%s", text, status, excerpt.Said(said)).WithHint("%s", hint)
	return f
}

// Busy says whether a status means a rate limit or overload.
func Busy(status int) bool { return status == 429 || status == 503 || status == 529 }
