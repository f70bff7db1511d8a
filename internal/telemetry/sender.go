package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"swarm"
)

// A target is where a signal goes.
type target struct {
	console io.Writer // not nil = it is only printed
	url     *url.URL
	headers map[string]string
	timeout time.Duration
	gzip    bool
	client  *http.Client
}

// errLater marks an error that a retry may cure.
var errLater = errors.New("later")

// maxAnswer is the number of bytes of a collector's answer that are read.
const maxAnswer = 64 << 10

// send sends a request to the collector. If a retry may succeed, the error is an errLater.
func (t *target) send(ctx context.Context, body []byte) error {
	if t.console != nil {
		return nil // printed elsewhere
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	r, err := t.request(ctx, body)
	if err != nil {
		return err
	}
	answer, err := t.client.Do(r)
	if err != nil {
		if err = swarm.WithoutURL(err); errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer after %s", t.timeout)
		}
		return fmt.Errorf("%s: %w%w", t, err, silent{errLater})
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch code := answer.StatusCode; {
	case code/100 == 2 && err == nil:
		if n, why := rejected(text); n > 0 {
			return fmt.Errorf("%s refused %d of what it was sent: %s", t, n, swarm.Quote(why))
		}
		return nil
	case code/100 == 2:
		return nil // it has the request, whatever its answer says
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		return fmt.Errorf("%s answers %s%w", t, status(code), silent{errLater})
	default:
		return fmt.Errorf("%s answers %s", t, status(code))
	}
}

// A silent error is for code only and adds no text.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

func status(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return strconv.Itoa(code)
}

func (t *target) request(ctx context.Context, body []byte) (*http.Request, error) {
	if t.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(body)
		if err := errors.Join(err, z.Close()); err != nil {
			return nil, err
		}
		body = b.Bytes()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be asked", t)
	}
	for key, value := range t.headers {
		r.Header.Set(key, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "swarm (OTLP)")
	if t.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	return r, nil
}

// String returns the host of the target. Other parts of the URL may hold a secret.
func (t *target) String() string {
	if t.console != nil {
		return "standard error"
	}
	return t.url.Scheme + "://" + t.url.Host
}

// client makes the client for a collector. It follows no redirect, because a key must go to no
// other server.
func (env *environment) client(signal string) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() // the standard library documents this type
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, from := env.of(signal, "CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		c.RootCAs = x509.NewCertPool()
		if err != nil || !c.RootCAs.AppendCertsFromPEM(pem) {
			env.wrong(from, "a file with certificates in PEM")
		}
	}
	cert, from := env.of(signal, "CLIENT_CERTIFICATE")
	if key, _ := env.of(signal, "CLIENT_KEY"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			env.wrong(from, "a file with a certificate in PEM, whose key is in OTEL_EXPORTER_OTLP_CLIENT_KEY")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = c
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A Health says whether a signal arrives.
type Health struct {
	Signal  string // traces or metrics
	To      string
	Problem string
	Hint    string
}

// Check checks whether the collector answers, by an empty request.
func (x *Exporter) Check(ctx context.Context) []Health {
	if x.problem != nil {
		return []Health{{Signal: "settings", Problem: x.problem.Error(), Hint: swarm.HintOf(x.problem)}}
	}
	var all []Health
	for _, s := range []struct {
		name string
		to   *target
	}{{"traces", x.config.traces}, {"metrics", x.config.metrics}} {
		if s.to == nil {
			continue
		}
		h := Health{Signal: s.name, To: s.to.String()}
		if err := s.to.send(ctx, nil); err != nil {
			h.Problem, h.Hint = err.Error(), unreached
		}
		all = append(all, h)
	}
	return all
}

// unreached is the hint for a collector that does not accept requests.
const unreached = "runs go on without it; look at OTEL_EXPORTER_OTLP_ENDPOINT, or unset it"
