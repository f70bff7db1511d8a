package model_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// A reply is what a quirky server sends, byte by byte.
type reply struct {
	status int    // 0 = 200
	kind   string // "" = a stream of events
	body   string
}

// events makes a stream of events.
func events(data ...string) reply {
	return reply{body: "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"}
}

// A quirky server gives its replies one after the other, and then repeats the last one.
type quirky struct {
	*httptest.Server
	mu      sync.Mutex
	asked   []string
	headers []http.Header
}

func startQuirky(t *testing.T, replies ...reply) *quirky {
	t.Helper()
	q := &quirky{}
	q.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		q.mu.Lock()
		next := replies[min(len(q.asked), len(replies)-1)]
		q.asked, q.headers = append(q.asked, string(body)), append(q.headers, r.Header.Clone())
		q.mu.Unlock()
		switch next.kind {
		case "":
			w.Header().Set("Content-Type", "text/event-stream")
		default:
			w.Header().Set("Content-Type", next.kind)
		}
		if next.status != 0 {
			w.WriteHeader(next.status)
		}
		_, _ = io.WriteString(w, next.body)
	}))
	t.Cleanup(q.Close)
	return q
}

func (q *quirky) requests() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked
}

// ask does one turn with the tool add.
func (q *quirky) ask(t *testing.T, spec swarm.ProviderSpec, r provider.Request, environ ...string) (provider.Reply, error) {
	t.Helper()
	spec.Name, spec.BaseURL = "team", q.URL+"/v1"
	if r.Model == "" {
		r.Model = "tiny"
	}
	if r.Prompt == "" {
		r.Prompt, r.ToolSpecs, r.Call = "add", []swarm.ToolSpec{add}, adds
	}
	return open(t, spec, environ...).Turn(t.Context(), r, func(swarm.Delta) {})
}

const (
	json1 = "application/json"
	done  = `{"choices":[{"index":0,"delta":{"content":"done"},"finish_reason":"stop"}]}`
)

func delta(fields string) string { return `{"choices":[{"index":0,"delta":{` + fields + `}}]}` }

func calls(fields string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + fields + `]},"finish_reason":"tool_calls"}]}`
}

// Each row is a server that does not behave as its protocol says: what becomes of the turn, and how
// often the server is asked. A server that would say the same again is asked once.
func TestQuirks(t *testing.T) {
	const one, two = `"function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}`, `"function":{"name":"add","arguments":"{\"a\":3,\"b\":4}"}`
	ok := events(done, "[DONE]")
	for what, c := range map[string]struct {
		kind     string // "" = openai
		replies  []reply
		requests int
		output   string
		err      string
		want     swarm.ErrorKind
		told     []string // in the second request
	}{
		"arguments as an object": {replies: []reply{events(calls(`{"index":0,"id":"x","function":{"name":"add","arguments":{"a":1,"b":2}}}`), "[DONE]"), ok},
			requests: 2, output: "done", told: []string{`"content":"3"`, `"arguments":"{\"a\":1,\"b\":2}"`}},
		"content as a list of parts": {replies: []reply{events(
			delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), delta(`"content":[{"type":"text","text":"I "}]`), delta(`"content":"add."`),
			calls(`{"index":0,"id":"x",`+one+`}`), "[DONE]"), ok}, requests: 2, output: "done",
			told: []string{`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"text":"I add.","type":"text"}]`}},
		"text as a list of parts": {replies: []reply{events(delta(`"content":[{"type":"text","text":"Hello "}]`), delta(`"content":[{"type":"text","text":"you"}]`), done, "[DONE]")},
			requests: 1, output: "Hello youdone"},
		"calls without index and id": {replies: []reply{events(calls(`{`+one+`},{`+two+`}`), "[DONE]"), ok},
			requests: 2, output: "done", told: []string{`"content":"3"`, `"content":"7"`, `"tool_call_id":"call_1"`, `"tool_call_id":"call_2"`}},
		"calls without index and id in two pieces": {replies: []reply{events(calls(`{`+one+`}`), calls(`{`+two+`}`), "[DONE]"), ok},
			requests: 2, output: "done", told: []string{`"content":"3"`, `"content":"7"`}},
		"pieces of a call without index": {replies: []reply{events(calls(`{"id":"x","function":{"name":"add","arguments":"{\"a\":1,"}}`), calls(`{"function":{"arguments":"\"b\":2}"}}`), "[DONE]"), ok},
			requests: 2, output: "done", told: []string{`"content":"3"`}},
		"all calls numbered 0, without ids": {replies: []reply{events(calls(`{"index":0,`+one+`}`), calls(`{"index":0,`+two+`}`), "[DONE]"), ok},
			requests: 2, output: "done", told: []string{`"content":"3"`, `"content":"7"`}},
		"names in each piece": {replies: []reply{events(calls(`{"index":0,"id":"x","function":{"name":"add","arguments":"{\"a\":1,"}}`), calls(`{"index":0,"function":{"name":"add","arguments":"\"b\":2}"}}`), "[DONE]"), ok},
			requests: 2, output: "done", told: []string{`"content":"3"`}},
		"another choice": {replies: []reply{events(delta(`"content":"Hel"`), `{"choices":[{"index":1,"delta":{"content":"Good"}},{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`, "[DONE]")},
			requests: 1, output: "Hello"},
		"no reason for the end":             {replies: []reply{events(delta(`"content":"Hello"`), "[DONE]")}, requests: 1, output: "Hello"},
		"no reason, in one piece":           {replies: []reply{{kind: json1, body: `{"choices":[{"message":{"content":"Hello"}}]}`}}, requests: 1, output: "Hello"},
		"ended without a word":              {replies: []reply{events("[DONE]")}, requests: 1, err: "the model said nothing", want: swarm.NoResult},
		"error as a text in the stream":     {replies: []reply{events(`{"error":"model runner does not know tools"}`)}, requests: 1, err: "the server reports an error: model runner does not know tools", want: swarm.NoResult},
		"error that passes":                 {replies: []reply{events(`{"error":"the server is overloaded"}`), ok}, requests: 2, output: "done"},
		"error as a text":                   {replies: []reply{{400, json1, `{"error":"tiny does not support tools"}`}}, requests: 1, err: "(400): tiny does not support tools", want: swarm.BadInput},
		"vLLM's error":                      {replies: []reply{{400, json1, `{"object":"error","message":"tool choice requires a parser","type":"BadRequestError","code":400}`}}, requests: 1, err: "(400): tool choice requires a parser", want: swarm.BadInput},
		"vLLM's error in the stream":        {replies: []reply{events(`{"object":"error","message":"no such grammar","type":"BadRequestError","code":400}`)}, requests: 1, err: "(400): no such grammar", want: swarm.BadInput},
		"vLLM's context":                    {replies: []reply{{400, json1, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 9000.","code":400}`}}, requests: 1, err: "the prompt is too long for the model (400): This model's", want: swarm.BadPrompt},
		"FastAPI's error":                   {replies: []reply{{422, json1, `{"detail":"no such adapter"}`}}, requests: 1, err: "(422): no such adapter", want: swarm.BadInput},
		"FastAPI's list of errors":          {replies: []reply{{422, json1, `{"detail":[{"loc":["body","tools"],"msg":"field required"}]}`}}, requests: 1, err: `"msg":"field required"`, want: swarm.BadInput},
		"FastAPI's error with 200":          {replies: []reply{{0, json1, `{"detail":"Not authenticated"}`}}, requests: 1, err: "the server reports an error: Not authenticated", want: swarm.NoResult},
		"Gemini's error":                    {replies: []reply{{400, json1, `[{"error":{"code":400,"message":"Function call is missing a thought_signature","status":"INVALID_ARGUMENT"}}]`}}, requests: 1, err: "missing a thought_signature", want: swarm.BadInput},
		"OpenRouter's error":                {replies: []reply{{400, json1, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"reasoning is mandatory","provider_name":"x"}}}`}}, requests: 1, err: "Provider returned error: reasoning is mandatory", want: swarm.BadInput},
		"OpenRouter's account":              {replies: []reply{{402, json1, `{"error":{"message":"Insufficient credits","code":402}}`}}, requests: 1, err: "the account has no credit left (402): Insufficient credits", want: swarm.RateLimited},
		"a page":                            {replies: []reply{{0, "text/html", `<html>Welcome to the hotel</html>`}}, requests: 1, err: "returns a web page", want: swarm.Protocol},
		"a page that calls itself JSON":     {replies: []reply{{0, json1, `<html>Welcome to the hotel</html>`}}, requests: 1, err: "cannot be understood: <html>Welcome to the hotel</html>", want: swarm.Protocol},
		"a page that calls itself a stream": {replies: []reply{{0, "", "<html>\nWelcome to the hotel\n</html>\n"}}, requests: 1, err: "cannot be understood: <html> Welcome to the hotel", want: swarm.Protocol},
		"JSON of something else":            {replies: []reply{{0, json1, `{"status":"ok"}`}}, requests: 1, err: `cannot be understood: {"status":"ok"}`, want: swarm.Protocol},
		"a stream of something else":        {replies: []reply{events(`{"status":"ok"}`)}, requests: 1, err: `cannot be understood: {"status":"ok"}`, want: swarm.Protocol},
		"choices that are none":             {replies: []reply{events(`{"choices":"none today"}`)}, requests: 1, err: `cannot be understood: {"choices":"none today"}`, want: swarm.Protocol},
		"a limit of another name":           {replies: []reply{{400, json1, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`}, ok}, requests: 2, output: "done", told: []string{`"max_completion_tokens":77`}},
		"fields that are not taken back":    {replies: []reply{events(delta(`"reasoning":"hm"`), calls(`{"index":0,"id":"x",`+one+`}`), "[DONE]"), {400, json1, `{"error":{"message":"'messages.1' : property 'reasoning' is unsupported"}}`}, ok}, requests: 3, output: "done", told: []string{`"reasoning":"hm"`}},
		"Anthropic's long prompt":           {kind: "anthropic", replies: []reply{{400, json1, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`}}, requests: 1, err: "the prompt is too long for the model (400): prompt is too long: 210000", want: swarm.BadPrompt},
		"Anthropic's account":               {kind: "anthropic", replies: []reply{{400, json1, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`}}, requests: 1, err: "the account has no credit left (400): Your credit balance", want: swarm.RateLimited},
		"Anthropic's error in one piece":    {kind: "anthropic", replies: []reply{{0, json1, `{"type":"error","error":{"type":"invalid_request_error","message":"no such tool"}}`}}, requests: 1, err: "(400): no such tool", want: swarm.BadInput},
		"a model that does not reason": {kind: "responses", replies: []reply{{400, json1, `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include"}}`},
			events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"done"}]}}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)}, requests: 2, output: "done", told: []string{`"input":[{"role":"user","content":"add"}],"tools"`}},
		"a refusal":                            {kind: "responses", replies: []reply{events(`{"type":"response.refusal.delta","output_index":0,"delta":"I cannot."}`, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)}, requests: 1, err: "the model refused to answer: I cannot.", want: swarm.NoResult},
		"an error in the stream of a response": {kind: "responses", replies: []reply{events(`{"type":"response.created","response":{}}`, `{"type":"error","code":"invalid_prompt","message":"flagged","param":null}`)}, requests: 1, err: "(400): flagged", want: swarm.BadInput},
		"a response that fails":                {kind: "responses", replies: []reply{events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"sorry"}}}`), events(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"done"}]}]}}`)}, requests: 2, output: "done"},
		"a response that is too long":          {kind: "responses", replies: []reply{events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}}`)}, requests: 1, err: "the prompt is too long for the model (400): Your input", want: swarm.BadPrompt},
		"tools in Chat Completions":            {replies: []reply{{400, json1, `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-6.1-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error"}}`}}, requests: 1, err: "use /v1/responses", want: swarm.BadInput},
		"not Anthropic":                        {kind: "anthropic", replies: []reply{{0, json1, `{"choices":[{"message":{"content":"Hello"}}]}`}}, requests: 1, err: `cannot be understood: {"choices"`, want: swarm.Protocol},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := startQuirky(t, c.replies...)
			spec := specOf(cmp.Or(c.kind, "openai"), q.URL)
			spec.MaxTokens = 77
			got, err := q.ask(t, spec, provider.Request{})
			switch {
			case c.err == "" && (err != nil || string(got.Output) != c.output):
				t.Errorf("%q, %v", got.Output, err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || swarm.KindOf(err) != c.want):
				t.Errorf("the turn ended as %s: %v", swarm.KindOf(err), err)
			}
			asked := q.requests()
			if len(asked) != c.requests {
				t.Fatalf("it was asked %d times, want %d", len(asked), c.requests)
			}
			for _, want := range c.told {
				if !strings.Contains(asked[1], want) {
					t.Errorf("the second request has no %s: %s", want, asked[1])
				}
			}
		})
	}
}

// Fields that a server sends beside the text and the calls come back in the next request, joined if
// they came in pieces. Servers refuse the request without them.
func TestOtherFieldsComeBack(t *testing.T) {
	const signed = `{"index":0,"id":"x","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"add","arguments":"{\"a\":1,\"b\":2}","note":"n"}}`
	ok := events(done, "[DONE]")
	for what, c := range map[string]struct {
		reply reply
		want  string // the assistant's message
	}{
		"Gemini": {events(calls(signed), "[DONE]"),
			`{"content":null,"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"arguments":"{\"a\":1,\"b\":2}","name":"add","note":"n"},"id":"x","type":"function"}]}`},
		"DeepSeek": {events(delta(`"role":"assistant","content":null,"reasoning_content":"Let "`), delta(`"content":null,"reasoning_content":"me see"`), calls(`{"index":0,"id":"x","function":{"name":"add","arguments":"{\"a\":1,"}}`), calls(`{"index":0,"function":{"arguments":"\"b\":2}"}}`), "[DONE]"),
			`{"content":null,"reasoning_content":"Let me see","role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1,\"b\":2}","name":"add"},"id":"x","type":"function"}]}`},
		"OpenRouter": {events(delta(`"content":"","reasoning":"Let ","reasoning_details":[{"type":"reasoning.text","text":"Let ","index":0,"format":"f"}]`),
			delta(`"content":"","reasoning":"me","reasoning_details":[{"type":"reasoning.text","text":"me","signature":"s","index":0,"format":"f"}]`),
			delta(`"reasoning_details":[{"type":"reasoning.encrypted","data":"abc","index":1,"id":"r1"}]`), calls(`{"index":0,"id":"x","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}`), "[DONE]"),
			`{"content":null,"reasoning":"Let me","reasoning_details":[{"format":"f","index":0,"signature":"s","text":"Let me","type":"reasoning.text"},{"type":"reasoning.encrypted","data":"abc","index":1,"id":"r1"}],"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1,\"b\":2}","name":"add"},"id":"x","type":"function"}]}`},
		"in one piece": {reply{kind: json1, body: `{"choices":[{"message":{"role":"assistant","content":"I add.","reasoning_content":"hm <1>","tool_calls":[` + signed + `]},"finish_reason":"tool_calls"}]}`},
			`{"content":"I add.","reasoning_content":"hm <1>","role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"arguments":"{\"a\":1,\"b\":2}","name":"add","note":"n"},"id":"x","type":"function"}]}`},
	} {
		q := startQuirky(t, c.reply, ok)
		got, err := q.ask(t, swarm.ProviderSpec{Kind: "openai"}, provider.Request{})
		if err != nil || string(got.Output) != "done" {
			t.Fatalf("%s: %q, %v", what, got.Output, err)
		}
		var second struct{ Messages []json.RawMessage }
		if err := json.Unmarshal([]byte(q.requests()[1]), &second); err != nil {
			t.Fatal(err)
		}
		if said := string(second.Messages[1]); said != c.want {
			t.Errorf("%s: the message is\n%s, want\n%s", what, said, c.want)
		}
	}
}

// Servers that are compatible with an API may refuse what only its vendor knows. It is left out, and
// the turn goes on; a second turn does not try it again.
func TestPartsThatAreRefused(t *testing.T) {
	for kind, c := range map[string]struct{ part, words string }{
		"openai":    {"stream_options", `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`},
		"anthropic": {"cache_control", "messages.0.content.0.cache_control: Extra inputs are not permitted"},
	} {
		b := newBench(t, kind, modeltest.Answer{Status: 422, Message: c.words}, modeltest.Answer{Text: "Fine."})
		for range 2 {
			reply, err := b.turn(t.Context(), provider.Request{Prompt: "Role.\n\nAdd.\n", Stable: len("Role.\n\n"), Later: true, ToolSpecs: []swarm.ToolSpec{add}, Call: adds})
			if err != nil || string(reply.Output) != "Fine." {
				t.Errorf("%s: %s, %v", kind, reply.Output, err)
			}
		}
		for i, asked := range b.server.Requests() {
			if i > 2 || strings.Contains(string(asked.Body), c.part) != (i == 0) {
				t.Errorf("%s, request %d: %s", kind, i, asked.Body)
			}
		}
	}
}

// A temperature that only we chose is left out for models that refuse it, in this turn and in later
// ones. One in the file is an error.
func TestATemperatureThatIsRefused(t *testing.T) {
	no := reply{400, json1, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.3 with this model.","type":"invalid_request_error"}}`}
	q := startQuirky(t, no, events(done, "[DONE]"))
	p := open(t, swarm.ProviderSpec{Name: "team", Kind: "openai", BaseURL: q.URL})
	for range 2 {
		r := plainly()
		r.Model = "tiny"
		if got, err := p.Turn(t.Context(), r, func(swarm.Delta) {}); err != nil || string(got.Output) != "done" {
			t.Fatalf("%q, %v", got.Output, err)
		}
	}
	for i, has := range []bool{true, false, false} {
		if strings.Contains(q.requests()[i], "temperature") != has {
			t.Errorf("request %d is %s", i+1, q.requests()[i])
		}
	}
	warm := 0.7
	q = startQuirky(t, no)
	if _, err := q.ask(t, swarm.ProviderSpec{Kind: "openai", Temperature: &warm}, plainly()); swarm.KindOf(err) != swarm.BadInput || len(q.requests()) != 1 {
		t.Errorf("it ended with %v after %d requests", err, len(q.requests()))
	}
}
