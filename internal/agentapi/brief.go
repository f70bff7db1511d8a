package agentapi

import (
	"swarm"
	"swarm/internal/mail"
)

// Brief tells an agent how its team works, as it stood when so many growth requests had been dealt with: a turn is told of those who were there when
// its loop began it, and not of one who has joined while its prompt was made.
func (s *Service) Brief(agent string, t swarm.Team, answered int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow() != nil {
		return "" // whatever needs the log next says so
	}
	known := min(1, len(s.plans))
	if n := min(answered, len(s.grown)); n > 0 {
		known = s.grown[n-1]
	}
	rules := s.rules
	if known < len(s.plans) {
		rules = mail.NewRules(s.plans[:known]...)
		for _, a := range rules.Agents() {
			if s.rules.Ended(a) {
				rules.End(a, "")
			}
		}
	}
	return rules.Brief(agent, t)
}

// Joined says whether an edge that somebody has declared, by now, leads to the agent or from it.
func (s *Service) Joined(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow() == nil && s.rules.Joined(agent)
}
