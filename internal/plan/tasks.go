package plan

import (
	"slices"

	"swarm"
)

// MaxTasks is how many entries the task list of a swarm may have, beside the workers' own subtasks.
const MaxTasks = 50

// A Task is an entry of a swarm's task list that an agent has added. The subtasks of the workers are
// on the list too; their state is that of their workers.
type Task struct {
	ID          string   `json:"id"`
	Description string   `json:"description"`
	Needs       []string `json:"needs,omitempty"` // entries and subtasks that must have ended before
	By          string   `json:"by"`              // who added it
	Agent       string   `json:"agent,omitempty"` // who has claimed it, or was added for it; "" = it is open
}

// addTasks records entries that a plan adds to the task list, and claims of entries.
func (t *Team) addTasks(p *swarm.Plan) {
	for _, s := range p.Swarm.Entries {
		if e := t.Swarm.task(s.ID); e != nil {
			e.Agent = s.Agent
		} else {
			t.Swarm.Tasks = append(t.Swarm.Tasks, Task{ID: s.ID, Description: s.Description, Needs: s.DependsOn, By: s.For, Agent: s.Agent})
		}
	}
	for _, s := range p.Swarm.Subtasks { // a worker that was added for an open entry
		if e := t.Swarm.task(s.ID); e != nil {
			e.Agent = s.Agent
		}
	}
}

// task returns the entry with this id, or nil.
func (s *SwarmState) task(id string) *Task {
	if i := slices.IndexFunc(s.Tasks, func(t Task) bool { return t.ID == id }); i >= 0 {
		return &s.Tasks[i]
	}
	return nil
}

// worker returns the member that works on an entry or a subtask, or nil.
func (t *Team) worker(id string) *Member {
	if e := t.Swarm.task(id); e != nil {
		return t.Member(e.Agent)
	}
	for i := range t.Members {
		if e := t.Members[i].Effort; e != nil && e.Subtask == id {
			return &t.Members[i]
		}
	}
	return nil
}

// Blocks lists the entries and subtasks that an entry still waits for.
func (t *Team) Blocks(e *Task) (ids []string) {
	for _, need := range e.Needs {
		if m := t.worker(need); m == nil || m.End == nil {
			ids = append(ids, need)
		}
	}
	return ids
}

// assignable returns the first open entry that waits for nothing, if a worker may be added for it.
func (t *Team) assignable() *Task {
	s := t.Swarm
	if len(s.Tasks) == 0 { // as in most swarms
		return nil
	}
	if s.Draining || !s.Divided || t.unapproved() || t.Rules.MaxAgents > 0 && t.workers() >= t.Rules.MaxAgents {
		return nil
	}
	for i := range s.Tasks {
		if e := &s.Tasks[i]; e.Agent == "" && len(t.Blocks(e)) == 0 {
			return e
		}
	}
	return nil
}

// assignments returns the step that adds a worker for an open entry, if one more may work now.
// Until then the workers that are there may claim it.
func (t *Team) assignments() []TeamStep {
	if t.Swarm == nil || len(t.Swarm.Tasks) == 0 || !t.going() || !t.heard() {
		return nil
	}
	busy := 0
	for i := range t.Members {
		if m := &t.Members[i]; m.Effort != nil && m.End == nil && !slices.ContainsFunc(m.Effort.Needs, t.works) {
			busy++
		}
	}
	e := t.assignable()
	if e == nil || busy >= max(1, t.Swarm.Rules.Workers) || e.ID == t.assigned {
		return nil
	}
	t.assigned = e.ID
	return []TeamStep{{Kind: Assign, Agent: Supervisor, Task: e.ID}}
}
