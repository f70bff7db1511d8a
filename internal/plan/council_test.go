package plan

import (
	"testing"
	"time"

	"swarm"
)

var doneEnd = swarm.AgentEnd{Outcome: swarm.OutcomeDone}

func TestVotesOfACouncil(t *testing.T) {
	agents := []string{"a", "b", "c", "d"}
	for name, c := range map[string]struct {
		rankings [][]string
		want     string
	}{
		"points decide":              {[][]string{{"b", "c", "d"}, {"c", "a", "d"}, {"b", "a", "d"}, {"b", "c", "a"}}, "b 6, c 4, a 2, d 0"},
		"a tie":                      {[][]string{{"b", "c", "d"}, {"a", "c", "d"}, {"a", "b", "d"}, {"b", "a", "c"}}, "a 5, b 5, c 2, d 0; a tie, in which a comes first in the plan"},
		"one has not voted":          {[][]string{{"b", "c", "d"}, {"a", "c", "d"}, {"a", "b", "d"}}, "a 4 of 4, b 3 of 4, c 2 of 4, d 0 of 6"},
		"more rankings are no merit": {[][]string{{"d", "c", "b"}, {"c", "d", "a"}, {"b", "d", "a"}}, "c 3 of 4, d 4 of 6, b 2 of 4, a 0 of 4"},
	} {
		tally := CountVotes(agents, c.rankings)
		if got := tally.String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	firsts := CountVotes([]string{"b", "a", "c"}, [][]string{{"a", "b", "c"}, {"a", "b", "c"}, {"b", "c", "a"}})
	if got := firsts.String(); got != "a 4, b 4, c 1" {
		t.Errorf("level in points, and not in first places: %s", got)
	}
	two := CountVotes([]string{"a", "b"}, [][]string{{"b"}, {"a"}})
	if got := two.String(); got != "a 0, b 0; a tie, in which a comes first in the plan" {
		t.Errorf("two members: %s", got)
	}
	if got := DescribeVotes([]Vote{{Agent: "a", Silent: "the budget is spent"}, {Agent: "b", Silent: "the budget is spent"}}, true); got != "none: the budget is spent" {
		t.Errorf("without a vote: %s", got)
	}
}

// Each answer has each place equally often, so no answer gains by its place.
func TestEveryAnswerHasEveryPlace(t *testing.T) {
	team := NewTeam()
	names := []string{"a", "b", "c", "d"}
	for i, n := range names {
		team.at[n] = i
		team.Members = append(team.Members, Member{Name: n, Effort: &Effort{}, End: &doneEnd})
	}
	places := map[string][]int{}
	for _, n := range names {
		for at, judged := range team.Judged(n) {
			if judged == n {
				t.Errorf("%s judges itself", n)
			}
			places[judged] = append(places[judged], at)
		}
	}
	for _, n := range names {
		seen := map[int]int{}
		for _, at := range places[n] {
			seen[at]++
		}
		if len(places[n]) != 3 || len(seen) != 3 {
			t.Errorf("%s has the places %v", n, places[n])
		}
	}
}

// The time of a worker stands still in a pause, also for a turn that starts again in it. A review has
// a time of its own, which goes on over a takeover.
func TestTheTimeOfAWorker(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	owned := func(now, lived int) Fact {
		return Fact{Kind: swarm.RunOwned, Time: at(now), Body: swarm.Ownership{Lived: at(lived)}}
	}
	team := NewTeam()
	team.Apply(Fact{Kind: swarm.PlanAdded, Time: at(0), Body: &swarm.Plan{Team: &swarm.Team{Lead: Supervisor}, Agents: []swarm.Agent{{Name: Supervisor}, {Name: "a"}, {Name: "b"}},
		Swarm: &swarm.Swarm{Strategy: swarm.CouncilStrategy, Timeout: time.Minute, Iterations: 5, Subtasks: []swarm.Subtask{{ID: "1", Agent: "a"}, {ID: "2", Agent: "b"}}}}})
	team.Apply(owned(0, 0))
	left := func(what string, want time.Duration) {
		t.Helper()
		if got := team.TimeLeft(team.Member("a")); got != want || team.Expired(team.Member("a")) {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	team.Next()
	left("at the beginning", time.Minute)
	team.Apply(owned(500, 20))
	left("killed after 20 s", 40*time.Second)
	team.Next()
	team.Apply(Fact{Kind: swarm.RunPausing, Time: at(510)})
	team.Apply(owned(900, 515))
	left("killed in a pause", 30*time.Second)
	team.Apply(Fact{Kind: swarm.RunUnpaused, Time: at(910)})
	left("after the pause", 30*time.Second)
	team.Apply(Fact{Kind: swarm.AgentPaused, Agent: "a", Time: at(911)})
	team.Apply(owned(918, 918))
	left("paused alone", 29*time.Second)
	team.Apply(Fact{Kind: swarm.AgentResumed, Agent: "a", Time: at(919)})
	left("resumed alone", 29*time.Second)
	for _, name := range []string{"a", "b"} {
		team.Apply(Fact{Kind: swarm.TurnEnded, Agent: name, Turn: swarm.NewTurnID(name, 1, 1), Time: at(920), Body: swarm.CallEnd{Status: swarm.CallOK, Action: &swarm.Action{Kind: swarm.ActDone}}})
		team.Apply(Fact{Kind: swarm.AgentEnded, Agent: name, Time: at(920), Body: doneEnd})
	}
	team.Next()
	left("for a review", time.Minute)
	team.Apply(owned(2000, 930))
	left("for a review that was killed after 10 s", 50*time.Second)
}

// A pause while a turn waits for the budget of another run is given back once: the worker's time is
// never longer than at the beginning, nor is that of a reply that it owes.
func TestAPauseInAWaitForABudgetIsGivenOnce(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	team := NewTeam()
	team.Apply(Fact{Kind: swarm.PlanAdded, Time: at(0), Body: &swarm.Plan{Team: &swarm.Team{Lead: Supervisor}, Agents: []swarm.Agent{{Name: Supervisor}, {Name: "a"}},
		Swarm: &swarm.Swarm{Timeout: time.Minute, Iterations: 5, Subtasks: []swarm.Subtask{{ID: "1", Agent: "a"}}}}})
	team.Apply(Fact{Kind: swarm.RunOwned, Time: at(0), Body: swarm.Ownership{Lived: at(0)}})
	team.Next()
	team.Owed = []Owed{{Mail: Mail{To: "a"}, Since: at(0)}}
	team.Apply(Fact{Kind: swarm.RunPausing, Time: at(10)})
	team.Apply(Fact{Kind: swarm.RunUnpaused, Time: at(3610)})
	team.Apply(Fact{Kind: swarm.TurnEnded, Agent: "a", Turn: "a/1/1", Time: at(3630), Body: swarm.CallEnd{Status: swarm.CallOK, Waited: 3620 * time.Second, Action: &swarm.Action{Kind: swarm.ActToolCall}}})
	if left := team.TimeLeft(team.Member("a")); left != time.Minute {
		t.Errorf("%s are left", left)
	}
	if since := team.Owed[0].Since; since.After(at(3630)) {
		t.Errorf("the reply is owed since %s after now", since.Sub(at(3630)))
	}
}

// A fork has all mail at once, so a turn that is kept may come before the end of a worker that it has weighed.
// That end is no reason to plan anew again. The end of another is, and so is an end that a new turn weighs early.
func TestAKeptPlanHasWeighedLaterEnds(t *testing.T) {
	for _, c := range []struct {
		kept bool
		lost string
		want Want
	}{{true, "a", WantMail}, {true, "b", WantReplan}, {false, "a", WantReplan}} {
		team := NewTeam()
		team.Apply(Fact{Kind: swarm.PlanAdded, Body: &swarm.Plan{Team: &swarm.Team{Lead: Supervisor, MaxAgents: 9}, Agents: []swarm.Agent{{Name: Supervisor}, {Name: "a"}, {Name: "b"}},
			Swarm: &swarm.Swarm{Replan: true, Iterations: 5, Subtasks: []swarm.Subtask{{ID: "1", Agent: "a"}, {ID: "2", Agent: "b"}}}}})
		team.Apply(Fact{Kind: swarm.RunOwned, Body: swarm.Ownership{}})
		for n := range 2 { // each tells of all that have ended so far
			team.Apply(Fact{Kind: swarm.TurnEnded, Agent: Supervisor, Turn: swarm.NewTurnID(Supervisor, n+2, 1),
				Body: swarm.CallEnd{Status: swarm.CallOK, CarriedOver: c.kept, Action: &swarm.Action{Kind: swarm.ActReplan, Taken: true, Weighed: []string{"a"}}}})
		}
		team.Apply(Fact{Kind: swarm.AgentEnded, Agent: c.lost, Body: swarm.AgentEnd{Outcome: swarm.OutcomeAborted}})
		if got := team.Member(Supervisor).Want; got != c.want || len(team.Swarm.Weighed) > 0 == (c.lost == "a") && c.kept {
			t.Errorf("%+v: it wants %q, and knows of %v", c, got, team.Swarm.Weighed)
		}
	}
}
