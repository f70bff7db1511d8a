package replay

import (
	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/turn"
)

// A view is a log that ends where a live turn had read it when it made its prompt. It is for readers that follow a log: the end
// moves on, and never back.
type view struct {
	swarm.Log
	end int64
}

func (v *view) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	events, err := v.Log.Read(after, limit, to...)
	for i := range events {
		if events[i].Seq > v.end {
			return events[:i], err
		}
	}
	return events, err
}

// A promptMaker makes prompts as the turns of the recorded run did. Such a turn has read the log twice: for who may write to whom, and
// for outputs. What others wrote meanwhile is in the one and not in the other. A turn without a team and without mail has not read
// it for the first, and one whose prompt has no outputs not for the second: should such a turn do so now, it has all of the log.
type promptMaker struct {
	live           *turn.Runner // how prompts are made in this run
	rules, outputs view
	runners        map[[2]bool]*turn.Runner // by whether the log ends for rules, and for outputs
}

// at is a runner that knows of the log what the turn with this start did.
func (m *promptMaker) at(start *swarm.TurnStart) *turn.Runner {
	ends := [2]bool{start.Rules > 0, start.Outputs > 0}
	if m.runners == nil || ends[0] && start.Rules < m.rules.end || ends[1] && start.Outputs < m.outputs.end {
		m.rules, m.outputs, m.runners = view{Log: m.live.Log}, view{Log: m.live.Log}, map[[2]bool]*turn.Runner{}
	}
	m.rules.end, m.outputs.end = max(m.rules.end, start.Rules), max(m.outputs.end, start.Outputs)
	if m.runners[ends] == nil {
		rules, outputs := m.live.Log, m.live.Log
		if ends[0] {
			rules = &m.rules
		}
		if ends[1] {
			outputs = &m.outputs
		}
		m.runners[ends] = &turn.Runner{Run: m.live.Run, Log: outputs, Dir: m.live.Dir, Redact: m.live.Redact}
		if api := m.live.AgentAPI; api != nil {
			m.runners[ends].AgentAPI = &agentapi.Service{Run: api.Run, Log: rules, Redact: api.Redact}
		}
	}
	return m.runners[ends]
}
