package acp

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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

// An agent may be silent while it uses a tool, or waits for our answer.
func TestPatience(t *testing.T) {
	turn := newTurn(t.Context(), provider.Request{}, func(swarm.Delta) {})
	turn.followSession("s", 0)
	const limit = time.Minute
	left := func(after time.Duration) time.Duration { return turn.patienceLeft(turn.heard.Add(after), limit) }
	tell := func(text string) {
		var u update
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			t.Fatal(err)
		}
		turn.handleUpdate("s", u)
	}
	if left(20*time.Second) != 40*time.Second || left(2*time.Minute) > 0 {
		t.Error("an agent that says nothing has all the time")
	}
	tell(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"make","status":"in_progress"}`)
	if left(time.Hour) != limit {
		t.Error("a long tool is taken for silence")
	}
	tell(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`)
	if left(time.Hour) > 0 {
		t.Error("a tool that has ended counts as running")
	}
	served := turn.serve()
	if left(time.Hour) != limit {
		t.Error("a person's time is taken for silence")
	}
	served()
	tell(`{"sessionUpdate":"tool_call","toolCallId":"b","title":"rm","status":"pending"}`)
	turn.refuse("b", refusal{})
	if left(time.Hour) > 0 {
		t.Error("a refused tool counts as running")
	}
}
