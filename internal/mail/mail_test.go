package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/secret"
	"swarm/internal/strictjson"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// team is planner <-> coder -> tester, and boss, which has no edges.
func team() *Rules {
	return NewRules(&swarm.Plan{
		Agents: []swarm.Agent{{Name: "planner"}, {Name: "coder"}, {Name: "tester"}, {Name: "boss"}},
		Edges:  []swarm.Edge{{From: "planner", To: "coder", Both: true}, {From: "coder", To: "tester"}},
	})
}

// post makes the envelope of some arguments.
func post(r *Rules, from, args string) (swarm.Envelope, error) {
	d, err := ReadDraft([]byte(args))
	if err != nil {
		return swarm.Envelope{}, err
	}
	return r.Envelope(from, d, "plan/1/1", now)
}

// The example of the specification comes out unchanged.
func TestEnvelope(t *testing.T) {
	e, err := post(team(), "planner", `{"to": "coder", "message": "Short human-readable summary", "structured": { "key": "value" },
		"artifacts": [{ "type": "diff", "ref": "artifact://diff/123" }, { "ref": "artifact://log/456" }], "status": { "ok": true, "reason": "tests-pass" },
		"response": { "expectation": "optional", "replyTo": "Planner" }, "contextRef": "contextpack://pack/789", "type": "info", "id": "payload-uuid", "fromNodeId": "PLANNER"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"handoff","id":"payload-uuid","fromNodeId":"planner","toNodeId":"coder","createdAt":"2026-01-01T00:00:00Z",` +
		`"payload":{"message":"Short human-readable summary","structured":{"key":"value"},` +
		`"artifacts":[{"type":"diff","ref":"artifact://diff/123"},{"type":"log","ref":"artifact://log/456"}],"status":{"ok":true,"reason":"tests-pass"},` +
		`"response":{"expectation":"optional","replyTo":"planner"}},"contextRef":"contextpack://pack/789","meta":{"type":"info"}}`
	if got := string(swarm.Encode(e)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTypeIsKindOrMeta(t *testing.T) {
	for _, c := range []struct{ typ, kind, meta string }{
		{`null`, "handoff", ""}, {`""`, "handoff", ""}, {`"handoff"`, "handoff", ""}, {`"signal"`, "signal", ""}, {`"request"`, "handoff", `{"type":"request"}`},
	} {
		e, err := post(team(), "planner", `{"to":"coder","message":"m","type":`+c.typ+`}`)
		if err != nil || string(e.Kind) != c.kind || string(e.Meta) != c.meta {
			t.Errorf("%s: %s %s, %v", c.typ, e.Kind, e.Meta, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	const start = `{"to":"coder","message":"m",`
	for _, c := range []struct{ args, err, hint string }{
		{``, `the argument "to" is missing`, ""},
		{`null`, `the argument "to" is missing`, ""},
		{`[]`, `the arguments must be an object`, ""},
		{`"x"`, `the arguments must be an object`, ""},
		{`{"to":"coder"}`, `the argument "message" is missing`, ""},
		{`{"to":null,"message":"m"}`, `the argument "to" is missing`, ""},
		{`{"to":"coder","message":"m"`, `the arguments are not JSON: unexpected end of JSON input`, "one JSON object"},
		{`{"to":"coder","message":"m"} {}`, `the arguments are not JSON: invalid character '{' after top-level value`, "nothing after it"},
		{`{"to":"coder","message":"m",}`, `the arguments are not JSON: `, ""},
		{`{"to":"coder","message":"m"}` + "\xff", `the arguments are not UTF-8`, ""},
		{"{\"to\":\"coder\",\"message\":\"\xc3\"}", `the arguments are not UTF-8`, ""},
		{start + `"to":"tester"}`, `the key "to" stands there twice`, ""},
		{start + `"t\u006f":"tester"}`, `the key "to" stands there twice`, ""},
		{start + `"structured":{"a":[{"b":1,"b":1}]}}`, `the key "b" stands there twice`, ""},
		{start + `"structured":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`, `the arguments are nested deeper than 100 levels`, ""},
		{`{"To":"coder","message":"m"}`, `there is no argument "To"`, `did you mean "to"?`},
		{start + `"contextref":"contextpack://pack/1"}`, `there is no argument "contextref"`, `did you mean "contextRef"?`},
		{start + `"priority":"high"}`, `the priority high is for people`, "leave priority out"},
		{start + `"priority":"soon"}`, `there is no priority "soon"`, "write normal or high"},
		{start + `"urgent":true}`, `there is no argument "urgent"`, "choose one of to, message"},
		{`{"to":7,"message":"m"}`, `the argument "to" must be a string`, ""},
		{`{"to":"coder","message":{}}`, `the argument "message" must be a string`, ""},
		{start + `"artifacts":{}}`, `the argument "artifacts" must be a list`, ""},
		{start + `"artifacts":["artifact://diff/1"]}`, `the argument "artifacts[0]" must be an object`, ""},
		{start + `"artifacts":[{"ref":"artifact://a/b"},{"type":"diff"}]}`, `the argument "artifacts[1].ref" is missing`, ""},
		{start + `"status":true}`, `the argument "status" must be an object`, `write it as {"ok": …, "reason": …}`},
		{start + `"response":"required"}`, `the argument "response" must be an object`, `write it as {"expectation": …, "replyTo": …}`},
		{start + `"status":{"reason":"x"}}`, `the argument "status.ok" is missing`, ""},
		{start + `"status":{"ok":"yes"}}`, `the argument "status.ok" must be true or false`, ""},
		{start + `"status":{"OK":true}}`, `there is no argument "status.OK"`, `did you mean "ok"?`},
		{start + `"response":{}}`, `the argument "response.expectation" is missing`, ""},
		{start + `"response":{"expectation":"soon"}}`, `response.expectation cannot be "soon"`, "none, optional, required"},
		{start + `"response":{"expectation":"none","replyTo":"ghost"}}`, `Unknown agent: 'ghost'. Valid agents: coder, tester, boss`, ""},

		{`{"to":"coder","message":" \n"}`, `the message is empty`, ""},
		{`{"to":"coder","message":"` + strings.Repeat("x", 8193) + `"}`, `the message has 8193 bytes; 8192 are allowed`, "put_artifact"},
		{start + `"structured":["` + strings.Repeat("x", 1<<20) + `"]}`, `the message has 1048`, "put_artifact"},
		{start + `"type":"a b"}`, `"a b" is not a type of a message`, ""},
		{start + `"type":"\"}"}`, `"\"}" is not a type of a message`, ""},
		{start + `"id":"a/b"}`, `"a/b" is not an id`, "leave it out"},
		{start + `"id":"` + strings.Repeat("x", 129) + `"}`, `"xxx`, "128"},
		{start + `"contextRef":"contextpack://pack/"}`, `"contextpack://pack/" does not refer to a context pack`, "contextpack://pack/ID"},
		{start + `"contextRef":"artifact://diff/1"}`, `"artifact://diff/1" does not refer to a context pack`, ""},
		{start + `"artifacts":[{"ref":"diff/1"}]}`, `"diff/1" does not refer to an artifact`, "artifact://KIND/ID"},
		{start + `"artifacts":[{"ref":"artifact://diff/../x"}]}`, `"artifact://diff/../x" does not refer to an artifact`, ""},
		{start + `"artifacts":[{"ref":"artifact:///x"}]}`, `"artifact:///x" does not refer to an artifact`, ""},
		{start + `"artifacts":[{"ref":"artifact://a/b","type":"a b"}]}`, `"a b" is not a type of an artifact`, ""},
		{start + `"artifacts":[` + strings.Repeat(`{"ref":"artifact://a/b"},`, 100) + `{"ref":"artifact://a/b"}]}`, `the message has 101 artifacts; 100 are allowed`, ""},

		{`{"to":"nosuch","message":"m"}`, `Unknown agent: 'nosuch'. Valid agents: coder, tester, boss`, ""},
		{`{"to":"codr","message":"m"}`, `Unknown agent: 'codr'. Valid agents: coder, tester, boss`, `did you mean "coder"?`},
		{`{"to":"a\u001b[2J\nb","message":"m"}`, `Unknown agent: 'a [2J b'. `, ""},
		{`{"to":"tester","message":"m"}`, `there is no edge from planner to tester. planner may write to: coder`, `"planner -> tester"`},
		{start + `"response":{"expectation":"required","replyTo":"boss"}}`, `replyTo is boss, but coder may not write there. It may write to: planner, tester`, "leave replyTo out"},
		{start + `"response":{"expectation":"optional","replyTo":"coder"}}`, `replyTo is coder, but coder may not write there.`, "leave replyTo out"},
		{start + `"response":{"expectation":"optional","replyTo":"user"}}`, `replyTo is user, but coder may not write there.`, "leave replyTo out"},
		{`{"to":"planner","message":"m"}`, `planner cannot write to itself. It may write to: coder`, "write to one of those; "},
		{start + `"fromNodeId":"coder"}`, `fromNodeId is "coder", but you are planner`, "leave fromNodeId out"},
		{start + `"fromNodeId":"nobody"}`, `fromNodeId is "nobody", but you are planner`, ""},
	} {
		_, err := post(team(), "planner", c.args)
		var e *swarm.Error
		if !errors.As(err, &e) || e.Kind != swarm.BadInput || !strings.HasPrefix(e.Msg, c.err) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%.90s\ngot  %v\nwant %s; %s", c.args, err, c.err, c.hint)
		}
		if e != nil && len(e.Msg)+len(e.Hint) > 500 {
			t.Errorf("%.90s: an error of %d bytes", c.args, len(e.Msg)+len(e.Hint))
		}
	}
	if _, err := post(team(), "boss", `{"to":"coder","message":"m"}`); err == nil || !strings.HasSuffix(err.Error(), "boss may write to: nobody") {
		t.Error(err)
	}
	if _, err := post(team(), "ghost", `{"to":"coder","message":"m"}`); err == nil || !strings.HasPrefix(err.Error(), "Unknown agent: 'ghost'") {
		t.Error(err)
	}
	if _, err := team().Envelope("planner", Draft{To: "coder", Message: "m", Structured: json.RawMessage("{")}, "t", now); err == nil {
		t.Error("what is no JSON was sent as structured")
	}
}

// Messages at the limits are accepted.
func TestLargest(t *testing.T) {
	r := team()
	if _, err := post(r, "planner", `{"to":"coder","message":"`+strings.Repeat("x", MaxMessage)+`"}`); err != nil {
		t.Error(err)
	}
	small, err := post(r, "planner", `{"to":"coder","message":"m","structured":""}`)
	if err != nil {
		t.Fatal(err)
	}
	room := MaxEnvelope - len(swarm.Encode(small))
	if e, err := post(r, "planner", `{"to":"coder","message":"m","structured":"`+strings.Repeat("x", room)+`"}`); err != nil || len(swarm.Encode(e)) != MaxEnvelope {
		t.Errorf("%d bytes, %v", len(swarm.Encode(e)), err)
	}
	if _, err := post(r, "planner", `{"to":"coder","message":"m","structured":"`+strings.Repeat("x", room+1)+`"}`); err == nil {
		t.Error("one byte too many was sent")
	}
}

// Numbers keep their notation, and equal values become equal bytes.
func TestStructuredHasOneSpelling(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{`{ "n" : 12345678901234567890.000 , "e":1E5, "z":-0 }`, `{"n":12345678901234567890.000,"e":1E5,"z":-0}`},
		{`"\u0041\/<&>\u2028é"`, `"A/<&>\u2028é"`},
		{`[ true,false , null, {}, [] ]`, `[true,false,null,{},[]]`},
		{`0.10`, `0.10`},
	} {
		d, err := ReadDraft([]byte(`{"to":"a","message":"m","structured":` + c.given + `}`))
		if err != nil || string(d.Structured) != c.want {
			t.Errorf("%s: %s, %v", c.given, d.Structured, err)
		}
	}
}

// The same turn, receiver and body make the same message. Any difference makes another.
func TestIDs(t *testing.T) {
	r := team()
	r.Add(&swarm.Plan{Edges: []swarm.Edge{{From: "planner", To: "tester"}}})
	id := func(args, turn string, at time.Time) string {
		d, err := ReadDraft([]byte(args))
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Envelope("planner", d, turn, at)
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	base := id(`{"to":"coder","message":"m","structured":{"a":1}}`, "plan/1/1", now)
	if again := id(`{"structured":{"\u0061": 1},"message":"m","to":"CODER","type":"handoff"}`, "plan/1/1", now.Add(time.Hour)); again != base {
		t.Errorf("%s, then %s", base, again)
	}
	seen := map[string]string{base: "the first"}
	for _, c := range []struct{ args, turn string }{
		{`{"to":"coder","message":"m","structured":{"a":1}}`, "plan/1/2"},
		{`{"to":"tester","message":"m","structured":{"a":1}}`, "plan/1/1"},
		{`{"to":"coder","message":"n","structured":{"a":1}}`, "plan/1/1"},
		{`{"to":"coder","message":"m","structured":{"a":1.0}}`, "plan/1/1"},
		{`{"to":"coder","message":"m","structured":{"a":1},"type":"signal"}`, "plan/1/1"},
		{`{"to":"coder","message":"m","structured":{"a":1},"type":"info"}`, "plan/1/1"},
		{`{"to":"coder","message":"m","structured":{"a":1},"status":{"ok":false}}`, "plan/1/1"},
		{`{"to":"coder","message":"m","structured":{"a":1},"contextRef":"contextpack://pack/1"}`, "plan/1/1"},
	} {
		got := id(c.args, c.turn, now)
		if other, ok := seen[got]; ok {
			t.Errorf("%s of %s has the id of %s", c.args, c.turn, other)
		}
		seen[got] = c.args
	}
}

func TestWhoMayWriteToWhom(t *testing.T) {
	name := func(names ...string) (agents []swarm.Agent) {
		for _, n := range names {
			a := swarm.Agent{Name: n}
			if base, _, ok := strings.Cut(n, "."); ok {
				a.Base = base
			}
			agents = append(agents, a)
		}
		return agents
	}
	task := func(name, agent string, after ...string) swarm.Task {
		t := swarm.Task{Name: name, Agent: agent}
		for _, a := range after {
			t.DependsOn = append(t.DependsOn, swarm.Dependency{Task: a, Condition: swarm.OnAny})
		}
		return t
	}
	for _, c := range []struct {
		name  string
		plans []*swarm.Plan
		want  map[string]string
	}{
		{"a declared edge leads one way", []*swarm.Plan{{Agents: name("a", "b"), Edges: []swarm.Edge{{From: "a", To: "b"}}}}, map[string]string{"a": "b", "b": ""}},
		{"or both", []*swarm.Plan{{Agents: name("a", "b"), Edges: []swarm.Edge{{From: "a", To: "b", Both: true}}}}, map[string]string{"a": "b", "b": "a"}},
		{"in the file's order", []*swarm.Plan{{Agents: name("z", "m", "a"), Edges: []swarm.Edge{{From: "m", To: "a"}, {From: "m", To: "z"}}}}, map[string]string{"m": "z a"}},
		{"a dependency is an edge, and none to oneself", []*swarm.Plan{{Agents: name("a", "b"), Tasks: []swarm.Task{task("x", "a"), task("y", "b", "x"), task("z", "b", "y")}}},
			map[string]string{"a": "b", "b": ""}},
		{"also on what was planned before", []*swarm.Plan{
			{Agents: name("a", "b"), Tasks: []swarm.Task{task("a_1", "a")}}, {Agents: name("b"), Tasks: []swarm.Task{task("b_2", "b", "a_1")}}},
			map[string]string{"a": "b", "b": ""}},
		{"in a swarm everybody writes to everybody", []*swarm.Plan{{Kind: swarm.SwarmRun, Agents: name("a", "b", "c")}}, map[string]string{"a": "b c", "b": "a c", "c": "a b"}},
	} {
		r := NewRules(c.plans...)
		for from, want := range c.want {
			if got := strings.Join(r.Receivers(from), " "); got != want {
				t.Errorf("%s: %s may write to %q, want %q", c.name, from, got, want)
			}
		}
	}
}

// A copy's names mean the copies beside it. Other agents have to say which copy they mean.
func TestCopies(t *testing.T) {
	copies := &swarm.Plan{Agents: []swarm.Agent{{Name: "planner.1", Base: "planner"}, {Name: "coder.1", Base: "coder"}, {Name: "planner.2", Base: "planner"},
		{Name: "coder.2", Base: "coder"}, {Name: "boss"}}, Edges: []swarm.Edge{{From: "planner.1", To: "coder.1"}, {From: "planner.2", To: "coder.2"},
		{From: "planner.2", To: "boss"}, {From: "boss", To: "coder.2"}}}
	r := NewRules(copies)
	for _, c := range []struct{ from, to, want string }{
		{"planner.1", "coder", "coder.1"}, {"planner.2", "Coder", "coder.2"}, {"planner.2", "coder.2", "coder.2"}, {"planner.2", "boss", "boss"}, {"boss", "CODER.2", "coder.2"},
	} {
		if e, err := post(r, c.from, `{"to":"`+c.to+`","message":"m"}`); err != nil || e.ToNodeID != c.want || e.FromNodeID != c.from {
			t.Errorf("%s to %s: %s, %v", c.from, c.to, e.ToNodeID, err)
		}
	}
	if _, err := post(r, "boss", `{"to":"coder","message":"m"}`); err == nil ||
		err.Error() != "Unknown agent: 'coder'. Valid agents: coder.2, planner.1, coder.1, planner.2" {
		t.Error(err)
	}
	if _, err := post(r, "planner.2", `{"to":"coder.1","message":"m"}`); err == nil || !strings.Contains(err.Error(), "planner.2 may write to: coder.2, boss") {
		t.Error(err)
	}
}

func TestRedacted(t *testing.T) {
	const key, number = "sk-canary/<0123456789>", "9876543210987"
	r := secret.New(nil, map[string]string{"KEY": key, "PIN": number})
	in, _ := json.Marshal(key)
	spelled := strings.ReplaceAll(string(in), "-", `\u002d`) // a secret does not hide behind escapes
	d, err := ReadDraft([]byte(`{"to":` + spelled + `,"message":` + spelled + `,"structured":{` + spelled + `:[` + spelled + `]},"artifacts":[{"type":` + spelled + `,"ref":` + spelled +
		`}],"status":{"ok":true,"reason":` + spelled + `},"response":{"expectation":` + spelled + `,"replyTo":` + spelled + `},"contextRef":` + spelled + `,"type":` + spelled + `,"id":` + spelled + `,"fromNodeId":` + spelled + `}`))
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%q", swarm.Encode(d))
	if clean := string(swarm.Encode(d.Redacted(r.Bytes))); strings.Contains(clean, "canary") || !strings.Contains(clean, `"Structured":{"[secret KEY]":["[secret KEY]"]}`) {
		t.Errorf("%s", clean)
	}
	if after := fmt.Sprintf("%q", swarm.Encode(d)); after != before {
		t.Error("the draft itself was changed")
	}
	if got := string(strictjson.Redact(json.RawMessage(`{"pin":`+number+`}`), r.Bytes)); got != `"{\"pin\":[secret PIN]}"` {
		t.Errorf("%s", got)
	}
}

// FuzzReadDraft checks that an accepted draft keeps the exact content, and survives a round trip.
func FuzzReadDraft(f *testing.F) {
	for _, s := range []string{`{"to":"coder","message":"m"}`, `{"to":"a","message":"m","structured":{"a":[1.50,"\ud800",{"a":null}]}}`, `{"to":"a","to":"b","message":""}`,
		`{"to":"a","message":"m","artifacts":[{"type":"diff","ref":"artifact://diff/1"}],"status":{"ok":true,"reason":"r"},"response":{"expectation":"none","replyTo":"x"},"type":"t","id":"i"}`,
		`{"To":"a"}`, ` { } x`, "\"\xff\"", `{"structured":{"a":1,"\u0061":2},"to":"a","message":"m"}`} {
		f.Add(s)
	}
	rules := team()
	f.Fuzz(func(t *testing.T, args string) {
		d, err := ReadDraft([]byte(args))
		if err != nil {
			if e := (*swarm.Error)(nil); !errors.As(err, &e) || e.Msg == "" {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		var given map[string]any
		in := json.NewDecoder(strings.NewReader(args))
		in.UseNumber()
		if err := in.Decode(&given); err != nil {
			t.Fatalf("accepted, but no JSON: %v", err)
		}
		if n := countKeys(t, args); n != keysIn(given) {
			t.Fatalf("accepted with %d keys, of which %d differ", n, keysIn(given))
		}
		if given["to"] != d.To || given["message"] != d.Message {
			t.Fatalf("%q, %q", d.To, d.Message)
		}
		if d.Structured != nil {
			var got any
			in := json.NewDecoder(strings.NewReader(string(d.Structured)))
			in.UseNumber()
			if err := in.Decode(&got); err != nil || !reflect.DeepEqual(got, given["structured"]) {
				t.Fatalf("%s, %v", d.Structured, err)
			}
		}
		again, _ := json.Marshal(map[string]any{"to": d.To, "message": d.Message, "structured": d.Structured})
		if d2, err := ReadDraft(again); err != nil || string(d2.Structured) != string(d.Structured) || d2.Message != d.Message {
			t.Fatalf("again: %+v, %v", d2, err)
		}
		if e, err := rules.Envelope("planner", d, "t", now); err == nil {
			var back swarm.Envelope
			if err := json.Unmarshal(swarm.Encode(e), &back); err != nil || !Same(back, e) {
				t.Fatalf("it does not come back: %v", err)
			}
		}
	})
}

// countKeys counts the keys in a text, keysIn those that remain after decoding.
func countKeys(t *testing.T, text string) (n int) {
	d := json.NewDecoder(strings.NewReader(text))
	var walk func()
	walk = func() {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		if open, ok := token.(json.Delim); ok {
			for d.More() {
				if open == '{' {
					d.Token()
					n++
				}
				walk()
			}
			d.Token()
		}
	}
	walk()
	return n
}

func keysIn(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, x := range v {
			n += keysIn(x)
		}
	case []any:
		for _, x := range v {
			n += keysIn(x)
		}
	}
	return n
}

func TestNoReplyIsRequiredOfWhoCannotWrite(t *testing.T) {
	r := NewRules(&swarm.Plan{Kind: swarm.TeamRun, Agents: []swarm.Agent{{Name: "boss", Provider: "sh"}, {Name: "far", Provider: "theirs"}},
		Providers: []swarm.ProviderSpec{{Name: "sh", Kind: "command"}, {Name: "theirs", Kind: "a2a"}}, Edges: []swarm.Edge{{From: "boss", To: "far", Both: true}}})
	draft := Draft{To: "far", Message: "what do you think?"}
	if _, err := r.Envelope("boss", draft, "boss/1/1", time.Now()); err != nil {
		t.Error(err)
	}
	draft.Response = &swarm.Response{Expectation: "required"}
	for _, from := range []string{"boss", swarm.User} {
		if _, err := r.Envelope(from, draft, "boss/1/1", time.Now()); swarm.KindOf(err) != swarm.BadInput || !strings.Contains(err.Error(), "no reply can be required of it") {
			t.Errorf("of %s it is said: %v", from, err)
		}
	}
}
