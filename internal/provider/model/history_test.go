package model_test

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// What a turn returns can be sent as the history of the next one. The model gets it as it was: its
// prompt, calls, results, words, and what the server had sent beside them. Another model gets the
// words and the calls.
func TestHistory(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind,
			modeltest.Answer{Thinking: "I must add", Signature: "sig-1", Text: "I add.", Calls: []modeltest.Call{{ID: "c1", Name: "add", Args: `{"a":1,"b":2}`}}},
			modeltest.Answer{Text: "It is 3."}, modeltest.Answer{Text: "I said 3."})
		first := provider.Request{Prompt: "Role.\n\nAdd.\n", Stable: len("Role.\n\n"), ToolSpecs: []swarm.ToolSpec{add}, Call: adds}
		reply, err := b.turn(t.Context(), first)
		if err != nil || len(reply.Messages) != 3 {
			t.Fatalf("%+v, %v", reply.Messages, err)
		}
		next := provider.Request{Prompt: "whole", Session: "a/1/1", Fresh: "What did you say?", ToolSpecs: []swarm.ToolSpec{add}, Call: adds}
		next.History = append([]swarm.ChatMessage{{Role: swarm.RoleUser, Text: first.Prompt, Stable: first.Stable}}, reply.Messages...)
		for _, model := range []string{"tiny", "another"} {
			next.Model = model
			if _, err := b.turn(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			asked := b.server.Requests()
			now := asked[len(asked)-1]
			if got := strings.Join(now.Said, "|"); got != "Role.\n\nAdd.\n|What did you say?" || strings.Join(now.Results, "|") != "3" {
				t.Errorf("%s is told %q with the results %q", model, got, now.Results)
			}
			body := string(now.Body)
			for _, want := range []string{`I add.`, `c1`, `It is 3.`} {
				if !strings.Contains(body, want) {
					t.Errorf("%s is not sent %s: %s", model, want, body)
				}
			}
			beside := map[string]string{"anthropic": "sig-1", "responses": "sig-1", "openai": "reasoning_content"}[kind]
			if strings.Contains(body, beside) != (model == "tiny") {
				t.Errorf("what came beside the words, and %s: %s", model, body)
			}
		}
		// Requests of one conversation begin with the same words.
		same := func(text string) string { return strings.ReplaceAll(text, `,"cache_control":{"type":"ephemeral"}`, "") }
		two, three := same(string(b.server.Requests()[1].Body)), same(string(b.server.Requests()[2].Body))
		end := strings.Index(two, `What did you`)
		if end < 0 {
			end = strings.LastIndex(two, "3")
		}
		if at := strings.Index(three, two[strings.Index(two, "Role."):end]); at < 0 {
			t.Errorf("the history is not what was sent before:\n%s\n%s", two, three)
		}
	})
}

// The history may have been said by a model of another vendor, whose ids an API does not take.
func TestHistoryOfAnotherVendor(t *testing.T) {
	b := newBench(t, "anthropic", modeltest.Answer{Text: "Fine."})
	_, err := b.turn(t.Context(), provider.Request{Session: "a/1/1", Fresh: "And now?", History: []swarm.ChatMessage{
		{Role: swarm.RoleUser, Text: "Add."},
		{Role: swarm.RoleAssistant, Calls: []swarm.ToolCall{{ID: "functions.add:0", Name: "add", Args: `{"a":1,"b":2}`}}},
		{Role: swarm.RoleUser, Results: []swarm.ToolResult{{Call: "functions.add:0", Text: "3"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	body := string(b.server.Requests()[0].Body)
	if !strings.Contains(body, `"id":"functions_add_0"`) || !strings.Contains(body, `"tool_use_id":"functions_add_0"`) {
		t.Errorf("the server is sent %s", body)
	}
}
