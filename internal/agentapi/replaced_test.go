package agentapi

import (
	"encoding/json"
	"errors"
	"testing"

	"swarm"
	"swarm/internal/sqlite"
)

// Another owner starts a turn again while its first start still runs. From then on the first
// start's actions are refused, and the second start does the work.
func TestAReplacedStartCanDoNothing(t *testing.T) {
	log := growing(t, "")
	mine := (&Service{Run: "r", Log: log}).BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	call[SendResult](t, mine, "send_handoff", `{"to":"coder","message":"before"}`)
	other, err := sqlite.Open(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	add(t, other, swarm.Event{Kind: swarm.TurnStarted, Key: swarm.StartKey("planner/1/1", 2), Agent: "planner", Turn: "planner/1/1", Data: swarm.Encode(swarm.TurnStart{Start: 2})})
	theirs := (&Service{Run: "r", Log: other}).BeginTurn("planner", "planner", "planner/1/1", 2, swarm.Inputs{})
	deeds := []struct{ tool, args string }{
		{"send_handoff", `{"to":"coder","message":"after"}`},
		{"send_handoff", `{"to":"coder","message":"with a text","artifacts":[{"type":"log","name":"log","content":"text"}]}`},
		{"publish_data", `{"topic":"facts","data":"one"}`},
		{"put_artifact", `{"kind":"report","name":"report","content":"text"}`},
		{"put_artifact", `{"kind":"contextpack","name":"pack","content":"{\"goal\":\"g\"}"}`},
		{"spawn_node", helper},
		{"request_help", `{"help_description":"help"}`},
	}
	before := len(all(t, log))
	for _, d := range deeds {
		_, err := mine.Call(t.Context(), d.tool, json.RawMessage(d.args))
		if !errors.Is(err, swarm.ErrStale) {
			t.Errorf("%s of the replaced start: %v", d.tool, err)
			continue
		}
		wrong(t, err, "the turn planner/1/1 is over: a newer start of this turn exists", "stop here: its newer start does the work")
	}
	if after := len(all(t, log)); after != before {
		t.Errorf("the replaced start wrote %d events", after-before)
	}
	for _, d := range deeds {
		if _, err := theirs.Call(t.Context(), d.tool, json.RawMessage(d.args)); err != nil {
			t.Errorf("%s of the new start: %v", d.tool, err)
		}
	}
}
