package agentapi

import (
	"fmt"
	"path/filepath"
	"testing"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/sqlite"
)

// The prompts of a swarm's worker list so many teammates and no more, whatever the size of the
// swarm: those beside it. The supervisor sees all.
func TestRosterOfALargeSwarm(t *testing.T) {
	for _, size := range []int{3, maxTeammates, 1000} {
		log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		var subtasks []swarm.Subtask
		for i := range size {
			subtasks = append(subtasks, swarm.Subtask{ID: fmt.Sprint("part", i), Description: "Look"})
		}
		p := swarm.Plan{Kind: swarm.SwarmRun, Team: &swarm.Team{Lead: swarm.Supervisor, MaxAgents: size}, Agents: []swarm.Agent{{Name: swarm.Supervisor}}, Swarm: &swarm.Swarm{}}
		team := growth.NewTeam()
		team.Add(&p)
		divided := team.Workers("r", subtasks)
		add(t, log, swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: swarm.Encode(p)},
			swarm.Event{Kind: swarm.PlanAdded, Key: swarm.DivisionKey(""), Data: swarm.Encode(divided)})
		s := &Service{Run: "r", Log: log}
		for _, of := range []string{divided.Agents[0].Name, divided.Agents[size/2].Name, divided.Agents[size-1].Name, swarm.Supervisor} {
			state, _, err := s.SwarmState(of)
			if err != nil {
				t.Fatal(err)
			}
			want := min(size, maxTeammates)
			if of == swarm.Supervisor {
				want = size
			}
			if len(state.Agents) != want || state.More != size-want || of != swarm.Supervisor && state.Task(of) != "Look" {
				t.Errorf("of %d agents %s sees %d, and %d more; its task is %q", size, of, len(state.Agents), state.More, state.Task(of))
			}
		}
	}
}
