package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm/internal/modeltest"
)

// A ticketServer is an MCP server that wants a login, and its authorization server.
type ticketServer struct {
	*httptest.Server
	mu        sync.Mutex
	clients   map[string]string // redirect URIs by client
	codes     map[string]url.Values
	access    map[string]bool
	refresh   map[string]bool
	refreshed int
	life      int // seconds of an access token
	deny      bool
	problems  []string
}

func newTicketServer(t *testing.T) *ticketServer {
	s := &ticketServer{clients: map[string]string{}, codes: map[string]url.Values{}, access: map[string]bool{}, refresh: map[string]bool{}, life: 3600}
	server := mcp.NewServer(&mcp.Implementation{Name: "tickets", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "next", Description: "The next ticket."}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		// It repeats what it was sent, as servers do that help to find mistakes.
		text := "ticket 42 for " + r.Extra.Header.Get("Authorization")
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	check := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.access[token] {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux.Handle("/mcp", auth.RequireBearerToken(check, &auth.RequireBearerTokenOptions{ResourceMetadataURL: s.URL + "/.well-known/oauth-protected-resource/mcp"})(handler))
	answer := func(path string, do func(r *http.Request) (int, map[string]any)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			status, body := do(r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", func(*http.Request) (int, map[string]any) {
		return 200, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}}
	})
	answer("/.well-known/oauth-authorization-server", func(*http.Request) (int, map[string]any) {
		return 200, map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}}
	})
	answer("/register", func(r *http.Request) (int, map[string]any) {
		var m struct {
			Redirects []string `json:"redirect_uris"`
			Name      string   `json:"client_name"`
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || len(m.Redirects) != 1 || m.Name != "swarm" {
			s.problems = append(s.problems, "the registration is odd")
		}
		id := "client-" + rand.Text()
		s.clients[id] = m.Redirects[0]
		return 201, map[string]any{"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": "none"}
	})
	mux.HandleFunc("/authorize", s.authorize)
	answer("/token", s.token)
	return s
}

// authorize is the page at which the person confirms.
func (s *ticketServer) authorize(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	if s.clients[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") != s.URL+"/mcp" {
		s.problems = append(s.problems, "the authorization is odd: "+r.URL.RawQuery)
	}
	back := url.Values{"state": q["state"]}
	if s.deny {
		back.Set("error", "access_denied")
	} else {
		code := rand.Text()
		s.codes[code] = q
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *ticketServer) token(r *http.Request) (int, map[string]any) {
	_ = r.ParseForm()
	refused := func(why string) (int, map[string]any) { return 400, map[string]any{"error": why} }
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		q := s.codes[r.Form.Get("code")]
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if q == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || r.Form.Get("client_id") != q.Get("client_id") {
			return refused("invalid_grant")
		}
		delete(s.codes, r.Form.Get("code"))
	case "refresh_token":
		if !s.refresh[r.Form.Get("refresh_token")] {
			return refused("invalid_grant")
		}
		if r.Form.Get("resource") != s.URL+"/mcp" {
			s.problems = append(s.problems, "the refresh is odd: "+r.Form.Encode())
		}
		delete(s.refresh, r.Form.Get("refresh_token")) // each counts once
		s.refreshed++
	default:
		return refused("unsupported_grant_type")
	}
	access, refresh := "access-canary-"+rand.Text(), "refresh-canary-"+rand.Text()
	s.access[access], s.refresh[refresh] = true, true
	return 200, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": s.life}
}

func (s *ticketServer) set(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// login runs `swarm mcp login`, and is the person at the browser.
func (d *driver) login() (string, error) {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "swarm", "mcp", "login", "tickets")
	cmd.Dir, cmd.Env = d.dir, d.env()
	var out strings.Builder
	cmd.Stdout = &out
	said, err := cmd.StderrPipe()
	if err != nil {
		d.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.Fatal(err)
	}
	page, text := regexp.MustCompile(`(?m)^http://\S+\n`), ""
	for b := make([]byte, 4096); ; {
		n, err := said.Read(b)
		text += string(b[:n])
		if found := page.FindString(text); found != "" {
			r, err := http.Get(strings.TrimSpace(found))
			if err != nil {
				d.Fatal(err)
			}
			r.Body.Close()
			break
		}
		if err != nil {
			break
		}
	}
	rest, _ := io.ReadAll(said)
	err = cmd.Wait()
	return out.String() + text + string(rest), err
}

// TestLogin: a person signs in at an MCP server over HTTP with the real program. A model uses its tools
// then, with a token that is refreshed, until the login ends.
func TestLogin(t *testing.T) {
	tickets := newTicketServer(t)
	model := modeltest.Start()
	defer model.Close()
	model.Reply = func(r modeltest.Request) modeltest.Answer {
		if len(r.Results) == 0 {
			return modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "tickets__next", Args: "{}"}}}
		}
		if strings.Contains(r.Results[0], "canary") {
			t.Errorf("the model is told a token: %s", r.Results[0])
		}
		return modeltest.Answer{Text: "it says " + r.Results[0]}
	}
	d := &driver{T: t, dir: t.TempDir(), home: filepath.Join(t.TempDir(), "state")}
	d.write("swarm/swarm.yaml", "providers: {m: {kind: anthropic, base_url: "+model.URL+", models: {medium: tiny}}}\nprovider: m\n"+
		"agents: {clerk: {tools: [tickets]}}\ntools: {mcp: {tickets: {url: "+tickets.URL+"/mcp}, local: {command: [true]}}}\n"+
		"tasks: {one: {agent: clerk, prompt-string: next}}\n")
	t.Setenv("ANTHROPIC_API_KEY", "k")
	up := func(want string) {
		t.Helper()
		out, _ := d.swarm("up")
		if out += shownOutput(d); !strings.Contains(out, want) || strings.Contains(out, "canary") {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	up(`the tool server "tickets" needs a login`)
	up("swarm mcp login tickets")
	tickets.set(func() { tickets.deny = true })
	if out, err := d.login(); err == nil || !strings.Contains(out, "access_denied") {
		t.Errorf("%v: %s", err, out)
	}
	tickets.set(func() { tickets.deny = false })
	if out, err := d.login(); err != nil || !strings.Contains(out, "signed in at tickets\n") || strings.Contains(out, "canary") {
		t.Fatalf("%v: %s", err, out)
	}
	up("it says ticket 42 for Bearer [secret tickets_access_token]")
	files, err := filepath.Glob(filepath.Join(d.home, "logins", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	// The token has expired: it is refreshed, once, and the new one is kept.
	expire := func() {
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		old := regexp.MustCompile(`"expiry":"[^"]*"`).ReplaceAll(text, []byte(`"expiry":"2026-01-01T00:00:00Z"`))
		if err := os.WriteFile(files[0], old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expire()
	tickets.set(func() { clear(tickets.access) })
	up("it says ticket 42")
	up("it says ticket 42")
	tickets.set(func() {
		if tickets.refreshed != 1 {
			t.Errorf("refreshed %d times", tickets.refreshed)
		}
		clear(tickets.access)
		clear(tickets.refresh)
	})
	expire()
	up(`the tool server "tickets" needs a login`)
	if out, err := d.login(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	up("it says ticket 42")
	// No token is anywhere but in the file of the login.
	err = filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path == files[0] {
			return err
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "-canary-") {
			t.Errorf("%s holds a token", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if out, err := d.swarm("mcp", "logout", "tickets"); err != nil || out != "the login at tickets is forgotten\n" {
		t.Errorf("%v: %s", err, out)
	}
	if out, _ := d.swarm("mcp", "logout", "tickets"); out != "there is no login at tickets\n" {
		t.Error(out)
	}
	up(`the tool server "tickets" needs a login`)
	for name, want := range map[string]string{"tocket": `no tool server "tocket"`, "local": "is a program, which needs no login"} {
		if out, err := d.swarm("mcp", "login", name); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %s", err, out)
		}
	}
	tickets.set(func() {
		for _, p := range tickets.problems {
			t.Error(p)
		}
	})
}

// shownOutput is the output of the last run, and what is known of its task.
func shownOutput(d *driver) string {
	out, _ := d.swarm("out", "@last", "one")
	show, _ := d.swarm("show", "@last", "--json")
	return out + show
}
