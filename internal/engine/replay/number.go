package replay

import (
	"os"
	"strconv"
	"strings"

	"swarm"
)

// renumber returns a recorded event as the new log holds it: numbers of other events in its body
// and key become their new numbers. The test of this file walks all body types by reflection, and
// fails for a number that this function does not know of.
func (p *player) renumber(e swarm.Event) (swarm.Event, error) {
	switch e.Kind {
	case swarm.RunOwned: // this process drives the run
		e.Data = swarm.Encode(swarm.Ownership{PID: os.Getpid(), Fence: p.loop.Fence})
	case swarm.PlanAdded: // a request of an agent was granted: the rules for the team are this run's
		return rewrite(e, func(_ *swarm.Event, plan *swarm.Plan) {
			if len(p.plans) > 0 && plan.Team != nil {
				plan.Team = p.plans[0].Team
			}
		})
	case swarm.TurnStarted:
		return rewrite(e, func(_ *swarm.Event, s *swarm.TurnStart) { p.renumberStart(s) })
	case swarm.TurnEnded, swarm.ActionEnded, swarm.CheckEnded, swarm.CallEnded, swarm.LoopEnded:
		return rewrite(e, func(_ *swarm.Event, c *swarm.CallEnd) {
			c.Inputs, c.Wrote, c.Shown = p.inputs(c.Inputs), p.new.number(c.Wrote), p.new.number(c.Shown)
		})
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

// renumberStart translates the numbers in a turn's start.
func (p *player) renumberStart(s *swarm.TurnStart) {
	s.Inputs = p.inputs(s.Inputs)
	s.Topics, s.Rules, s.Outputs = p.new.number(s.Topics), p.new.number(s.Rules), p.new.number(s.Outputs)
}

// inputs translates a range of events.
func (p *player) inputs(in swarm.Inputs) swarm.Inputs {
	return swarm.Inputs{From: p.new.number(in.From), Upto: p.new.number(in.Upto)}
}

// renumberKey returns the idempotency key of a fact from the loop, with a new number at its end if
// it has one. The facts listed here may happen many times in a run, because a person may ask for
// them many times. Their keys end with the number of the event that the loop had read last, which
// is a recorded number.
func (p *player) renumberKey(e *swarm.Event) (string, error) {
	switch e.Kind {
	case swarm.RunPausing, swarm.RunPaused, swarm.RunUnpaused, swarm.AgentPaused, swarm.AgentResumed, swarm.Notice:
	default:
		return e.Key, nil
	}
	i := strings.LastIndexByte(e.Key, ':')
	old, err := strconv.ParseInt(e.Key[i+1:], 10, 64)
	if err != nil || i < 0 {
		return e.Key, nil //nolint:nilerr // a key without a number stays as it is
	}
	name := e.Key[:i]
	new, beyond := p.new.last(old)
	if beyond > 0 { // The event has no number in the new log. An owner takes over after a pause, say: two facts, and one number.
		name += "+" + strconv.FormatInt(beyond, 10)
	}
	return name + ":" + strconv.FormatInt(new, 10), p.new.err
}
