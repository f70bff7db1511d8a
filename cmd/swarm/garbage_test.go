//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
)

// garbage is what models say in the place of an action. None of it says that an agent is done.
var garbage = []string{
	"I am done.", "done", `"done"`, "null", "true", "42", "[]", "{}", "{", "}", "{{{{", "[[[[", `{"action"`, `{"action":`, `{"action": `, `{"action": "do`,
	`{"action": null}`, `{"action": 7}`, `{"action": ["done"]}`, `{"action": {"done": true}}`, `{"action": ""}`, `{"action": "DONE!"}`, `{"action": "finish", "response": "x"}`,
	`{"response": "All is done."}`, `{"done": true}`, `{"actions": ["done"]}`, `{"action": "done", "action": "tool_call"}`, `{"Action": "done"}`,
	`{"action": "tool_call"}`, `{"action": "tool_call", "tool": 5}`, `{"action": "tool_call", "tool": "x", "tool_params": []}`, `{"action": "publish_data"}`,
	`{"action": "send_message", "to": 1}`, `{"action": "request_help", "help_skills": "all"}`, "```json\n```", "```json\n{\"action\"\n```", "<action>done</action>", "action: done\nresponse: x",
	"\x00\x01\x02", "\xff\xfe{", "{\"action\": \"\xff\"}", "\u202e}\"done\" :\"noitca\"{", strings.Repeat("{\"a\":", 5000), strings.Repeat("[", 20000), strings.Repeat("\\", 3000), `{"action": "d\u006fne`,
	"{\n// \"action\": \"done\",\n\"response\": \"x\"}", `{"action": "tool_call", /* "action": "done", "response": "x"}`, `{"response": "x" /* "action": "done" */}`,
}

// Of 1,000 answers that are none, no agent is taken for done, and nothing breaks.
func TestAThousandMalformedAnswers(t *testing.T) {
	t.Parallel()
	agents := times(10, 170, 170) // each is asked six times: three iterations, and once more each
	for _, kind := range []string{"openai", "anthropic"} {
		var n atomic.Uint64
		server := modeltest.Start()
		t.Cleanup(server.Close)
		server.Reply = func(modeltest.Request) modeltest.Answer {
			seed := n.Add(1)
			text := garbage[int(seed)%len(garbage)]
			if rnd := rand.New(rand.NewPCG(seed, 5)); seed%3 == 0 { // and the same with a part left out
				text = text[rnd.IntN(len(text)):] + " "
			}
			return modeltest.Answer{Text: text, Stop: map[bool]string{true: map[string]string{"openai": "length", "anthropic": "max_tokens"}[kind]}[seed%5 == 0]}
		}
		p := newPlace(t)
		p.env = []string{strings.ToUpper(kind) + "_API_KEY=x"}
		var plan struct {
			Subtasks []swarm.Subtask `json:"subtasks"`
		}
		for i := range agents {
			plan.Subtasks = append(plan.Subtasks, swarm.Subtask{ID: fmt.Sprint("t", i), Description: "Look"})
		}
		p.check(os.WriteFile(filepath.Join(p.dir, "subtasks.json"), swarm.Encode(plan), 0o600))
		p.check(os.WriteFile(filepath.Join(p.dir, "garbage.yaml"), fmt.Appendf(nil, "provider: m\nproviders: {m: {kind: %s, base_url: %q, models: {medium: tiny, large: tiny}}}\nswarm: {max_agents: %d}\n", kind, server.URL+"/v1", agents+1), 0o600))
		_, stderr := p.runs(1, "solve", "Look", "-f", "garbage.yaml", "--plan", "subtasks.json", "--agents", fmt.Sprint(agents))
		if strings.Contains(stderr, "panic") || n.Load() < uint64(agents*1000/170) {
			t.Errorf("%s: %d answers were given:\n%s", kind, n.Load(), stderr)
		}
		out, _ := p.runs(0, "show", "@last", "--json")
		var shown struct {
			Answer string `json:"answer"`
			Tasks  []struct {
				Agent   string        `json:"agent"`
				Outcome swarm.Outcome `json:"outcome"`
			} `json:"tasks"`
		}
		p.check(json.Unmarshal([]byte(out), &shown))
		for _, task := range shown.Tasks {
			if task.Agent != swarm.Supervisor && task.Outcome != swarm.OutcomeAborted {
				t.Errorf("%s: %s ended as %q", kind, task.Agent, task.Outcome)
			}
		}
		if shown.Answer != "" || len(shown.Tasks) != agents+1 {
			t.Errorf("%s: %d agents, and the answer is %q", kind, len(shown.Tasks)-1, shown.Answer)
		}
	}
}
