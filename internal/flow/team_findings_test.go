package flow_test

import (
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
)

// An agent is told of suspicious behaviour first, with the evidence. If it goes on, the run pauses
// and says why.
func TestTeamWithFindings(t *testing.T) {
	claim := swarm.Finding{Kind: swarm.Unsent, About: "coder", Evidence: "I sent the plan to coder"}
	same := swarm.Finding{Kind: swarm.SameAction, About: "x", Times: 1, Evidence: "ls {}"}
	shared := swarm.Finding{Kind: swarm.Shared, About: "@coder (coder/1/1)", Evidence: "main.go"}
	each := func(f swarm.Finding) map[swarm.TurnID][]swarm.Finding {
		all := map[swarm.TurnID][]swarm.Finding{}
		for n := 1; n < 10; n++ {
			all[swarm.NewTurnID("lead", n, 1)] = []swarm.Finding{f}
		}
		return all
	}
	urged := "urge lead: You said: \"I sent the plan to coder\". No message of yours went to coder in that turn.\n" +
		"If a message is to go there, send it now with send_handoff: what you merely say, nobody is given."
	for name, c := range map[string]struct {
		o     office
		wants string
		ends  bool
	}{
		"it says that it has sent, and then sends": {office{finds: map[swarm.TurnID][]swarm.Finding{"lead/1/1": {claim}}, sends: map[swarm.TurnID]string{"lead/2/1": "coder the plan"}},
			"go lead/1/1; " + urged + "; go lead/2/1; go coder/1/1; run_ended completed 0", true},
		"it says so again": {office{finds: each(claim)}, "go lead/1/1; " + urged + "; go lead/2/1; notice; run_pausing; run_paused", false},
		"it says so of two at once": {office{finds: map[swarm.TurnID][]swarm.Finding{"lead/1/1": {claim, {Kind: swarm.Unsent, About: "tester", Evidence: "and told tester"}}}},
			"go lead/1/1; urge lead: You said: \"I sent the plan to coder\". No message of yours went to coder in that turn.\nYou said: \"and told tester\". No message of yours went to tester in that turn.\n" +
				"If a message is to go there, send it now with send_handoff: what you merely say, nobody is given.; go lead/2/1; run_ended completed 0", true},
		"who is done is not asked": {office{finds: each(claim), done: map[string]bool{"lead/1/1": true}}, "go lead/1/1; run_ended completed 0", true},
		"it does the same, turn after turn": {office{finds: each(same), sends: rounds("coder a,tester b", "lead c,tester d")},
			"note to lead … notice; run_pausing", false},
		"it does something else in between": {office{finds: map[swarm.TurnID][]swarm.Finding{"lead/1/1": {same}, "lead/2/1": {same}, "lead/4/1": {same}, "lead/5/1": {same}}, sends: map[swarm.TurnID]string{
			"lead/1/1": "coder a", "coder/1/1": "lead b", "lead/2/1": "coder c", "coder/2/1": "lead d", "lead/3/1": "coder e", "coder/3/1": "lead f", "lead/4/1": "coder g", "coder/4/1": "lead h", "lead/5/1": "tester i"}},
			"go lead/1/1; go coder/1/1; go lead/2/1; go coder/2/1; go lead/3/1; go coder/3/1; go lead/4/1; go coder/4/1; go lead/5/1; go tester/1/1; run_ended completed 0", true},
		"it writes the same, turn after turn": {office{sends: rounds("coder are you done?", "lead not yet, tester look")},
			"note to lead … notice; run_pausing", false},
		"what nobody can be blamed for alone":        {office{finds: map[swarm.TurnID][]swarm.Finding{"lead/1/1": {shared}}}, "go lead/1/1; notice; run_pausing; run_paused", false},
		"and the same when the lead is done by then": {office{finds: each(shared), done: map[string]bool{"lead/1/1": true}}, "go lead/1/1; notice; run_ended completed 0", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &c.o
			o.now = time.Unix(0, 0)
			o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}, {Name: "tester"}}}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			_, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"})
			if (err == nil) != c.ends {
				t.Fatalf("it ended with %v: %s", err, strings.Join(o.told, "; "))
			}
			var told []string
			for _, line := range o.told {
				if !strings.HasPrefix(line, "task_") {
					told = append(told, line)
				}
			}
			story := strings.Join(told, "; ")
			first, then, parts := strings.Cut(c.wants, " … ")
			if !parts && story != c.wants || parts && (strings.Count(story, first) != 1 || strings.Index(story, first) > strings.Index(story, then) || !strings.Contains(story, then)) {
				t.Errorf("told\n%s\nwant\n%s", story, c.wants)
			}
		})
	}
}

// rounds makes turns of two agents that always send each other the same.
func rounds(lead, coder string) map[swarm.TurnID]string {
	sends := map[swarm.TurnID]string{}
	for n := 1; n < 10; n++ {
		sends[swarm.NewTurnID("lead", n, 1)], sends[swarm.NewTurnID("coder", n, 1)] = lead, coder
	}
	return sends
}
