//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
)

// afterTool says whether a request ends with the result of a tool.
func afterTool(r modeltest.Request) bool {
	var q struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(r.Body, &q)
	last := q.Messages[len(q.Messages)-1]
	return last.Role == "tool" || strings.Contains(string(last.Content), `"tool_result"`)
}

// In 50 turns with 100 KB of tool results each, a model over HTTP is sent no more than its context
// has. From the tenth turn on, the bytes stay the same: ten turns send at most 2 % more than ten
// earlier ones. The model still knows what it was told in the first turn.
func TestFiftyTurnsWithinTheContext(t *testing.T) {
	t.Parallel()
	const tokens = 60_000
	for _, kind := range []string{"anthropic", "openai"} {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t)
			p.env = []string{strings.ToUpper(kind) + "_API_KEY=x"}
			server := modeltest.Start()
			t.Cleanup(server.Close)
			server.Reply = func(r modeltest.Request) modeltest.Answer {
				switch {
				case afterTool(r):
					return modeltest.Answer{Text: "I have read it."}
				case strings.Contains(r.Prompt, "What was the code word?") && strings.Contains(string(r.Body), "The code word is BANANA."):
					return modeltest.Answer{Text: "It was BANANA."}
				case strings.Contains(r.Prompt, "What was the code word?"):
					return modeltest.Answer{Text: "I do not know."}
				}
				return modeltest.Answer{Calls: []modeltest.Call{{Name: "file_read", Args: `{"path":"big.txt"}`}}}
			}
			p.check(os.WriteFile(filepath.Join(p.dir, "big.txt"), []byte(strings.Repeat("a line of a large file\n", 100<<10/23)), 0o600))
			p.check(os.WriteFile(filepath.Join(p.dir, "swarm", "swarm.yaml"), fmt.Appendf(nil, "providers: {m: {kind: %s, base_url: %q, models: {medium: tiny}}}\n"+
				"agents: {a: {provider: m, tools: [file_read], context: {tokens: %d, keep: 2}}}\n", kind, server.URL+"/v1", tokens), 0o600))
			lines := "@a The code word is BANANA. Read big.txt.\n"
			for n := 2; n < 50; n++ {
				lines += fmt.Sprintf("@a Read big.txt for the %dth time.\n", n)
			}
			cmd := p.swarm("run", "-")
			cmd.Stdin = strings.NewReader(lines + "@a What was the code word?\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, tail(string(out)))
			}
			if out, _ := p.runs(0, "out", "@last", "a_50"); out != "It was BANANA." {
				t.Errorf("in turn 50 it says %q", out)
			}
			asked := server.Requests()
			if len(asked) != 99 {
				t.Fatalf("%d requests", len(asked))
			}
			var sent [5]int // by ten turns: what their first requests have
			for i, r := range asked {
				if !afterTool(r) {
					sent[i/20] += len(r.Body)
				}
				if room := 4*tokens + 120<<10; len(r.Body) > room {
					t.Errorf("request %d has %d bytes, more than %d", i, len(r.Body), room)
				}
			}
			// A session is cut in steps, so turns differ. Each turn leaves a line behind.
			if least, most := slices.Min(sent[1:]), slices.Max(sent[1:]); most > least*51/50 {
				t.Errorf("by ten turns, %d bytes are sent first", sent)
			}
			t.Logf("by ten turns, %d bytes are sent first", sent)
			out, _ := p.runs(0, "show", "@last", "--turn", "a_50", "--json")
			var shown struct{ History *swarm.History }
			p.check(json.Unmarshal([]byte(out), &shown))
			if h := shown.History; h == nil || h.Turns != 49 || h.Short == 0 || h.Tokens > tokens {
				t.Errorf("the log says: %+v", h)
			}
			if out, _ := p.runs(0, "show", "@last", "--turn", "a_3", "--messages"); strings.Count(out, "a line of a large file") < 4000 {
				t.Errorf("of the third turn it shows %d bytes", len(out))
			}
		})
	}
}

// A model's session survives the death of the program that keeps it.
func TestAModelsSessionSurvivesAKill(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.env = []string{"ANTHROPIC_API_KEY=x"}
	server := modeltest.StartCues(
		modeltest.Cue{When: "What is my name?", Answers: []modeltest.Answer{{Trouble: modeltest.Hangs}, {Text: "Zed"}}},
		modeltest.Cue{Answers: []modeltest.Answer{{Text: "Hello."}}})
	t.Cleanup(server.Close)
	p.check(os.WriteFile(filepath.Join(p.dir, "swarm", "swarm.yaml"), fmt.Appendf(nil, "providers: {m: {kind: anthropic, base_url: %q, models: {medium: tiny}}}\n"+
		"agents: {a: {provider: m}}\ntasks:\n  tell: {agent: a, prompt-string: My name is Zed.}\n  ask: {agent: a, prompt-string: What is my name?, depends_on: [tell]}\n", server.URL), 0o600))
	cmd := p.swarm("up")
	p.check(cmd.Start())
	server.Await(2)
	p.check(cmd.Process.Kill())
	_ = cmd.Wait()
	p.runs(0, "resume", "@last")
	if out, _ := p.runs(0, "out", "@last", "ask"); out != "Zed" {
		t.Errorf("it says %q", out)
	}
	asked := server.Requests()
	if said := strings.Join(asked[len(asked)-1].Said, "|"); len(asked) != 3 || !strings.Contains(said, "My name is Zed.") || !strings.Contains(said, "What is my name?") {
		t.Errorf("%d requests, and the last one says %s", len(asked), said)
	}
}

// In a run of five agents that write to each other, most of what is sent is cached: at least 80 % of
// the input of every turn after the first of its agent, by a server that compares the beginnings of
// requests.
func TestMostOfTheInputIsCached(t *testing.T) {
	t.Parallel()
	const rounds = 6
	for _, kind := range []string{"anthropic", "openai"} {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t)
			p.env = []string{strings.ToUpper(kind) + "_API_KEY=x"}
			server := modeltest.Start()
			t.Cleanup(server.Close)
			server.Caches = true
			var mu sync.Mutex
			turns, said := map[string]int{}, 0
			server.Reply = func(r modeltest.Request) modeltest.Answer {
				mu.Lock()
				defer mu.Unlock()
				if afterTool(r) {
					said++ // the same again and again would be no progress
					return modeltest.Answer{Text: fmt.Sprintf("I have passed it on: %d.", said)}
				}
				var me, next string
				for i, name := range []string{"a", "b", "c", "d", "e"} {
					if strings.Contains(r.Prompt, "SWARM_AGENT_ID is "+name+".") {
						me, next = name, string("bcdea"[i])
					}
				}
				if turns[me]++; me == "a" && turns[me] > rounds {
					return modeltest.Answer{Calls: []modeltest.Call{{Name: "report_done", Args: `{"summary":"it went round"}`}}}
				}
				return modeltest.Answer{Calls: []modeltest.Call{{Name: "send_handoff", Args: fmt.Sprintf(`{"to":%q,"message":"Pass it on, please: round %d."}`, next, turns[me])}}}
			}
			p.check(os.WriteFile(filepath.Join(p.dir, "ring.yaml"), fmt.Appendf(nil, "provider: m\nproviders: {m: {kind: %s, base_url: %q, models: {medium: tiny}, price: {input: 1, output: 1}}}\n"+
				"agents: {a: {permissions: {orchestrate: true}}, b: {}, c: {}, d: {}, e: {}}\nedges: [a -> b, b -> c, c -> d, d -> e, e -> a]\n", kind, server.URL+"/v1"), 0o600))
			p.runs(0, "team", "Pass a message round.", "-f", "ring.yaml")
			out, _ := p.runs(0, "show", "@last", "--json")
			var shown struct {
				Turns []struct {
					ID    string
					Usage swarm.Usage
				}
				Agents []struct{ Usage swarm.Usage }
			}
			p.check(json.Unmarshal([]byte(out), &shown))
			if len(shown.Turns) != 5*rounds+1 || len(shown.Agents) != 5 {
				t.Fatalf("%d turns of %d agents", len(shown.Turns), len(shown.Agents))
			}
			var later swarm.Usage
			for _, turn := range shown.Turns {
				if strings.Contains(turn.ID, "/1/") {
					continue
				}
				if later = later.Plus(turn.Usage); 10*turn.Usage.CachedTokens < 8*turn.Usage.InputTokens {
					t.Errorf("turn %s: %d of %d tokens are cached", turn.ID, turn.Usage.CachedTokens, turn.Usage.InputTokens)
				}
			}
			t.Logf("%d of %d tokens are cached: %d%%", later.CachedTokens, later.InputTokens, 100*later.CachedTokens/later.InputTokens)
			if text, _ := p.runs(0, "show", "@last"); !strings.Contains(text, "CACHED") || !strings.Contains(text, "COST") {
				t.Errorf("it shows\n%s", text)
			}
		})
	}
}
