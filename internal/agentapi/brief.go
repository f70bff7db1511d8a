package agentapi

import (
	"swarm"
	"swarm/internal/mail"
)

// Present returns the parts of a prompt that describe the agent's team and show its mail. seq is
// the newest event that either comes from. Without a team there is no brief.
//
// The brief describes the team after answered growth requests, the state in which the loop started
// the turn. Agents that joined while the prompt was made are not in it, so the same turn gets the
// same prompt in a replay.
func (s *Service) Present(agent string, t *swarm.Team, answered int, items []mail.Item) (brief, inbox string, seq int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return "", "", 0, err
	}
	if t != nil {
		brief = s.rulesAfter(answered).Brief(agent, *t)
	}
	if len(items) > 0 {
		inbox = s.rules.Inbox(agent, items)
	}
	return brief, inbox, s.read, nil
}

// rulesAfter returns the rules as they were after so many answered growth requests. The caller
// holds the service's mutex.
func (s *Service) rulesAfter(answered int) *mail.Rules {
	known := min(1, len(s.plans))
	if n := min(answered, len(s.grown)); n > 0 {
		known = s.grown[n-1]
	}
	if known == len(s.plans) {
		return s.rules
	}
	rules := mail.NewRules(s.plans[:known]...)
	for _, a := range rules.Agents() {
		if s.rules.Ended(a) {
			rules.End(a, "")
		}
	}
	return rules
}

// Joined says whether a declared edge leads to the agent or from it.
func (s *Service) Joined(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow() == nil && s.rules.Joined(agent)
}
