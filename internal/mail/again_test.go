package mail

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"swarm"
	"swarm/internal/strictjson"
)

func TestArgumentsMakeTheSameEnvelopeAgain(t *testing.T) {
	rules := NewRules()
	rules.Add(&swarm.Plan{Agents: []swarm.Agent{{Name: "a"}, {Name: "b"}}, Edges: []swarm.Edge{{From: "a", To: "b"}}})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, args := range map[string]string{
		"short":  `{"to":"b","message":"do it"}`,
		"long":   `{"to":"B","message":"do\nit","structured":{"n":1.10,"big":12345678901234567890},"artifacts":[{"type":"log","ref":"artifact://log/1"}],"status":{"ok":false,"reason":"red"},"response":{"expectation":"required","replyTo":"a"},"contextRef":"contextpack://pack/1","type":"request","priority":"normal","id":"mine"}`,
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

// Who asks for help may never have been written to by a person: a handoff to one would be refused. What only looks like such a message
// stays the handoff that it was.
func TestAskingForHelpAgain(t *testing.T) {
	rules := NewRules(&swarm.Plan{Agents: []swarm.Agent{{Name: "a"}}})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, skills := range [][]string{nil, {"go", "sql"}} {
		asked, err := rules.Plea("a", HelpDraft("Which colour?", skills), "a/1/1", now)
		if err != nil {
			t.Fatal(err)
		}
		tool, args := Again(asked)
		in := strictjson.ReadArgs(args, "help_description", "help_skills")
		again, err := rules.Plea("a", HelpDraft(in.Text("help_description"), in.Texts("help_skills")), "a/1/1", now)
		if tool != "request_help" || err != nil || in.Err() != nil || !reflect.DeepEqual(asked, again) {
			t.Errorf("%s %s makes %+v of %+v (%v, %v)", tool, args, again, asked, err, in.Err())
		}
		asked.Payload.Artifacts = []swarm.ArtifactRef{{Type: "log", Ref: "artifact://log/1"}}
		if tool, _ := Again(asked); tool != "send_handoff" {
			t.Errorf("with an artifact it is %s", tool)
		}
	}
}
