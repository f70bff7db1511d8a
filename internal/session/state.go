package session

import (
	"swarm"
	"swarm/internal/line"
	"swarm/internal/plan"
	"swarm/internal/view"
)

// standingOf returns the state of every agent, for planning the next line.
func standingOf(p view.Picture) line.Standing {
	s := line.Standing{Agents: map[string]line.AgentStanding{}}
	for _, t := range p.Tasks {
		a := s.Agents[t.Agent]
		a.Tasks++
		if t.Status.Ended() {
			a.Good = a.Good || t.Status == swarm.Completed
			a.Failed = t.Status != swarm.Completed
		} else {
			s.Open = append(s.Open, openTask(t))
		}
		s.Agents[t.Agent] = a
	}
	return s
}

func openTask(t view.Task) line.OpenTask {
	o := line.OpenTask{Name: t.Name, Agent: t.Agent}
	for _, w := range t.Waits {
		switch w.For {
		case plan.ForDependency:
			o.After = append(o.After, w.Task)
		case plan.ForOutput:
			o.Awaits = append(o.Awaits, w.Agent)
		}
	}
	return o
}
