package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// A web page in the place of an answer is named as such, and the server is asked once. Events that a
// server sends as plain text are read.
func TestAnAnswerThatIsAPage(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{"text/html; charset=utf-8", "<html>Welcome</html>", "returns a web page (text/html) in place of a model's answer"},
		{"text/html", "<html><title lang=en>Sign in &amp; wait</title><h1>Hi</h1></html>", "returns a web page (text/html) in place of a model's answer: Sign in & wait"},
		{"text/html", "<h1>502 Bad Gateway</h1>", "returns a web page (text/html) in place of a model's answer: 502 Bad Gateway"},
		{"text/plain", "It works!", "returns plain text (text/plain) in place of a model's answer: It works!"},
		{"application/json", "", "the server's answer is empty"},
		{"text/plain", "", "returns plain text (text/plain) in place of a model's answer"},
		{"text/plain", "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", ""},
	} {
		var asked atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", c.kind)
			_, _ = io.WriteString(w, c.body)
		}))
		p := open(t, swarm.ProviderSpec{Name: "team", Kind: "openai", BaseURL: s.URL})
		_, err := p.Turn(t.Context(), provider.Request{Prompt: "Hello", Model: "tiny"}, func(swarm.Delta) {})
		s.Close()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %q: %v", c.kind, c.body, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || c.kind != "application/json" && !strings.Contains(swarm.HintOf(err), `is base_url of the provider "team" right?`)):
			t.Errorf("%s %q: %v, hint %q", c.kind, c.body, err, swarm.HintOf(err))
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%s %q: asked %d times", c.kind, c.body, n)
		}
	}
}

// A server that answers as Chat Completions does at the address of Responses is asked once, and the hint says
// what to write.
func TestAnAnswerOfTheOtherAPI(t *testing.T) {
	for kind, body := range map[string]string{
		"text/event-stream": "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"application/json":  `{"object":"chat.completion","choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}`,
	} {
		var asked atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}))
		p := open(t, swarm.ProviderSpec{Name: "team", Kind: "openai", BaseURL: s.URL, API: providerkind.Responses})
		_, err := p.Turn(t.Context(), provider.Request{Prompt: "Hello", Model: "tiny"}, func(swarm.Delta) {})
		s.Close()
		if err == nil || !strings.Contains(err.Error(), "the server answers as Chat Completions does") || swarm.HintOf(err) != "write api: chat for its provider" {
			t.Errorf("%s: %v, hint %q", kind, err, swarm.HintOf(err))
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%s: asked %d times", kind, n)
		}
	}
}

// A model that says nothing, or refuses, has worked for pay. A plain question is asked again with the
// reason, as after an answer that cannot be read, and not as often as a server that cannot be reached.
func TestAPlainQuestionWithoutAnAnswer(t *testing.T) {
	b := newBench(t, "openai", modeltest.Answer{}, modeltest.Answer{})
	if _, err := b.turn(t.Context(), plainly()); swarm.KindOf(err) != swarm.Unexpected {
		t.Errorf("a plain question that got no answer ended with %v (%s)", err, swarm.KindOf(err))
	}
	if _, err := b.turn(t.Context(), provider.Request{Prompt: "Hello"}); swarm.KindOf(err) != swarm.NoResult {
		t.Errorf("another question ended with %v (%s)", err, swarm.KindOf(err))
	}
}
