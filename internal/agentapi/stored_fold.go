package agentapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/plan"
)

// The stored fold. The version changes whenever a service would fold the same events to another
// state. The name is on disk and stays.
const (
	foldName      = "office"
	foldVersion   = "4"
	foldEvery     = 5000 // new events before the fold is stored again: fewer are quick to read
	maxRuleEvents = 5000 // more events are not worth listing: reading the log is as quick
)

// ruleEvents lists the events that the mail and growth rules come from. Applied again in order,
// they give the same rules. They are few: plans, starts and ends of agents, requests with their
// answers, and a person's newest message to each agent.
type ruleEvents struct {
	seqs map[string]int64 // sequence numbers, by what the event says
	upto int64            // sequence number up to which the fold is stored
}

// A storedFold is the fold of a service on disk: the events for its rules, and the rest as it is.
type storedFold struct {
	Events []int64                `json:"events"`
	Team   plan.TeamState         `json:"team"`
	Agents map[string]*agentState `json:"agents"`
}

// add lists an event that the service has just applied, if it changes the rules.
func (d *ruleEvents) add(e *swarm.Event) {
	if d == nil {
		return
	}
	says := strconv.FormatInt(e.Seq, 10) // unique: no later event replaces it
	switch e.Kind {
	case swarm.RunStarted, swarm.PlanAdded, swarm.AgentEnded, swarm.AgentRestarted, swarm.ApprovalAsked, swarm.RunEnded:
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

// loadFold restores the stored fold, if there is one. The caller holds the service's mutex and has
// reset the fold.
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
			err = s.applyEvent(&events[0])
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

// SaveFold stores the fold if many events were read since it was last stored, so the next service
// need not read them.
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
