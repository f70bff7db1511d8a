package plan

import (
	"testing"

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
