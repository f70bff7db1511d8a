package httpd

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// keepCall is a call of the tool keep, with more text in some place.
func keepCall(id, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"keep","arguments":{"text":"x"` + more + `}}}`
}

// looseMessages are messages that are refused, and the code of the error.
var looseMessages = []struct {
	text string
	code int
}{
	{keepCall("1", "") + "}", -32700},
	{keepCall("1", "") + " garbage", -32700},
	{keepCall("1", "") + keepCall("2", ""), -32700},
	{keepCall("1", "") + "\x00", -32700},
	{"\ufeff" + keepCall("1", ""), -32700},
	{keepCall("1", `,"text":"y"`), -32700},
	{keepCall("1", `,"number":{"a":1,"\u0061":2}`), -32700},
	{keepCall("1", `,"number":"\ud800"`), -32700},
	{keepCall("1", `,"number":`+strings.Repeat("[", 200)+strings.Repeat("]", 200)), -32700},
	{keepCall("1", ",\"number\":\"\xff\""), -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"keep","arguments":{"text":"x"}}}`, -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"refuse"},"params":{"name":"keep","arguments":{"text":"x"}}}`, -32700},
	{`{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","method":"ping","params":{"name":"keep","arguments":{"text":"x"}}}`, -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"keep","name":"refuse","arguments":{"text":"x"}}}`, -32700},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call"`, -32700},
	{`[]`, -32600},
	{`[1]`, -32600},
	{`1`, -32600},
	{`"x"`, -32600},
	{`null`, -32600},
	{`{}`, -32600},
	{keepCall("1.5", ""), -32600},
	{keepCall("1e2", ""), -32600},
	{keepCall("9007199254740993", ""), -32600},
	{keepCall("[1]", ""), -32600},
	{keepCall("true", ""), -32600},
	{strings.Replace(keepCall("1", ""), "2.0", "1.0", 1), -32600},
	{strings.Replace(keepCall("1", ""), `"2.0"`, "2.0", 1), -32600},
	{strings.Replace(keepCall("1", ""), `"tools/call"`, "null", 1), -32600},
	{strings.Replace(keepCall("1", ""), `"tools/call"`, `""`, 1), -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"keep"}`, -32600},
	{`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, -32600},
	{`{"jsonrpc":"2.0","result":{}}`, -32600},
	{`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, -32600},
}

// rpcCode is the code of the error in an answer, and the id in it; 0 = there is none.
func rpcCode(t *testing.T, answer []byte) (code int, id string) {
	t.Helper()
	var a struct {
		JSONRPC string
		ID      json.RawMessage
		Error   struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("the answer is %q", answer)
	}
	if a.Error.Code != 0 && (a.JSONRPC != "2.0" || string(a.ID) != "null" && string(a.ID) != "1" || a.Error.Message == "") {
		t.Errorf("the answer is %s", answer)
	}
	return a.Error.Code, string(a.ID)
}

// TestLooseMessagesAreNotExecuted: within a session and without one, over HTTP.
func TestLooseMessagesAreNotExecuted(t *testing.T) {
	h := open(t)
	session := h.client(t, "coder").ID()
	for _, m := range looseMessages {
		for _, id := range []string{session, ""} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL()+"/mcp", strings.NewReader(m.text))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+h.tokens.For("coder"))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			if id != "" {
				r.Header.Set(sessionHeader, id)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			status := http.StatusBadRequest // without an id, no call of the client waits for the answer
			code, id := rpcCode(t, body)
			if id == "1" {
				status = http.StatusOK
			}
			if err != nil || answer.StatusCode != status || code != m.code {
				t.Errorf("%.80q is answered with %d %s %v, want %d", m.text, answer.StatusCode, body, err, m.code)
			}
		}
	}
	if kept := h.agents["coder"].all(); len(kept) > 0 {
		t.Errorf("calls were executed: %q", kept)
	}
}

// TestIDOfARefusedMessage: a client learns which of its calls failed, if the message says so once.
func TestIDOfARefusedMessage(t *testing.T) {
	for text, want := range map[string]string{
		keepCall("1", `,"text":"y"`):             "1",
		keepCall(`"a"`, `,"number":"\ud800"`):    `"a"`,
		keepCall("1", "") + " garbage":           "1",
		`{"id":1,"id":2,"method":"ping"}`:        "",
		`{"ID":1,"method":"ping"}`:               "",
		keepCall("1.5", ""):                      "",
		keepCall("null", ""):                     "",
		`[` + keepCall("1", `,"text":"y"`) + `]`: "",
		`{"params":{"id":1},"method":"ping",,}`:  "",
		"\x00" + keepCall("1", ""):               "",
	} {
		if got := string(rpcID([]byte(text))); got != want {
			t.Errorf("the id of %q is %q, want %q", text, got, want)
		}
	}
}

// TestLooseLinesAreNotExecuted: the same over pipes. The session goes on after each.
func TestLooseLinesAreNotExecuted(t *testing.T) {
	h := open(t)
	in, out, ended := h.pipes(t, h.tokens.For("coder"))
	lines := bufio.NewReader(out)
	exchange := func(text string) []byte {
		t.Helper()
		if _, err := io.WriteString(in, text+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	exchange(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if _, err := io.WriteString(in, "\r\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\r\n"); err != nil {
		t.Fatal(err)
	}
	for _, m := range looseMessages {
		if got, _ := rpcCode(t, exchange(m.text)); got != m.code {
			t.Errorf("%.80q is answered with %d, want %d", m.text, got, m.code)
		}
	}
	got := exchange(keepCall("7", `,"number":1.10`))
	if code, _ := rpcCode(t, got); code != 0 || !strings.Contains(string(got), "1.10") {
		t.Errorf("a good call is answered with %s", got)
	}
	if kept := h.agents["coder"].all(); len(kept) != 1 {
		t.Errorf("the calls that were executed: %q", kept)
	}
	in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
