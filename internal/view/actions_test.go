package view

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"swarm"
)

// TestActionsOfAFold: a fold keeps the newest actions on each task, its agent and the run, whether
// it was stored in between or not, and does not grow with their number.
func TestActionsOfAFold(t *testing.T) {
	s := script(t)
	ada := swarm.Actor{By: swarm.ByPerson, User: "ada"}
	command := func(target string, by swarm.Actor) {
		s.tell(swarm.Event{Kind: swarm.Control}, swarm.ControlCommand{Command: swarm.CommandInterrupt, Target: target, Actor: by})
	}
	answer := func(task, id string) {
		s.tell(swarm.Event{Kind: swarm.ApprovalAnswered, Task: task}, swarm.ApprovalAnswer{ID: id, OK: true, Actor: ada})
	}
	check := func(task, agent, want string) {
		t.Helper()
		stored, err := Unmarshal(fold(t, New("r1"), s.events).Marshal())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Run{fold(t, New("r1"), s.events), stored} {
			var on []string
			for _, a := range r.ActionsOn(task, agent) {
				on = append(on, a.String())
			}
			if got := strings.Join(on, "; "); got != want {
				t.Errorf("the actions on %s are %q, want %q", task, got, want)
			}
		}
	}
	answer("plan", "a1")
	command("", ada)
	command("check", ada)
	command("planner", ada)
	command("plan/1/1", ada)       // a turn
	command("plan", swarm.Actor{}) // of an earlier version
	answer("check", "plan")        // the id of an approval is no task
	check("plan", "planner", "approve a1 by ada; interrupt by ada; interrupt planner by ada")
	check("check", "tester", "interrupt by ada; interrupt check by ada; approve plan by ada")

	for i := range keptActions {
		answer("plan", fmt.Sprint("b", i))
	}
	check("check", "tester", "interrupt by ada; interrupt check by ada; approve plan by ada")
	r := fold(t, New("r1"), s.events)
	if on := r.ActionsOn("plan", ""); len(on) != keptActions+1 || on[1].Target != "b0" {
		t.Errorf("%d actions are kept, the second on %s", len(on), on[1].Target)
	}
	size := len(r.Marshal())
	for i := range 10 * keptActions {
		answer("plan", fmt.Sprint("c", i%10))
		command(fmt.Sprint("plan/1/", i), ada)
	}
	after := fold(t, New("r1"), s.events).Marshal()
	if len(after) > size+200 || bytes.Contains(after, []byte(`"b0"`)) {
		t.Errorf("the fold has grown from %d to %d bytes", size, len(after))
	}
}
