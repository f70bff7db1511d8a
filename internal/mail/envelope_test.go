package mail

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"swarm"
)

// seed is the envelope of the specification, unchanged.
const seed = `{
  "kind": "handoff",
  "id": "payload-uuid",
  "fromNodeId": "node-a",
  "toNodeId": "node-b",
  "createdAt": "2026-01-01T00:00:00Z",
  "payload": {
    "message": "Short human-readable summary",
    "structured": { "key": "value" },
    "artifacts": [
      { "type": "diff", "ref": "artifact://diff/123" },
      { "type": "log", "ref": "artifact://log/456" }
    ],
    "status": { "ok": true, "reason": "tests-pass" },
    "response": { "expectation": "optional", "replyTo": "node-a" }
  },
  "contextRef": "contextpack://pack/789",
  "meta": { "priority": "normal" }
}`

func TestReadEnvelope(t *testing.T) {
	e, err := ReadEnvelope([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	var compact strings.Builder // as it is written, without blanks
	for line := range strings.Lines(seed) {
		compact.WriteString(strings.TrimSpace(line))
	}
	want := strings.NewReplacer(`": `, `":`, `, "`, `,"`, `{ `, `{`, ` }`, `}`).Replace(compact.String())
	if got := string(swarm.Encode(e)); got != want {
		t.Errorf("written again it is\n%s\nwant\n%s", got, want)
	}
	exact := `{"n":10000000000000000000000.00,"m":1e400}`
	e, err = ReadEnvelope([]byte(strings.NewReplacer(`{ "key": "value" }`, exact, `{ "priority": "normal" }`, exact).Replace(seed)))
	if err != nil || string(e.Payload.Structured) != exact || string(e.Meta) != exact {
		t.Errorf("numbers are %s and %s, %v", e.Payload.Structured, e.Meta, err)
	}
	if e, err := ReadEnvelope([]byte(strings.Replace(seed, `"type": "diff", `, "", 1))); err != nil || e.Payload.Artifacts[0].Type != "diff" {
		t.Errorf("an artifact without a type: %+v, %v", e.Payload.Artifacts, err)
	}
}

func TestEnvelopesThatAreNone(t *testing.T) {
	deep := strings.Repeat("[", 101) + strings.Repeat("]", 101)
	for _, c := range []struct{ old, new, err string }{
		{`"kind": "handoff"`, `"kind": "Handoff"`, `there is no kind of envelope "Handoff"`},
		{`"kind": "handoff",`, ``, `the field "kind" is missing`},
		{`"id": "payload-uuid",`, ``, `the field "id" is missing`},
		{`"payload-uuid"`, `""`, `the field "id" must be an id`},
		{`"payload-uuid"`, `"a b"`, `"a b" is not an id`},
		{`"payload-uuid"`, `7`, `the field "id" must be a string`},
		{`"fromNodeId": "node-a",`, `"fromNodeId": 7,`, `the field "fromNodeId" must be a string`},
		{`"toNodeId": "node-b",`, ``, `the field "toNodeId" is missing`},
		{`"toNodeId": "node-b",`, `"toNodeId": null,`, `the field "toNodeId" is missing`},
		{`"createdAt": "2026-01-01T00:00:00Z",`, ``, `the field "createdAt" is missing`},
		{`2026-01-01T00:00:00Z`, `yesterday`, `the field "createdAt" must be a time such as 2026-01-01T00:00:00Z`},
		{`2026-01-01T00:00:00Z`, `2026-01-01`, `the field "createdAt" must be a time such as 2026-01-01T00:00:00Z`},
		{`2026-01-01T00:00:00Z`, `9999-12-31T23:00:00-12:00`, `the field "createdAt" must be a time such as 2026-01-01T00:00:00Z`},
		{`2026-01-01T00:00:00Z`, `0000-01-01T00:00:00+12:00`, `the field "createdAt" must be a time such as 2026-01-01T00:00:00Z`},
		{`"message": "Short human-readable summary",`, ``, `the field "payload.message" is missing`},
		{`Short human-readable summary`, ` `, `the message is empty`},
		{`Short human-readable summary`, strings.Repeat("x", MaxMessage+1), `the message has 8193 bytes; 8192 are allowed`},
		{`"message"`, `"Message"`, `there is no field "payload.Message"`},
		{`"toNodeId"`, `"tonodeid"`, `there is no field "tonodeid"`},
		{`"fromNodeId": "node-a",`, `"fromNodeId": "node-a", "fromNodeId": "node-c",`, `the key "fromNodeId" stands there twice`},
		{`"key": "value"`, `"key": 1, "k\u0065y": 2`, `the key "key" stands there twice`},
		{`{ "key": "value" }`, deep, `the envelope is nested deeper than 100 levels`},
		{`"ok": true`, `"ok": "true"`, `the field "payload.status.ok" must be true or false`},
		{`"ok": true, `, ``, `the field "payload.status.ok" is missing`},
		{`"optional"`, `"perhaps"`, `response.expectation cannot be "perhaps"`},
		{`artifact://diff/123`, `file:///etc/passwd`, `"file:///etc/passwd" does not refer to an artifact`},
		{`contextpack://pack/789`, `contextpack://789`, `"contextpack://789" does not refer to a context pack`},
		{`{ "priority": "normal" }`, `["high"]`, `the field "meta" must be an object`},
		{`"key": "value"`, `"key": "` + strings.Repeat("x", MaxEnvelope) + `"`, `the envelope has 10`},
		{"{\n  \"kind\"", "[{\n  \"kind\"", `the envelope is not JSON`},
		{`"normal" }` + "\n}", `"normal" }` + "\n} {}", `the envelope is not JSON`},
		{"value", "val\xffue", `the envelope is not UTF-8`},
	} {
		text := strings.Replace(seed, c.old, c.new, 1)
		if text == seed {
			t.Fatalf("the envelope has no %s", c.old)
		}
		_, err := ReadEnvelope([]byte(text))
		var e *swarm.Error
		if !errors.As(err, &e) || e.Kind != swarm.BadInput || !strings.HasPrefix(e.Msg, c.err) {
			t.Errorf("%.60s\ngot  %v\nwant %s", c.new, err, c.err)
		}
	}
	for _, text := range []string{"", " ", "null", "[]", `"x"`, "{}"} {
		if _, err := ReadEnvelope([]byte(text)); err == nil {
			t.Errorf("%q is an envelope", text)
		}
	}
}

// An accepted envelope survives a round trip, and is within the limits.
func FuzzReadEnvelope(f *testing.F) {
	f.Add([]byte(seed))
	f.Add([]byte(`{"kind":"signal","id":"a","fromNodeId":"b","toNodeId":"c","createdAt":"2026-01-01T00:00:00.5+02:00","payload":{"message":"\ud800"}}`))
	f.Add([]byte(`{"kind":"handoff","id":"a","id":"b"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ReadEnvelope(text)
		if err != nil {
			if e.ID != "" {
				var ours *swarm.Error
				if !errors.As(err, &ours) {
					t.Errorf("%v", err)
				}
			}
			return
		}
		written := swarm.Encode(e)
		again, err := ReadEnvelope(written)
		if err != nil {
			t.Fatalf("%s\nread again: %v", written, err)
		}
		if twice := swarm.Encode(again); string(twice) != string(written) {
			t.Fatalf("%s\nis %s", written, twice)
		}
		if len(e.Payload.Message) > MaxMessage || e.ID == "" || !json.Valid(written) || !Same(e, again) {
			t.Errorf("%s", written)
		}
		MetaOf(e)
		team().Inbox("coder", []Item{{1, e}})
	})
}

// Urgent mail comes first and is marked as urgent. The rest keeps its order.
func TestUrgentFirst(t *testing.T) {
	item := func(id, meta string) Item {
		return Item{Envelope: swarm.Envelope{Kind: swarm.Handoff, ID: id, FromNodeID: "user", Payload: swarm.Payload{Message: "m"}, Meta: json.RawMessage(meta)}}
	}
	items := []Item{item("a", ""), item("b", `{"priority":"high","type":7}`), item("c", `{"priority":"normal"}`), item("d", `{"priority":"high"}`), item("e", `{"priority":{}}`)}
	got := ""
	for _, i := range UrgentFirst(items) {
		got += i.ID
	}
	if got != "bdace" {
		t.Errorf("the order is %s", got)
	}
	if text := team().Inbox("coder", items[1:2]); !strings.HasPrefix(text, "--- Message 1 from user (handoff, urgent, id b) ---\n") {
		t.Error(text)
	}
}
