package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
)

// A council is a swarm whose agents all answer the query itself, without knowing of each other. When
// all have ended, each judges the answers of the others, and the rankings are counted. This file has
// what only a council knows.

// A Ballot is how a member of a council has judged the answers of the others.
type Ballot struct {
	Turn    swarm.TurnID `json:"turn,omitempty"`
	Ranking []string     `json:"ranking,omitempty"` // agents, the best answer first
	Silent  string       `json:"silent,omitempty"`  // why it gives no vote; "" = it gives one
}

// reviews says whether a member has yet to judge the answers of the others.
func (t *Team) reviews(m *Member) bool {
	return t.Swarm.Rules.IsCouncil() && !t.Swarm.Draining && m.answered() && m.Effort.Ballot == nil
}

// answered says whether a worker has ended with a result.
func (m *Member) answered() bool { return m.Effort != nil && m.End != nil && m.End.Outcome.Good() }

// Reviewing says whether a member that has ended has a turn, or is to have one: it judges the others.
func (m *Member) Reviewing() bool {
	return m.End != nil && (m.Want == WantReview || m.Effort != nil && m.InTurn())
}

// endReview records how the turn ended in which a member judges the others. The loop decides whether a
// failed one is retried. A person who cancels the turn of a member takes its vote only.
func (t *Team) endReview(m *Member, turn swarm.TurnID, end swarm.CallEnd) {
	if m.Leave == Leaves {
		m.Leave = Stays
	}
	m.Effort.Began = time.Time{} // another attempt has the whole time
	if a := end.Action; end.Status == swarm.CallOK && a != nil {
		m.Effort.Ballot = &Ballot{Turn: turn, Ranking: a.Ranking}
	}
	t.summon()
}

// maxSilent is how much of the reason is kept why a member gives no vote, in bytes.
const maxSilent = 200

// silence records that a member gives no vote.
func (t *Team) silence(m *Member, why string) {
	if m != nil && m.Effort != nil {
		why, _, _ = strings.Cut(why, ". Instead, ") // what its model was told to do does not concern others
		m.Effort.Ballot = &Ballot{Turn: m.Turn, Silent: cmp.Or(excerpt.Head(excerpt.OneLine(why), maxSilent), "no reason is known")}
		m.Attempt, m.Tries = 0, 0
		t.summon()
	}
}

// Judged lists the members of a council whose answers a member judges, in the order in which it sees
// them: those after it in the plan, then those before it. So each answer has each place about equally
// often, and no answer gains by its place.
func (t *Team) Judged(reviewer string) (names []string) {
	at, _ := t.Find(reviewer)
	for i := 1; i < len(t.Members); i++ {
		if m := &t.Members[(at+i)%len(t.Members)]; m.answered() {
			names = append(names, m.Name)
		}
	}
	return names
}

// A Vote is what the rankings come to for one answer of a council.
type Vote struct {
	Agent  string `json:"agent"`
	Points int    `json:"points"` // for each ranking: the number of answers behind it
	Of     int    `json:"of"`     // the points that it could have, from the rankings that have it
	Firsts int    `json:"firsts"` // the rankings that have it first
	Silent string `json:"silent,omitempty"`
}

// A Tally is the vote of a council.
type Tally struct {
	Votes []Vote // the best answer first; of two that are level, the first in the plan
	Tie   bool   // the best answers are level in points and in first places
}

// CountVotes counts rankings by Borda's rule: an answer gets one point for each answer behind it. A
// member that gives no vote would favour its own answer, which then is in more rankings than the
// others. So the share of the possible points decides. It is the points themselves if all have voted.
func CountVotes(agents []string, rankings [][]string) Tally {
	votes := make([]Vote, len(agents))
	for i, agent := range agents {
		votes[i].Agent = agent
		for _, ranking := range rankings {
			if at := slices.Index(ranking, agent); at >= 0 {
				votes[i].Points += len(ranking) - 1 - at
				votes[i].Of += len(ranking) - 1
				if at == 0 {
					votes[i].Firsts++
				}
			}
		}
	}
	slices.SortStableFunc(votes, compareVotes)
	return Tally{votes, len(votes) > 1 && compareVotes(votes[0], votes[1]) == 0}
}

// compareVotes is negative if a is better than b.
func compareVotes(a, b Vote) int {
	// a/max(1, of a) > b/max(1, of b), without fractions
	if d := b.Points*max(1, a.Of) - a.Points*max(1, b.Of); d != 0 {
		return d
	}
	return b.Firsts - a.Firsts
}

// Tally counts the votes of a council. It has none as long as members work, or if there is nothing to
// choose from.
func (t *Team) Tally() (tally Tally) {
	if t.Swarm == nil || !t.Swarm.Rules.IsCouncil() {
		return tally
	}
	var agents []string
	var rankings [][]string
	silent := map[string]string{}
	for i := range t.Members {
		m := &t.Members[i]
		switch {
		case m.Effort == nil:
			continue
		case m.End == nil || m.Reviewing():
			return Tally{}
		case m.answered():
			agents = append(agents, m.Name)
			switch b := m.Effort.Ballot; {
			case b == nil && t.Swarm.Closed:
				silent[m.Name] = "a person has closed the run"
			case b == nil:
				silent[m.Name] = "the budget is spent"
			case b.Silent != "":
				silent[m.Name] = b.Silent
			default:
				rankings = append(rankings, b.Ranking)
			}
		}
	}
	if len(agents) < 2 {
		return Tally{}
	}
	tally = CountVotes(agents, rankings)
	for i := range tally.Votes {
		tally.Votes[i].Silent = silent[tally.Votes[i].Agent]
	}
	return tally
}

// String says how the vote went, in one line.
func (t Tally) String() string { return DescribeVotes(t.Votes, t.Tie) }

// DescribeVotes says how a vote went, in one line: takao 4, kamata 2, ueno 0.
func DescribeVotes(votes []Vote, tie bool) string {
	if len(votes) == 0 {
		return ""
	}
	uneven := slices.ContainsFunc(votes, func(v Vote) bool { return v.Of != votes[0].Of })
	var points, silent []string
	for _, v := range votes {
		text := fmt.Sprintf("%s %d", v.Agent, v.Points)
		if uneven {
			text += fmt.Sprintf(" of %d", v.Of)
		}
		points = append(points, text)
		if v.Silent != "" {
			silent = append(silent, v.Agent+" ("+v.Silent+")")
		}
	}
	switch {
	case len(silent) == len(votes) && !slices.ContainsFunc(votes, func(v Vote) bool { return v.Silent != votes[0].Silent }):
		return "none: " + votes[0].Silent
	case len(silent) == len(votes):
		return "none: " + strings.Join(silent, ", ")
	case len(silent) > 0:
		points[len(points)-1] += "; no vote of " + strings.Join(silent, ", ")
	}
	text := strings.Join(points, ", ")
	if tie {
		text += "; a tie, in which " + votes[0].Agent + " comes first in the plan"
	}
	return text
}
