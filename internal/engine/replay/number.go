package replay

import (
	"os"
	"strconv"
	"strings"

	"swarm"
)

// renumber is a recorded event as it stands in the new log: what it says of other events by their numbers, it says by their new
// ones. [swarm.Event] bodies that hold numbers of events are listed in the test of this file.
func (p *player) renumber(e swarm.Event) (swarm.Event, error) {
	switch e.Kind {
	case swarm.RunOwned: // this process drives the run
		e.Data = swarm.Encode(swarm.Ownership{PID: os.Getpid(), Fence: p.loop.Fence})
	case swarm.TurnStarted:
		return rewrite(e, func(_ *swarm.Event, s *swarm.TurnStart) { p.renumberStart(s) })
	case swarm.TurnEnded, swarm.CallEnded, swarm.LoopEnded:
		return rewrite(e, func(_ *swarm.Event, c *swarm.CallEnd) { c.Inputs, c.Wrote = p.inputs(c.Inputs), p.new.number(c.Wrote) })
	case swarm.HandoffStored:
		return rewrite(e, func(_ *swarm.Event, s *swarm.StoredEnvelope) { s.Read = p.new.number(s.Read) })
	case swarm.HandoffConsumed:
		return rewrite(e, func(e *swarm.Event, c *swarm.Consumption) {
			c.Inputs = p.inputs(c.Inputs)
			e.Key = swarm.UsedKey(e.Agent, c.From)
		})
	case swarm.HandoffInjected:
		return rewrite(e, func(e *swarm.Event, in *swarm.Injection) {
			in.Inputs = p.inputs(in.Inputs)
			e.Key = swarm.InjectedKey(e.Turn, *in)
		})
	}
	return e, p.new.err
}

func (p *player) renumberStart(s *swarm.TurnStart) {
	s.Inputs = p.inputs(s.Inputs)
	s.Topics, s.Rules, s.Outputs = p.new.number(s.Topics), p.new.number(s.Rules), p.new.number(s.Outputs)
}

func (p *player) inputs(in swarm.Inputs) swarm.Inputs {
	return swarm.Inputs{From: p.new.number(in.From), Upto: p.new.number(in.Upto)}
}

// renumberKey is the key of what a loop tells. Those that end with the number of the record that the loop had read last are told
// of the run, or of an agent, as often as a person wants it.
func (p *player) renumberKey(e *swarm.Event) (string, error) {
	switch e.Kind {
	case swarm.RunPausing, swarm.RunPaused, swarm.RunUnpaused, swarm.AgentPaused, swarm.AgentResumed, swarm.Notice:
	default:
		return e.Key, nil
	}
	i := strings.LastIndexByte(e.Key, ':')
	if old, err := strconv.ParseInt(e.Key[i+1:], 10, 64); err == nil && i >= 0 {
		return e.Key[:i+1] + strconv.FormatInt(p.new.number(old), 10), p.new.err
	}
	return e.Key, nil
}
