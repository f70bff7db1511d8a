package office

import "swarm"

// Brief tells an agent how its team works.
func (o *Office) Brief(agent string, t swarm.Team) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.follow() != nil {
		return "" // whatever needs the log next says so
	}
	return o.rules.Brief(agent, t)
}
