package agentapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/plan"
)

// A Shelf keeps what somebody has made of a log. It may be thrown away at any time.
type Shelf interface {
	LoadFold(name, version string) (seq int64, data []byte, ok bool)
	SaveFold(name, version string, seq int64, data []byte) error
}

// What is kept there: another version whenever an office would make something else of the same events.
const (
	digestName    = "office"
	digestVersion = "2"
	digestEvery   = 5000 // events that are rather read than kept
	mostDigested  = 5000 // events that are rather kept than read
)

// A digest is which events have made the rules of an office what they are. Taken once more, in their order, they make the same.
// There are few of them: plans, agents that came and went, requests and answers, and of a person's mail the newest to each agent.
type digest struct {
	kept map[string]int64 // by what an event says: its number
	upto int64            // of the one that was stored
}

// A shelved is an office as it is kept: events for its rules, and the rest as it is.
type shelved struct {
	Events []int64              `json:"events"`
	Team   plan.TeamState       `json:"team"`
	Agents map[string]*standing `json:"agents"`
}

// note adds an event that the office has just taken.
func (d *digest) note(e *swarm.Event) {
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
	d.kept[says] = e.Seq
}

// open takes what is on the shelf. The office is locked, and has read nothing.
func (o *Office) open() error {
	if o.Shelf == nil {
		return nil
	}
	seq, data, ok := o.Shelf.LoadFold(digestName, digestVersion)
	if !ok {
		return nil
	}
	var s shelved
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	for _, at := range s.Events {
		events, err := o.Log.Read(at-1, 1)
		if err == nil && (len(events) == 0 || events[0].Seq != at || at > seq) {
			err = swarm.Errorf(swarm.Storage, "the log has no event %d", at)
		}
		if err == nil {
			err = o.take(&events[0])
		}
		if err != nil {
			return err
		}
		o.digest.note(&events[0])
	}
	o.team, o.agents = plan.RestoreTeam(s.Team), s.Agents
	o.read, o.digest.upto = seq, seq
	return nil
}

// Keep puts what the office has read on its shelf, when it was much, so that the next one need not read it.
func (o *Office) Keep() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.digest
	if d == nil || o.read-d.upto < digestEvery || len(d.kept) > mostDigested {
		return nil
	}
	return o.keep()
}

func (o *Office) keep() error {
	o.digest.upto = o.read
	s := shelved{Events: slices.Sorted(maps.Values(o.digest.kept)), Team: o.team.TeamState, Agents: o.agents}
	return o.Shelf.SaveFold(digestName, digestVersion, o.read, swarm.Encode(s))
}
