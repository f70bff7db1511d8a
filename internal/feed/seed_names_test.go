package feed

import (
	"encoding/json"
	"testing"

	"swarm"
)

// TestSeedNames has a row for each name of the seed, and for events that are none of them.
func TestSeedNames(t *testing.T) {
	body := func(v any) json.RawMessage { return swarm.Encode(v) }
	helper := swarm.Plan{Swarm: &swarm.Swarm{Subtasks: []swarm.Subtask{{ID: "eu", Description: "The EU", Agent: "oji", For: "takao"}}}}
	for _, x := range []struct {
		event swarm.Event
		want  string // type, agent, message and reason; "" = the seed has no name for it
	}{
		{swarm.Event{Kind: swarm.RunStarted, Data: body(swarm.RunStart{Name: "Compare"})}, "workflow_started swarm-supervisor Compare "},
		{swarm.Event{Kind: swarm.RunEnded, Data: body(swarm.RunEnd{Status: swarm.Completed})}, "workflow_completed swarm-supervisor completed "},
		{swarm.Event{Kind: swarm.RunEnded, Data: body(swarm.RunEnd{Status: swarm.Failed, Reason: "no agent has a result"})}, "workflow_completed swarm-supervisor failed: no agent has a result "},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "supervisor", Data: body(swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Want: "subtasks"})}, "progress swarm-supervisor planning "},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "supervisor", Data: body(swarm.TurnStart{Iteration: 1, Attempt: 2, Start: 1, Want: "subtasks"})}, ""},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "supervisor", Data: body(swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1})}, ""},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "supervisor", Data: body(swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1, Want: "replan"})}, ""},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "supervisor", Data: body(swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1, Want: "answer"})}, "progress swarm-supervisor synthesizing "},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "supervisor", Data: body(swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 2, Want: "answer"})}, ""},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "takao", Data: body(swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Want: "action"})}, "agent_started takao  "},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "takao", Data: body(swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 2, Want: "action"})}, ""},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "takao", Data: body(swarm.TurnStart{Iteration: 1, Attempt: 2, Start: 1, Want: "action"})}, ""},
		{swarm.Event{Kind: swarm.TurnStarted, Agent: "takao", Data: body(swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1, Want: "action"})}, ""},
		{swarm.Event{Kind: swarm.PlanAdded, Data: body(swarm.Plan{Swarm: &swarm.Swarm{}})}, ""},
		{swarm.Event{Kind: swarm.PlanAdded, Agent: "takao", Data: body(helper)}, "progress swarm-supervisor spawning "},
		{swarm.Event{Kind: swarm.CallEnded, Agent: "supervisor", Data: body(swarm.CallEnd{ID: "divide/supervisor/1/1"})}, "progress swarm-supervisor monitoring "},
		{swarm.Event{Kind: swarm.CallEnded, Agent: "takao", Data: body(swarm.CallEnd{ID: "return/takao"})}, ""},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "takao", Data: body(swarm.AgentEnd{Outcome: swarm.OutcomeDone, Reason: "it is done"})}, "agent_completed takao it is done done"},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "takao", Data: body(swarm.AgentEnd{Outcome: swarm.OutcomeConverged})}, "agent_completed takao  converged"},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "takao", Data: body(swarm.AgentEnd{Outcome: swarm.OutcomeForced})}, "agent_completed takao  forced"},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "takao", Data: body(swarm.AgentEnd{Outcome: swarm.OutcomeAborted})}, "agent_completed takao  aborted"},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "takao", Data: body(swarm.AgentEnd{Outcome: swarm.OutcomeTimedOut})}, "agent_completed takao  timed_out"},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "takao", Data: body(swarm.AgentEnd{Kind: swarm.CutByCancel})}, "agent_completed takao  cancelled"},
		{swarm.Event{Kind: swarm.AgentEnded, Agent: "supervisor", Data: body(swarm.AgentEnd{Kind: swarm.Crashed})}, "agent_completed swarm-supervisor  aborted"},
		{swarm.Event{Kind: swarm.AgentRestarted, Agent: "takao"}, ""},
		{swarm.Event{Kind: swarm.HandoffStored, Agent: "takao", Data: body(swarm.Envelope{Payload: swarm.Payload{Message: "half\ndone"}})}, "message_sent takao half done "},
		{swarm.Event{Kind: swarm.HandoffStored, Agent: "orchestrator", Data: body(swarm.Envelope{})}, "message_sent swarm-supervisor  "},
		{swarm.Event{Kind: swarm.HandoffStored, Agent: "user", Data: body(swarm.Envelope{})}, "message_sent user  "},
		{swarm.Event{Kind: swarm.HandoffConsumed, Agent: "mitaka", Data: body(swarm.Consumption{})}, "message_received mitaka  "},
		{swarm.Event{Kind: swarm.TopicPublished, Agent: "takao", Data: body(swarm.TopicEntry{Topic: "findings", Data: body("80 %")})}, "workspace_updated workspace 80 % "},
		{swarm.Event{Kind: swarm.Notice, Data: body(swarm.Reason{Reason: "x"})}, ""},
	} {
		got := ""
		if s, ok := seedEvent("run", &x.event); ok {
			got = s.Type + " " + s.AgentID + " " + s.Message + " " + s.Reason
		}
		if got != x.want {
			t.Errorf("%s of %s %s is %q, want %q", x.event.Kind, x.event.Agent, x.event.Data, got, x.want)
		}
	}
	s, _ := seedEvent("run", &swarm.Event{Kind: swarm.PlanAdded, Data: body(helper)})
	if want := `{"phase":"spawning","agents":[{"agent_id":"oji","id":"eu","description":"The EU","requested_by":"takao"}]}`; string(s.Payload) != want {
		t.Errorf("%s", s.Payload)
	}
}

// FuzzSeedFrames: an event of a swarm cannot forge the id or the name of another, whatever its body.
func FuzzSeedFrames(f *testing.F) {
	f.Add("topic_published", "a\nid: 1", `{"topic":"x","data":"y"}`)
	f.Add("agent_ended", "", "{\n}")
	f.Add("handoff_stored", "\x00", "\"\xff")
	f.Fuzz(func(t *testing.T, kind, agent, data string) {
		one := (&Follower{id: "run", swarm: true}).eventFrame(&swarm.Event{Seq: 7, Kind: swarm.EventKind(kind), Agent: agent, Data: json.RawMessage(data)})
		checkFrame(t, one, "id: 7")
		if one.SeedName != "" {
			checkFrame(t, Frame{Wire: one.SeedWire}, "id: 7")
		}
	})
}
