package modeltest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"swarm/internal/modeltest"
)

// ask sends a request as a named client, and returns the status and what came: the data of the
// events, or the body.
func ask(t *testing.T, url, agent, body string) (status int, data []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", agent)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") != "text/event-stream" {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, []string{string(body)}
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if event, found := strings.CutPrefix(lines.Text(), "data: "); found {
			data = append(data, event)
		}
	}
	return response.StatusCode, data
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

const responsesBody = `{"model": "m", "stream": true, "instructions": "be kind", "input": [
	{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>here</environment_context>"}]},
	{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first"}]},
	{"type": "function_call", "call_id": "a", "name": "send_handoff", "namespace": "mcp__swarm", "arguments": "{}"},
	{"type": "function_call_output", "call_id": "a", "output": "sent"},
	{"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "sent too"}]},
	{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "second"}]}],
	"tools": [{"type": "function", "name": "exec_command"}, {"type": "web_search"}, {"type": "namespace", "name": "mcp__swarm", "tools": [{"type": "function", "name": "send_handoff"}]}]}`

const geminiBody = `{"systemInstruction": {"parts": [{"text": "be kind"}]}, "contents": [
	{"role": "user", "parts": [{"text": "<session_context>here</session_context>"}]},
	{"role": "user", "parts": [{"text": "first"}]},
	{"role": "model", "parts": [{"functionCall": {"name": "mcp_swarm_send_handoff", "args": {}}}]},
	{"role": "user", "parts": [{"functionResponse": {"name": "mcp_swarm_send_handoff", "response": {"output": "sent"}}}, {"functionResponse": {"response": {"error": "no"}}}]},
	{"role": "user", "parts": [{"text": "second"}]}],
	"tools": [{"functionDeclarations": [{"name": "read_file"}, {"name": "mcp_swarm_send_handoff"}]}]}`

var full = modeltest.Answer{Thinking: "let me see", Text: "You said {prompt}.", Calls: []modeltest.Call{{Name: "send_handoff", Args: `{"to": "coder"}`}},
	Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}}

func TestResponses(t *testing.T) {
	s := modeltest.Start(full)
	defer s.Close()
	_, events := ask(t, s.URL+"/v1/responses", "codex_exec/1", responsesBody)
	type item struct {
		Type, Namespace, Name, Arguments string
		CallID                           string `json:"call_id"`
		Content                          []struct{ Text string }
	}
	type response struct {
		Output []item
		Usage  struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		}
	}
	text, thought, args := "", "", ""
	var last response
	for i, data := range events {
		e := decode[struct {
			Type, Delta string
			Sequence    int `json:"sequence_number"`
			Response    response
		}](t, data)
		if e.Sequence != i {
			t.Errorf("event %d says that it is the %dth", i, e.Sequence)
		}
		switch last = e.Response; e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.reasoning_summary_text.delta":
			thought += e.Delta
		case "response.function_call_arguments.delta":
			args += e.Delta
		}
	}
	if text != "You said second." || thought != "let me see" || args != `{"to": "coder"}` {
		t.Errorf("said %q, thought %q, called with %q", text, thought, args)
	}
	if len(last.Output) != 3 || last.Usage.Input != 1200 || last.Usage.Output != 30 || last.Usage.Details.Cached != 1000 {
		t.Fatalf("at the end %+v", last)
	}
	if call := last.Output[2]; call.Namespace != "mcp__swarm" || call.Name != "send_handoff" || call.Arguments != args || call.CallID == "" {
		t.Errorf("called %+v", call)
	}
	checkAsked(t, s.Requests()[0], "responses", []string{"exec_command", "mcp__swarm/send_handoff"}, []string{"sent", "sent too"})
}

func TestGemini(t *testing.T) {
	s := modeltest.Start(full)
	defer s.Close()
	type chunk struct {
		Candidates []struct {
			FinishReason string
			Content      struct {
				Parts []struct {
					Text         string
					Thought      bool
					FunctionCall struct {
						Name string
						Args struct{ To string }
					}
				}
			}
		}
		UsageMetadata struct{ PromptTokenCount, CandidatesTokenCount, CachedContentTokenCount int }
	}
	text, thought := "", ""
	var last chunk
	_, events := ask(t, s.URL+"/v1beta/models/m:streamGenerateContent?alt=sse", "GeminiCLI/1", geminiBody)
	for _, data := range events {
		last = decode[chunk](t, data)
		for _, p := range last.Candidates[0].Content.Parts {
			if p.Thought {
				thought += p.Text
			} else {
				text += p.Text
			}
		}
	}
	end := last.Candidates[0]
	if text != "You said second." || thought != "let me see" || end.FinishReason != "STOP" {
		t.Errorf("said %q, thought %q, ended with %q", text, thought, end.FinishReason)
	}
	if call := end.Content.Parts[len(end.Content.Parts)-1].FunctionCall; call.Name != "mcp_swarm_send_handoff" || call.Args.To != "coder" {
		t.Errorf("called %+v", call)
	}
	if u := last.UsageMetadata; u.PromptTokenCount != 1200 || u.CandidatesTokenCount != 30 || u.CachedContentTokenCount != 1000 {
		t.Errorf("cost %+v", u)
	}
	checkAsked(t, s.Requests()[0], "gemini", []string{"read_file", "mcp_swarm_send_handoff"}, []string{"sent", `{"error": "no"}`})
}

func checkAsked(t *testing.T, r modeltest.Request, protocol string, tools, results []string) {
	t.Helper()
	if r.Protocol != protocol || r.Model != "m" || r.System != "be kind" || r.Prompt != "second" || !r.Stream {
		t.Errorf("asked %+v", r)
	}
	if !slices.Equal(r.Said, []string{"first", "second"}) || !slices.Equal(r.Tools, tools) || !slices.Equal(r.Results, results) {
		t.Errorf("said %q, offered %q, tools answered %q", r.Said, r.Tools, r.Results)
	}
}

// TestProblems: an error has the form of the protocol.
func TestProblems(t *testing.T) {
	limited := modeltest.Answer{Status: 429, After: "7", Message: "too much"}
	for path, want := range map[string]string{
		"/v1/messages":  `{"error":{"code":null,"message":"too much","type":"rate_limit_error"},"type":"error"}`,
		"/v1/responses": `{"error":{"code":null,"message":"too much","type":"rate_limit_error"},"type":"error"}`,
		"/v1beta/models/m:streamGenerateContent?alt=": `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"7s"}],"message":"too much","status":"RESOURCE_EXHAUSTED"}}`,
	} {
		s := modeltest.Start(limited)
		if status, body := ask(t, s.URL+path, "", `{"stream": true, "input": "?"}`); status != 429 || body[0] != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
		s.Close()
	}
	for path, want := range map[string]string{
		"/v1/responses":                          `"error":{"code":"server_is_overloaded","message":"Overloaded"}`,
		"/v1beta/models/m:streamGenerateContent": `{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}`,
		"/v1/messages":                           `"error":{"message":"Overloaded","type":"overloaded_error"}`,
	} {
		s := modeltest.Start(modeltest.Answer{Text: "half of it", Trouble: modeltest.Overload})
		status, events := ask(t, s.URL+path, "", `{"stream": true, "input": "?"}`)
		if status != 200 || len(events) < 3 || !strings.Contains(events[len(events)-1], want) {
			t.Errorf("%s: %d %s", path, status, events)
		}
		s.Close()
	}
}

// TestAsides: a side request of a coding agent uses up no answer of the script, and is answered in
// the form that it asks for.
func TestAsides(t *testing.T) {
	s := modeltest.Start(modeltest.Answer{Text: "the first"}, modeltest.Answer{Text: "the second"})
	defer s.Close()
	const tools = `"tools": [{"name": "t", "function": {"name": "t"}, "functionDeclarations": [{"name": "t"}]}]`
	gemini := s.URL + "/v1beta/models/m:generateContent"
	for _, c := range []struct{ url, agent, body, want string }{
		{s.URL + "/v1/messages", "claude-cli/2 (external)", `{"max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]}`, "A conversation"},
		{s.URL + "/v1/messages", "claude-cli/2 (external)", `{"output_config": {"format": {"schema": {"type": "object", "properties": {"title": {"type": "string"}}}}}}`, `{\"title\":\"a conversation\"}`},
		{s.URL + "/v1/messages", "claude-cli/2 (external)", `{` + tools + `}`, "the first"},
		{s.URL + "/v1/chat/completions", "opencode/1", `{}`, "A conversation"},
		{gemini, "GeminiCLI-tui/1", `{"generationConfig": {"responseJsonSchema": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}, "l": {"type": "ARRAY"}, "w": {"enum": ["x", "y"]}, "b": {"type": "BOOLEAN"}}}}}`, `{\"b\":false,\"l\":[],\"n\":1,\"w\":\"x\"}`},
		{s.URL + "/v1beta/models/m:countTokens", "GeminiCLI-tui/1", `{` + tools + `}`, `{"totalTokens":`},
		{s.URL + "/v1/chat/completions", "somebody/1", `{}`, "the second"},
	} {
		if status, body := ask(t, c.url, c.agent, c.body); status != 200 || !strings.Contains(body[0], c.want) {
			t.Errorf("%s asked %s: %d %s", c.agent, c.body, status, body)
		}
	}
	if turns, asides := len(s.Requests()), len(s.Asides()); turns != 2 || asides != 5 {
		t.Errorf("%d turns, %d asides", turns, asides)
	}
	if status, _ := ask(t, s.URL+"/v1/embeddings", "codex/1", `{}`); status != 404 || !slices.Equal(s.Strays(), []string{"POST /v1/embeddings"}) {
		t.Errorf("%d, strays %v", status, s.Strays())
	}
}

// TestToolsAreCalledAsTheyWereOffered: a script says send_handoff, whatever the client calls it.
func TestToolsAreCalledAsTheyWereOffered(t *testing.T) {
	for _, c := range []struct {
		offered []string
		want    string
	}{
		{[]string{"send_handoff", "mcp__swarm__send_handoff"}, "send_handoff"},
		{[]string{"mcp__swarm__send_handoff", "Bash"}, "mcp__swarm__send_handoff"},
		{[]string{"other_swarm_send_handoff", "swarm_send_handoff"}, "swarm_send_handoff"},
		{[]string{"resend_handoff2", "xsend_handoff"}, "send_handoff"},
		{nil, "send_handoff"},
	} {
		s := modeltest.Start(modeltest.Answer{Calls: []modeltest.Call{{Name: "send_handoff", Args: `{}`}}})
		var tools []string
		for _, name := range c.offered {
			tools = append(tools, fmt.Sprintf(`{"name": %q}`, name))
		}
		_, body := ask(t, s.URL+"/v1/messages", "", `{"tools": [`+strings.Join(tools, ",")+`]}`)
		if !strings.Contains(body[0], fmt.Sprintf(`"name":%q`, c.want)) {
			t.Errorf("%v: %s", c.offered, body)
		}
		s.Close()
	}
}

func TestCues(t *testing.T) {
	cues, err := modeltest.ReadCues([]byte(`[{"when": "I am a", "answers": [{"text": "a1"}, {"text": "a2"}]}, {"when": "I am b", "answers": [{"text": "b1"}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	s := modeltest.StartCues(cues...)
	defer s.Close()
	say := func(messages ...string) string {
		var all []string
		for _, m := range messages {
			all = append(all, fmt.Sprintf(`{"role": "user", "content": %q}`, m))
		}
		_, body := ask(t, s.URL+"/v1/messages", "", `{"messages": [`+strings.Join(all, ",")+`]}`)
		return body[0]
	}
	for i, c := range []struct {
		messages []string
		want     string
	}{
		{[]string{"I am b"}, "b1"}, {[]string{"I am a"}, "a1"}, {[]string{"I am b"}, "b1"},
		{[]string{"I am a", "and later?"}, "a2"}, // a session that goes on is still a's
		{[]string{"I am a"}, "a2"}, {[]string{"I am c"}, `no answer is meant for \"I am c\"`},
	} {
		if got := say(c.messages...); !strings.Contains(got, c.want) {
			t.Errorf("%d: %q was answered %s", i, c.messages, got)
		}
	}
	for _, bad := range []string{``, `{}`, `[]`, `[{"when": "x"}]`, `[{"when": "x", "answers": []}]`, `[{"where": "x", "answers": [{}]}]`, `[{"txet": "x"}]`, `[] []`, `[{"text": "x"}] x`} {
		if _, err := modeltest.ReadCues([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func FuzzReadCues(f *testing.F) {
	f.Add([]byte(`[{"when": "x", "answers": [{"text": "y"}]}]`))
	f.Add([]byte(`[{"text": "y"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cues, err := modeltest.ReadCues(data)
		for _, c := range cues {
			if err == nil && len(c.Answers) == 0 {
				t.Errorf("a cue without an answer in %q", data)
			}
		}
	})
}
