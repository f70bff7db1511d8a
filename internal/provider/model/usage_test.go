package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// Impossible figures count as not reported. The answer is good, and is not asked for
// again.
func TestUnusableFigures(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		in, out := "prompt_tokens", "completion_tokens"
		if kind != "openai" {
			in, out = "input_tokens", "output_tokens"
		}
		for _, usage := range []string{
			`{"IN": -1000000000, "OUT": 500}`, `{"IN": 1.5, "OUT": 500}`, `{"IN": "7", "OUT": 500}`, `{"IN": 9223372036854775807, "OUT": 500}`,
			`{"IN": 1e30, "OUT": 500}`, `{"IN": [], "OUT": 500}`, `{"IN": -9223372036854775808, "OUT": 500, "prompt_tokens_details": {"cached_tokens": -5}}`,
			`{"IN": 20, "OUT": -1}`, `{"IN": 20, "OUT": 1e400}`, `{"IN": 20, "OUT": 2, "prompt_tokens_details": [], "input_tokens_details": [], "cache_read_input_tokens": -1}`,
			`"lots"`, `[]`, `7`, `{"IN": {}, "OUT": {}}`,
		} {
			raw := strings.NewReplacer("IN", in, "OUT", out).Replace(usage)
			for _, plain := range []bool{true, false} {
				b := newBench(t, kind, modeltest.Answer{Text: "Hello.", Plain: plain, Usage: modeltest.Usage{Raw: json.RawMessage(raw)}})
				reply, err := b.turn(t.Context(), provider.Request{Prompt: "hello"})
				if err != nil || string(reply.Output) != "Hello." {
					t.Errorf("%s: %q, %v", usage, reply.Output, err)
				}
				u := reply.Usage
				if !u.Estimated || u.InputTokens <= 0 || u.InputTokens > 1000 || u.OutputTokens <= 0 || u.OutputTokens > 500 || u.CachedTokens < 0 || u.USD < 0 {
					t.Errorf("%s: %+v", usage, u)
				}
				if strings.Contains(usage, `"OUT": 500`) && u.OutputTokens != 500 || strings.Contains(usage, `"IN": 20`) && u.InputTokens != 20 {
					t.Errorf("%s: a good figure is lost: %+v", usage, u)
				}
				if n := len(b.server.Requests()); n != 1 {
					t.Errorf("%s: it was asked %d times", usage, n)
				}
			}
		}
	})
}
