package tool

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"swarm"
)

// site is a server on this machine; hits counts its requests.
func site(t *testing.T) (host string, hits *atomic.Int64) {
	t.Helper()
	hits = new(atomic.Int64)
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			if w.Header()["Content-Type"] = nil; kind != "" {
				w.Header().Set("Content-Type", kind)
			}
			fmt.Fprint(w, body)
		})
	}
	page("/text", "text/plain; charset=utf-8", "hello")
	page("/html", "text/html", "<title>T</title><body><p>Hello &amp; <b>good</b> day</p><script>alert('x<y')</script></body>")
	page("/json", "application/vnd.api+json", `{"a":1}`)
	page("/none", "", "plain words")
	page("/image", "image/png", "\x89PNG\r\n\x1a\n")
	page("/sniffed", "", "\x89PNG\r\n\x1a\n")
	page("/large", "text/plain", strings.Repeat("x", 3<<20))
	mux.HandleFunc("/missing", http.NotFound)
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	mux.HandleFunc("/forever", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/forever", http.StatusFound) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), hits
}

func TestFetch(t *testing.T) {
	host, _ := site(t)
	d := sit(t, "web_fetch("+host+")")
	for path, want := range map[string]string{
		"/text": "hello", "/html": "T\n\nHello & good day", "/json": `{"a":1}`, "/none": "plain words", "/away?to=/text": "hello", "/cut": "half",
	} {
		if got := d.must("web_fetch", "url", "http://"+host+path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := d.must("web_fetch", "url", "http://"+host+"/large"); len(got) > maxPage+100 || !strings.Contains(got, "[the rest was left out; 1048576 bytes are shown]") {
		t.Errorf("%d bytes, …%q", len(got), got[len(got)-60:])
	}
	if got := d.must("web_fetch", "url", "http://"+host+"/text", "max", 4); got != "hell\n[the rest was left out; 4 bytes are shown]" {
		t.Errorf("%q", got)
	}
	d.refused(swarm.BadInput, "web_fetch", "url", "http://"+host+"/image")
	d.refused(swarm.BadInput, "web_fetch", "url", "http://"+host+"/sniffed")
	if got := d.refused(swarm.Other, "web_fetch", "url", "http://"+host+"/missing"); !strings.Contains(got, "404 Not Found") {
		t.Error(got)
	}
	if got := d.refused(swarm.Other, "web_fetch", "url", "http://"+host+"/forever"); !strings.Contains(got, "more than 5 times") {
		t.Error(got)
	}
	for _, to := range []string{"http://127.0.0.1:1/", "http://other.example/", "file:///etc/passwd", "http://u:p@" + host + "/text"} {
		if text, err := d.call("web_fetch", "url", "http://"+host+"/away?to="+to); err == nil || strings.Contains(err.Error(), "refused") && to[0] == 'h' {
			t.Errorf("was sent on to %s: %q, %v", to, text, err)
		}
	}
}

// An allowed name that resolves to a private address is refused, because the address is checked.
func TestFetchLooksAtTheAddress(t *testing.T) {
	host, hits := site(t)
	_, port, _ := net.SplitHostPort(host)
	d := sit(t, "web_fetch(site.test:"+port+")", "web_fetch(*.site.test:"+port+")", "web_fetch(localhost:1)")
	for _, address := range []string{host, "[::1]:" + port, "10.0.0.1:80", "192.168.1.1:80", "172.16.0.1:80", "169.254.169.254:80", "[fe80::1%lo]:80", "[fd00::1]:80", "0.0.0.0:80", "[::]:80",
		"100.64.0.1:80", "224.0.0.1:80", "[::ffff:127.0.0.1]:80", "[64:ff9b::7f00:1]:80", "255.255.255.255:80", "[2002:7f00:1::]:80", "nonsense"} {
		if err := d.box.mayDial(address); swarm.KindOf(err) != swarm.Denied {
			t.Errorf("%s may be dialled: %v", address, err)
		}
	}
	for _, address := range []string{"93.184.215.14:443", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443", "127.0.0.1:1"} {
		if err := d.box.mayDial(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	// The client itself, without the check of the name, as after a DNS lookup.
	if response, err := d.box.web.Get("http://" + host + "/text"); err == nil {
		response.Body.Close()
		t.Error("this machine was reached")
	} else if swarm.KindOf(err) != swarm.Denied {
		t.Error(err)
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests have reached the server", hits.Load())
	}
	d = sit(t, "web_fetch(localhost:"+port+")")
	if got := d.must("web_fetch", "url", "http://LocalHost:"+port+"/text"); got != "hello" {
		t.Error(got)
	}
}

func TestPlain(t *testing.T) {
	for source, want := range map[string]string{
		"a < b > c":                               "a < b > c",
		"<p>one<p>two<br/>three":                  "one\ntwo\nthree",
		"<!-- <p>no --> yes":                      "yes",
		"<a href=\"x>y\">link</a>":                "link",
		"<style>p{}</style>x<STYLE>y</Style >z":   "xz",
		"&lt;b&gt; &eacute;&nbsp;x":               "<b> é x",
		"<script>while(1<2){}":                    "",
		"<table><tr><td>1</td><td>2</td></tr>":    "1 2",
		"<h1>A</h1>\n\n\n\n<div><div>b</div>":     "A\n\nb",
		"<!DOCTYPE html><?xml?><html>x</html":     "x",
		"<a title='it>text":                       "text",
		"<":                                       "<",
		"<script/><p>x</p></script>y":             "y",
		"<head><title>gone</title></head><p>x</p": "x",
	} {
		if got := plain(source); got != want {
			t.Errorf("%q is %q, want %q", source, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("<p>a<b c='d>e'>f</b><!-- g --><script>h</script>&amp;")
	f.Fuzz(func(t *testing.T, source string) {
		if got := plain(source); len(got) > 4*len(source)+4 {
			t.Errorf("%d bytes became %d", len(source), len(got))
		}
	})
}
