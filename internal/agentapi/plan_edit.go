package agentapi

import (
	"encoding/json"
	"slices"

	"swarm"
	"swarm/internal/subtask"
)

// A person may change the subtasks that a question about a plan is about. The answer and the plan with
// the changes are one batch: a subtask with a known id stays with its agent, one that is missing is
// dropped with its agent, and a new one gets a new agent.

// subtasks returns the subtasks of a swarm in the order of their agents. The caller holds the mutex.
func (s *Service) subtasks() (all []swarm.Subtask) {
	for _, p := range s.plans {
		switch {
		case p.Swarm == nil || len(p.Swarm.Subtasks) == 0:
		case all == nil: // most have all subtasks in one plan
			all = slices.Clip(p.Swarm.Subtasks)
		case len(p.Swarm.Subtasks) == len(p.Agents):
			all = append(all, p.Swarm.Subtasks...)
		default: // a person's changes: some of its agents were there before
			all = slices.Clone(all)
			for _, t := range p.Swarm.Subtasks {
				if at := slices.IndexFunc(all, func(o swarm.Subtask) bool { return o.Agent == t.Agent }); at >= 0 {
					all[at] = t
				} else {
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// asked returns the subtasks that the open question about a plan is about, and the ids of the earlier
// ones. The caller holds the mutex.
func (s *Service) asked(q question) (about []swarm.Subtask, earlier []string, err error) {
	all, had := s.subtasks(), s.team.Swarm.Approved
	switch {
	case s.council():
		return nil, nil, swarm.Errorf(swarm.BadInput, "the members of a council all have the query itself, so there is nothing to edit").WithHint("approve or deny it")
	case s.team.Swarm.Asking != q.Agents || len(all) != q.Agents || had >= len(all):
		return nil, nil, swarm.Errorf(swarm.BadInput, "other agents have joined since %s was asked, so it cannot be edited", q.ID).WithHint("approve or deny it")
	}
	for _, t := range all[:had] {
		earlier = append(earlier, t.ID)
	}
	return all[had:], earlier, nil
}

// PlanText returns the subtasks that a question about a plan is about, as the JSON that a person edits.
func (s *Service) PlanText(id string) ([]byte, error) {
	q, err := s.question(id)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	about, _, err := s.asked(q)
	if err != nil {
		return nil, err
	}
	return subtask.Text(about), nil
}

// editPlan makes the plan with a person's changes, and completes the answer.
func (s *Service) editPlan(q question, text []byte, answer *swarm.ApprovalAnswer) (*swarm.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	about, earlier, err := s.asked(q)
	if err != nil {
		return nil, err
	}
	edited, err := subtask.ReadEdit(text, earlier)
	if err != nil {
		return nil, err
	}
	var changed, added []swarm.Subtask
	left := slices.Clone(about)
	for _, t := range edited {
		if err := subtask.CheckRole(s.plans[0].Swarm.Roles, t); err != nil {
			return nil, err
		}
		at := slices.IndexFunc(left, func(o swarm.Subtask) bool { return o.ID == t.ID })
		if at < 0 {
			added = append(added, t)
			continue
		}
		was := left[at]
		left = slices.Delete(left, at, at+1)
		if was.Role != t.Role {
			return nil, swarm.Errorf(swarm.BadInput, "subtask %s has an agent already, so its role cannot be changed", swarm.Quote(t.ID)).
				WithHint("give the subtask another id, and it gets a new agent with this role")
		}
		t.Agent, t.For, t.Origin = was.Agent, was.For, was.Origin
		if t.Description != was.Description || !slices.Equal(t.DependsOn, was.DependsOn) {
			changed = append(changed, t)
		}
	}
	if room := s.growth.Room(); len(added) > room {
		return nil, swarm.Errorf(swarm.BadInput, "there are %d new subtasks, and %d more agents may join", len(added), room).
			WithHint("raise swarm.max_agents in the compose file, or keep the ids of subtasks that you change")
	}
	for _, t := range left {
		answer.Dropped = append(answer.Dropped, t.Agent)
	}
	if answer.Agents = q.Agents + len(added); len(changed)+len(added) == 0 {
		return nil, nil
	}
	p := s.growth.Workers(s.Run, added)
	p.Swarm.Subtasks = append(changed, p.Swarm.Subtasks...)
	return &swarm.Event{Kind: swarm.PlanAdded, Key: swarm.PlanEditKey(q.ID), To: swarm.ToLoop(swarm.RootLoop), Agent: swarm.Supervisor, Data: json.RawMessage(s.redact(swarm.Encode(p)))}, nil
}
