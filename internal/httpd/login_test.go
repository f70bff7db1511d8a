package httpd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"swarm/internal/agenttoken"
)

const houseKey = "the-key-of-this-house"

// pageFiles are the files of a page as the build makes them, and one beside them that nobody asks for.
var pageFiles = fstest.MapFS{
	"index.html":             {Data: []byte(`<!doctype html><script type="module" src="/assets/index-C0ffee.js"></script>`)},
	"assets/index-C0ffee.js": {Data: []byte("console.log('swarm')")},
	"assets/style.css":       {Data: []byte("body{}")},
	"assets/deep/font.woff2": {Data: []byte("wOF2")},
	"assets/odd.xyz":         {Data: []byte("<script>")},
	".keep":                  {Data: []byte("canary-keep")},
	"secret.txt":             {Data: []byte("canary-secret")},
}

// A doorHouse is a server with a page, routes for people, and one agent.
type doorHouse struct {
	*Server
	tokens *agenttoken.Tokens
	mu     sync.Mutex
	clock  time.Time
}

func openDoor(t testing.TB, change func(*Options)) *doorHouse {
	t.Helper()
	key, err := NewKey(houseKey)
	if err != nil {
		t.Fatal(err)
	}
	h := &doorHouse{tokens: agenttoken.New("run-1"), clock: time.Now()}
	o := Options{Listen: "127.0.0.1:0", Version: "test", Key: key, Page: pageFiles, Fault: func(err error) { t.Error(err) },
		Routes: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "in: "+r.URL.Path) }),
		Agent: func(token string) (Agent, error) {
			if name, ok := h.tokens.Agent(token); ok {
				return newClerk(name), nil
			}
			return nil, errors.New("nobody")
		},
	}
	if change != nil {
		change(&o)
	}
	if h.Server, err = Start(o); err != nil {
		t.Fatal(err)
	}
	h.door.now = func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.clock
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func (h *doorHouse) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = h.clock.Add(d)
}

// code returns a new one-time code, as the address of the page has it.
func (h *doorHouse) code(t testing.TB) string {
	t.Helper()
	before, code, ok := strings.Cut(h.OpenURL("/r/run-1"), "#code=")
	if !ok || before != h.URL()+"/r/run-1" || len(code) < 26 {
		t.Fatalf("the address is %q and %q", before, code)
	}
	return code
}

// do sends a request without a network. Headers are pairs of a name and a value.
func (h *doorHouse) do(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL.Path, r.Host = path, strings.TrimPrefix(h.URL(), "http://")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.http.Handler.ServeHTTP(w, r)
	return w
}

func (h *doorHouse) tryCode(code string, headers ...string) *httptest.ResponseRecorder {
	body, _ := json.Marshal(map[string]string{"code": code})
	return h.do("POST", "/api/v1/login", string(body), append([]string{"Content-Type", "application/json"}, headers...)...)
}

// cookie logs a browser in, and returns its cookie as it sends it.
func (h *doorHouse) cookie(t testing.TB) string {
	t.Helper()
	w := h.tryCode(h.code(t), "Origin", h.URL(), "Sec-Fetch-Site", "same-origin")
	if w.Code != http.StatusNoContent || w.Body.Len() != 0 {
		t.Fatalf("a login is answered with %d %s", w.Code, w.Body)
	}
	all := w.Result().Cookies()
	if len(all) != 1 || !all[0].HttpOnly || all[0].SameSite != http.SameSiteStrictMode || all[0].Path != "/" || all[0].Domain != "" || all[0].MaxAge != 0 || len(all[0].Value) < 26 {
		t.Fatalf("the cookie is %v", all)
	}
	if all[0].Secure != (h.options.TLS != nil) {
		t.Errorf("the cookie is secure: %v", all[0].Secure)
	}
	return all[0].Name + "=" + all[0].Value
}

func TestACodeOpensOnceWithinAMinute(t *testing.T) {
	h := openDoor(t, nil)
	code := h.code(t)
	if w := h.tryCode(code); w.Code != http.StatusNoContent {
		t.Fatalf("the code is refused: %d %s", w.Code, w.Body)
	}
	late := h.code(t)
	h.pass(time.Minute)
	other := h.code(t)
	for name, code := range map[string]string{
		"used": code, "after a minute": late, "none": "", "one letter less": other[:len(other)-1], "one letter more": other + "A", "in lower case": strings.ToLower(other),
		"with a space": other + " ", "with a NUL": other + "\x00", "the token": houseKey, "as an address": "#code=" + other, "long": strings.Repeat("A", 4000),
	} {
		w := h.tryCode(code)
		looks(t, name, w, http.StatusUnauthorized)
		if w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: a cookie is set", name)
		}
	}
	if w := h.tryCode(other); w.Code != http.StatusNoContent {
		t.Errorf("a right code after wrong ones is refused: %d %s", w.Code, w.Body)
	}
	for range 2 * maxCodes { // the oldest give way
		other = h.code(t)
	}
	if n := len(h.door.codes); n != maxCodes {
		t.Errorf("%d codes are kept", n)
	}
	if w := h.tryCode(other); w.Code != http.StatusNoContent {
		t.Errorf("the newest code is refused: %d", w.Code)
	}
}

// TestOfManyLoginsWithOneCodeOneGetsIn: a code that two clients have is a code that somebody has stolen.
func TestOfManyLoginsWithOneCodeOneGetsIn(t *testing.T) {
	h := openDoor(t, nil)
	for range 20 {
		code := h.code(t)
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		begin := make(chan struct{})
		for range 16 {
			all.Go(func() {
				<-begin
				w := h.tryCode(code)
				mu.Lock()
				defer mu.Unlock()
				statuses[w.Code]++
			})
		}
		close(begin)
		all.Wait()
		if statuses[http.StatusNoContent] != 1 {
			t.Fatalf("the answers are %v", statuses)
		}
	}
}

// TestGuessingIsLimitedAndLocksNobodyOut: after many wrong codes a guesser is told to wait, and a
// person with a right one still gets in.
func TestGuessingIsLimitedAndLocksNobodyOut(t *testing.T) {
	h := openDoor(t, nil)
	code := h.code(t)
	for i := range maxWrong + 10 {
		want := http.StatusUnauthorized
		if i >= maxWrong {
			want = http.StatusTooManyRequests
		}
		if w := h.tryCode(fmt.Sprint("guess ", i)); w.Code != want || (want == http.StatusTooManyRequests) != (w.Header().Get("Retry-After") != "") {
			t.Fatalf("guess %d: %d %s, want %d", i, w.Code, w.Body, want)
		}
	}
	if w := h.tryCode(code); w.Code != http.StatusNoContent {
		t.Errorf("a person is locked out: %d %s", w.Code, w.Body)
	}
	h.pass(time.Minute)
	if w := h.tryCode("guess"); w.Code != http.StatusUnauthorized {
		t.Errorf("a minute later: %d", w.Code)
	}
}

func TestALoginIsReadStrictly(t *testing.T) {
	h := openDoor(t, nil)
	code := h.code(t)
	for name, x := range map[string]struct {
		body, kind string
		want       int
	}{
		"empty":            {``, "application/json", 400},
		"no object":        {`"` + code + `"`, "application/json", 400},
		"a list":           {`["` + code + `"]`, "application/json", 400},
		"twice":            {`{"code":"` + code + `","code":"` + code + `"}`, "application/json", 400},
		"in other letters": {`{"Code":"` + code + `"}`, "application/json", 400},
		"more":             {`{"code":"` + code + `","admin":true}`, "application/json", 400},
		"a number":         {`{"code":1}`, "application/json", 400},
		"null":             {`{"code":null}`, "application/json", 0},
		"something after":  {`{"code":"` + code + `"}{}`, "application/json", 400},
		"a form":           {`{"code":"` + code + `"}`, "application/x-www-form-urlencoded", 415},
		"text":             {`{"code":"` + code + `"}`, "text/plain", 415},
		"no type":          {`{"code":"` + code + `"}`, "", 415},
		"very long":        {`{"code":"` + strings.Repeat("A", 1<<20) + `"}`, "application/json", 413},
		"deep":             {strings.Repeat(`{"code":`, 300) + "1" + strings.Repeat("}", 300), "application/json", 400},
	} {
		w := h.do("POST", "/api/v1/login", x.body, "Content-Type", x.kind)
		if w.Code < 400 || x.want != 0 && w.Code != x.want || w.Header().Get("Set-Cookie") != "" || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, x.want)
		}
	}
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		if w := h.do(method, "/api/v1/login", `{"code":"`+code+`"}`, "Content-Type", "application/json"); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	if w := h.tryCode(code); w.Code != http.StatusNoContent {
		t.Errorf("one of these has used the code up: %d %s", w.Code, w.Body)
	}
}

// TestNoOtherPageGetsIn tries every combination of method, path, host, origin, Sec-Fetch-Site, cookie
// and token. A cookie counts as the token only on the paths of people, and only if the browser says
// that our own page sent the request.
func TestNoOtherPageGetsIn(t *testing.T) {
	h := openDoor(t, nil)
	cookie := h.cookie(t)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(h.URL(), "http://"))
	name, value, _ := strings.Cut(cookie, "=")
	hosts := []trait{
		{"127.0.0.1", []string{"127.0.0.1:" + port}, true},
		{"localhost", []string{"localhost:" + port}, true},
		{"a rebound name", []string{"evil.example:" + port}, false},
		{"another port", []string{"127.0.0.1:1"}, false},
	}
	origins := []trait{
		{"no origin", nil, true},
		{"our origin", []string{"http://127.0.0.1:" + port}, true},
		{"null", []string{"null"}, false},
		{"a web page", []string{"https://evil.example"}, false},
		{"another port of this machine", []string{"http://127.0.0.1:3000"}, false},
		{"ours twice", []string{"http://127.0.0.1:" + port, "http://127.0.0.1:" + port}, true},
		{"ours with a path", []string{"http://127.0.0.1:" + port + "/"}, false},
	}
	sites := []trait{ // good = the browser says that it is our page
		{"no site", nil, false},
		{"same-origin", []string{"same-origin"}, true},
		{"same-site", []string{"same-site"}, false}, // a page at another port
		{"cross-site", []string{"cross-site"}, false},
		{"typed", []string{"none"}, false},
		{"two", []string{"same-origin", "cross-site"}, false},
		{"joined", []string{"same-origin, cross-site"}, false},
		{"in other letters", []string{"Same-Origin"}, false},
	}
	cookies := []trait{
		{"our cookie", []string{cookie}, true},
		{"among others", []string{"a=b; " + cookie + "; c=d"}, true},
		{"behind a planted one", []string{name + "=planted; " + cookie}, true},
		{"no cookie", nil, false},
		{"of another port", []string{"swarm_session_1=" + value}, false},
		{"without the port", []string{"swarm_session=" + value}, false},
		{"planted", []string{name + "=AAAAAAAAAAAAAAAAAAAAAAAAAA"}, false},
		{"empty", []string{name + "="}, false},
		{"the token", []string{name + "=" + houseKey}, false},
		{"cut", []string{cookie[:len(cookie)-1]}, false},
	}
	tokens := []trait{
		{"no token", nil, false},
		{"the token", []string{"Bearer " + houseKey}, true},
		{"a wrong token", []string{"Bearer " + houseKey + "x"}, false},
		{"an agent's token", []string{"Bearer " + h.tokens.For("planner")}, false},
		{"the cookie as a token", []string{"Bearer " + value}, false},
		{"an empty token", []string{""}, false},
	}
	paths := map[string]bool{ // whether a cookie counts there
		"/api/v1/runs": true, "/api/v1/runs/x/cancel": true, "/openapi.json": true,
		"/mcp": false, "/a2a": false, "/a2a/planner": false, "/.well-known/agent-card.json": false, "/api/v1/codes": false,
		"/api/v1/../../a2a": false, "/api/v1//runs": false, "/api/v1/runs/": false, "/api": false, "/API/v1/runs": false, "/metrics": false,
	}
	tried, in := 0, 0
	for _, method := range []string{"GET", "POST", "DELETE"} {
		for path, counts := range paths {
			for _, host := range hosts {
				for _, origin := range origins {
					for _, site := range sites {
						for _, cookie := range cookies {
							for _, token := range tokens {
								if best := (site.good || site.value == nil) && cookie.name == "our cookie" && (token.good || token.value == nil); !best && (!host.good || !origin.good) {
									continue // the best of each kind is refused, and so all
								}
								tried++
								ours := site.good || site.value == nil && len(origin.value) == 1
								agents := path == "/mcp"
								admitted := !agents && token.good || agents && token.name == "an agent's token" ||
									token.value == nil && counts && cookie.good && ours
								want := 0
								switch {
								case !host.good, !origin.good:
									want = http.StatusForbidden
								case !admitted:
									want = http.StatusUnauthorized
								}
								r := httptest.NewRequest(method, "/", strings.NewReader("{}"))
								r.URL.Path, r.Host = path, host.value[0]
								r.Header = http.Header{"Origin": origin.value, "Sec-Fetch-Site": site.value, "Cookie": cookie.value, "Authorization": token.value, "Content-Type": {"application/json"}}
								w := httptest.NewRecorder()
								h.http.Handler.ServeHTTP(w, r)
								refused := w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized
								if want != 0 && w.Code != want || want == 0 && refused {
									t.Fatalf("%s %s, host %s, %s, %s, %s, %s: %d %s, want %d", method, path, host.name, origin.name, site.name, cookie.name, token.name, w.Code, w.Body, want)
								}
								if !refused {
									in++
								}
								if refused && (strings.Contains(w.Body.String(), value) || strings.Contains(w.Body.String(), houseKey)) {
									t.Fatalf("a secret is shown: %s", w.Body)
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d requests, %d of them admitted", tried, in)
}

// TestNoOtherPageLogsIn: a page of another site, or of another port of this machine, cannot exchange a
// code that it knows.
func TestNoOtherPageLogsIn(t *testing.T) {
	h := openDoor(t, nil)
	code := h.code(t)
	for name, headers := range map[string][]string{
		"another site":     {"Origin", "https://evil.example"},
		"no origin at all": {"Origin", "null"},
		"another port":     {"Origin", "http://127.0.0.1:3000"},
		"a rebound name":   {"Host", "evil.example"},
		"same site":        {"Sec-Fetch-Site", "same-site"},
		"cross site":       {"Sec-Fetch-Site", "cross-site"},
		"two sites":        {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"},
		"typed":            {"Sec-Fetch-Site", "none"},
	} {
		if w := h.tryCode(code, headers...); w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := h.do("OPTIONS", "/api/v1/login", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight request: %d %v", w.Code, w.Header())
	}
	if w := h.tryCode(code); w.Code != http.StatusNoContent {
		t.Errorf("the code is used up: %d %s", w.Code, w.Body)
	}
}

// TestABrowserIsCheckedAsThePersonIs: codes and cookies have a check of the process at the other end
// of their own, on each connection. It does not hold for the token, and that of the token not for them.
func TestABrowserIsCheckedAsThePersonIs(t *testing.T) {
	var mu sync.Mutex
	refuse, browsers, peers := false, 0, 0
	h := openDoor(t, func(o *Options) {
		o.CheckPeer = func(net.Conn) error { mu.Lock(); defer mu.Unlock(); peers++; return nil }
		o.CheckBrowser = func(net.Conn) error {
			mu.Lock()
			defer mu.Unlock()
			if browsers++; refuse {
				return errors.New("inside a turn")
			}
			return nil
		}
	})
	send := func(client *http.Client, method, path, body string, head http.Header) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
		r.Header = head
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		if c := answer.Header.Get("Set-Cookie"); c != "" {
			text, _, _ = bytesCut(c)
		}
		return answer.StatusCode, string(text)
	}
	fresh := func() *http.Client { return &http.Client{Transport: &http.Transport{}} }
	asJSON := func() http.Header { return http.Header{"Content-Type": {"application/json"}, "Origin": {h.URL()}} }
	first, second := h.code(t), h.code(t)
	status, cookie := send(fresh(), "POST", "/api/v1/login", `{"code":"`+first+`"}`, asJSON())
	if status != http.StatusNoContent || browsers != 1 || peers != 0 {
		t.Fatalf("%d %s, %d checks", status, cookie, browsers)
	}
	head := http.Header{"Cookie": {cookie}, "Sec-Fetch-Site": {"same-origin"}}
	same := fresh()
	for range 3 {
		if status, text := send(same, "GET", "/api/v1/runs", "", head); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	if browsers != 2 || peers != 0 {
		t.Errorf("the checks were made %d and %d times", browsers, peers)
	}
	mu.Lock()
	refuse = true
	mu.Unlock()
	if status, text := send(fresh(), "GET", "/api/v1/runs", "", head); status != http.StatusForbidden {
		t.Errorf("the cookie is taken from another process: %d %s", status, text)
	}
	if status, text := send(fresh(), "POST", "/api/v1/login", `{"code":"`+second+`"}`, asJSON()); status != http.StatusForbidden {
		t.Errorf("the code is taken from another process: %d %s", status, text)
	}
	if status, _ := send(fresh(), "GET", "/", "", http.Header{}); status != http.StatusOK {
		t.Errorf("the page is for everybody: %d", status)
	}
	if status, _ := send(fresh(), "GET", "/api/v1/runs", "", http.Header{"Authorization": {"Bearer " + houseKey}}); status != http.StatusOK || peers != 1 {
		t.Errorf("the token: %d, %d checks", status, peers)
	}
	mu.Lock()
	refuse = false
	mu.Unlock()
	if status, text := send(fresh(), "POST", "/api/v1/login", `{"code":"`+second+`"}`, asJSON()); status != http.StatusNoContent {
		t.Errorf("the refused process has used the code up: %d %s", status, text)
	}
}

func bytesCut(cookie string) ([]byte, string, bool) {
	before, after, ok := strings.Cut(cookie, ";")
	return []byte(before), after, ok
}

// TestAProgramWithTheTokenGetsAnAddress: only the token opens /api/v1/codes.
func TestAProgramWithTheTokenGetsAnAddress(t *testing.T) {
	h := openDoor(t, nil)
	ask := func(body string) *httptest.ResponseRecorder {
		return h.do("POST", "/api/v1/codes", body, "Authorization", "Bearer "+houseKey, "Content-Type", "application/json")
	}
	for body, want := range map[string]string{``: "/", `{}`: "/", `{"path":"/"}`: "/", `{"path":"/r/20261116-1/t/coder/2/1"}`: "/r/20261116-1/t/coder/2/1"} {
		w := ask(body)
		var got struct{ URL string }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusCreated || w.Header().Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		at, code, _ := strings.Cut(got.URL, "#code=")
		if at != h.URL()+want {
			t.Errorf("%s: %s", body, got.URL)
		}
		if w := h.tryCode(code); w.Code != http.StatusNoContent {
			t.Errorf("%s: its code is refused: %d", body, w.Code)
		}
	}
	for _, path := range []string{"x", "//evil.example", "/api/v1/runs", "/assets/a.js", "/r/\u2028", "/r/a#b", "/r/a b", `/r/\evil`, "https://evil.example/r/", "/r/a\nb"} {
		body, _ := json.Marshal(map[string]string{"path": path})
		if w := ask(string(body)); w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(`{"path":"/","path":"/"}`); w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestARestartEndsSessions: the page learns from the answer that it needs a new address.
func TestARestartEndsSessions(t *testing.T) {
	before := openDoor(t, nil)
	cookie := before.cookie(t)
	code := before.code(t)
	address := strings.TrimPrefix(before.URL(), "http://")
	before.Close()
	after := openDoor(t, func(o *Options) { o.Listen = address })
	w := after.do("GET", "/api/v1/runs", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	looks(t, "a cookie of before", w, http.StatusUnauthorized)
	if !strings.Contains(w.Body.String(), "the server was restarted") || !strings.Contains(w.Body.String(), "press Enter") {
		t.Errorf("the page has nothing to show: %s", w.Body)
	}
	looks(t, "a code of before", after.tryCode(code), http.StatusUnauthorized)
	if w := after.do("GET", "/api/v1/runs", "", "Cookie", after.cookie(t), "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusOK {
		t.Errorf("a new cookie: %d %s", w.Code, w.Body)
	}
}

// TestSessionsAreFew: the oldest browser gives way, and no other.
func TestSessionsAreFew(t *testing.T) {
	h := openDoor(t, nil)
	var cookies []string
	for range maxBrowsers + 1 {
		cookies = append(cookies, h.cookie(t))
	}
	for i, cookie := range cookies {
		want := http.StatusOK
		if i == 0 {
			want = http.StatusUnauthorized
		}
		if w := h.do("GET", "/api/v1/runs", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin"); w.Code != want {
			t.Errorf("browser %d: %d", i, w.Code)
		}
	}
}

// TestHeadersCannotBeSmuggled sends requests as bytes, in forms that two readers of HTTP understand
// differently. None gets in, and none gets a second answer from inside a first request.
func TestHeadersCannotBeSmuggled(t *testing.T) {
	h := openDoor(t, nil)
	cookie := h.cookie(t)
	host := strings.TrimPrefix(h.URL(), "http://")
	inner := "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nSec-Fetch-Site: same-origin\r\n\r\n"
	for name, request := range map[string]string{
		"two hosts":              "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nHost: evil.example\r\nCookie: " + cookie + "\r\nSec-Fetch-Site: same-origin\r\n\r\n",
		"a folded header":        "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nX: a\r\n Sec-Fetch-Site: same-origin\r\n\r\n",
		"a space in its name":    "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nSec-Fetch-Site : same-origin\r\n\r\n",
		"a bare line feed":       "GET /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nX: a\rSec-Fetch-Site: same-origin\r\n\r\n",
		"in the trailer":         "POST /api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: Sec-Fetch-Site\r\n\r\n2\r\n{}\r\n0\r\nSec-Fetch-Site: same-origin\r\n\r\n",
		"two lengths":            "POST /api/v1/login HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: " + fmt.Sprint(2+len(inner)) + "\r\n\r\n{}" + inner,
		"a length and chunks":    "POST /api/v1/login HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
		"a body of the page":     "GET / HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: " + fmt.Sprint(len(inner)) + "\r\n\r\n" + inner,
		"behind a failed login":  "POST /api/v1/login HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" + inner,
		"another host's address": "GET http://evil.example/api/v1/runs HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nSec-Fetch-Site: same-origin\r\n\r\n",
		"an encoded path":        "GET /%61pi/v1/%2e%2e/%2e%2e/mcp HTTP/1.1\r\nHost: " + host + "\r\nCookie: " + cookie + "\r\nSec-Fetch-Site: same-origin\r\n\r\n",
	} {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		said, _ := io.ReadAll(c)
		if strings.Contains(string(said), "in: /api") {
			t.Errorf("%s: it gets in:\n%s", name, said)
		}
		if n := strings.Count(string(said), "HTTP/1.1 "); n > 1 {
			t.Errorf("%s: %d answers:\n%s", name, n, said)
		}
		answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(said))), nil)
		if err != nil {
			t.Errorf("%s: %v in %q", name, err, said)
			continue
		}
		answer.Body.Close()
		if want := []int{400, 401, 403, 404}; !slices.Contains(want, answer.StatusCode) && name != "a body of the page" {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
}
