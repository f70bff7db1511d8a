package replay

import (
	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/turn"
)

// A view is a log that ends where a live turn had read it when it made its prompt. Readers keep
// what they read and follow the log, so the end of a view moves forward and never back.
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

// A promptMaker makes prompts from as much of the log as the recorded turn had read.
//
// A live turn reads the log twice while other turns write to it: for the rules (the team's edges,
// and which mail was answered), and for the outputs of other tasks. The two reads may end at
// different events, so each has a view of its own.
//
// Some turns read only once, or not at all. A turn without a team and without mail does not read
// the rules. A prompt without outputs does not read the outputs. If such a turn reads them now,
// because its plan has changed, it sees the whole log.
type promptMaker struct {
	live           *turn.Runner // the runner of this run: its folder, its redaction, its log
	edited         *turn.Edit   // the prompt that a person had written in the recorded run; nil = none
	rules, outputs view
	runners        map[[2]bool]*turn.Runner // by whether a view limits the rules, and the outputs
}

// at returns a runner that sees as much of the log as the turn with this start did. A start that is
// older than a view's end needs new runners: those that exist have read further already.
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
		m.runners[ends] = &turn.Runner{Run: m.live.Run, Log: outputs, Dir: m.live.Dir, Redact: m.live.Redact, Edited: m.edited}
		if api := m.live.AgentAPI; api != nil {
			m.runners[ends].AgentAPI = &agentapi.Service{Run: api.Run, Log: rules, Redact: api.Redact}
		}
	}
	return m.runners[ends]
}
