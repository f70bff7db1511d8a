package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
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
