package agentapi

import (
	"swarm"
	"swarm/internal/mail"
)

// Present is what a prompt tells an agent of its team, and its mail as it stands there; seq is the newest event by which either is
// told. Of the team it tells how that stood when so many growth requests had been dealt with: a turn is told of those who were there
// when its loop began it, and not of one who has joined while its prompt was made. Without a team there is no brief.
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

// rulesAfter are the rules as they were when so many growth requests had been dealt with. The service is locked.
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

// Joined says whether an edge that somebody has declared, by now, leads to the agent or from it.
func (s *Service) Joined(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow() == nil && s.rules.Joined(agent)
}
