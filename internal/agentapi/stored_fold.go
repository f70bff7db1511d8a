package agentapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/plan"
)

// The name and version of the stored fold: another version whenever a service would make something else of the same events.
const (
	foldName      = "office"
	foldVersion   = "2"
	foldEvery     = 5000 // events that are rather read than kept
	maxRuleEvents = 5000 // events that are rather kept than read
)

// ruleEvents are which events have made the rules of a service what they are. Taken once more, in their order, they make the same.
// There are few of them: plans, agents that came and went, requests and answers, and of a person's mail the newest to each agent.
type ruleEvents struct {
	seqs map[string]int64 // by what an event says: its number
	upto int64            // of the one that was stored
}

// A storedFold is a service as it is kept: events for its rules, and the rest as it is.
type storedFold struct {
	Events []int64                `json:"events"`
	Team   plan.TeamState         `json:"team"`
	Agents map[string]*agentState `json:"agents"`
}

// add adds an event that the service has just taken.
func (d *ruleEvents) add(e *swarm.Event) {
	if d == nil {
		return
	}
	says := strconv.FormatInt(e.Seq, 10) // what no other says
	switch e.Kind {
	case swarm.RunStarted, swarm.PlanAdded, swarm.AgentEnded, swarm.AgentStarted, swarm.ApprovalAsked, swarm.RunEnded:
	case swarm.HandoffStored:
		if _, answers, _ := AnswerTo(e); e.Agent == swarm.User {
			says = "heard " + e.To
		} else if !answers {
			return
		}
	default:
		return
	}
	d.seqs[says] = e.Seq
}

// loadFold takes the stored fold, if there is one. The service is locked, and has read nothing.
func (s *Service) loadFold() error {
	if s.Folds == nil {
		return nil
	}
	seq, data, ok := s.Folds.LoadFold(foldName, foldVersion)
	if !ok {
		return nil
	}
	var stored storedFold
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	for _, at := range stored.Events {
		events, err := s.Log.Read(at-1, 1)
		if err == nil && (len(events) == 0 || events[0].Seq != at || at > seq) {
			err = swarm.Errorf(swarm.Storage, "the log has no event %d", at)
		}
		if err == nil {
			err = s.take(&events[0])
		}
		if err != nil {
			return err
		}
		s.ruleEvents.add(&events[0])
	}
	s.team, s.agents = plan.RestoreTeam(stored.Team), stored.Agents
	s.read, s.ruleEvents.upto = seq, seq
	return nil
}

// SaveFold stores what the service has read, when it was much, so that the next one need not read it.
func (s *Service) SaveFold() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.ruleEvents
	if d == nil || s.read-d.upto < foldEvery || len(d.seqs) > maxRuleEvents {
		return nil
	}
	return s.saveFold()
}

func (s *Service) saveFold() error {
	s.ruleEvents.upto = s.read
	stored := storedFold{Events: slices.Sorted(maps.Values(s.ruleEvents.seqs)), Team: s.team.TeamState, Agents: s.agents}
	return s.Folds.SaveFold(foldName, foldVersion, s.read, swarm.Encode(stored))
}
