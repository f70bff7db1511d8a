package plan

import (
	"cmp"
	"fmt"
	"slices"

	"swarm"
	"swarm/internal/excerpt"
)

// unapproved says whether all workers wait for a person who has to approve the plan.
func (t *Team) unapproved() bool { return !t.mayWork(1) }

// mayWork says whether the n-th worker needs no approval, or a person has decided about it.
func (t *Team) mayWork(n int) bool { return !t.Swarm.Rules.Approve || n <= t.Swarm.Approved }

// awaitsApproval says whether a worker waits for a person who has to approve the plan that it is in.
func (t *Team) awaitsApproval(m *Member) bool {
	if t.Swarm == nil || m.Effort == nil || m.End != nil || !t.Swarm.Rules.Approve {
		return false
	}
	n := 0
	for i := range t.Members {
		if t.Members[i].Effort != nil {
			n++
		}
		if t.Members[i].Name == m.Name {
			break
		}
	}
	return !t.mayWork(n)
}

// question returns the step that asks a person about the plan, and about each later one that adds
// workers. Meanwhile the others go on.
func (t *Team) question() []TeamStep {
	if t.Swarm == nil || t.Closing != "" || !t.Swarm.Divided || t.Swarm.Asking > 0 || t.Swarm.Draining || !t.Swarm.Rules.Approve || t.mayWork(t.workers()) {
		return nil
	}
	return []TeamStep{{Kind: AskPlan, Agent: Supervisor}}
}

// PlanQuestion asks a person whether the workers may begin that it has not been asked about, and says
// what all use at most.
func (t *Team) PlanQuestion() swarm.Approval {
	most, all, had := t.Bound().Most, t.workers(), t.Swarm.Approved
	what := fmt.Sprintf("have %s work on the plan", agents(all, ""))
	if had > 0 {
		what = fmt.Sprintf("have %s work on what was added to the plan, %s in all", agents(all-had, "more "), agents(all, ""))
	}
	switch {
	case most.USD > 0:
		what += fmt.Sprintf(", for at most $%.2f and %d tokens", most.USD, most.Tokens())
	case most.Tokens() > 0:
		what += fmt.Sprintf(", with at most %d tokens", most.Tokens())
	}
	return swarm.Approval{ID: swarm.PlanQuestionID(t.Swarm.Asked + 1), What: what, Agents: all}
}

// agents names a number of agents.
func agents(n int, more string) string {
	if n == 1 {
		return "1 " + more + "agent"
	}
	return fmt.Sprintf("%d %sagents", n, more)
}

// askPlan records that a person is asked about a plan. The loop tells the question, and reads it again
// as a record.
func (t *Team) askPlan(a swarm.Approval) {
	if a.ID == swarm.PlanQuestionID(t.Swarm.Asked+1) {
		t.Swarm.Asked, t.Swarm.Asking = t.Swarm.Asked+1, cmp.Or(a.Agents, t.workers(), 1)
	}
}

// maxDenial is how much of a person's reason is kept, in bytes. The answer has all of it.
const maxDenial = 500

// decidePlan records a person's answer to the open question. A run whose plan is denied ends without
// work. If a later one is denied, only the agents that it adds do not work. A person may also have
// changed the plan: the agents that this adds are there already.
func (t *Team) decidePlan(a swarm.ApprovalAnswer) {
	s := t.Swarm
	if s.Asking == 0 || a.ID != swarm.PlanQuestionID(s.Asked) {
		return
	}
	why := excerpt.Reason(excerpt.Head(excerpt.OneLine(a.Reason), maxDenial))
	had, n, ok := s.Approved, 0, a.OK
	s.Approved, s.Asking = cmp.Or(a.Agents, s.Asking), 0
	if !ok && had == 0 {
		s.Approved, s.Denial = 0, "a person has denied the plan"+why
		t.close(ClosedByCancel)
	}
	for i := range t.Members {
		if e := t.Members[i].Effort; e != nil {
			if n++; !ok && n > had && n <= s.Approved {
				e.Denied, e.Why = true, "a person has denied the plan that adds it"+why
			}
			if slices.Contains(a.Dropped, t.Members[i].Name) {
				e.Dropped, s.Dropped = true, true
			}
		}
	}
	t.summon()
}

// Unwanted says whether a person does not want the worker to work.
func (e *Effort) Unwanted() bool { return e.Dropped || e.Denied }

// unwanted is how many workers a person does not want to work.
func (t *Team) unwanted() (n int) {
	for i := range t.Members {
		if e := t.Members[i].Effort; e != nil && e.Unwanted() {
			n++
		}
	}
	return n
}

// IsDropped says whether a person has taken the subtask of an agent out of the plan.
func (t *Team) IsDropped(agent string) bool {
	m := t.Member(agent)
	return m != nil && m.Effort != nil && m.Effort.Dropped
}

// workers is how many agents have or had a subtask.
func (t *Team) workers() (n int) {
	for i := range t.Members {
		if t.Members[i].Effort != nil {
			n++
		}
	}
	return n
}
