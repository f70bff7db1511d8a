package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// A Finding is what an agent of a swarm has published.
type Finding struct {
	Time  time.Time `json:"time"`
	Agent string    `json:"agent"`
	Topic string    `json:"topic"`
	Text  string    `json:"text"` // its beginning, in one line
}

const (
	keptFindings = 5   // that a picture has
	findingChars = 200 // of each, in bytes
)

// foldSwarm folds what only a swarm has: the actions of iterations, and findings.
func (r *Run) foldSwarm(e *swarm.Event) error {
	if r.Swarm == nil {
		return nil
	}
	switch e.Kind {
	case swarm.ActionEnded:
		i, ok := r.find(e.Task)
		if !ok {
			return unusable(e, "no plan has the task %q", e.Task)
		}
		return swarm.UseBody(e, func(end swarm.CallEnd) {
			r.Usage = r.Usage.Plus(end.Usage)
			t := &r.tasks[i]
			if t.Usage = t.Usage.Plus(end.Usage); end.Status != swarm.CallOK {
				t.Doing += failedBecause(end.Reason)
			}
		})
	case swarm.ApprovalAnswered:
		r.bound() // a person may have taken subtasks out
	case swarm.TopicPublished:
		return swarm.UseBody(e, func(entry swarm.TopicEntry) {
			text := excerpt.Head(excerpt.OneLine(entry.Text()), findingChars)
			r.findings = append(r.findings, Finding{Time: e.Time, Agent: e.Agent, Topic: entry.Topic, Text: text})
			if n := len(r.findings); n > keptFindings {
				r.findings = slices.Delete(r.findings, 0, n-keptFindings)
			}
		})
	}
	return nil
}

// failedBecause completes the description of an action that failed.
func failedBecause(reason string) string {
	return ", which failed" + excerpt.Reason(excerpt.Head(excerpt.OneLine(reason), findingChars))
}

// addSubtasks gives the workers of a swarm's plan their subtasks.
func (r *Run) addSubtasks(p *swarm.Plan) {
	if p.Swarm == nil {
		return
	}
	if r.Swarm == nil {
		r.Swarm = &SwarmLimits{Workers: p.Swarm.Workers, Iterations: p.Swarm.Iterations, Strategy: p.Swarm.Strategy}
		if p.Team != nil {
			r.Swarm.MaxAgents = p.Team.MaxAgents
		}
	}
	r.bound()
	for _, s := range p.Swarm.Subtasks {
		if i, ok := r.find(s.Agent); ok {
			r.tasks[i].Subtask = &s
		}
	}
}

// bound sets what the swarm may use, with the agents that it has now.
func (r *Run) bound() {
	limits := *r.Swarm // a picture that was taken has the former bound
	limits.Bound = r.team.Bound()
	r.Swarm = &limits
}

// A TaskEntry is an entry of a swarm's task list that an agent has added.
type TaskEntry struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	DependsOn   []string `json:"depends_on,omitempty"`
	By          string   `json:"by,omitempty"`    // who added it
	Agent       string   `json:"agent,omitempty"` // who has claimed it, or was added for it
	State       string   `json:"state"`           // open, waiting, claimed, done, or how its agent ended
}

// withTaskList returns the limits of a swarm with its task list, which changes with each event.
func (r *Run) withTaskList() *SwarmLimits {
	if r.Swarm == nil || r.team == nil || r.team.Swarm == nil || len(r.team.Swarm.Tasks) == 0 {
		return r.Swarm
	}
	limits := *r.Swarm
	for i := range r.team.Swarm.Tasks {
		t := &r.team.Swarm.Tasks[i]
		e := TaskEntry{ID: t.ID, Description: t.Description, DependsOn: slices.Clone(t.Needs), By: t.By, Agent: t.Agent, State: "open"}
		switch m := r.team.Member(t.Agent); {
		case m != nil && m.End != nil:
			e.State = strings.ReplaceAll(cmp.Or(string(m.End.Outcome), "ended"), "_", " ")
		case m != nil:
			e.State = "claimed"
		case len(r.team.Blocks(t)) > 0:
			e.State = "waiting"
		}
		limits.TaskList = append(limits.TaskList, e)
	}
	return &limits
}

// WorkerOf returns the agent that works on a subtask of a swarm, or "". Answers refer to agents by
// their subtasks, too.
func (r *Run) WorkerOf(subtask string) string {
	if r.Swarm == nil {
		return ""
	}
	for i := range r.tasks {
		if s := r.tasks[i].Subtask; s != nil && s.ID == subtask {
			return s.Agent
		}
	}
	return ""
}

// addEffort adds to a worker's task in which iteration it is.
func (r *Run) addEffort(t *Task) {
	if r.Swarm == nil || r.team == nil {
		return
	}
	m := r.team.Member(t.Agent)
	if m != nil && m.Name == swarm.Supervisor {
		t.Iteration = max(1, m.Turns)
	}
	if m != nil && m.Effort != nil {
		t.Iteration, t.Iterations = m.Turns, r.Swarm.Iterations
		if m.Effort.Last != "" { // a review is no iteration
			_, t.Iteration, _ = plan.SplitTurn(m.Effort.Last)
		}
		t.Iteration -= m.Effort.Unrun
		t.Dropped = m.Effort.Unwanted()
		if m.Reviewing() {
			t.Doing = "judges the answers of the others"
		}
	}
}

// A Vote is what the rankings of a council come to for one answer.
type Vote = plan.Vote

func (r *Run) tally() (t plan.Tally) {
	if r.team != nil {
		t = r.team.Tally()
	}
	return t
}

// IsCouncil says whether the agents of a swarm answer independently, and vote.
func (s *SwarmLimits) IsCouncil() bool { return s != nil && s.Strategy == swarm.CouncilStrategy }

// DescribeVote says how the vote of a council went, in one line, or "".
func (r *Run) DescribeVote() string {
	if !r.Swarm.IsCouncil() {
		return ""
	}
	tally := r.tally()
	return describeVote(tally.Votes, tally.Tie, r.Answer, r.Len(), r.At)
}

// DescribeVote says how the vote of a council went, in one line, or "".
func (p *Picture) DescribeVote() string {
	if !p.Swarm.IsCouncil() {
		return ""
	}
	return describeVote(p.Votes, p.Tie, p.Answer, len(p.Tasks), func(i int) Task { return p.Tasks[i] })
}

// describeVote describes a vote. If only one member has a result, that is the answer without a vote.
func describeVote(votes []Vote, tie bool, answer swarm.TurnID, n int, at func(int) Task) string {
	if len(votes) > 0 || answer == "" {
		return plan.DescribeVotes(votes, tie)
	}
	for i := range n {
		if t := at(i); t.Outcome.Good() {
			return "none: only " + t.Agent + " has a result"
		}
	}
	return ""
}

// readAction reads a [swarm.Action]. One that cannot be read is none.
func readAction(value []byte) (a swarm.Action) {
	if json.Unmarshal(value, &a) != nil {
		return swarm.Action{}
	}
	return a
}

// addCoordination counts the tokens of a turn, if the turn is coordination and not work.
func (r *Run) addCoordination(agent string, kind swarm.ActionKind, u swarm.Usage) {
	if r.Swarm == nil {
		return
	}
	switch {
	case agent == swarm.Supervisor, kind == swarm.ActSendMessage, kind == swarm.ActPublishData, kind == swarm.ActRequestHelp, kind == swarm.ActReview:
		limits := *r.Swarm // a picture that was taken has the former figure
		limits.Coordination += u.Tokens()
		r.Swarm = &limits
	}
}

// CoordinationShare is the part of a swarm's tokens that went into coordination, from 0 to 1.
func (p *Picture) CoordinationShare() float64 {
	if p.Swarm == nil || p.Usage.Tokens() == 0 {
		return 0
	}
	return float64(p.Swarm.Coordination) / float64(p.Usage.Tokens())
}

// DescribeAction describes the action of an iteration in one line.
func DescribeAction(a *swarm.Action) string {
	switch {
	case a.Words != "":
		return a.Words
	case a.Kind == swarm.ActToolCall && a.Tool == "":
		return "uses its tools"
	case a.Kind == swarm.ActSendMessage:
		return "shares and writes, without a tool"
	}
	return strings.ReplaceAll(string(a.Kind), "_", " ")
}

// DescribeOutcome says how an agent of a swarm ended: one word, and why unless it is done.
func DescribeOutcome(o swarm.Outcome, reason string) string {
	word := strings.ReplaceAll(string(o), "_", " ")
	if o == swarm.OutcomeDone || o == "" {
		return word
	}
	return word + excerpt.Reason(reason)
}

// Iterations returns how many iterations the workers of a swarm have had.
func (p *Picture) Iterations() (n int) {
	for _, t := range p.Tasks {
		if t.Subtask != nil {
			n += t.Iteration
		}
	}
	return n
}
