package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
	"swarm/internal/provider/model"
)

const key = "sk-canary-0123456789"

// A bench is a provider that asks a server on this machine.
type bench struct {
	*testing.T
	server *modeltest.Server
	model  provider.Provider
	mu     sync.Mutex
	deltas []swarm.Delta
}

// kinds are the protocols, as package modeltest calls them.
var kinds = []string{"anthropic", "openai", "responses"}

// paths are where each protocol is served, below /v1.
var paths = map[string]string{"anthropic": "/messages", "openai": "/chat/completions", "responses": "/responses"}

func keyName(kind string) string {
	if kind == "anthropic" {
		return "ANTHROPIC_API_KEY"
	}
	return "OPENAI_API_KEY"
}

// specOf is a provider that speaks a protocol with the server at a URL.
func specOf(kind, url string) swarm.ProviderSpec {
	spec := swarm.ProviderSpec{Name: "team", Kind: kind, BaseURL: url + "/v1"}
	if kind == "responses" {
		spec.Kind, spec.API = "openai", "responses"
	}
	return spec
}

func newBench(t *testing.T, kind string, script ...modeltest.Answer) *bench {
	t.Helper()
	s := modeltest.Start(script...)
	t.Cleanup(s.Close)
	spec := specOf(kind, s.URL)
	spec.Env = map[string]string{keyName(kind): "$LOCAL"}
	return &bench{T: t, server: s, model: open(t, spec, "LOCAL="+key)}
}

func open(t *testing.T, spec swarm.ProviderSpec, environ ...string) provider.Provider {
	t.Helper()
	p, err := model.Open(spec, provider.Options{Environ: append([]string{"HOME=/"}, environ...)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bench) turn(ctx context.Context, r provider.Request) (provider.Reply, error) {
	if r.Model == "" {
		r.Model = "tiny"
	}
	return b.model.Turn(ctx, r, func(d swarm.Delta) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.deltas = append(b.deltas, d)
	})
}

// said returns all text of a kind, and the number of pieces.
func (b *bench) message(kind swarm.DeltaKind) (text string, pieces int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.deltas {
		if d.Kind == kind {
			text, pieces = text+d.Text, pieces+1
		}
	}
	return text, pieces
}

// fails compares a turn's end with the expected kind of error, and looks for the key in all output.
func (b *bench) fails(kind swarm.ErrorKind, reply provider.Reply, err error) *swarm.Error {
	b.Helper()
	var e *swarm.Error
	if swarm.KindOf(err) != kind || !errors.As(err, &e) {
		b.Fatalf("the turn ended as %v: %v", swarm.KindOf(err), err)
	}
	if all := fmt.Sprintf("%s %s %v %+v", err, e.Hint, b.deltas, string(reply.Output)); strings.Contains(all, key) {
		b.Errorf("the key stands in %s", all)
	}
	return e
}

func eachKind(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { t.Parallel(); test(t, kind) })
	}
}

func TestText(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprint("plain ", plain), func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind string) {
				b := newBench(t, kind, modeltest.Answer{Text: "You said: {prompt} ✓", Plain: plain, Usage: modeltest.Usage{Input: 1200, Output: 30, Cached: 1000}})
				reply, err := b.turn(t.Context(), provider.Request{Prompt: "write <it> & test it", Model: "huge"})
				want := "You said: write <it> & test it ✓"
				if err != nil || string(reply.Output) != want || reply.Bytes != int64(len(want)) || reply.Free {
					t.Fatalf("%+v, %v", reply, err)
				}
				if u := reply.Usage; u.InputTokens != 1200 || u.OutputTokens != 30 || u.CachedTokens != 1000 {
					t.Errorf("usage %+v", u)
				}
				if text, pieces := b.message(swarm.DeltaText); text != want || !plain && pieces < 3 {
					t.Errorf("%q was shown in %d pieces", text, pieces)
				}
				r := b.server.Requests()[0]
				if r.Model != "huge" || r.Protocol != kind {
					t.Errorf("the server was asked %+v", r)
				}
				if got := r.Header.Get("X-Api-Key") + r.Header.Get("Authorization"); !strings.HasSuffix(got, key) {
					t.Errorf("the server was given the key %q", got)
				}
			})
		})
	}
}

func TestThinkingIsNoOutput(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Thinking: "let me see", Text: "42"})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if thought, _ := b.message(swarm.DeltaThinking); err != nil || string(reply.Output) != "42" || thought != "let me see" {
			t.Errorf("output %q, thought %q, %v", reply.Output, thought, err)
		}
	})
}

var add = swarm.ToolSpec{Name: "add", Description: "adds", Schema: json.RawMessage(
	`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`)}

func adds(_ context.Context, tool string, args json.RawMessage) (string, error) {
	var x struct{ A, B float64 }
	if err := json.Unmarshal(args, &x); err != nil {
		return "", err
	}
	if x.B == 13 {
		return "", swarm.Errorf(swarm.Denied, "13 is not added").WithHint("take 12")
	}
	return fmt.Sprint(x.A + x.B), nil
}

// Numbers that no float64 holds reach a tool as the model has written them.
func TestToolsGetNumbersAsTheyAre(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		const args = `{"a":1e400,"b":12345678901234567890.12345}`
		var got string
		keep := func(_ context.Context, _ string, args json.RawMessage) (string, error) {
			got = string(args)
			return "{}", nil
		}
		b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "add", Args: args}}}, modeltest.Answer{Text: "done"})
		if _, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: keep}); err != nil || got != args {
			t.Errorf("%s, %v", got, err)
		}
	})
}

func TestTools(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		call := func(id, args string) modeltest.Call { return modeltest.Call{ID: id, Name: "add", Args: args} }
		b := newBench(t, kind,
			modeltest.Answer{Text: "Let me add.", Calls: []modeltest.Call{call("x", `{"a": 1, "b": 2}`), call("y", `{"a": 1, "b": 13}`)}, Usage: modeltest.Usage{Input: 10, Output: 5}},
			modeltest.Answer{Text: "3.", Usage: modeltest.Usage{Input: 20, Output: 1}})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds})
		if err != nil || string(reply.Output) != "3." {
			t.Fatalf("%q, %v", reply.Output, err)
		}
		if reply.Usage.InputTokens != 30 || reply.Usage.OutputTokens != 6 {
			t.Errorf("usage %+v", reply.Usage)
		}
		asked := b.server.Requests()
		if got := strings.Join(asked[1].Results, "|"); got != `3|{"error":"13 is not added","hint":"take 12"}` {
			t.Errorf("the model was told %s", got)
		}
		if text, _ := b.message(swarm.DeltaText); text != "Let me add.\n3." { // the lines of the tools come between
			t.Errorf("it was shown as %q", text)
		}
		if first := slices.IndexFunc(b.deltas, func(d swarm.Delta) bool { return d.Kind == swarm.DeltaTool }); first < 1 || b.deltas[first-1].Text != "\n" {
			t.Errorf("the tool stands in the line of the text: %+v", b.deltas[:first+1])
		}
		if fmt.Sprint(asked[0].Tools, asked[1].Tools) != "[add] [add]" {
			t.Errorf("it was offered %v, then %v", asked[0].Tools, asked[1].Tools)
		}
		var seen []string
		for _, d := range b.deltas {
			if d.Tool != nil {
				seen = append(seen, fmt.Sprintf("%s %s %s %v", d.Kind, d.Tool.ID, d.Tool.Input, d.Tool.Failed))
			}
		}
		if want := `tool x {"a": 1, "b": 2} false,tool_done x  false,tool y {"a": 1, "b": 13} false,tool_done y  true`; strings.Join(seen, ",") != want {
			t.Errorf("seen %q", seen)
		}
	})
}

func TestNonsenseIsAnswered(t *testing.T) {
	for what, c := range map[string]struct {
		call modeltest.Call
		told string
	}{
		"unknown tool":   {modeltest.Call{ID: "x", Name: "adder", Args: `{}`}, `did you mean \"add\"?`},
		"wrong type":     {modeltest.Call{ID: "x", Name: "add", Args: `{"a": "one", "b": 2}`}, "not what it takes"},
		"one is missing": {modeltest.Call{ID: "x", Name: "add", Args: `{"a": 1}`}, "not what it takes"},
		"truncated":      {modeltest.Call{ID: "x", Name: "add", Args: `{"a": 1, "b"`}, "the end is missing"},
		"two objects":    {modeltest.Call{ID: "x", Name: "add", Args: `{"a": 1, "b": 2}{"a": 1, "b": 2}`}, "something follows it"},
		"no object":      {modeltest.Call{ID: "x", Name: "add", Args: `[1, 2]`}, "not one JSON object"},
	} {
		t.Run(what, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind string) {
				nonsense := modeltest.Answer{Calls: []modeltest.Call{c.call}}
				r := provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: func(context.Context, string, json.RawMessage) (string, error) {
					t.Error("the tool was called")
					return "", nil
				}}
				b := newBench(t, kind, nonsense, modeltest.Answer{Text: "sorry"})
				if reply, err := b.turn(t.Context(), r); err != nil || string(reply.Output) != "sorry" {
					t.Errorf("%q, %v", reply.Output, err)
				}
				if got := b.server.Requests()[1].Results; len(got) != 1 || !strings.Contains(got[0], c.told) {
					t.Errorf("the model was told %q", got)
				}
				b = newBench(t, kind, nonsense)
				reply, err := b.turn(t.Context(), r)
				b.fails(swarm.Protocol, reply, err)
				if n := len(b.server.Requests()); n != 3 {
					t.Errorf("it was asked %d times", n)
				}
			})
		})
	}
}

func TestAModelThatOnlyCallsToolsEnds(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "add", Args: `{"a": 1, "b": 1}`}}})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds})
		b.fails(swarm.NoResult, reply, err)
	})
}

// A model that thinks gets its thoughts back, signed and in place, even those that it does not
// show.
func TestThoughtsGoBackToTheirModel(t *testing.T) {
	for thought, want := range map[string]string{
		"let me see": `{"type":"thinking","thinking":"let me see","signature":"abc"},{"type":"text","text":"I add."},{"type":"tool_use","id":"x"`,
		"":           `{"type":"thinking","thinking":"","signature":"abc"},{"type":"text","text":"I add."},{"type":"tool_use","id":"x"`,
	} {
		b := newBench(t, "anthropic", modeltest.Answer{Thinking: thought, Signature: "abc", Text: "I add.", Calls: []modeltest.Call{{ID: "x", Name: "add", Args: `{"a": 1, "b": 1}`}}},
			modeltest.Answer{Text: "2"})
		if _, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds}); err != nil {
			t.Fatal(err)
		}
		if body := string(b.server.Requests()[1].Body); !strings.Contains(body, want) {
			t.Errorf("the second question is %s", body)
		}
	}
}

// A model that reasons gets its reasoning back, encrypted and in place, and without ids: the server
// stores nothing that they could name.
func TestReasoningGoesBackEncrypted(t *testing.T) {
	for _, plain := range []bool{false, true} {
		b := newBench(t, "responses", modeltest.Answer{Plain: plain, Thinking: "let me see", Signature: "gAAA", Text: "I add.", Calls: []modeltest.Call{{ID: "x", Name: "add", Args: `{"a": 1, "b": 1}`}}},
			modeltest.Answer{Thinking: "unsigned", Calls: []modeltest.Call{{ID: "y", Name: "add", Args: `{"a": 1,`}}}, modeltest.Answer{Text: "2"})
		if reply, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds}); err != nil || string(reply.Output) != "2" {
			t.Fatal(err)
		}
		first, last := string(b.server.Requests()[0].Body), string(b.server.Requests()[2].Body)
		for _, want := range []string{`"include":["reasoning.encrypted_content"],"store":false,"stream":true`, `"parameters":{"type":"object"`, `"strict":false`} {
			if !strings.Contains(first, want) {
				t.Errorf("the first request has no %s: %s", want, first)
			}
		}
		want := `"input":[{"role":"user","content":"add"},{"encrypted_content":"gAAA","summary":[{"text":"let me see","type":"summary_text"}],"type":"reasoning"},` +
			`{"content":[{"type":"output_text","text":"I add."}],"role":"assistant","type":"message"},{"arguments":"{\"a\": 1, \"b\": 1}","call_id":"x","name":"add","type":"function_call"},` +
			`{"type":"function_call_output","call_id":"x","output":"2"},{"arguments":"{}","call_id":"y","name":"add","type":"function_call"},{"type":"function_call_output","call_id":"y",`
		if !strings.Contains(last, want) {
			t.Errorf("the last request is\n%s, want\n%s", last, want)
		}
	}
}

// A prompt is cached only if another request can follow.
func TestPromptsAreCachedWhereTheyAreReadAgain(t *testing.T) {
	b := newBench(t, "anthropic", modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "add", Args: `{"a": 1, "b": 1}`}}}, modeltest.Answer{Text: "2"})
	before := []swarm.ChatMessage{{Role: swarm.RoleUser, Text: "Role.\n\nsay", Stable: 7}, {Role: swarm.RoleAssistant, Text: "2"}}
	for _, r := range []provider.Request{{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds}, {Prompt: "say"}, {Prompt: "Role.\n\nsay", Stable: 7, Later: true},
		{Fresh: "again", History: before, ToolSpecs: []swarm.ToolSpec{add}, Call: adds}} {
		if _, err := b.turn(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{2, 3, 0, 2, 4} {
		if got := strings.Count(string(b.server.Requests()[i].Body), "cache_control"); got != want {
			t.Errorf("question %d has %d places to cache at, want %d", i+1, got, want)
		}
	}
}

func TestBusyServersAreAskedAgain(t *testing.T) {
	for _, busy := range []modeltest.Answer{{Status: 429, AfterMS: 2}, {Status: 429}, {Status: 529}, {Status: 503}, {Status: 500}, {Status: 502},
		{Trouble: modeltest.Overload}, {Trouble: modeltest.Cut, Thinking: "let me see"}, {Trouble: modeltest.Ends}, {Trouble: modeltest.HalfJSON}} {
		t.Run(fmt.Sprint(busy.Status, busy.Trouble), func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind string) {
				b := newBench(t, kind, busy, busy, modeltest.Answer{Text: "here I am"})
				reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
				if err != nil || string(reply.Output) != "here I am" {
					t.Fatalf("%q, %v", reply.Output, err)
				}
				if n := len(b.server.Requests()); n != 3 {
					t.Errorf("it was asked %d times", n)
				}
				if told, _ := b.message(swarm.DeltaStderr); strings.Count(told, "asking again") != 2 {
					t.Errorf("people were told %q", told)
				}
			})
		})
	}
}

func TestErrors(t *testing.T) {
	for what, c := range map[string]struct {
		answer modeltest.Answer
		kind   swarm.ErrorKind
		tries  int
		hint   string
		output string
	}{
		"always busy":       {modeltest.Answer{Status: 429, AfterMS: 1}, swarm.RateLimited, 8, "", ""},
		"busy for a day":    {modeltest.Answer{Status: 429, After: "86400"}, swarm.RateLimited, 1, "24h0m0s", ""},
		"nothing left":      {modeltest.Answer{Status: 429, Type: "insufficient_quota"}, swarm.RateLimited, 1, "billing", ""},
		"always overloaded": {modeltest.Answer{Status: 529}, swarm.RateLimited, 8, "", ""},
		"always broken":     {modeltest.Answer{Status: 500}, swarm.NoResult, 8, "", ""},
		"wrong key":         {modeltest.Answer{Status: 401, Message: "no such key: " + key}, swarm.NotSignedIn, 1, "export LOCAL=", ""},
		"forbidden":         {modeltest.Answer{Status: 403, Message: "not with " + key}, swarm.NotSignedIn, 1, "export LOCAL=", ""},
		"no such model":     {modeltest.Answer{Status: 404}, swarm.NotFound, 1, `model "tiny"`, ""},
		"bad question":      {modeltest.Answer{Status: 400, Message: "what?"}, swarm.BadInput, 1, "", ""},
		"prompt too long":   {modeltest.Answer{Status: 400, Type: "context_length_exceeded"}, swarm.BadPrompt, 1, "", ""},
		"cut when said":     {modeltest.Answer{Text: "one two three four", Trouble: modeltest.Cut}, swarm.NoResult, 1, "", "one two th"},
		"ends when said":    {modeltest.Answer{Text: "one two three four", Trouble: modeltest.Ends}, swarm.NoResult, 1, "", "one two th"},
		"half JSON":         {modeltest.Answer{Text: "one two three four", Trouble: modeltest.HalfJSON}, swarm.Protocol, 1, "", "one two th"},
		"always half JSON":  {modeltest.Answer{Trouble: modeltest.HalfJSON}, swarm.Protocol, 8, "", ""},
		"says nothing":      {modeltest.Answer{}, swarm.NoResult, 1, "", ""},
		"tells the key":     {modeltest.Answer{Text: "it is " + key, Trouble: modeltest.Cut}, swarm.NoResult, 1, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind string) {
				b := newBench(t, kind, c.answer)
				reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
				if e := b.fails(c.kind, reply, err); !strings.Contains(e.Hint, c.hint) {
					t.Errorf("the hint is %q", e.Hint)
				}
				if n := len(b.server.Requests()); n != c.tries {
					t.Errorf("it was asked %d times, want %d", n, c.tries)
				}
				if c.output != "" && string(reply.Output) != c.output {
					t.Errorf("of the output %q was kept, want %q", reply.Output, c.output)
				}
			})
		})
	}
}

func TestWhatStopsAnAnswer(t *testing.T) {
	for _, c := range []struct{ kind, stop string }{{"anthropic", "max_tokens"}, {"anthropic", "refusal"}, {"openai", "length"}, {"openai", "content_filter"},
		{"responses", "max_output_tokens"}, {"responses", "content_filter"}} {
		b := newBench(t, c.kind, modeltest.Answer{Text: "I was", Stop: c.stop})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if b.fails(swarm.NoResult, reply, err); string(reply.Output) != "I was" {
			t.Errorf("%s: %q was kept", c.stop, reply.Output)
		}
	}
}

func TestALongAnswerKeepsItsEnd(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		if testing.Short() && kind != "anthropic" {
			t.Skip("it takes a second")
		}
		long := strings.Repeat("a line of text\n", 5<<20/15)
		b := newBench(t, kind, modeltest.Answer{Text: long})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if err != nil || reply.Bytes != int64(len(long)) || string(reply.Output) != long[len(long)-provider.MaxOutput:] {
			t.Errorf("%d bytes, of which %d were kept, %v", reply.Bytes, len(reply.Output), err)
		}
		b = newBench(t, kind, modeltest.Answer{Text: strings.Repeat(long, 4)})
		reply, err = b.turn(t.Context(), provider.Request{Prompt: "?"})
		b.fails(swarm.Protocol, reply, err)
	})
}

func TestTheKeyIsNeverSaid(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Text: "your key is " + key + ", is it not?", Thinking: key})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if want := "your key is [secret LOCAL], is it not?"; err != nil || string(reply.Output) != want {
			t.Errorf("%q, %v", reply.Output, err)
		}
		if shown := fmt.Sprint(b.deltas); strings.Contains(shown, key) || strings.Contains(shown, key[:12]) {
			t.Errorf("%s", shown)
		}
	})
}

func TestCancel(t *testing.T) {
	for _, trouble := range []modeltest.Trouble{modeltest.Hangs, modeltest.HangsLate} {
		t.Run(string(trouble), func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind string) {
				b := newBench(t, kind, modeltest.Answer{Text: "one two three four", Trouble: trouble})
				ctx, cut := context.WithCancelCause(t.Context())
				go func() {
					b.server.Await(1)
					cut(swarm.Errorf(swarm.CutToSpeak, "interrupted"))
				}()
				reply, err := b.turn(ctx, provider.Request{Prompt: "?"})
				b.fails(swarm.CutToSpeak, reply, err)
				b.server.AwaitGone(1) // the server is told too
				if u := reply.Usage; reply.Free || !u.Estimated || u.InputTokens == 0 || len(reply.Requests) != 1 || reply.Requests[0].Usage != u {
					t.Errorf("its model may have worked, and it counts as %+v (free: %v): %+v", u, reply.Free, reply.Requests)
				}
			})
		})
	}
}

// A turn that waits for a rate limit can be cut too.
func TestCancelWhileWaiting(t *testing.T) {
	b := newBench(t, "openai", modeltest.Answer{Status: 429, After: "50"})
	ctx, cut := context.WithCancel(t.Context())
	reply, err := b.model.Turn(ctx, provider.Request{Prompt: "?", Model: "tiny"}, func(d swarm.Delta) {
		if d.Kind == swarm.DeltaStderr {
			cut()
		}
	})
	b.fails(swarm.CutByCancel, reply, err)
	if !reply.Free || reply.Usage != (swarm.Usage{}) {
		t.Errorf("the server has refused it, and it counts as %+v", reply.Usage)
	}
}

func TestKeys(t *testing.T) {
	for what, c := range map[string]struct {
		spec    swarm.ProviderSpec
		environ []string
		signed  string
		with    string
		hint    string
	}{
		"of the seller":            {swarm.ProviderSpec{Kind: "anthropic"}, []string{"ANTHROPIC_API_KEY=" + key}, "yes", "ANTHROPIC_API_KEY", ""},
		"none":                     {swarm.ProviderSpec{Kind: "openai"}, []string{"ANTHROPIC_API_KEY=" + key}, "no", "", "export OPENAI_API_KEY="},
		"empty":                    {swarm.ProviderSpec{Kind: "openai"}, []string{"OPENAI_API_KEY="}, "no", "", "export OPENAI_API_KEY="},
		"another variable":         {swarm.ProviderSpec{Kind: "openai", Env: map[string]string{"OPENAI_API_KEY": "$MINE"}}, []string{"MINE=" + key}, "yes", "MINE", ""},
		"another that is not set":  {swarm.ProviderSpec{Kind: "openai", Env: map[string]string{"OPENAI_API_KEY": "$MINE"}}, nil, "no", "", "export MINE="},
		"of our own server":        {swarm.ProviderSpec{Kind: "openai", BaseURL: "http://x/v1", Env: map[string]string{"OPENAI_API_KEY": "$SWARM_TOKEN"}}, []string{"SWARM_TOKEN=" + key}, "no", "", "export SWARM_TOKEN="},
		"own server without":       {swarm.ProviderSpec{Kind: "openai", BaseURL: "http://x/v1"}, []string{"OPENAI_API_KEY=" + key}, "", "", ""},
		"own server that wants it": {swarm.ProviderSpec{Kind: "openai", BaseURL: "http://x/v1", Env: map[string]string{"OPENAI_API_KEY": ""}}, []string{"OPENAI_API_KEY=" + key}, "yes", "OPENAI_API_KEY", ""},
	} {
		health := open(t, c.spec, c.environ...).(provider.Checker).Check(t.Context())
		if health.Signed != c.signed || health.With != c.with || !strings.Contains(health.Hint, c.hint) || (health.Problem != "") != (c.signed == "no") {
			t.Errorf("%s: %+v", what, health)
		}
	}
}

// A server that a file names gets no key that the file does not name.
func TestNoKeyForStrangers(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Text: "hello"})
		b.model = open(t, specOf(kind, b.server.URL), keyName(kind)+"="+key)
		if _, err := b.turn(t.Context(), provider.Request{Prompt: "?"}); err != nil {
			t.Fatal(err)
		}
		if h := fmt.Sprint(b.server.Requests()[0].Header); strings.Contains(h, key) {
			t.Errorf("it was sent %s", h)
		}
	})
}

// Nor does a server to which another one redirects.
func TestNobodyIsSentOn(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		other := newBench(t, kind, modeltest.Answer{Text: "thank you"})
		b := newBench(t, kind, modeltest.Answer{Status: 307, Location: other.server.URL + "/v1" + paths[kind]})
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
		if e := b.fails(swarm.BadInput, reply, err); !strings.Contains(e.Hint, "base_url") || len(other.server.Requests()) > 0 {
			t.Errorf("%q, and the other server was asked %d times", e.Hint, len(other.server.Requests()))
		}
	})
}

func TestWhatCannotBeOpened(t *testing.T) {
	for _, spec := range []swarm.ProviderSpec{
		{Name: "x", Kind: "openai", BaseURL: "localhost:1234"},
		{Name: "x", Kind: "openai", BaseURL: "file:///etc/passwd"},
		{Name: "x", Kind: "openai", Env: map[string]string{"OPENAI_API_KEY": key}},
		{Name: "x", Kind: "gemini"},
	} {
		if _, err := model.Open(spec, provider.Options{}); swarm.KindOf(err) != swarm.BadInput || strings.Contains(err.Error(), key) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	b := newBench(t, "openai")
	gone := modeltest.Start()
	gone.Close()
	b.model = open(t, swarm.ProviderSpec{Name: "team", Kind: "openai", BaseURL: gone.URL + "/v1"})
	reply, err := b.turn(t.Context(), provider.Request{Prompt: "?"})
	if e := b.fails(swarm.Unreachable, reply, err); !reply.Free || !strings.Contains(e.Hint, "start the server") {
		t.Errorf("%+v, %q", reply, e.Hint)
	}
	reply, err = b.model.Turn(t.Context(), provider.Request{Prompt: "?"}, nil) // no model either
	b.fails(swarm.BadInput, reply, err)
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		kind, model string
		price       swarm.Price
		usage       modeltest.Usage
		want        float64
	}{
		{"anthropic", "claude-opus-4-5-20251101", swarm.Price{}, modeltest.Usage{Input: 1_000_000, Output: 100_000, Cached: 600_000, Wrote: 200_000}, 1 + 2.5 + .3 + 1.25},
		{"anthropic", "claude-haiku-5-5", swarm.Price{}, modeltest.Usage{Input: 200_000}, .1},
		{"anthropic", "claude-haiku-5-5", swarm.Price{}, modeltest.Usage{Input: 100_000}, .01},
		{"openai", "gpt-6.1-terra", swarm.Price{}, modeltest.Usage{Input: 100_000, Output: 10_000, Cached: 50_000}, .05 + .05 + .0025},
		{"openai", "gpt-6.1-terra", swarm.Price{}, modeltest.Usage{Input: 100_000, Cached: 50_000, Wrote: 40_000}, .01 + .0025 + .05},
		{"responses", "gpt-5.6-sol", swarm.Price{}, modeltest.Usage{Input: 100_000, Cached: 50_000, Wrote: 40_000}, .04 + .02 + .2},
		{"responses", "gpt-5.5", swarm.Price{}, modeltest.Usage{Input: 100_000, Wrote: 40_000}, .5},
		{"openai", "llama", swarm.Price{}, modeltest.Usage{Input: 1_000_000}, 0},
		{"openai", "gpt-5", swarm.Price{Input: 7}, modeltest.Usage{Input: 1_000_000}, 0}, // a price in the file turns list prices off
	} {
		b := newBench(t, c.kind, modeltest.Answer{Text: "x", Usage: c.usage})
		spec := specOf(c.kind, b.server.URL)
		spec.Price = c.price
		b.model = open(t, spec)
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "?", Model: c.model})
		if err != nil || math.Abs(reply.Usage.USD-c.want) > 1e-9 {
			t.Errorf("%s: $%v, want $%v, %v", c.model, reply.Usage.USD, c.want, err)
		}
	}
}

// A team sends more requests than a server accepts. All get their answers, and the server gets
// fewer requests at a time.
func TestATeamSlowsDownTogether(t *testing.T) {
	const team, room = 50, 5
	b := newBench(t, "openai")
	var refused atomic.Int32
	b.server.Reply = func(r modeltest.Request) modeltest.Answer {
		b.server.Await(team) // all of them ask at the same time
		if r.Busy > room {
			refused.Add(1)
			return modeltest.Answer{Status: 429, AfterMS: 1}
		}
		return modeltest.Answer{Text: r.Prompt}
	}
	var wg sync.WaitGroup
	for i := range team {
		wg.Go(func() {
			want := fmt.Sprint("agent ", i)
			if reply, err := b.turn(t.Context(), provider.Request{Prompt: want}); err != nil || string(reply.Output) != want {
				t.Errorf("%s: %q, %v", want, reply.Output, err)
			}
		})
	}
	wg.Wait()
	if n := int(refused.Load()); n < team-room || len(b.server.Requests()) != team+n {
		t.Errorf("of %d questions of %d turns %d were refused", len(b.server.Requests()), team, n)
	}
}
