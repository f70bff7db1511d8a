package flow

import (
	"swarm"
	"swarm/internal/plan"
)

// hold has an agent get no turn, or get turns again.
func (p *pipeline) hold(agent string, on bool, seq int64) error {
	if !p.sched.PauseAgent(agent, on) {
		return nil
	}
	kind := swarm.AgentResumed
	if delete(p.held, agent); on {
		kind = swarm.AgentPaused
		if p.held == nil {
			p.held = map[string]bool{}
		}
		p.held[agent] = false
	}
	return p.fx.Tell(Fact{Kind: kind, Key: string(kind) + single(agent, seq), Agent: agent})
}

// tellHeld says, once, that nothing goes on because agents are paused.
func (p *pipeline) tellHeld() error {
	if len(p.held) == 0 || p.sched.Running() > 0 || len(p.retries) > 0 || p.stop != "" || !p.pausing.IsZero() {
		return nil
	}
	for i := range p.tasks {
		waits := p.sched.Waits(i)
		if len(waits) == 0 || waits[0].For != plan.ForPause {
			continue
		}
		agent := waits[0].Agent
		if told, held := p.held[agent]; !held || told {
			continue
		}
		p.held[agent] = true
		if err := p.fx.Tell(waitsForHeld(agent, p.seen)); err != nil {
			return err
		}
	}
	return nil
}

// reset counts the attempts of an agent's tasks anew, and lets those run that wait for their next one. What runs is cut, and the agent's
// session forgotten, by the hand that runs it.
func (p *pipeline) reset(agent string) {
	var kept []timer
	for _, t := range p.retries {
		if p.sched.Task(t.task).Agent == agent {
			p.sched.Again(t.task)
		} else {
			kept = append(kept, t)
		}
	}
	p.retries = kept
	for i := range p.tasks {
		if p.sched.Task(i).Agent == agent && p.sched.Status(i) != swarm.Running {
			p.tasks[i].tries = 0
		}
	}
}
