package httpd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/agenttoken"
)

// A trait is one property of a request, and whether it is valid.
type trait struct {
	name  string
	value []string
	good  bool
}

// A server that listens on another loopback address has that name too, and no third one.
func TestTheAskedLoopbackAddressIsAName(t *testing.T) {
	s, err := Start(Options{Listen: "127.0.0.2:0"})
	if err != nil {
		t.Skip(err) // only 127.0.0.1 is up
	}
	defer s.Close()
	for name, want := range map[string]bool{"127.0.0.2": true, "127.0.0.1": true, "localhost": true, "127.0.0.3": false, "127.0.0.2.evil.example": false, "0.0.0.0": false, "": false} {
		if got := s.isOwnName(net.JoinHostPort(name, s.port)); got != want {
			t.Errorf("%q is our name: %v", name, got)
		}
	}
	if s.isOwnName("127.0.0.2") || !strings.HasPrefix(s.URL(), "http://127.0.0.2:") {
		t.Errorf("without the port it is our name, or we are at %s", s.URL())
	}
}

func traits(h *house) (hosts, origins, tokens, types []trait) {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(h.URL(), "http://"))
	hosts = []trait{
		{"127.0.0.1", []string{"127.0.0.1:" + port}, true},
		{"localhost", []string{"localhost:" + port}, true},
		{"localhost in other words", []string{"LOCALHOST:" + port}, true},
		{"::1", []string{"[::1]:" + port}, true},
		{"a web page's", []string{"evil.example:" + port}, false},
		{"like ours", []string{"localhost.evil.example:" + port}, false},
		{"without port", []string{"127.0.0.1"}, false},
		{"another port", []string{"127.0.0.1:1"}, false},
		{"all interfaces", []string{"0.0.0.0:" + port}, false},
		{"another loopback address", []string{"127.0.0.2:" + port}, false},
		{"none", []string{""}, false},
	}
	origins = []trait{
		{"no origin", nil, true},
		{"our origin", []string{"http://127.0.0.1:" + port}, true},
		{"our other name", []string{"http://localhost:" + port}, true},
		{"null", []string{"null"}, false},
		{"empty", []string{""}, false},
		{"a web page", []string{"https://evil.example"}, false},
		{"https", []string{"https://127.0.0.1:" + port}, false},
		{"another port", []string{"http://127.0.0.1:1"}, false},
		{"like ours", []string{"http://127.0.0.1:" + port + ".evil.example"}, false},
		{"ours and another", []string{"http://127.0.0.1:" + port, "https://evil.example"}, false},
	}
	good := h.tokens.For("planner")
	tokens = []trait{
		{"token", []string{"Bearer " + good}, true},
		{"token in other words", []string{"bearer  " + good}, true},
		{"no token", nil, false},
		{"empty", []string{"Bearer "}, false},
		{"wrong", []string{"Bearer " + good[:len(good)-1] + "A"}, false},
		{"of another run", []string{"Bearer " + agenttoken.New("run-2").For("planner")}, false},
		{"of last week", []string{"Bearer " + agenttoken.New("run-1").For("planner")}, false},
		{"another scheme", []string{"Basic " + good}, false},
		{"without scheme", []string{good}, false},
		{"two", []string{"Bearer " + good, "Bearer x"}, false},
	}
	types = []trait{
		{"JSON", []string{"application/json"}, true},
		{"JSON in UTF-8", []string{"Application/JSON; charset=utf-8"}, true},
		{"no type", nil, false},
		{"text", []string{"text/plain"}, false},
		{"form", []string{"application/x-www-form-urlencoded"}, false},
		{"like JSON", []string{"application/jsonp"}, false},
	}
	return hosts, origins, tokens, types
}

// TestNobodyGetsIn tries every method on every path with every combination of traits. The answer
// names the first invalid one, in the order host, origin, token, type. Only admitted callers learn
// which paths exist.
func TestNobodyGetsIn(t *testing.T) {
	h := open(t)
	hosts, origins, tokens, types := traits(h)
	tried := 0
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
		types := types
		if method != "POST" {
			types = types[1:3] // one of each: it makes no difference
		}
		for _, path := range []string{"/mcp", "/api/v1/runs", "/a2a/planner", "/.well-known/agent-card.json"} {
			for _, host := range hosts {
				for _, origin := range origins {
					for _, token := range tokens {
						for _, kind := range types {
							if testing.Short() && !host.good && !origin.good { // each has to be refused alone
								continue
							}
							tried++
							want := 0
							switch {
							case !host.good, !origin.good:
								want = http.StatusForbidden
							case !token.good:
								want = http.StatusUnauthorized
							case !kind.good && method == "POST":
								want = http.StatusUnsupportedMediaType
							}
							r := httptest.NewRequest(method, path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
							r.Host = host.value[0]
							r.Header["Origin"], r.Header["Authorization"], r.Header["Content-Type"] = origin.value, token.value, kind.value
							w := httptest.NewRecorder()
							h.http.Handler.ServeHTTP(w, r)
							said := fmt.Sprintf("%s %s, host %s, origin %s, %s, %s", method, path, host.name, origin.name, token.name, kind.name)
							looks(t, said, w, want)
							if t.Failed() {
								return
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests", tried)
}

// looks compares an answer with the expected status; 0 = any status except those of the guard.
func looks(t *testing.T, said string, w *httptest.ResponseRecorder, want int) {
	t.Helper()
	guards := []int{http.StatusForbidden, http.StatusUnauthorized, http.StatusUnsupportedMediaType}
	if want == 0 && slices.Contains(guards, w.Code) || want != 0 && w.Code != want {
		t.Errorf("%s: %d %s, want %d", said, w.Code, w.Body, want)
	}
	if want == 0 && w.Code < 300 {
		t.Errorf("%s: there is nothing to be had, and it is given: %d %s", said, w.Code, w.Body)
	}
	if (w.Code == http.StatusUnauthorized) != (w.Header().Get("WWW-Authenticate") != "") {
		t.Errorf("%s: %d with WWW-Authenticate %q", said, w.Code, w.Header().Get("WWW-Authenticate"))
	}
	var p problem
	if w.Code >= 400 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Error == "" || w.Header().Get("Content-Type") != "application/json") {
		t.Errorf("%s: the error is said as %q", said, w.Body)
	}
	if want != 0 && p.Hint == "" {
		t.Errorf("%s: no hint in %s", said, w.Body)
	}
	if strings.Contains(w.Body.String(), agenttoken.Prefix) {
		t.Errorf("%s: a token is shown: %s", said, w.Body)
	}
}

// ask sends one request over the network, as an agent.
func (h *house) ask(t testing.TB, method, agent, session string, body io.Reader) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL()+"/mcp", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.tokens.For(agent))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set(sessionHeader, session)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	h := open(t)
	for name, body := range map[string]io.Reader{
		"with its length":    strings.NewReader(strings.Repeat(" ", MaxBody+1)),
		"without its length": io.LimitReader(blanks{}, MaxBody+1),
	} {
		if status, _, text := h.ask(t, "POST", "planner", "", body); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, `"error":"the request is larger than 4194304 bytes"`) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _, text := h.ask(t, "POST", "planner", "", io.LimitReader(blanks{}, MaxBody)); status != http.StatusBadRequest {
		t.Errorf("as large as it may be: %d %s", status, text)
	}
}

type blanks struct{}

func (blanks) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestWhoDoesNotFinishIsLeft checks that the server closes connections on which nothing more
// arrives.
func TestWhoDoesNotFinishIsLeft(t *testing.T) {
	h := openWith(t, timeouts{head: 50 * time.Millisecond, body: 50 * time.Millisecond, shutdown: time.Second})
	address := strings.TrimPrefix(h.URL(), "http://")
	post := "POST /mcp HTTP/1.1\r\nHost: " + address + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
	for name, x := range map[string]struct{ sends, want string }{
		"in its head":              {"POST /mcp HTTP/1.1\r\nHost: " + address + "\r\nX-A: ", ""},
		"in its first line":        {"POST /m", ""},
		"in its body":              {post + "Authorization: Bearer " + h.tokens.For("planner") + "\r\n\r\n{", "408"},
		"in its body, with no key": {post + "\r\n{", "401"},
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, x.sends); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(c) // until the server hangs up
		if err != nil && !strings.Contains(err.Error(), "reset by peer") {
			t.Errorf("%s: %v", name, err)
		}
		if first, _, _ := strings.Cut(string(said), "\r\n"); !strings.Contains(first, x.want) {
			t.Errorf("%s: answered with %q, want %s", name, first, x.want)
		}
	}
	if r, err := call(t, h.client(t, "planner"), "keep", `{"text":"and others are served"}`); err != nil || r.IsError {
		t.Error(r, err)
	}
}

// A wreck is an agent whose Tools panics.
type wreck struct{ clerk }

func (*wreck) Tools() []swarm.ToolSpec { panic("canary-secret") }

func TestAHandlerThatPanicsEndsNothing(t *testing.T) {
	h := open(t)
	broken := agenttoken.New("run-3").For("wreck")
	admit := h.options.Agent
	h.options.Agent = func(token string) (Agent, error) {
		if token == broken {
			return &wreck{}, nil
		}
		return admit(token)
	}
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(hello))
	r.Host = strings.TrimPrefix(h.URL(), "http://")
	r.Header = http.Header{"Authorization": {"Bearer " + broken}, "Content-Type": {"application/json"}, "Accept": {"*/*"}}
	w := httptest.NewRecorder()
	h.http.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "canary") {
		t.Errorf("answered with %d %s", w.Code, w.Body)
	}
	if got := h.told(); len(got) != 1 || !strings.Contains(got[0].Error(), "canary-secret") {
		t.Errorf("we are told %v", got)
	}
}

func TestAnAddressOfOthersIsNotListenedOn(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, want := range map[string]string{
		"0.0.0.0:0":             "could be reached from other machines",
		":0":                    "could be reached from other machines",
		"[::]:0":                "could be reached from other machines",
		"192.0.2.1:0":           "could be reached from other machines",
		"example.org:0":         "could be reached from other machines",
		"127.0.0.1":             "is no address to listen on",
		"":                      "is no address to listen on",
		"127.0.0.1:99999":       "cannot listen",
		taken.Addr().String():   "cannot listen",
		"localhost.evil.test:0": "could be reached from other machines",
	} {
		if s, err := Start(Options{Listen: address}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", address, err, want)
			if s != nil {
				s.Close()
			}
		}
	}
}

// TestRequestsForOthersAreRefused checks requests without a Host, and requests in proxy form.
func TestRequestsForOthersAreRefused(t *testing.T) {
	h := open(t)
	for _, request := range []string{
		"GET /mcp HTTP/1.0\r\n\r\n",
		"GET http://evil.example/mcp HTTP/1.1\r\nHost: " + strings.TrimPrefix(h.URL(), "http://") + "\r\n\r\n",
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.URL(), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %s", request, answer.Status)
		}
	}
}

// FuzzBodies checks that every request gets an answer, and every error a message.
func FuzzBodies(f *testing.F) {
	h := open(f)
	id := h.begin(f, "planner")
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `"x"`, `{"jsonrpc":"2.0"}`, hello, `[` + hello + `]`, "\x00", "{\"id\":1e999}",
		`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"keep"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"keep","arguments":{"text":"x"}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"keep","arguments":{"text":"x","text":"y"}}}`,
		`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, body string, inSession bool) {
		if strings.Contains(body, "wa") || strings.Contains(body, `\u`) {
			return // that could be a call of wait, which is answered when it is taken back
		}
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Host = strings.TrimPrefix(h.URL(), "http://")
		r.Header = http.Header{"Authorization": {"Bearer " + h.tokens.For("planner")}, "Content-Type": {"application/json"}, "Accept": {"*/*"}}
		if inSession {
			r.Header.Set(sessionHeader, id)
		}
		w := httptest.NewRecorder()
		h.http.Handler.ServeHTTP(w, r)
		if w.Code >= 500 || w.Code >= 400 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q: %d %q", body, w.Code, w.Body)
		}
	})
}
