package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// Impossible figures count as not reported, and the turn is none the worse for it.
func TestUnusableFigures(t *testing.T) {
	for _, figure := range []string{"-1000000000", "1.5", `"7"`, "9223372036854775807", "-9223372036854775808", "1e30", "[]", "{}", "true"} {
		for _, end := range []string{
			`{"stopReason":"end_turn","usage":{"inputTokens":BAD,"outputTokens":3,"cachedReadTokens":BAD}}`,
			`{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":BAD,"output_tokens":3}}}}`,
			`{"stopReason":"end_turn","usage":BAD}`, `{"stopReason":"end_turn","_meta":BAD}`,
		} {
			turn := newTurn(t.Context(), provider.Request{}, func(swarm.Delta) {})
			turn.followSession("s", 0)
			var u update
			if err := json.Unmarshal([]byte(strings.ReplaceAll(`{"sessionUpdate":"usage_update","cost":{"amount":BAD,"currency":"USD"}}`, "BAD", figure)), &u); err != nil {
				t.Fatalf("%s: %v", figure, err)
			}
			turn.handleUpdate("s", u)
			var result promptResult
			if err := json.Unmarshal([]byte(strings.ReplaceAll(end, "BAD", figure)), &result); err != nil || result.Stop != "end_turn" {
				t.Fatalf("%s: %v", figure, err)
			}
			turn.finish(result)
			got := turn.usage
			if got.InputTokens != 0 || got.OutputTokens != 3 && got.OutputTokens != 0 || got.CachedTokens != 0 || got.USD < 0 || got.USD > 1.5 {
				t.Errorf("%s in %s: %+v", figure, end, got)
			}
			if got.Tokens() > 0 && !got.Estimated {
				t.Errorf("%s in %s: %+v is no estimate", figure, end, got)
			}
		}
	}
}

// Reasoning counts once: the total tells whether the agent counts it as a part of the output.
func TestReasoningCountsOnce(t *testing.T) {
	for usage, want := range map[string]int64{
		`{"totalTokens":200,"inputTokens":120,"cachedReadTokens":30,"outputTokens":50,"thoughtTokens":7}`: 50, // codex-acp 2.6
		`{"totalTokens":200,"inputTokens":120,"cachedReadTokens":30,"outputTokens":43,"thoughtTokens":7}`: 50,
		`{"inputTokens":120,"cachedReadTokens":30,"outputTokens":43,"thoughtTokens":7}`:                   50,
	} {
		turn := newTurn(t.Context(), provider.Request{}, func(swarm.Delta) {})
		var result promptResult
		if err := json.Unmarshal([]byte(`{"stopReason":"end_turn","usage":`+usage+`}`), &result); err != nil {
			t.Fatal(err)
		}
		turn.finish(result)
		if u := turn.usage; u.OutputTokens != want || u.InputTokens != 150 {
			t.Errorf("%s: %+v", usage, u)
		}
	}
}
