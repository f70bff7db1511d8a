package agentapi

import (
	"swarm"
	"swarm/internal/mail"
)

// Brief tells an agent how its team works, as it stood when so many growth requests had been dealt with: a turn is told of those who were there when
// its loop began it, and not of one who has joined while its prompt was made.
func (o *Office) Brief(agent string, t swarm.Team, answered int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.follow() != nil {
		return "" // whatever needs the log next says so
	}
	known := min(1, len(o.plans))
	if n := min(answered, len(o.grown)); n > 0 {
		known = o.grown[n-1]
	}
	rules := o.rules
	if known < len(o.plans) {
		rules = mail.NewRules(o.plans[:known]...)
		for _, a := range rules.Agents() {
			if o.rules.Ended(a) {
				rules.End(a, "")
			}
		}
	}
	return rules.Brief(agent, t)
}

// Joined says whether an edge that somebody has declared, by now, leads to the agent or from it.
func (o *Office) Joined(agent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.follow() == nil && o.rules.Joined(agent)
}
