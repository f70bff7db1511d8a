package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// served waits until a background server has printed its address to a file, and sets $SERVER to it:
// served serve.json.
func served(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: served file")
	}
	var said struct{ URL string }
	for patience := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) { // it is another process, and tells nobody
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		if bytes.HasSuffix(text, []byte("\n")) && json.Unmarshal(text, &said) == nil {
			break
		}
		if time.Now().After(patience) {
			ts.Fatalf("the server never said where it listens: %s", text)
		}
	}
	ts.Setenv("SERVER", said.URL)
}

// request sends a request with the token to the server of a script, and prints the answer:
// http 200 GET /api/v1/runs, http 201 POST /api/v1/runs '{}'.
// Arguments that begin with -H are headers: -HOrigin:null; an empty one is left out.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: http status method path [body] [-HName:value…]")
	}
	token := ts.Getenv("SWARM_TOKEN")
	if text, err := os.ReadFile(ts.Getenv("SWARM_HOME") + "/token"); err == nil && token == "" {
		token = strings.TrimSpace(string(text))
	}
	head, body := http.Header{"Authorization": {"Bearer " + token}}, ""
	if args[1] == http.MethodPost {
		head.Set("Content-Type", "application/json")
	}
	for _, arg := range args[3:] {
		line, is := strings.CutPrefix(arg, "-H")
		name, value, _ := strings.Cut(line, ":")
		switch {
		case !is:
			body = arg
		case value == "":
			head.Del(name)
		default:
			head.Set(name, value)
		}
	}
	r, err := http.NewRequest(args[1], ts.Getenv("SERVER")+args[2], strings.NewReader(body))
	ts.Check(err)
	r.Header, r.Host = head, head.Get("Host")
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	if _, err := ts.Stdout().Write(text); err != nil {
		ts.Fatalf("%v", err)
	}
	if !strings.HasPrefix(answer.Status, args[0]) {
		ts.Fatalf("%s %s: %s %s, want %s", args[1], args[2], answer.Status, text, args[0])
	}
}

// login gets a browser in: it exchanges the one-time code of the address in a file, and sets $SERVER
// and $COOKIE. The file has what `swarm serve --json` printed, or what a run prints with --open:
// login 204 serve.json.
func login(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: login status file")
	}
	var address []byte
	for patience := time.Now().Add(30 * time.Second); address == nil; time.Sleep(time.Millisecond) { // it is another process, and tells nobody
		text, _ := os.ReadFile(ts.MkAbs(args[1]))
		address = regexp.MustCompile(`http://[0-9.]+:[0-9]+/\S*#code=[A-Z0-9]{26}`).Find(text)
		if time.Now().After(patience) {
			ts.Fatalf("there is no address in %s", text)
		}
	}
	page, err := url.Parse(string(address))
	ts.Check(err)
	server := "http://" + page.Host
	r, err := http.NewRequest(http.MethodPost, server+"/api/v1/login", strings.NewReader(`{"code":"`+strings.TrimPrefix(page.Fragment, "code=")+`"}`))
	ts.Check(err)
	r.Header = http.Header{"Origin": {server}, "Sec-Fetch-Site": {"same-origin"}, "Content-Type": {"application/json"}}
	answer, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	ts.Check(err)
	_, _ = ts.Stdout().Write(text)
	if !strings.HasPrefix(answer.Status, args[0]) {
		ts.Fatalf("login: %s %s, want %s", answer.Status, text, args[0])
	}
	ts.Setenv("SERVER", server)
	for _, c := range answer.Cookies() {
		ts.Setenv("COOKIE", c.Name+"="+c.Value)
	}
}

// stitch follows a run as a page with a bad connection does: it disconnects after every third event
// and continues with Last-Event-ID, until the run has ended, or the process that drove it. Each event
// must come once and in order: stitch RUN.
func stitch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stitch run")
	}
	last := 0
	for connections := 0; ; connections++ {
		ctx, cancel := context.WithCancel(context.Background())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, ts.Getenv("SERVER")+"/api/v1/stream/sse?workflow_id="+args[0], http.NoBody)
		ts.Check(err)
		r.Header = http.Header{"Cookie": {ts.Getenv("COOKIE")}, "Sec-Fetch-Site": {"same-origin"}}
		if last > 0 {
			r.Header.Set("Last-Event-ID", strconv.Itoa(last))
		}
		answer, err := http.DefaultClient.Do(r)
		if last > 0 && (err != nil || answer.StatusCode == http.StatusServiceUnavailable) {
			cancel()
			fmt.Fprintf(ts.Stdout(), "%d events over %d connections, then the server was gone\n", last, connections)
			return
		}
		ts.Check(err)
		lines := bufio.NewScanner(answer.Body)
		for seen := 0; answer.StatusCode == http.StatusOK && seen < 3 && lines.Scan(); {
			id, is := strings.CutPrefix(lines.Text(), "id: ")
			if !is {
				continue
			}
			if id != strconv.Itoa(last+1) {
				ts.Fatalf("event %s comes after %d", id, last)
			}
			last++
			seen++
		}
		cancel()
		answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusOK:
		case http.StatusNoContent:
			fmt.Fprintf(ts.Stdout(), "%d events over %d connections\n", last, connections)
			return
		default:
			ts.Fatalf("the stream is answered with %s", answer.Status)
		}
	}
}
