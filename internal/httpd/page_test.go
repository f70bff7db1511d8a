package httpd

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestThePageIsServedToEverybody(t *testing.T) {
	h := openDoor(t, nil)
	for path, want := range map[string]struct{ kind, cache, text string }{
		"/":                         {"text/html; charset=utf-8", "no-store", "<!doctype html>"},
		"/r/20261116-1":             {"text/html; charset=utf-8", "no-store", "<!doctype html>"},
		"/r/20261116-1/t/coder/2/1": {"text/html; charset=utf-8", "no-store", "<!doctype html>"},
		"/r/../../etc/passwd":       {"text/html; charset=utf-8", "no-store", "<!doctype html>"}, // the page itself, whatever stands behind /r/
		"/assets/index-C0ffee.js":   {"text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "console.log"},
		"/assets/style.css":         {"text/css; charset=utf-8", "public, max-age=31536000, immutable", "body{}"},
		"/assets/deep/font.woff2":   {"font/woff2", "public, max-age=31536000, immutable", "wOF2"},
		"/assets/odd.xyz":           {"application/octet-stream", "public, max-age=31536000, immutable", "<script>"},
	} {
		w := h.do("GET", path, "")
		head := w.Header()
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), want.text) || head.Get("Content-Type") != want.kind || head.Get("Cache-Control") != want.cache {
			t.Errorf("%s: %d %v %s", path, w.Code, head, w.Body)
		}
		checkPolicy(t, path, w)
		if other := h.do("HEAD", path, ""); other.Code != http.StatusOK || other.Body.Len() != 0 || other.Header().Get("ETag") != head.Get("ETag") || other.Header().Get("Content-Length") != head.Get("Content-Length") {
			t.Errorf("HEAD %s: %d %v %s", path, other.Code, other.Header(), other.Body)
		}
		if again := h.do("GET", path, "", "If-None-Match", head.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s, unchanged: %d %s", path, again.Code, again.Body)
		}
		if again := h.do("GET", path, "", "If-None-Match", `"another"`); again.Code != http.StatusOK {
			t.Errorf("%s, changed: %d", path, again.Code)
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"} {
			if w := h.do(method, path, "{}", "Content-Type", "application/json"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d %v", method, path, w.Code, w.Header())
			}
		}
	}
}

// checkPolicy checks what a browser is told about a file of the page.
func checkPolicy(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !slices.Contains(strings.Split(policy, "; "), part) {
			t.Errorf("%s: the policy %q lacks %s", path, policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
		t.Errorf("%s: the policy is %q", path, policy)
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("%s: %v", path, w.Header())
	}
}

// TestNoPathLeadsOutOfThePage: what is no file of the page is not there, or needs the token.
func TestNoPathLeadsOutOfThePage(t *testing.T) {
	h := openDoor(t, nil)
	for path, want := range map[string]int{
		"/assets/": 404, "/assets": 401, "/assets/nosuch.js": 404, "/assets/deep": 404, "/assets/deep/": 404, "/assets/../secret.txt": 404, "/assets/../index.html": 404,
		"/assets/..": 404, "/assets//style.css": 404, "/assets/./style.css": 404, "/assets/%2e%2e/secret.txt": 404, `/assets/..\secret.txt`: 404, "/assets/\x00": 404,
		"/assets/../../../../etc/passwd": 404, "/assets/style.css/": 404, "/assets/STYLE.CSS": 404,
		"/secret.txt": 401, "/.keep": 401, "/index.html": 401, "/r": 401, "//r/": 401, "/R/x": 401, "": 401, "/favicon.ico": 401, "/api/v1/runs": 401, "/..": 401,
	} {
		w := h.do("GET", path, "")
		if w.Code != want || strings.Contains(w.Body.String(), "canary") || strings.Contains(w.Body.String(), "root:") {
			t.Errorf("%q: %d %s, want %d", path, w.Code, w.Body, want)
		}
		if w.Code == 404 && w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%q may be kept: %v", path, w.Header())
		}
	}
	for name, headers := range map[string][]string{"a rebound name": {"Host", "evil.example"}, "another page": {"Origin", "https://evil.example"}, "a sandboxed page": {"Origin", "null"}} {
		for _, path := range []string{"/", "/r/x", "/assets/style.css"} {
			if w := h.do("GET", path, "", headers...); w.Code != http.StatusForbidden {
				t.Errorf("%s, %s: %d", name, path, w.Code)
			}
		}
	}
}

// TestAProgramWithoutItsPageSaysSo: go build without Node makes such a program.
func TestAProgramWithoutItsPageSaysSo(t *testing.T) {
	h := openDoor(t, func(o *Options) { o.Page = fstest.MapFS{".keep": {}} })
	if w := h.do("GET", "/r/x", ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := h.do("GET", "/assets/index.js", ""); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestWithoutAPageNoBrowserGetsIn: a server for agents only has neither the page nor the login.
func TestWithoutAPageNoBrowserGetsIn(t *testing.T) {
	h := openDoor(t, func(o *Options) { o.Page = nil })
	for _, path := range []string{"/", "/r/x", "/assets/style.css"} {
		if w := h.do("GET", path, ""); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := h.tryCode(h.code(t)); w.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAnswersAreNoDocuments: an artifact that a browser opens runs nothing under our origin.
func TestAnswersAreNoDocuments(t *testing.T) {
	h := openDoor(t, nil)
	w := h.do("GET", "/api/v1/runs", "", "Authorization", "Bearer "+houseKey)
	policy := w.Header().Get("Content-Security-Policy")
	if w.Code != http.StatusOK || !strings.Contains(policy, "sandbox") || !strings.Contains(policy, "default-src 'none'") || w.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
