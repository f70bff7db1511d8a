package coding

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
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
		"codex, app-server": `{"method":"item/completed","params":{"item":{"id":"1","type":"agentMessage","text":"Hello."}}}
{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"total":{"inputTokens":BAD,"cachedInputTokens":BAD,"outputTokens":3}}}}
{"method":"turn/completed","params":{"turn":{"status":"completed"}}}
`,
		"opencode": `{"type":"text","sessionID":"s-1","part":{"text":"Hello."}}
{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","cost":BAD,"tokens":{"input":BAD,"output":3,"cache":{"read":BAD}}}}
`,
	} {
		kind, way, _ := strings.Cut(kind, ", ")
		for _, figure := range unusable {
			a, err := open(swarm.ProviderSpec{Name: kind, Kind: kind}, provider.Options{Environ: []string{"PATH=/bin"}})
			if err != nil {
				t.Fatal(err)
			}
			turn := a.newTurn(provider.Request{Agent: "coder"}, func(swarm.Delta) {}, "x", launch{talks: way == "app-server"}, false)
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

// Claude Code tells its dollars at the end of a turn. One that is cut before costs the list price of
// the answers that it has got.
func TestACutTurnOfClaudeCodeCosts(t *testing.T) {
	a, err := open(swarm.ProviderSpec{Name: "claude", Kind: "claude-code"}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	turn := a.newTurn(provider.Request{Agent: "coder"}, func(swarm.Delta) {}, "x", launch{}, false)
	defer turn.modelWait.Stop()
	hear := func(lines string) {
		for line := range strings.Lines(lines) {
			turn.hearLine([]byte(strings.TrimSpace(line)))
		}
	}
	answer := `{"type":"stream_event","event":{"type":"message_start","message":{"model":"claude-opus-5-5","usage":{"input_tokens":1000,"cache_read_input_tokens":10000,"cache_creation_input_tokens":2000}}}}
{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":100}}}
{"type":"stream_event","event":{"type":"message_stop"}}
`
	hear(`{"type":"system","subtype":"init","session_id":"s-1"}
{"type":"user","uuid":"` + turn.id + `"}
` + answer + answer)
	want := swarm.Usage{InputTokens: 26000, OutputTokens: 200, CachedTokens: 20000, Estimated: true,
		USD: 2 * providerkind.Cost("claude-opus-5-5", providerkind.Tokens{In: 1000, Read: 10000, Wrote: 2000, Out: 100})}
	if got := turn.reply(0).Usage; got != want || got.USD == 0 {
		t.Errorf("it was cut, and cost %+v, want %+v", got, want)
	}
	hear(`{"type":"result","subtype":"success","session_id":"s-1","result":"Hello.","total_cost_usd":0.5,"usage":{"input_tokens":2,"output_tokens":3}}`)
	if got := turn.reply(0).Usage; got.USD != 0.5 || got.Estimated {
		t.Errorf("it has said what it cost: %+v", got)
	}
}

// Reasoning counts once, whether a program counts it as a part of the output or beside it.
func TestReasoningCountsOnce(t *testing.T) {
	for line, want := range map[string]int64{
		`{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","tokens":{"total":200,"input":120,"output":50,"reasoning":7,"cache":{"read":30}}}}`: 50,
		`{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","tokens":{"total":200,"input":120,"output":43,"reasoning":7,"cache":{"read":30}}}}`: 50,
		`{"type":"step_finish","sessionID":"s-1","part":{"reason":"stop","tokens":{"input":120,"output":43,"reasoning":7,"cache":{"read":30}}}}`:             50,
		`{"type":"turn.completed","usage":{"input_tokens":150,"cached_input_tokens":30,"output_tokens":50,"reasoning_output_tokens":7,"total_tokens":200}}`:  50,
		serverTotal: 50,
	} {
		kind := "opencode"
		if strings.Contains(line, "turn.completed") || line == serverTotal {
			kind = "codex"
		}
		turn := stand(t, kind, "echo").newTurn(provider.Request{Agent: "coder"}, func(swarm.Delta) {}, "x", launch{talks: line == serverTotal}, false)
		turn.hearLine([]byte(line))
		if u := turn.usage; u.OutputTokens != want || u.InputTokens != 150 || u.CachedTokens != 30 {
			t.Errorf("%s: %+v", line, u)
		}
	}
}

// A program that reports only what its session has cost in all: the turn's cost is the difference to
// what the last turn reported, whichever process of ours or of the program's did that turn.
func TestSessionTotals(t *testing.T) {
	dollars := func(usd float64) *swarm.Usage { return &swarm.Usage{USD: usd} }
	for name, c := range map[string]struct {
		kind    string
		before  *swarm.Usage // as the last turn of the session reported it
		session string
		later   bool
		lines   string
		want    swarm.Usage
		total   *swarm.Usage
	}{
		"first turn of Claude Code": {kind: "claude-code", lines: claudeTotal("2.1.90", "0.25"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.25}, total: dollars(0.25)},
		"same process": {kind: "claude-code", session: "s-1", before: dollars(0.25), later: true, lines: claudeTotal("2.1.90", "0.75"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.5}, total: dollars(0.75)},
		"another process counts from zero": {kind: "claude-code", session: "s-1", before: dollars(0.25), lines: claudeTotal("2.1.90", "0.75"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.75}, total: dollars(0.75)},
		"without a version": {kind: "claude-code", session: "s-1", before: dollars(0.25), lines: claudeTotal("", "0.75"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.75}, total: dollars(0.75)},
		"another process goes on counting": {kind: "claude-code", session: "s-1", before: dollars(0.25), lines: claudeTotal("2.1.277", "0.75"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.5}, total: dollars(0.75)},
		"it was killed before it could write its total": {kind: "claude-code", session: "s-1", before: dollars(1), lines: claudeTotal("2.1.300", "0.75"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.75}, total: dollars(0.75)},
		"a session of unknown cost": {kind: "claude-code", session: "s-1", lines: claudeTotal("2.1.300", "0.75"),
			want: swarm.Usage{InputTokens: 10, OutputTokens: 3}, total: dollars(0.75)},
		"figures of the turn": {kind: "claude-code", session: "s-1", before: dollars(0.25),
			lines: `{"type":"result","session_id":"s-1","result":"Hello.","total_cost_usd":9,"model_usage_since_last_result":{"a":{"inputTokens":10,"outputTokens":3,"costUSD":0.5}}}`,
			want:  swarm.Usage{InputTokens: 10, OutputTokens: 3, USD: 0.5}},
		"first turn of Codex": {kind: "codex", lines: codexTotal, want: swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30},
			total: &swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30}},
		"Codex goes on": {kind: "codex", session: "s-1", before: &swarm.Usage{InputTokens: 100, OutputTokens: 30, CachedTokens: 30}, lines: codexTotal,
			want: swarm.Usage{InputTokens: 50, OutputTokens: 20}, total: &swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30}},
		"first turn of app-server": {kind: "codex", lines: serverTotal, want: swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30},
			total: &swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30}},
		"app-server goes on": {kind: "codex", session: "s-1", before: &swarm.Usage{InputTokens: 100, OutputTokens: 30, CachedTokens: 30}, lines: serverTotal,
			want: swarm.Usage{InputTokens: 50, OutputTokens: 20}, total: &swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30}},
		"Codex, unknown before": {kind: "codex", session: "s-1", lines: codexTotal, total: &swarm.Usage{InputTokens: 150, OutputTokens: 50, CachedTokens: 30}},
	} {
		t.Run(name, func(t *testing.T) {
			r := provider.Request{Agent: "coder", Session: c.session, SessionTotal: c.before}
			turn := stand(t, c.kind, "echo").newTurn(r, func(swarm.Delta) {}, "x", launch{talks: c.lines == serverTotal}, c.later)
			turn.hearLine([]byte(`{"type":"user","uuid":"` + turn.id + `"}`))
			for line := range strings.Lines(c.lines) {
				turn.hearLine([]byte(strings.TrimSpace(line)))
			}
			reply := turn.reply(0)
			if reply.Usage != c.want {
				t.Errorf("the turn has cost %+v, want %+v", reply.Usage, c.want)
			}
			if got := reply.SessionTotal; (got == nil) != (c.total == nil) || got != nil && *got != *c.total {
				t.Errorf("the session has cost %+v, want %+v", got, c.total)
			}
		})
	}
}

const codexTotal = `{"type":"turn.completed","usage":{"input_tokens":150,"cached_input_tokens":30,"output_tokens":50}}`

// serverTotal is what codexTotal says, by app-server.
const serverTotal = `{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"total":{"totalTokens":200,"inputTokens":150,"cachedInputTokens":30,"outputTokens":50,"reasoningOutputTokens":7}}}}`

// claudeTotal is a turn of a version of Claude Code that reports a running total of dollars.
func claudeTotal(version, usd string) string {
	return `{"type":"system","subtype":"init","session_id":"s-1","claude_code_version":"` + version + `"}
{"type":"result","subtype":"success","session_id":"s-1","result":"Hello.","total_cost_usd":` + usd + `,"usage":{"input_tokens":10,"output_tokens":3}}`
}
