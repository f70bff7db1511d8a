package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/strictjson"
)

const taskAddDescription = "Add an entry to the swarm's task list: work that nobody has yet. Any agent may claim it. If nobody does, another agent is added for it, as long as there may be more."

const taskAddSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["description"],
  "properties": {
    "description": {"type": "string", "description": "What is to be done, so that somebody who has not seen your work can do it."},
    "depends_on": {"type": "array", "items": {"type": "string"}, "description": "Ids of entries that must have ended before."}
  }
}`

const taskClaimDescription = "Take an open entry of the task list as yours, beside your own subtask. When you are done, it is done too."

const taskClaimSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["id"],
  "properties": {"id": {"type": "string", "description": "The entry, as the task list names it."}}
}`

// A taskResult answers task_add and task_claim.
type taskResult struct {
	ID string `json:"id"`
}

// taskKey and claimKey are the keys of an entry, and of the one claim that it can have. A worker that
// is added for an entry claims it by the same key.
func taskKey(id string) string  { return "task:" + id }
func claimKey(id string) string { return "claim:" + id }

// taskAdd adds an entry to the task list. The same call in the same turn adds one.
func taskAdd(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	s := h.service
	a := strictjson.ReadArgs(args, "description", "depends_on")
	a.Need("description")
	entry := swarm.Subtask{Description: strings.TrimSpace(string(s.redact([]byte(a.Text("description"))))), DependsOn: a.Texts("depends_on"), For: h.Agent}
	if err := a.Err(); err != nil {
		return nil, err
	}
	if n := len(entry.Description); n == 0 || n > mail.MaxMessage {
		return nil, swarm.Errorf(swarm.BadInput, "the description has %d bytes; 1 to %d are allowed", n, mail.MaxMessage)
	}
	entry.Origin = h.first() + "/" + string(swarm.HashOf(args)[:16])
	for {
		event, id, err := s.newTask(entry)
		if err != nil || event == nil {
			return taskResult{id}, err
		}
		_, there, err := h.append(ctx, swarm.Batch{Events: []swarm.Event{*event}})
		if there == nil || err != nil {
			return taskResult{id}, err
		} // another agent has taken the id meanwhile
	}
}

// newTask makes the event that adds an entry, with the next free id. It makes none if the entry is
// there already.
func (s *Service) newTask(entry swarm.Subtask) (e *swarm.Event, id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, "", err
	}
	for _, p := range s.plans {
		for i := 0; p.Swarm != nil && i < len(p.Swarm.Entries); i++ {
			if t := &p.Swarm.Entries[i]; t.Origin == entry.Origin {
				return nil, t.ID, nil
			}
		}
	}
	ids, n := s.taskIDs(), len(s.team.Swarm.Tasks)
	for _, need := range entry.DependsOn {
		if !slices.Contains(ids, need) {
			return nil, "", swarm.Errorf(swarm.BadInput, "there is no entry %s in the task list", swarm.Quote(need)).WithHint("%s", swarm.DidYouMean(need, ids))
		}
	}
	if n >= plan.MaxTasks {
		return nil, "", swarm.Errorf(swarm.Denied, "the task list is full: it has %d entries, and may have %d", n, plan.MaxTasks).WithHint("do it yourself, or claim an open entry")
	}
	for next := len(ids) + 1; entry.ID == "" || slices.Contains(ids, entry.ID); next++ {
		entry.ID = "t" + strconv.Itoa(next)
	}
	event := s.listed(taskKey(entry.ID), entry)
	return &event, entry.ID, nil
}

// listed makes the event that changes the task list.
func (s *Service) listed(key string, entry swarm.Subtask) swarm.Event {
	p := s.growth.Workers(s.Run, nil)
	p.Swarm.Entries = []swarm.Subtask{entry}
	return swarm.Event{Kind: swarm.PlanAdded, Key: key, To: swarm.ToLoop(swarm.RootLoop), Agent: entry.For, Data: swarm.Encode(p)}
}

// taskClaim claims an open entry. Of two claims the first in the log counts.
func taskClaim(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	s := h.service
	a := strictjson.ReadArgs(args, "id")
	a.Need("id")
	id := strings.TrimSpace(a.Text("id"))
	if err := a.Err(); err != nil {
		return nil, err
	}
	e, err := s.claim(h.Agent, id)
	if err != nil || e == nil {
		return taskResult{id}, err
	}
	_, there, err := h.append(ctx, swarm.Batch{Events: []swarm.Event{*e}})
	if err == nil && there != nil {
		_, err = s.claim(h.Agent, id) // says who was first
	}
	return taskResult{id}, err
}

// claim makes the event by which an agent claims an entry. It makes none if the agent has it already.
func (s *Service) claim(agent, id string) (*swarm.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	tasks := s.team.Swarm.Tasks
	var open []string
	for i := range tasks {
		if tasks[i].Agent == "" {
			open = append(open, tasks[i].ID)
		}
	}
	i := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.ID == id })
	if i < 0 {
		e := swarm.Errorf(swarm.BadInput, "there is no open entry %s in the task list", swarm.Quote(id))
		if len(open) > 0 {
			return nil, e.WithHint("open are %s", strings.Join(open, ", "))
		}
		return nil, e.WithHint("none is open; task_add adds one")
	}
	switch t := &tasks[i]; {
	case t.Agent == agent:
		return nil, nil
	case t.Agent != "":
		return nil, swarm.Errorf(swarm.Denied, "%s has claimed %s already", t.Agent, id).WithHint("go on with your own subtask, or claim another entry")
	case len(s.team.Blocks(t)) > 0:
		return nil, swarm.Errorf(swarm.Denied, "%s waits for %s", id, strings.Join(s.team.Blocks(t), ", ")).WithHint("claim it when those have ended")
	}
	e := s.listed(claimKey(id), swarm.Subtask{ID: id, Agent: agent})
	e.Agent = agent
	return &e, nil
}

// Assign adds an agent for an open entry of the task list, unless an agent has claimed it meanwhile.
// It returns the sequence number of the plan, or of the claim.
func (s *Service) Assign(ctx context.Context, fence int64, id string) (int64, error) {
	if e, done, err := s.Log.Find(claimKey(id)); err != nil || done {
		return e.Seq, err
	}
	s.mu.Lock()
	err := s.follow()
	var e swarm.Event
	if err == nil {
		tasks := s.team.Swarm.Tasks
		i := slices.IndexFunc(tasks, func(t plan.Task) bool { return t.ID == id })
		if i < 0 {
			err = swarm.Errorf(swarm.Storage, "the log has no entry %s of the task list", id)
		} else {
			p := s.growth.Workers(s.Run, []swarm.Subtask{{ID: id, Description: tasks[i].Description}})
			e = swarm.Event{Kind: swarm.PlanAdded, Key: claimKey(id), To: swarm.ToLoop(swarm.RootLoop), Agent: swarm.Supervisor, Data: swarm.Encode(p)}
		}
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	seqs, err := s.Log.Append(ctx, swarm.Batch{Fence: fence, Events: []swarm.Event{e}})
	if errors.Is(err, swarm.ErrConflict) { // an agent was first
		claimed, _, err := s.Log.Find(claimKey(id))
		return claimed.Seq, err
	}
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

// A SwarmTask is an entry of the task list, and how far it is.
type SwarmTask struct {
	ID, Task, State string
	Open            bool // nobody works on it
}

// taskIDs lists the ids of all entries, those of the workers' own subtasks first. The caller holds
// the service's mutex.
func (s *Service) taskIDs() []string {
	ids := s.growth.Subtasks()
	for i := range s.team.Swarm.Tasks {
		if id := s.team.Swarm.Tasks[i].ID; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// taskStates lists the entries that agents have added. The caller holds the service's mutex.
func (s *Service) taskStates() (all []SwarmTask) {
	for i := range s.team.Swarm.Tasks {
		t := &s.team.Swarm.Tasks[i]
		state := "open"
		if blocks := s.team.Blocks(t); t.Agent == "" && len(blocks) > 0 {
			state = "open, waits for " + strings.Join(blocks, ", ")
		}
		if t.Agent != "" {
			a := s.swarmAgent(swarm.Subtask{Agent: t.Agent})
			state = a.State()
		}
		all = append(all, SwarmTask{t.ID, t.Description, state, t.Agent == ""})
	}
	return all
}
