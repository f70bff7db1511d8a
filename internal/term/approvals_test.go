package term

import (
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/view"
)

// The board shows a growth request like any other question, with the same keys, but its agent does
// not wait for it.
func TestWishOnTheBoard(t *testing.T) {
	request := view.Approval{Approval: swarm.Approval{ID: "planner/1/1/x", What: "bring in @helper (provider sh)", Growth: &swarm.GrowthRequest{Spawn: &swarm.SpawnRequest{Instructions: "Read the log"}}}, Task: "planner", Agent: "planner"}
	f := Frame{Width: 100, Height: 20, Now: time.Unix(0, 0), Answers: true}
	f.Tasks = []view.Task{{Name: "planner", Agent: "planner", Status: swarm.Running}}
	f.Approvals = []view.Approval{request}
	drawn := f.Draw()
	if !strings.Contains(drawn, "may planner bring in @helper (provider sh): Read the log?") || strings.Contains(drawn, "waits for you") || strings.Contains(drawn, "blocked") {
		t.Error(drawn)
	}
	tool := request
	tool.ID, tool.What, tool.Growth = "planner/1/1/t", "use Bash", nil
	f.Approvals = append(f.Approvals, tool)
	if drawn := f.Draw(); !strings.Contains(drawn, "waits for you: Bash") || !strings.Contains(drawn, "1 of 2: may planner bring in") {
		t.Error(drawn)
	}
}
