package httpd

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// openLimited opens a house whose server holds few connections.
func openLimited(t *testing.T, strangers, admitted int) *house {
	h := open(t)
	h.conns.mu.Lock()
	defer h.conns.mu.Unlock()
	h.conns.maxStrangers, h.conns.maxAdmitted = strangers, admitted
	return h
}

// A wire is one connection to a server.
type wire struct {
	t *testing.T
	net.Conn
	answers *bufio.Reader
}

func (h *house) dial(t *testing.T) *wire {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &wire{t, c, bufio.NewReader(c)}
}

// send sends a request without a body, and does not wait for its answer.
func (w *wire) send(token string) {
	w.t.Helper()
	_, err := fmt.Fprintf(w, "GET / HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", w.RemoteAddr(), token)
	if err != nil {
		w.t.Fatal(err)
	}
}

// ask sends a request and returns the status of its answer.
func (w *wire) ask(token string) int {
	w.t.Helper()
	w.send(token)
	r, err := http.ReadResponse(w.answers, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		w.t.Fatal(err)
	}
	return r.StatusCode
}

// begin sends the head of a request, and reports whether the server waits for its body.
func (w *wire) begin(token string) bool {
	w.t.Helper()
	_, err := fmt.Fprintf(w, "POST / HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: 9\r\nExpect: 100-continue\r\n\r\n", w.RemoteAddr(), token)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.ReadResponse(w.answers, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode == http.StatusContinue
}

// ends waits until the server closes the connection.
func (w *wire) ends() {
	w.t.Helper()
	if n, err := w.answers.ReadByte(); err == nil {
		w.t.Errorf("the connection goes on with %q", n)
	}
}

// TestStrangersAreClosedForOthers: of connections without a valid request few stay open. Admitted
// clients keep theirs, and get new ones.
func TestStrangersAreClosedForOthers(t *testing.T) {
	h := openLimited(t, 4, 10)
	token := h.tokens.For("coder")
	kept := h.dial(t)
	if got := kept.ask(token); got != http.StatusNotFound {
		t.Fatal(got)
	}
	var strangers []*wire
	for range 40 {
		strangers = append(strangers, h.dial(t))
	}
	if got := h.dial(t).ask(token); got != http.StatusNotFound {
		t.Errorf("a new client is answered with %d", got)
	}
	if got := kept.ask(token); got != http.StatusNotFound {
		t.Errorf("the client of before is answered with %d", got)
	}
	for _, w := range strangers[:40-4] {
		w.ends()
	}
	for range 40 {
		_, _ = io.WriteString(h.dial(t), "GET / HTTP/1.1\r\nHost: ") // perhaps it is closed already
	}
	if got := h.dial(t).ask(token); got != http.StatusNotFound {
		t.Errorf("a new client after half requests is answered with %d", got)
	}
	h.conns.mu.Lock()
	defer h.conns.mu.Unlock()
	if n := h.conns.classes[silent].Len() + h.conns.classes[heard].Len(); n > 4 {
		t.Errorf("%d connections of strangers are open", n)
	}
}

// TestAWrongTokenEndsTheConnection.
func TestAWrongTokenEndsTheConnection(t *testing.T) {
	w := open(t).dial(t)
	if got := w.ask("wrong"); got != http.StatusUnauthorized {
		t.Error(got)
	}
	w.ends()
}

// TestIdleClientsAreClosedForBusyOnes: a new client takes the place of the one that is idle for
// longest. It is refused if every client has a request.
func TestIdleClientsAreClosedForBusyOnes(t *testing.T) {
	h := openLimited(t, 4, 2)
	token := h.tokens.For("coder")
	first, second := h.dial(t), h.dial(t)
	if got := first.ask(token); got != http.StatusNotFound {
		t.Fatal(got)
	}
	second.begin(token)
	for h.dial(t).ask(token) != http.StatusNotFound { // first is idle some time after its answer
	}
	first.ends()
	for !h.dial(t).begin(token) {
	}
	third := h.dial(t)
	if got := third.ask(token); got != http.StatusServiceUnavailable {
		t.Errorf("a client more than there may be is answered with %d", got)
	}
	third.ends()
}
