package view

import (
	"encoding/json"
	"testing"

	"swarm"
)

func TestTrim(t *testing.T) {
	question := Envelope{Envelope: swarm.Envelope{ID: "question", ToNodeID: swarm.User}}
	question.Payload.Response = &swarm.Response{Expectation: "required"}
	answered := question
	answered.ID, answered.Receipt.State = "answered", MailAnswered
	d := Details{
		Turns:     []Turn{{ID: "a/1/1", Status: swarm.Running}, {ID: "a/2/1", Status: swarm.Completed}, {ID: "a/3/1", Status: swarm.Failed}, {ID: "a/4/1", Status: swarm.Completed}},
		Envelopes: []Envelope{question, answered, {Envelope: swarm.Envelope{ID: "x"}}, {Envelope: swarm.Envelope{ID: "y"}}},
		Topics:    []Topic{{"old", []TopicEntry{{Seq: 1}, {Seq: 3}}}, {"both", []TopicEntry{{Seq: 2}, {Seq: 5}}}, {"new", []TopicEntry{{Seq: 4}}}},
		Artifacts: []json.RawMessage{[]byte("1"), []byte("2"), []byte("3")},
	}
	whole := d
	if older := whole.Trim(5); older != nil || len(whole.Turns) != 4 {
		t.Errorf("nothing is older, and %+v was left out", older)
	}
	if older := d.Trim(2); older == nil || *older != (Older{Turns: 1, Envelopes: 1, Entries: 3, Artifacts: 1}) {
		t.Errorf("%+v was left out", older)
	}
	if len(d.Turns) != 3 || d.Turns[0].ID != "a/1/1" || d.Turns[1].ID != "a/3/1" {
		t.Errorf("turns: %+v", d.Turns)
	}
	if len(d.Envelopes) != 3 || d.Envelopes[0].ID != "question" || d.Envelopes[1].ID != "x" {
		t.Errorf("envelopes: %+v", d.Envelopes)
	}
	if len(d.Topics) != 2 || d.Topics[0].Topic != "both" || len(d.Topics[0].Entries) != 1 || d.Topics[1].Topic != "new" {
		t.Errorf("topics: %+v", d.Topics)
	}
	if len(d.Artifacts) != 2 || string(d.Artifacts[0]) != "2" {
		t.Errorf("artifacts: %s", d.Artifacts)
	}
}
