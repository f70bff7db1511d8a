package model

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

func TestMain(m *testing.M) {
	firstWait = time.Millisecond
	maxRounds = 200
	os.Exit(m.Run())
}

// A server that stops sending is not waited for for ever, even if the turn is not cut.
func TestSilence(t *testing.T) {
	usual := silence
	silence = 20 * time.Millisecond
	defer func() { silence = usual }()
	for _, trouble := range []modeltest.Trouble{modeltest.Hangs, modeltest.HangsLate} {
		server := modeltest.Start(modeltest.Answer{Text: "one two three four", Trouble: trouble})
		p, err := Open(swarm.ProviderSpec{Kind: "openai", BaseURL: server.URL + "/v1"}, provider.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.Turn(t.Context(), provider.Request{Prompt: "?", Model: "tiny"}, func(swarm.Delta) {}); swarm.KindOf(err) != swarm.NoResult || !strings.Contains(err.Error(), errSilent.Error()) {
			t.Errorf("%s: %v", trouble, err)
		}
		if n := len(server.Requests()); trouble == modeltest.Hangs && n != 2 {
			t.Errorf("a server that says nothing was asked %d times", n)
		}
		server.Close()
	}
}

// A wire is a server without a network. It gives its answers one after the other.
type wire struct{ answers []*http.Response }

func (w *wire) RoundTrip(*http.Request) (*http.Response, error) {
	next := w.answers[0]
	w.answers = w.answers[1:]
	return next, nil
}

func says(status int, header http.Header, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

// A retry waits as long as the server says, and otherwise longer each time.
func TestPatience(t *testing.T) {
	for what, c := range map[string]struct {
		busy    []*http.Response
		atLeast time.Duration
		atMost  time.Duration
	}{
		"failed twice":      {[]*http.Response{says(500, nil, ""), says(500, nil, "")}, firstWait / 2 * 3, firstWait * 3},           //nolint:bodyclose // made here, of a string
		"says when":         {[]*http.Response{says(429, http.Header{"Retry-After": {"60"}}, "")}, time.Minute, time.Minute},        //nolint:bodyclose // the same
		"failed, says when": {[]*http.Response{says(500, http.Header{"Retry-After": {"7"}}, "")}, 7 * time.Second, 7 * time.Second}, //nolint:bodyclose // the same
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // whose clock is its own
				p, err := Open(swarm.ProviderSpec{Kind: "openai", BaseURL: "http://x/v1"}, provider.Options{})
				if err != nil {
					t.Fatal(err)
				}
				hello := says(200, http.Header{"Content-Type": {"application/json"}}, `{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}`) //nolint:bodyclose // made here, of a string
				p.(*model).client.Transport = &wire{append(c.busy, hello)}                                                                                    //nolint:bodyclose // the client under test closes them
				start := time.Now()
				reply, err := p.Turn(t.Context(), provider.Request{Prompt: "?", Model: "tiny"}, func(swarm.Delta) {})
				if waited := time.Since(start); err != nil || string(reply.Output) != "hello" || waited < c.atLeast || waited > c.atMost {
					t.Errorf("%q after %v, %v", reply.Output, waited, err)
				}
			})
		})
	}
}

// Some servers number all calls 0, and give some no id.
func TestCallsThatAreNumberedBadly(t *testing.T) {
	a := &answer{show: func(swarm.DeltaKind, string) error { return nil }}
	l := openai{}.newListener(a)
	for _, piece := range []string{`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"y","arguments":"{\"n\""}}`,
		`{"index":0,"function":{"arguments":":1}"}}`, `{"index":1,"function":{"name":"z"}}`} {
		if err := l.handleEvent([]byte(`{"choices":[{"delta":{"tool_calls":[` + piece + `]}}]}`)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.message(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range a.calls {
		got = append(got, c.ID+" "+c.Name+" "+c.Args)
	}
	if want := `a x {}|b y {"n":1}|call_3 z `; strings.Join(got, "|") != want {
		t.Errorf("calls %q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "20", 20 * time.Millisecond},
		{"Retry-After", "-7", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0},
		{"Retry-After", "1e300", 365 * 24 * time.Hour},
		{"Retry-After", "NaN", 0},
		{"X", "7", 0},
	} {
		if got := provider.RetryAfter(http.Header{c.name: {c.value}}); got != c.want {
			t.Errorf("%s: %s is %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func readAll(text string) (all []string, err error) {
	e := events{r: bufio.NewReaderSize(strings.NewReader(text), 16)}
	for {
		data, err := e.next()
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
		end  error
	}{
		{"", "", io.EOF},
		{"data: a\n\n", "a", io.EOF},
		{"event: x\r\ndata:a\r\ndata: b\r\n\r\n: comment\n\nid: 1\n\ndata: c\n\n", "a\nb|c", io.EOF},
		{"data:  a \n\ndata:\n\n", " a |", io.EOF},
		{"data: a\n\ndata: b\n", "a", io.ErrUnexpectedEOF},
		{"data: a\n\ndata: b", "a", io.ErrUnexpectedEOF},
		{"data: " + strings.Repeat("long ", 100) + "\n\n", strings.Repeat("long ", 100), io.EOF},
	} {
		got, err := readAll(c.text)
		if strings.Join(got, "|") != c.want || err != c.end {
			t.Errorf("%q is %q, %v", c.text, got, err)
		}
	}
	if _, err := readAll("data: " + strings.Repeat("x", maxEvent+1)); err == nil || err == io.ErrUnexpectedEOF {
		t.Errorf("an event without end: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("data: a\n\n")
	f.Add("event: x\r\ndata:a\r\ndata: b\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readAll(text)
		if err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Errorf("%v", err)
		}
		if n := strings.Count(text, "data:"); len(all) > n {
			t.Errorf("%d events of %d lines", len(all), n)
		}
	})
}

// Nothing that a server sends causes a panic, and only an answer with an end is an answer.
func FuzzAnswers(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"content":"x","tool_calls":[{"index":-1}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`)
	f.Add(`{"type":"content_block_start","content_block":{"type":"tool_use","input":null}}` + "\n" + `{"type":"content_block_delta","index":0,"delta":{"partial_json":"{"}}`)
	f.Add(`{"type":"response.output_item.done","item":{"type":"function_call","arguments":"{"}}` + "\n" + `{"type":"response.completed","response":{"status":"completed","output":[]}}`)
	f.Add(`{"type":"error","error":{"type":"overloaded_error","code":7}}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []dialect{anthropic{}, openai{}, responses{}} {
			tr := &turn{model: &model{}, live: func(swarm.Delta) {}}
			a, end := tr.newAnswer()
			l := d.newListener(a)
			for line := range strings.SplitSeq(text, "\n") {
				if l.handleEvent([]byte(line)) != nil {
					break
				}
			}
			end()
			said, err := l.message()
			if err != nil {
				t.Fatal(err)
			}
			c := conversation{messages: []swarm.ChatMessage{{Role: swarm.RoleUser, Text: "x"}, said, {Role: swarm.RoleUser, Results: []swarm.ToolResult{{}}}}}
			if _, err := d.encodeRequest(&c); err != nil {
				t.Errorf("what it said cannot be said again: %v", err)
			}
		}
	})
}

// The path of the API goes before the query of an address, and after its path.
func TestWhereACallGoes(t *testing.T) {
	for _, c := range []struct{ kind, api, base, want string }{
		{"openai", "", "", "https://api.openai.com/v1/responses"},
		{"openai", "chat", "", "https://api.openai.com/v1/chat/completions"},
		{"openai", "responses", "https://x.openai.azure.com/openai/v1/", "https://x.openai.azure.com/openai/v1/responses"},
		{"openai", "", "http://x/v1", "http://x/v1/chat/completions"},
		{"openai", "", "http://x/v1/?api-version=2", "http://x/v1/chat/completions?api-version=2"},
		{"openai", "", "http://x", "http://x/chat/completions"},
		{"anthropic", "", "", "https://api.anthropic.com/v1/messages"},
		{"anthropic", "", "http://x/v1/", "http://x/v1/messages"},
		{"anthropic", "", "http://x/a?b=c/v1", "http://x/a/v1/messages?b=c/v1"},
	} {
		p, err := Open(swarm.ProviderSpec{Kind: c.kind, API: c.api, BaseURL: c.base}, provider.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.(*model).url; got != c.want {
			t.Errorf("%s at %q is called at %s, not %s", c.kind, c.base, got, c.want)
		}
	}
}
