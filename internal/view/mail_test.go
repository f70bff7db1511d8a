package view

import (
	"testing"

	"swarm"
)

// A fold counts the unread mail of a team's agent, even if it was stored in between.
func TestMailOfATeam(t *testing.T) {
	s := &sim{t: t}
	s.tell(swarm.Event{Kind: swarm.RunStarted}, swarm.RunStart{ID: "r1", Kind: swarm.TeamRun})
	s.tell(swarm.Event{Kind: swarm.PlanAdded}, swarm.Plan{Team: &swarm.Team{}, Groups: []swarm.Group{{Iterations: 1}}, Agents: []swarm.Agent{{Name: "a"}, {Name: "b"}},
		Tasks: []swarm.Task{{Name: "a", Agent: "a"}, {Name: "b", Agent: "b"}}}) // an older program wrote agents as tasks, too
	send := func(from, to, text string) {
		s.tell(swarm.Event{Kind: swarm.HandoffStored, Agent: from}, swarm.Envelope{FromNodeID: from, ToNodeID: to, Payload: swarm.Payload{Message: text}})
	}
	stands := func(agent string, unread int, last Letter) {
		t.Helper()
		whole := fold(t, New("r1"), s.events)
		stored, err := Unmarshal(whole.Marshal())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Run{whole, stored} {
			if box := r.Picture().Mail[agent]; box.Unread() != unread || box.Last != last {
				t.Errorf("@%s has %d unread and %+v, want %d and %+v", agent, box.Unread(), box.Last, unread, last)
			}
		}
	}
	stands("b", 0, Letter{})
	send(swarm.User, "a", "go")
	send("a", "b", "one\nmore")
	send("a", "b", "two")
	stands("a", 1, Letter{"a", "b", "two"})
	stands("b", 2, Letter{"a", "b", "two"})
	read := swarm.Inputs{Upto: int64(len(s.events)) - 1}
	s.tell(swarm.Event{Kind: swarm.TurnStarted, Task: "b", Agent: "b", Turn: "b/1/1"}, swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Inputs: read})
	stands("b", 1, Letter{"a", "b", "two"})
	s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: "b", Agent: "b", Turn: "b/1/1"}, swarm.CallEnd{Status: swarm.CallFailed})
	stands("b", 2, Letter{"a", "b", "two"})
	s.tell(swarm.Event{Kind: swarm.HandoffConsumed, Task: "b", Agent: "b", Turn: "b/1/2"}, read)
	stands("b", 1, Letter{"a", "b", "two"})
	s.tell(swarm.Event{Kind: swarm.AgentEnded, Agent: "b"}, swarm.Reason{Reason: "it keeps failing"})
	stands("b", 0, Letter{"a", "b", "two"})
	s.tell(swarm.Event{Kind: swarm.RunEnded}, swarm.RunEnd{Status: swarm.Completed})
	stands("a", 0, Letter{"a", "b", "two"})
}
