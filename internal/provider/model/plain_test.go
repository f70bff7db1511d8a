package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// asked is the part of a request that says how a model is asked, in either protocol.
type asked struct {
	Temperature *float64 `json:"temperature"`
	Max         int64    `json:"max_tokens"`
	MaxOutput   int64    `json:"max_output_tokens"`
	Tools       []any    `json:"tools"`
	Messages    []said   `json:"messages"`
	Input       []said   `json:"input"`
}

type said struct {
	Role string `json:"role"`
}

func plainly() provider.Request {
	return provider.Request{Prompt: "Go on.", ToolSpecs: []swarm.ToolSpec{{Name: "look"}},
		Plain: &provider.Plain{System: "You are one of many.", Prefill: "{", Temperature: 0.3, MaxTokens: 2048}}
}

func (b *bench) asked(n int) (a asked, r modeltest.Request) {
	b.Helper()
	r = b.server.Requests()[n]
	if err := json.Unmarshal(r.Body, &a); err != nil {
		b.Fatal(err)
	}
	if a.Input != nil {
		a.Messages, a.Max = a.Input, a.MaxOutput
	}
	return a, r
}

// A plain question has a system text, a temperature and a limit, and offers no tools. Where the API
// goes on from the beginning of an answer, the output begins with that.
func TestAPlainQuestion(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		text, last := `{"action": "done"}`, "user"
		if kind == "anthropic" {
			text, last = `"action": "done"}`, "assistant"
		}
		b := newBench(t, kind, modeltest.Answer{Text: text})
		reply, err := b.turn(t.Context(), plainly())
		if err != nil || string(reply.Output) != `{"action": "done"}` {
			t.Errorf("the turn ended with %q, %v", reply.Output, err)
		}
		a, r := b.asked(0)
		if a.Temperature == nil || *a.Temperature != 0.3 || a.Max != 2048 || len(a.Tools) > 0 || r.System != "You are one of many." ||
			r.Prompt != "Go on." || a.Messages[len(a.Messages)-1].Role != last {
			t.Errorf("asked was %s", r.Body)
		}
	})
}

// A model that refuses to go on from a beginning is asked without one, and never again with it.
func TestAPrefillThatIsRefused(t *testing.T) {
	b := newBench(t, "anthropic", modeltest.Answer{Status: 400, Message: "This model does not support assistant message prefill."}, modeltest.Answer{Text: `{"action": "done"}`})
	for range 2 {
		if reply, err := b.turn(t.Context(), plainly()); err != nil || string(reply.Output) != `{"action": "done"}` {
			t.Errorf("the turn ended with %q, %v", reply.Output, err)
		}
	}
	if n := len(b.server.Requests()); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
	for n, role := range []string{"assistant", "user", "user"} {
		if a, r := b.asked(n); a.Messages[len(a.Messages)-1].Role != role {
			t.Errorf("request %d is %s", n+1, r.Body)
		}
	}
}

// An answer that is cut at the limit is an answer: its reader repairs it, or asks again.
func TestAPlainAnswerThatIsCut(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Text: "half of", Stop: map[string]string{"anthropic": "max_tokens", "openai": "length", "responses": "max_output_tokens"}[kind]})
		reply, err := b.turn(t.Context(), plainly())
		if err != nil || !strings.HasSuffix(string(reply.Output), "half of") {
			t.Errorf("the turn ended with %q, %v", reply.Output, err)
		}
	})
}

// A plain question reserves its system text, its prompt and the whole answer that it may get.
func TestAPlainQuestionReservesItsAnswer(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Text: "x"})
		r := plainly()
		var reserved swarm.Usage
		r.Reserve = func(u swarm.Usage) error { reserved = u; return nil }
		_, err := b.turn(t.Context(), r)
		if in := swarm.EstimateTokens(int64(len(r.Plain.System) + len(r.Prompt))); err != nil || reserved.InputTokens != in || reserved.OutputTokens != 2048 {
			t.Errorf("reserved is %+v; %v", reserved, err)
		}
	})
}
