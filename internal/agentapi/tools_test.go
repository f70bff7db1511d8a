package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"swarm"
	"swarm/internal/schema"
	"swarm/internal/secret"
)

func TestRefusedCallsWriteNothing(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	before := len(all(t, log))
	for _, c := range []struct{ tool, args, err, hint string }{
		{"send_hand", `{}`, `there is no tool "send_hand"`, `did you mean "send_handoff"?`},
		{"", `{}`, `there is no tool ""`, "choose one of send_handoff, read_inbox"},
		{"Read_Inbox", `{}`, `there is no tool "Read_Inbox"`, `did you mean "read_inbox"?`},

		{"send_handoff", `{}`, `the argument "to" is missing`, ""},
		{"send_handoff", `{"to":"nosuch","message":"m"}`, `Unknown agent: 'nosuch'. Valid agents: coder, tester`, ""},
		{"send_handoff", `{"to":"tester","message":"m"}`, `there is no edge from planner to tester. planner may write to: coder`, ""},
		{"send_handoff", `{"to":"coder","message":"m","fromNodeId":"tester"}`, `fromNodeId is "tester", but you are planner`, ""},
		{"send_handoff", `{"to":"coder","message":"m"}{}`, `the arguments are not JSON`, ""},
		{"send_handoff", `{"to":"coder","message":"` + strings.Repeat("x", 9000) + `"}`, `the message has 9000 bytes; 8192 are allowed`, "put_artifact"},

		{"read_inbox", `{"max":0}`, `the argument "max" must be a whole number from 1 to 100`, ""},
		{"read_inbox", `{"max":1.5}`, `the argument "max" must be a whole number`, ""},
		{"read_inbox", `{"max":"5"}`, `the argument "max" must be a whole number`, ""},
		{"read_inbox", `{"max":99999999999999999999}`, `the argument "max" must be a whole number`, ""},
		{"read_inbox", `{"Max":1}`, `there is no argument "Max"`, `did you mean "max"?`},
		{"read_inbox", `{"max":1,"max":2}`, `the key "max" stands there twice`, ""},
		{"read_inbox", `[1]`, `the arguments must be an object`, ""},
		{"send_handoff", `{"to":"coder","message":"x","artifacts":[{"ref":"artifact://diff/0123456789abcdef"}]}`, `there is no artifact "artifact://diff/0123456789abcdef" in this run`, "put_artifact first"},

		{"publish_data", `{"topic":"facts"}`, `the argument "data" is missing`, ""},
		{"publish_data", `{"topic":"facts","data":null}`, `the argument "data" is missing`, ""},
		{"publish_data", `{"topic":"two words","data":1}`, `"two words" is not a name for a topic`, "a-z, 0-9, - and _"},
		{"publish_data", `{"topic":"all","data":1}`, `the name "all" is reserved`, ""},
		{"publish_data", `{"topic":"","data":1}`, `"" is not a name for a topic`, ""},
		{"publish_data", `{"topic":"facts","data":"` + strings.Repeat("x", 1<<20) + `"}`, `the data has 1048578 bytes; 1048576 are allowed`, "put_artifact"},

		{"put_artifact", `{"kind":"diff","name":"x"}`, `the argument "content" is missing`, ""},
		{"put_artifact", `{"kind":"dif","name":"x","content":""}`, `there is no kind of artifact "dif"`, `did you mean "diff"?`},
		{"put_artifact", `{"kind":"diff","name":" ","content":""}`, `"" is not a name for an artifact`, ""},
		{"put_artifact", `{"kind":"diff","name":"a\nb","content":""}`, `"a\nb" is not a name for an artifact`, "one line"},
		{"put_artifact", `{"kind":"diff","name":"` + strings.Repeat("x", 201) + `","content":""}`, `"xxxx`, "200 bytes"},
		{"put_artifact", `{"kind":"diff","name":"x","content":"` + strings.Repeat("x", 4<<20+1) + `"}`, `the content has 4194305 bytes; 4194304 are allowed`, ""},
		{"put_artifact", `{"kind":"diff","name":"x","content":"` + strings.Repeat("x", 16<<20) + `"}`, `the arguments have 167`, ""},

		{"read_artifact", `{}`, `the argument "ref" is missing`, ""},
		{"read_artifact", `{"ref":"artifact://diff/0123456789abcdef"}`, `there is no artifact "artifact://diff/0123456789abcdef" in this run`, "put_artifact"},
		{"read_artifact", `{"ref":"../../etc/passwd"}`, `there is no artifact "../../etc/passwd" in this run`, ""},
		{"read_artifact", `{"ref":"x","offset":-1}`, `the argument "offset" must be a whole number`, ""},
		{"read_artifact", `{"ref":"x","max":0}`, `the argument "max" must be a whole number from 1 to 262144`, ""},
	} {
		_, err := h.Call(t.Context(), c.tool, json.RawMessage(c.args))
		var e *swarm.Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Msg, c.err) || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s %.80s\ngot  %v\nwant %s; %s", c.tool, c.args, err, c.err, c.hint)
		}
	}
	if n := len(all(t, log)); n != before {
		t.Errorf("%d events were written", n-before)
	}
}

// Agents and edges of a later plan count at once, whichever service added the plan.
func TestPlansGrow(t *testing.T) {
	log, again := opened(t)
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	if _, err := h.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"helper","message":"m"}`)); err == nil {
		t.Fatal("nobody is called helper yet")
	}
	grown := swarm.Plan{Agents: []swarm.Agent{{Name: "helper"}}, Edges: []swarm.Edge{{From: "planner", To: "helper"}}}
	add(t, again(), swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: swarm.Encode(grown)})
	call[SendResult](t, h, "send_handoff", `{"to":"helper","message":"m"}`)
	if d := s.Tools("planner")[0].Description; !strings.HasSuffix(d, "You may write to: coder, helper.") {
		t.Error(d)
	}
	if d := s.Tools("tester")[0].Description; !strings.HasSuffix(d, "You may write to: nobody yet.") {
		t.Error(d)
	}
}

// The tools accept what their schemas describe.
func TestToolsTakeWhatTheyTell(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	ref := call[putResult](t, h, "put_artifact", `{"kind":"log","name":"n","content":"c"}`).Ref
	pack := call[putResult](t, h, "put_artifact", `{"kind":"contextpack","name":"n","content":"{\"goal\":\"g\"}"}`).Ref
	examples := map[string]string{
		"send_handoff": `{"fromNodeId":"Planner","to":"coder","message":"m","structured":[{"a":1e400}],"artifacts":[{"type":"log","ref":"` + ref + `"}],"status":{"ok":true,"reason":"r"},` +
			`"response":{"expectation":"required","replyTo":"planner"},"contextRef":"` + pack + `","type":"info","priority":"normal","id":"x"}`,
		"read_inbox":    `{"max":100}`,
		"publish_data":  `{"topic":"t","data":"d"}`,
		"put_artifact":  `{"kind":"contextpack","name":"n","content":"{\"goal\":\"g\"}"}`,
		"read_artifact": `{"ref":"` + ref + `","offset":0,"max":262144}`,
		"wait_for":      `{"agents":["coder"],"timeout":1}`,
		"request_help":  `{"help_description":"which of the two?","help_skills":["taste"]}`,
		"report_done":   `{"response":"all is there"}`,
	}
	specs := s.Tools("planner")
	if len(specs) != len(examples) {
		t.Errorf("%d tools are offered", len(specs))
	}
	for _, spec := range specs {
		told, err := schema.Parse(spec.Schema)
		if err != nil {
			t.Fatalf("%s: %v", spec.Name, err)
		}
		example := examples[spec.Name]
		value, err := schema.Value([]byte(example))
		if err != nil {
			t.Fatal(err)
		}
		if err := told.Check(value); err != nil {
			t.Errorf("%s refuses by its schema %s: %v", spec.Name, example, err)
		}
		var properties struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if err := json.Unmarshal(spec.Schema, &properties); err != nil {
			t.Fatal(err)
		}
		for name := range properties.Properties {
			if _, ok := value.(map[string]any)[name]; !ok {
				t.Errorf("%s: the example leaves %s out", spec.Name, name)
			}
		}
		for _, name := range properties.Required {
			less := map[string]any{}
			for k, v := range value.(map[string]any) {
				if k != name {
					less[k] = v
				}
			}
			if _, err := h.Call(t.Context(), spec.Name, swarm.Encode(less)); err == nil || err.Error() != fmt.Sprintf("the argument %q is missing", name) {
				t.Errorf("%s without %s: %v", spec.Name, name, err)
			}
		}
		if spec.Description == "" {
			t.Errorf("%s says nothing of itself", spec.Name)
		}
		if spec.Name == "wait_for" { // else it waits
			does(t, s, "coder", "coder/1/1", "done")
		}
		call[map[string]any](t, h, spec.Name, example)
	}
}

func TestArtifacts(t *testing.T) {
	log, again := opened(t)
	s := &Service{Log: log}
	planner := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	coder := (&Service{Log: again()}).BeginTurn("coder", "code", "code/1/1", 1, swarm.Inputs{})
	text := "zwölf Boxkämpfer 🥊 jagen\n"
	put := func(h *TurnHandle, kind, name, content string) string {
		return call[putResult](t, h, "put_artifact", string(swarm.Encode(map[string]string{"kind": kind, "name": name, "content": content}))).Ref
	}
	ref := put(planner, "report", "boxing.md", text)
	if want := "artifact://report/" + string(swarm.HashOf([]byte(text)))[:16]; ref != want {
		t.Errorf("ref %s, want %s", ref, want)
	}
	if again := put(coder, "Report", "other.md", text); again != ref {
		t.Errorf("the same is %s", again)
	}
	if other := put(coder, "log", "boxing.md", text); other == ref {
		t.Error("another kind is the same artifact")
	}
	if n := count(t, log, swarm.ArtifactStored); n != 2 {
		t.Errorf("%d artifacts are stored", n)
	}
	typo := strings.Replace(ref, "report", "repot", 1)
	_, err := planner.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"coder","message":"x","artifacts":[{"ref":"`+typo+`"}]}`))
	if e := new(swarm.Error); !errors.As(err, &e) || e.Kind != swarm.BadInput || e.Hint != fmt.Sprintf("did you mean %q?", ref) {
		t.Errorf("%v", err)
	}
	if n := count(t, log, swarm.HandoffStored); n != 0 {
		t.Errorf("%d messages refer to what is not there", n)
	}
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"x","artifacts":[{"ref":"`+ref+`"}]}`)

	// A text that comes with a message is stored with it, or not at all.
	for args, want := range map[string]string{
		`{"to":"nobody","message":"x","artifacts":[{"type":"log","name":"l","content":"c"}]}`:                    "Unknown agent",
		`{"to":"coder","message":" ","artifacts":[{"type":"log","name":"l","content":"c"}]}`:                     "the message is empty",
		`{"to":"coder","message":"x","artifacts":[{"type":"log","name":"l"}]}`:                                   `the argument "artifacts[0].content" is missing`,
		`{"to":"coder","message":"x","artifacts":[{"name":"l","content":"c"}]}`:                                  `the argument "artifacts[0].type" is missing`,
		`{"to":"coder","message":"x","artifacts":[{"type":"log","name":"l","content":"c","ref":"` + ref + `"}]}`: `the argument "artifacts[0].ref" must be left out`,
		`{"to":"coder","message":"x","artifacts":[{"type":"lgo","name":"l","content":"c"}]}`:                     `there is no kind of artifact "lgo"`,
		`{"to":"coder","message":"x","artifacts":[{"type":"contextpack","name":"l","content":"{}"}]}`:            "a context pack does not come with a message",
	} {
		if _, err := planner.Call(t.Context(), "send_handoff", json.RawMessage(args)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if n := count(t, log, swarm.ArtifactStored); n != 2 {
		t.Errorf("%d artifacts are stored, although their messages were refused", n)
	}
	twice := `{"to":"coder","message":"with texts","artifacts":[{"ref":"` + ref + `"},{"type":"log","name":"a","content":"same"},{"type":"log","name":"b","content":"same"},{"type":"report","name":"c","content":` + string(swarm.Encode(text)) + `}]}`
	if a, b := call[SendResult](t, planner, "send_handoff", twice), call[SendResult](t, planner, "send_handoff", twice); a != b {
		t.Errorf("sent again it is %v and %v", a, b)
	}
	if n := count(t, log, swarm.ArtifactStored); n != 3 {
		t.Errorf("%d artifacts are stored", n)
	}
	sent, err := s.Unread("coder", 0, 10)
	if err != nil || len(sent) != 2 || len(sent[1].Payload.Artifacts) != 4 || sent[1].Payload.Artifacts[3].Ref != ref {
		t.Fatalf("%+v, %v", sent, err)
	}
	if got := call[readResult](t, coder, "read_artifact", `{"ref":"`+sent[1].Payload.Artifacts[1].Ref+`"}`); got.Content != "same" || got.Name != "a" {
		t.Errorf("%+v", got)
	}
	got := call[readResult](t, coder, "read_artifact", `{"ref":"`+ref+`"}`)
	if got != (readResult{text, "report", "boxing.md", int64(len(text)), 0, 0}) {
		t.Errorf("%+v", got)
	}
	for most := 1; most <= len(text)+1; most++ { // in parts of every size it is the same, and no part has half a rune
		var whole strings.Builder
		for offset, parts := int64(0), 0; ; parts++ {
			p := call[readResult](t, coder, "read_artifact", fmt.Sprintf(`{"ref":%q,"offset":%d,"max":%d}`, ref, offset, most))
			whole.WriteString(p.Content)
			if offset = p.Next; offset == 0 || parts > len(text) {
				break
			}
		}
		if whole.String() != text {
			t.Errorf("in parts of %d bytes: %q", most, whole.String())
		}
	}
	if p := call[readResult](t, coder, "read_artifact", `{"ref":"`+ref+`","offset":1000}`); p.Content != "" || p.Next != 0 {
		t.Errorf("behind the end: %+v", p)
	}
	pack := put(planner, "contextpack", "pack", `{"goal":"x"}`)
	if !strings.HasPrefix(pack, "contextpack://pack/p-") || !strings.Contains(call[readResult](t, coder, "read_artifact", `{"ref":"`+pack+`"}`).Content, `"goal":"x"`) {
		t.Error(pack)
	}
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"m","contextRef":"`+pack+`","artifacts":[{"ref":"`+ref+`"}]}`)
	if empty := put(planner, "file", "nothing", ""); call[readResult](t, coder, "read_artifact", `{"ref":"`+empty+`"}`).Bytes != 0 {
		t.Error("nothing is something")
	}
}

// Bytes that are not text can be read to their end, too. Not only agents store artifacts.
func TestReadingBytes(t *testing.T) {
	for _, text := range []string{"\x80\x80\x80\x80\x80\x80\x80\x80\x80", "\xff\xfe\xfd\x80\x80\x80\x80ab", "é"} {
		for most := int64(1); most < 5; most++ {
			at, steps := 0, 0
			for ; at < len(text); steps++ {
				_, to := window([]byte(text), int64(at), most)
				if to <= at || steps > len(text) {
					t.Fatalf("%q: from %d to %d", text, at, to)
				}
				at = to
			}
		}
	}
}

func TestTopics(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	first := call[publishResult](t, h, "publish_data", `{"topic":" Market_Facts ","data":{"share":0.80}}`)
	if again := call[publishResult](t, h, "publish_data", `{"data":{ "share" : 0.80},"topic":"market_facts"}`); again != first {
		t.Errorf("the same turn has published %v and %v", first, again)
	}
	if other := call[publishResult](t, h, "publish_data", `{"topic":"market_facts","data":"0.80"}`); other == first {
		t.Error("something else is the same")
	}
	next := s.BeginTurn("planner", "plan", "plan/2/1", 1, swarm.Inputs{})
	if other := call[publishResult](t, next, "publish_data", `{"topic":"market_facts","data":{"share":0.80}}`); other == first {
		t.Error("another turn is not heard")
	}
	for _, e := range all(t, log) {
		if e.Seq == first.Seq && (string(e.Data) != `{"topic":"market_facts","data":{"share":0.80}}` || e.Agent != "planner" || e.Turn != "plan/1/1" || e.To != swarm.ToTopics) {
			t.Errorf("%+v %s", e, e.Data)
		}
	}
}

// A prompt shows the newest entries of each topic, as many as fit, also as of an earlier moment.
func TestFindings(t *testing.T) {
	log, _ := opened(t)
	add(t, log, swarm.Event{Kind: swarm.PlanAdded, Data: swarm.Encode(swarm.Plan{Topics: &swarm.TopicLimits{Entries: 1, Chars: 1}})}) // a later plan sets no limits
	s := &Service{Log: log}
	if found, upto, err := s.Findings(Newest); len(found) > 0 || upto > 0 || err != nil || s.rules != nil {
		t.Errorf("nothing is published: %v, %d, %v; the log was folded: %t", found, upto, err, s.rules != nil)
	}
	told := func(upto int64) string {
		t.Helper()
		found, upto, err := s.Findings(upto)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range found {
			all = append(all, f.Agent+" "+f.Topic+" "+f.Text)
			if f.Seq > upto {
				t.Errorf("%+v came after %d", f, upto)
			}
		}
		return strings.Join(all, ", ")
	}
	if got := told(Newest); got != "" {
		t.Errorf("nothing is published, and told is %s", got)
	}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	for n := range 7 {
		call[publishResult](t, h, "publish_data", fmt.Sprintf(`{"topic":"a","data":%d}`, n))
	}
	if _, err := (&Service{Log: log}).Publish(t.Context(), "b", json.RawMessage(`"  so it is\n"`)); err != nil {
		t.Fatal(err)
	}
	const want = "planner a 2, planner a 3, planner a 4, planner a 5, planner a 6, user b so it is"
	if got := told(Newest); got != want {
		t.Errorf("told: %s", got)
	}
	entries, err := log.Read(0, 100, swarm.ToTopics)
	if err != nil {
		t.Fatal(err)
	}
	if got := told(entries[1].Seq); got != "planner a 0, planner a 1" {
		t.Errorf("told after the second: %s", got)
	}
	if got := told(0); got != "" {
		t.Errorf("told before the first: %s", got)
	}
	if got := told(Newest); got != want {
		t.Errorf("told: %s", got)
	}
	long := strings.Repeat("ä", 801)
	for n := range 100 {
		call[publishResult](t, h, "publish_data", fmt.Sprintf(`{"topic":"t%d","data":"%s"}`, n, long))
	}
	got := strings.Split(told(Newest), ", ")
	if n := len(got) * 1603; n > roomForFindings || n < roomForFindings-2000 {
		t.Errorf("%d findings are told", len(got))
	}
	if last := "planner t99 " + strings.Repeat("ä", 800) + "…"; got[len(got)-1] != last {
		t.Errorf("the last is %s", got[len(got)-1])
	}
}

// An inbox is shown in parts that fit into a prompt. A larger envelope is shown alone.
func TestUnreadIsBounded(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	for i, size := range []int{10, 30_000, 30_000, 30_000, 500_000, 10} {
		call[SendResult](t, h, "send_handoff", fmt.Sprintf(`{"to":"coder","message":"%d","structured":"%s"}`, i, strings.Repeat("x", size)))
		add(t, log, swarm.Event{Kind: swarm.Notice, To: swarm.ToAgent("coder")}) // something else that is meant for the agent
	}
	after, shown := int64(0), []string{}
	for {
		items, err := s.Unread("coder", after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		shown = append(shown, messages(items))
		after = items[len(items)-1].Seq
	}
	if got := strings.Join(shown, " | "); got != "0 1 2 | 3 | 4 | 5" {
		t.Error(got)
	}
	if items, err := s.Unread("coder", 0, 2); err != nil || messages(items) != "0 1" {
		t.Errorf("%q, %v", messages(items), err)
	}
	if items, err := s.Unread("coder", 0, 0); err != nil || len(items) != 0 {
		t.Errorf("%q, %v", messages(items), err)
	}
}

// No secret gets into the log or an error's text, whichever tool the agent calls.
func TestSecretsStayOut(t *testing.T) {
	log, _ := opened(t)
	const canary = "canary-0123456789"
	s := &Service{Log: log, Redact: secret.New([]string{"API_KEY=" + canary}, nil).Bytes}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	hidden := strings.ReplaceAll(canary, "-", `\u002d`)
	var refs []string
	for _, c := range []struct{ tool, args string }{
		{"send_handoff", `{"to":"coder","message":"use KEY","structured":{"KEY":["KEY"]},"status":{"ok":true,"reason":"KEY"}}`},
		{"publish_data", `{"topic":"facts","data":"KEY"}`},
		{"put_artifact", `{"kind":"log","name":"KEY","content":"a\nKEY\n"}`},
	} {
		for _, spelled := range []string{canary, hidden} {
			answer, err := h.Call(t.Context(), c.tool, json.RawMessage(strings.ReplaceAll(c.args, "KEY", spelled)))
			if err != nil {
				t.Errorf("%s: %v", c.tool, err)
			}
			if c.tool == "put_artifact" {
				refs = append(refs, string(answer))
			}
		}
	}
	for _, c := range []struct{ tool, args string }{
		{"send_handoff", `{"to":"KEY","message":"m"}`}, {"send_handoff", `{"to":"coder","message":"m","id":"[KEY"}`}, {"send_handoff", `{"to":"coder","message":"m","KEY":1}`},
		{"send_handoff", `{"to":"coder","message":"m","structured":{"KEY":1,"KEY":1}}`},
		{"read_artifact", `{"ref":"KEY"}`}, {"publish_data", `{"topic":"KEY KEY","data":1}`}, {"put_artifact", `{"kind":"KEY","name":"n","content":""}`}, {"KEY", `{}`},
	} {
		_, err := h.Call(t.Context(), strings.ReplaceAll(c.tool, "KEY", canary), json.RawMessage(strings.ReplaceAll(c.args, "KEY", hidden)))
		var e *swarm.Error
		if !errors.As(err, &e) || strings.Contains(e.Error()+e.Hint, "canary") {
			t.Errorf("%s %s: %v", c.tool, c.args, err)
		}
	}
	for _, e := range all(t, log) {
		if strings.Contains(fmt.Sprintf("%+v %s", e, e.Data), "canary") {
			t.Errorf("event %d: %s", e.Seq, e.Data)
		}
	}
	var ref putResult
	if err := json.Unmarshal([]byte(refs[0]), &ref); err != nil || refs[0] != refs[1] {
		t.Fatal(refs, err)
	}
	if got := call[readResult](t, h, "read_artifact", `{"ref":"`+ref.Ref+`"}`).Content; got != "a\n[secret API_KEY]\n" {
		t.Errorf("%q", got)
	}
}

// A fullLog is a log on a full disk.
type fullLog struct{ swarm.Log }

func (fullLog) Append(context.Context, swarm.Batch) ([]int64, error) {
	const path = "/home/canary/.swarm/runs/1.db"
	return nil, &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the disk is full", Hint: "make room, then resume the run",
		Err: &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}}
}

// An agent is told what is wrong with the log, but not its path.
func TestAFullDiskDoesNotTellWhereTheLogIs(t *testing.T) {
	log, _ := opened(t)
	h := (&Service{Log: fullLog{log}}).BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	defer h.End()
	for tool, args := range map[string]string{"send_handoff": `{"to":"coder","message":"x"}`, "publish_data": `{"topic":"t","data":1}`, "put_artifact": `{"kind":"log","name":"x","content":"x"}`} {
		_, err := h.Call(t.Context(), tool, json.RawMessage(args))
		if e := new(swarm.Error); !errors.As(err, &e) || err.Error() != "the disk is full" || e.Kind != swarm.Storage || e.Hint != "make room, then resume the run" {
			t.Errorf("%s: %v", tool, err)
		}
	}
}
