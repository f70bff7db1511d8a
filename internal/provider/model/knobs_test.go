package model_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// Each setting stands in the request under the name that the protocol has for it. Extra fields are
// merged into the body, objects too.
func TestSettings(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Text: "done"})
		spec := specOf(kind, b.server.URL)
		spec.Effort, spec.ServiceTier = "high", "priority"
		spec.Extra = json.RawMessage(`{"top_p":0.5,"metadata":{"user_id":"me"},"reasoning":{"summary":"auto"},"output_config":{"format":"f"}}`)
		if kind == "anthropic" {
			spec.Thinking = "2048"
		}
		b.model = open(t, spec)
		if _, err := b.turn(t.Context(), provider.Request{Prompt: "?"}); err != nil {
			t.Fatal(err)
		}
		body := string(b.server.Requests()[0].Body)
		for _, want := range map[string][]string{
			"anthropic": {`"output_config":{"effort":"high","format":"f"}`, `"thinking":{"type":"enabled","budget_tokens":2048}`},
			"openai":    {`"reasoning_effort":"high"`, `"reasoning":{"summary":"auto"}`},
			"responses": {`"reasoning":{"effort":"high","summary":"auto"}`},
		}[kind] {
			if !strings.Contains(body, want) {
				t.Errorf("the request has no %s: %s", want, body)
			}
		}
		for _, want := range []string{`"service_tier":"priority"`, `"top_p":0.5`, `"metadata":{"user_id":"me"}`, `"stream":true`} {
			if !strings.Contains(body, want) {
				t.Errorf("the request has no %s: %s", want, body)
			}
		}
		if kind == "anthropic" {
			spec.Thinking = "adaptive"
			b.model = open(t, spec)
			if _, err := b.turn(t.Context(), provider.Request{Prompt: "?"}); err != nil || !strings.Contains(string(b.server.Requests()[1].Body), `"thinking":{"type":"adaptive"}`) {
				t.Errorf("%s, %v", b.server.Requests()[1].Body, err)
			}
		}
	})
}

// Headers are sent with each request. Their keys come from the environment, and are shown nowhere. A
// variable that is not set ends the turn before the server is asked.
func TestHeaders(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Text: "your key is " + key + ", is it not?", Thinking: key}, modeltest.Answer{Status: 400, Message: "not with " + key})
		spec := specOf(kind, b.server.URL)
		spec.Headers = map[string]string{"api-key": "$AZURE", "HTTP-Referer": "https://example.org"}
		b.model = open(t, spec, "AZURE="+key)
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if want := "your key is [secret AZURE], is it not?"; err != nil || string(reply.Output) != want {
			t.Errorf("%q, %v", reply.Output, err)
		}
		if shown := fmt.Sprint(b.deltas); strings.Contains(shown, key) {
			t.Errorf("%s", shown)
		}
		if h := b.server.Requests()[0].Header; h.Get("Api-Key") != key || h.Get("Http-Referer") != "https://example.org" || h.Get("Authorization")+h.Get("X-Api-Key") != "" {
			t.Errorf("it was sent %v", h)
		}
		reply, err = b.turn(t.Context(), provider.Request{Prompt: "?"})
		b.fails(swarm.BadInput, reply, err)

		b.model = open(t, spec)
		reply, err = b.turn(t.Context(), provider.Request{Prompt: "?"})
		if e := b.fails(swarm.NotSignedIn, reply, err); !reply.Free || !strings.Contains(e.Hint, "export AZURE=") || len(b.server.Requests()) != 2 {
			t.Errorf("%+v, %q, after %d requests", reply, e.Hint, len(b.server.Requests()))
		}
		if health := b.model.(provider.Checker).Check(t.Context()); health.Signed != "no" || health.Problem == "" {
			t.Errorf("%+v", health)
		}
	})
}

// The cost that a server reports counts, unless the file has a price. DeepSeek has another name for
// tokens that came from its cache.
func TestReportedCost(t *testing.T) {
	for _, c := range []struct {
		usage  string
		price  swarm.Price
		usd    float64
		cached int64
	}{
		{`{"prompt_tokens":100,"completion_tokens":5,"cost":0.0123,"prompt_tokens_details":{"cached_tokens":40}}`, swarm.Price{}, 0.0123, 40},
		{`{"prompt_tokens":100,"completion_tokens":5,"cost":0.0123}`, swarm.Price{Input: 1}, 0, 0},
		{`{"prompt_tokens":100,"completion_tokens":5,"cost":-1}`, swarm.Price{}, 0, 0},
		{`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}`, swarm.Price{}, 0, 60},
	} {
		b := newBench(t, "openai", modeltest.Answer{Text: "x", Usage: modeltest.Usage{Raw: json.RawMessage(c.usage)}})
		spec := specOf("openai", b.server.URL)
		spec.Price = c.price
		b.model = open(t, spec)
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if u := reply.Usage; err != nil || math.Abs(u.USD-c.usd) > 1e-12 || u.CachedTokens != c.cached || u.InputTokens != 100 {
			t.Errorf("%s: %+v, %v", c.usage, u, err)
		}
	}
}

// The hint of a refused request names the setting that helps: another API for a server without
// Responses, and less of the session for a prompt that is too long.
func TestHintsNameTheSetting(t *testing.T) {
	long := modeltest.Answer{Status: 400, Message: "This model's maximum context length is 8192 tokens."}
	later := []swarm.ChatMessage{{Role: swarm.RoleUser, Text: "One."}, {Role: swarm.RoleAssistant, Text: "Two."}}
	for _, c := range []struct {
		kind    string
		answer  modeltest.Answer
		history []swarm.ChatMessage
		want    swarm.ErrorKind
		hint    string
	}{
		{"responses", modeltest.Answer{Status: 404, Message: "Not Found"}, nil, swarm.NotFound, `correct the model "tiny" or base_url of the provider "team", or write api: chat`},
		{"openai", modeltest.Answer{Status: 404, Message: "Not Found"}, nil, swarm.NotFound, `correct the model "tiny" or base_url of the provider "team"`},
		{"openai", long, nil, swarm.BadPrompt, "ask for less at once"},
		{"openai", long, later, swarm.BadPrompt, `send less of the session: context: {tokens: N} of the agent "coder"`},
	} {
		b := newBench(t, c.kind, c.answer)
		reply, err := b.turn(t.Context(), provider.Request{Agent: "coder", Prompt: "?", Session: "s", Fresh: "?", History: c.history})
		if e := b.fails(c.want, reply, err); e.Hint != c.hint {
			t.Errorf("%s: %q, want %q", c.kind, e.Hint, c.hint)
		}
	}
}
