package httpd

import "swarm"

// admittedAgents are the agents of one run. agent maps a token to its agent.
type admittedAgents struct {
	agent func(token string) (Agent, error)
}

// Admit admits the agents of a run while this process drives it. agent maps a token to its agent.
// After leave returns, their tokens are refused and none of their calls runs any more.
func (s *Server) Admit(agent func(token string) (Agent, error)) (leave func()) {
	g := &admittedAgents{agent}
	s.mu.Lock()
	s.admitted = append(s.admitted, g)
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		for i, other := range s.admitted {
			if other == g {
				s.admitted = append(s.admitted[:i:i], s.admitted[i+1:]...)
				break
			}
		}
		s.mu.Unlock()
		s.mcp.closeSessions(s.timeouts.shutdown, func(token string) bool {
			_, err := agent(token)
			return err == nil
		})
	}
}

// agent maps a token to its agent, in any of the admitted runs.
func (s *Server) agent(token string) (Agent, error) {
	if s.options.Agent != nil {
		return s.options.Agent(token)
	}
	s.mu.Lock()
	all := s.admitted
	s.mu.Unlock()
	for _, g := range all {
		if a, err := g.agent(token); err == nil && a != nil {
			return a, nil
		}
	}
	return nil, swarm.Errorf(swarm.Denied, "this token is nobody's").
		WithHint("an agent's token is good only while the process that gave it drives the run")
}
