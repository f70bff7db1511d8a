package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"swarm"
)

// A LoginStore keeps the logins at tool servers by their address.
type LoginStore interface {
	Login(url string) ([]byte, error) // nil = there is none
	SaveLogin(url string, login []byte) error
	Lock(ctx context.Context, what string) (unlock func(), err error)
}

// A login is what is stored after a person has signed in: the tokens, and what refreshing them takes.
type login struct {
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	TokenURL     string           `json:"token_url"`
	Style        oauth2.AuthStyle `json:"auth_style"`
	Resource     string           `json:"resource,omitempty"` // what the tokens are for; "" = the server's address
	Token        *oauth2.Token    `json:"token"`
}

func (l *login) config() *oauth2.Config {
	return &oauth2.Config{ClientID: l.ClientID, ClientSecret: l.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: l.Style}}
}

// logins is the login at one server, for its requests. Several processes may use it: a refresh is
// under a lock, because many servers take each refresh token only once.
type logins struct {
	store LoginStore
	url   string
	http  *http.Client
	told  func(*login) // is called with each login before the login is used

	mu  sync.Mutex
	now *login // as it was read or refreshed last
}

// Token returns a token that is valid, and refreshes it if need be.
func (l *logins) Token() (*oauth2.Token, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now.Token.Valid() {
		return l.now.Token, nil
	}
	ctx, stop := context.WithTimeout(context.Background(), startTime)
	defer stop()
	unlock, err := l.store.Lock(ctx, "logins")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := l.read(); err != nil {
		return nil, err
	}
	if l.now == nil {
		return nil, errors.New("the login was removed")
	}
	if l.now.Token.Valid() { // another process has refreshed it
		return l.now.Token, nil
	}
	client := *l.http
	client.Transport = resourceSender{cmp.Or(l.now.Resource, l.url)}
	token, err := l.now.config().TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &client), l.now.Token).Token()
	if err != nil {
		return nil, err
	}
	fresh := *l.now
	fresh.Token = token
	l.told(&fresh)
	if err := l.store.SaveLogin(l.url, swarm.Encode(fresh)); err != nil {
		return nil, err
	}
	l.now = &fresh
	return token, nil
}

// A resourceSender adds the resource to each token request, as MCP demands. The OAuth library adds
// it only to the first request. Without the resource, a server may issue a token for another one
// (RFC 8707).
type resourceSender struct{ resource string }

func (s resourceSender) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	body = append(body, "&resource="+url.QueryEscape(s.resource)...)
	r = r.Clone(r.Context())
	r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return http.DefaultTransport.RoundTrip(r)
}

// read reads the stored login; now is nil if there is none.
func (l *logins) read() error {
	text, err := l.store.Login(l.url)
	l.now = nil
	if err != nil || text == nil {
		return err
	}
	var stored login
	if json.Unmarshal(text, &stored) != nil || stored.Token == nil {
		return nil //nolint:nilerr // as good as none: a person signs in again
	}
	l.told(&stored)
	l.now = &stored
	return nil
}

// A loginHandler adds the stored login to the requests to a server. It asks no person: a turn in which
// a login is missing fails, and says what to type.
type loginHandler struct {
	server *server
	link   *link
	logins *logins
}

// TokenSource returns the stored login, or nil if there is none.
func (h *loginHandler) TokenSource(context.Context) (oauth2.TokenSource, error) {
	h.logins.mu.Lock()
	defer h.logins.mu.Unlock()
	if h.logins.now == nil {
		if err := h.logins.read(); err != nil || h.logins.now == nil {
			return nil, err
		}
	}
	return h.logins, nil
}

// Authorize is called when the server refuses a request.
func (h *loginHandler) Authorize(_ context.Context, _ *http.Request, r *http.Response) error {
	_ = r.Body.Close()
	err := h.server.needsLogin()
	h.link.refused.CompareAndSwap(nil, err)
	return err
}

// needsLogin is the error of a server at which nobody has signed in, or no longer.
func (s *server) needsLogin() *swarm.Error {
	return swarm.Errorf(swarm.NotSignedIn, "the tool server %q needs a login", s.Name).WithHint("swarm mcp login %s", s.Name)
}

// Login signs in at a server over HTTP, by OAuth 2.1 with PKCE: it finds the authorization server,
// registers this program there, has show show a person the page to confirm, and takes the answer at an
// address of this machine. The tokens are stored when Login returns. needed is false if the server
// takes requests without a login.
func Login(ctx context.Context, spec swarm.ToolServer, o ServerOptions, show func(url string)) (needed bool, err error) {
	if spec.URL == "" {
		return false, swarm.Errorf(swarm.BadInput, "the tool server %q is a program, which needs no login of ours", spec.Name)
	}
	s := serverOf(spec, o)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return false, err
	}
	back := &callback{answers: make(chan *auth.AuthorizationResult, 1), failed: make(chan error, 1)}
	page := &http.Server{Handler: back, ReadHeaderTimeout: startTime}
	go func() { _ = page.Serve(listener) }() // ends with Close
	defer func() {                           // the browser that brought the answer gets its page
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = page.Shutdown(ending)
		_ = page.Close()
	}()
	redirect := fmt.Sprintf("http://%s/callback", listener.Addr())
	l := &link{gone: make(chan struct{})}
	transport, err := s.dial(l)
	if err != nil {
		return false, err
	}
	defer l.end()
	resource := ""
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "swarm", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		RequestRefreshToken: true, AcceptUnadvertisedIss: true, Client: &http.Client{Timeout: startTime},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if needed { // the library sends more requests after one that failed
				return nil, errors.New("the login has failed already")
			}
			needed = true
			if page, err := url.Parse(args.URL); err == nil {
				resource = page.Query().Get("resource")
			}
			show(args.URL)
			select {
			case r := <-back.answers:
				return r, nil
			case err := <-back.failed:
				return nil, err
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
		NewTokenSource: func(_ context.Context, c *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			stored := login{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, Style: c.Endpoint.AuthStyle, Resource: resource, Token: token}
			return oauth2.StaticTokenSource(token), o.Logins.SaveLogin(spec.URL, swarm.Encode(stored))
		},
	})
	if err != nil {
		return false, err
	}
	transport.(*mcp.StreamableClientTransport).OAuthHandler = handler
	client := mcp.NewClient(&mcp.Implementation{Name: "swarm", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		if ctx.Err() != nil {
			return needed, swarm.CutError(ctx)
		}
		return needed, swarm.Errorf(swarm.NotSignedIn, "the login at the tool server %q failed: %s", s.Name, clip(swarm.WithoutURL(err).Error())).
			WithHint("try again: swarm mcp login %s; a server that registers no programs takes a token: headers: {Authorization: Bearer $NAME}", s.Name)
	}
	return needed, session.Close()
}

// A callback takes the answer of the authorization server, which the person's browser brings.
type callback struct {
	answers chan *auth.AuthorizationResult
	failed  chan error
}

// ServeHTTP takes the first answer. The browser may ask for more, such as an icon.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if r.URL.Path != "/callback" || r.Method != http.MethodGet || q.Get("state") == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if why := q.Get("error"); why != "" {
		select {
		case c.failed <- errors.New(clip(why + " " + q.Get("error_description"))):
		default:
		}
		fmt.Fprintln(w, "The login was refused. You can close this page.")
		return
	}
	select {
	case c.answers <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}:
	default:
	}
	fmt.Fprintln(w, "swarm has the answer. You can close this page, and go on in the terminal.")
}

// LoginTime is how long a person may take to sign in.
const LoginTime = 10 * time.Minute
