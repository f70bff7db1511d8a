package mail

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"swarm"
)

func TestArgumentsMakeTheSameEnvelopeAgain(t *testing.T) {
	rules := NewRules()
	rules.Add(&swarm.Plan{Agents: []swarm.Agent{{Name: "a"}, {Name: "b"}}, Edges: []swarm.Edge{{From: "a", To: "b"}}})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, args := range map[string]string{
		"short":  `{"to":"b","message":"do it"}`,
		"long":   `{"to":"B","message":"do\nit","structured":{"n":1.10,"big":12345678901234567890},"artifacts":[{"type":"log","ref":"artifact://log/1"}],"status":{"ok":false,"reason":"red"},"response":{"expectation":"required","replyTo":"a"},"contextRef":"contextpack://pack/1","type":"request","id":"mine"}`,
		"signal": `{"to":"b","message":"by the way","type":"signal"}`,
	} {
		var made [2]swarm.Envelope
		raw := json.RawMessage(args)
		for i := range made {
			d, err := ReadDraft(raw)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if made[i], err = rules.Envelope("a", d, "plan/1/1", now); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			raw = Arguments(made[0])
		}
		if !reflect.DeepEqual(made[0], made[1]) {
			t.Errorf("%s: %+v became %+v", name, made[0], made[1])
		}
	}
}
