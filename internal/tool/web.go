package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/toolrule"
)

// Limits of web_fetch.
const (
	maxPage      = 1 << 20 // bytes
	maxURL       = 8 << 10
	maxRedirects = 5
	pageTime     = 30 * time.Second
)

// newClient returns a client that reaches only allowed hosts. It uses no proxy, which could reach
// any host, and keeps no cookies.
func (b *Box) newClient() *http.Client {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return b.mayDial(address)
		},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
			TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return swarm.Errorf(swarm.Other, "it leads on more than %d times", maxRedirects)
			}
			r.Header.Del("Referer")
			return b.mayFetch(r.URL)
		},
	}
}

// mayFetch returns an error if no rule allows the URL.
func (b *Box) mayFetch(u *url.URL) error {
	host, port := strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || host == "":
		return swarm.Errorf(swarm.BadInput, "only pages of http and https can be fetched").
			WithHint("write a whole URL: https://example.org/page")
	case u.User != nil:
		return swarm.Errorf(swarm.BadInput, "a URL with a user's name or password is not fetched").
			WithHint("write it without them")
	case port == "" && u.Scheme == "http":
		port = "80"
	case port == "":
		port = "443"
	}
	if toolrule.Hosts(b.rules).AllowsHost(host, port) {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "nothing may be fetched from %s", swarm.Quote(net.JoinHostPort(host, port))).
		WithHint("allowed are %s", b.hosts())
}

// mayDial checks an address at the moment of dialling. An earlier lookup would not help, because
// DNS may answer differently from one moment to the next (DNS rebinding).
func (b *Box) mayDial(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return swarm.Errorf(swarm.Denied, "%s is no address", swarm.Quote(address))
	}
	if toolrule.Hosts(b.rules).AllowsAddr(at) {
		return nil
	}
	const msg = "the host is at %s, which is not on the internet but on this machine or its network"
	addr := at.Addr().Unmap().WithZone("")
	return swarm.Errorf(swarm.Denied, msg, addr).
		WithHint("only web_fetch(%s) would allow it", netip.AddrPortFrom(addr, at.Port()))
}

// hosts lists the hosts from which the agent may fetch.
func (b *Box) hosts() string { return toolrule.Hosts(b.rules).String() }

func (b *Box) fetchSpec() swarm.ToolSpec {
	return swarm.ToolSpec{Name: toolrule.WebFetch,
		Description: "Fetches a page by GET and answers with its text; HTML comes without its tags. " +
			"Allowed hosts: " + b.hosts() + ".",
		Schema: object(`"url":{"type":"string"},"max":{"type":"integer","minimum":1,`+
			`"description":"bytes of text to answer with at most; 1 MB is the most"}`, "url")}
}

// fetch gets a page. The redirect check and the dial check of the client apply the same rules again
// to every hop.
func (b *Box) fetch(ctx context.Context, args json.RawMessage) (string, error) {
	var a struct {
		URL string `json:"url"`
		Max int    `json:"max"`
	}
	if err := arguments(toolrule.WebFetch, args, &a); err != nil {
		return "", err
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || len(a.URL) > maxURL:
		return "", swarm.Errorf(swarm.BadInput, "%s is not a URL that can be fetched", swarm.Quote(a.URL)).
			WithHint("write a whole URL: https://example.org/page")
	case a.Max < 0:
		return "", swarm.Errorf(swarm.BadInput, "max cannot be below 0")
	}
	if err := b.mayFetch(u); err != nil {
		return "", err
	}
	within, stop := context.WithTimeout(ctx, pageTime)
	defer stop()
	r, err := http.NewRequestWithContext(within, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", swarm.Errorf(swarm.BadInput, "%s is not a URL that can be fetched", swarm.Quote(a.URL))
	}
	r.Header.Set("User-Agent", "swarm")
	r.Header.Set("Accept", "text/*, application/json, application/xml;q=0.9, */*;q=0.1")
	response, err := b.web.Do(r)
	if err != nil {
		return "", fetchError(ctx, u, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	if err != nil && len(body) == 0 {
		return "", fetchError(ctx, u, err)
	}
	return page(response, body, a.Max)
}

// fetchError translates an error of the client. A refusal of ours, from a redirect or a dial, is
// returned as it is.
func fetchError(ctx context.Context, u *url.URL, err error) error {
	var have *swarm.Error
	switch {
	case ctx.Err() != nil:
		return swarm.CutError(ctx)
	case errors.As(err, &have):
		return have
	case errors.Is(err, context.DeadlineExceeded):
		return swarm.Errorf(swarm.TimedOut, "%s did not answer within %v", u.Host, pageTime)
	}
	return swarm.Errorf(swarm.Other, "%s could not be fetched: %w", u.Host, swarm.WithoutURL(err))
}

// page converts a response to text for the agent.
func page(response *http.Response, body []byte, most int) (string, error) {
	cut := len(body) > maxPage
	body = body[:min(len(body), maxPage)]
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	if !isText(kind) {
		return "", swarm.Errorf(swarm.BadInput, "%s answers with %s, and only texts can be read",
			response.Request.URL.Host, swarm.Quote(kind))
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	if kind == "text/html" || kind == "application/xhtml+xml" {
		text = plain(text)
	}
	if most > 0 && len(text) > most {
		text, cut = strings.ToValidUTF8(text[:most], ""), true
	}
	if cut {
		text += fmt.Sprintf("\n[the rest was left out; %d bytes are shown]", len(text))
	}
	if response.StatusCode >= 300 {
		return "", swarm.Errorf(swarm.Other, "%s answers %s: %s", response.Request.URL.Host, response.Status,
			strings.ToValidUTF8(text[:min(len(text), 2000)], ""))
	}
	return text, nil
}

func isText(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/yaml",
		"application/x-yaml", "application/toml", "application/x-ndjson", "application/rtf", "application/x-sh",
		"application/sql", "application/graphql":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}
