package httpd

import "swarm"

// admittedAgents are the agents of one run.
type admittedAgents struct {
	agent func(token string) (Agent, error)
}

// Admit lets the agents of a run in, as long as this process drives it: agent says who has a token. When leave returns, they are
// nobody again, and none of their calls runs any more.
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
		s.mcp.dismiss(s.patience.goodbye, func(token string) bool {
			_, err := agent(token)
			return err == nil
		})
	}
}

// agent says who has a token.
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
	return nil, swarm.Errorf(swarm.Denied, "this token is nobody's").WithHint("an agent's token is good only while the process that gave it drives the run")
}
