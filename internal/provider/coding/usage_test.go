package coding

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// unusable are impossible figures.
var unusable = []string{"-1000000000", "1.5", `"7"`, "9223372036854775807", "-9223372036854775808", "1e30", "[]", "{}", "true"}

// Such a figure counts as not reported, and the turn is none the worse for it.
func TestUnusableFigures(t *testing.T) {
	for kind, lines := range map[string]string{
		"claude-code": `{"type":"system","subtype":"init","session_id":"s-1"}
{"type":"user","uuid":"ID"}
{"type":"stream_event","event":{"type":"message_start","message":{"usage":{"input_tokens":BAD,"cache_read_input_tokens":BAD}}}}
{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":BAD}}}
{"type":"assistant","message":{"content":[{"type":"text","text":"Hello."}]}}
{"type":"result","subtype":"success","session_id":"s-1","result":"Hello.","total_cost_usd":BAD,"usage":{"input_tokens":BAD,"output_tokens":3}}
`,
		"claude-code, by model": `{"type":"user","uuid":"ID"}
{"type":"result","subtype":"success","session_id":"s-1","result":"Hello.","model_usage_since_last_result":{"a":{"inputTokens":BAD,"outputTokens":3,"costUSD":BAD}}}
`,
		"codex": `{"type":"thread.started","thread_id":"s-1"}
{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Hello."}}
{"type":"turn.completed","usage":{"input_tokens":BAD,"cached_input_tokens":BAD,"output_tokens":3}}
`,
		"opencode": `{"type":"text","sessionID":"s-1","part":{"text":"Hello."}}
{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","cost":BAD,"tokens":{"input":BAD,"output":3,"cache":{"read":BAD}}}}
`,
	} {
		kind, _, _ := strings.Cut(kind, ",")
		for _, figure := range unusable {
			a, err := open(swarm.ProviderSpec{Name: kind, Kind: kind}, provider.Options{Environ: []string{"PATH=/bin"}})
			if err != nil {
				t.Fatal(err)
			}
			turn := a.newTurn(provider.Request{Agent: "coder"}, func(swarm.Delta) {}, false)
			defer turn.modelWait.Stop()
			for line := range strings.Lines(strings.NewReplacer("BAD", figure, "ID", turn.id).Replace(lines)) {
				turn.hearLine([]byte(strings.TrimSpace(line)))
			}
			if turn.fatal != nil || turn.fault != nil {
				t.Errorf("%s, %s: %v, %v", kind, figure, turn.fatal, turn.fault)
			}
			if u := turn.usage; u.InputTokens != 0 || u.OutputTokens != 3 || u.CachedTokens != 0 || u.USD < 0 || u.USD > 0 && figure != "1.5" || !u.Estimated {
				t.Errorf("%s, %s: %+v", kind, figure, u)
			}
		}
	}
}
