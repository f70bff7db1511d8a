package agentapi

import (
	"swarm"
	"swarm/internal/fact"
	"swarm/internal/growth"
	"swarm/internal/mail"
	"swarm/internal/plan"
)

// An agentState is what only the tools need to know of an agent. [plan.Team] has the rest.
type agentState struct {
	Read   int64               // of a person, who is no member of the team: the cursor of their mail
	Urgent int64               // the newest urgent envelope in its inbox
	Output output              // of its last successful turn
	From   map[string]sentMail // by sender: the newest envelope that gives the agent a turn; nil = none
	Began  int64               // sequence number of its last restart after it had ended
	Sent   int                 // messages that it has sent in its turns
}

// An output is the output of a turn.
type output struct {
	Turn swarm.TurnID
	Task string
	Hash swarm.Hash
	Seq  int64 // of the turn's end
}

// A sentMail is the sequence number of an envelope and the turn that sent it.
type sentMail struct {
	Seq  int64
	Turn swarm.TurnID
}

// agent returns the state of an agent or a person. The caller holds the service's mutex.
func (s *Service) agent(name string) *agentState {
	state := s.agents[name]
	if state == nil {
		state = &agentState{}
		s.agents[name] = state
	}
	return state
}

// cursor is the sequence number up to which mail is consumed. The caller holds the service's mutex.
func (s *Service) cursor(name string) int64 {
	if m := s.team.Member(name); m != nil {
		return m.Read
	}
	return s.agent(name).Read
}

// resetFold clears the fold, as if no event had been read. The caller holds the service's mutex.
func (s *Service) resetFold() {
	s.rules, s.growth, s.agents, s.team = mail.NewRules(), growth.NewTeam(), map[string]*agentState{}, plan.NewTeam()
	s.team.Rules = swarm.Team{Mode: swarm.AutoMode, Phase: swarm.ImplementationPhase}
	s.read, s.plans, s.grown, s.over, s.ruleEvents = 0, nil, nil, false, nil
	if s.Folds != nil {
		s.ruleEvents = &ruleEvents{seqs: map[string]int64{}}
	}
}

// follow folds the events that were appended since the last call. The caller holds the service's
// mutex.
func (s *Service) follow() error {
	if s.rules == nil {
		if s.resetFold(); s.loadFold() != nil {
			s.resetFold() // a broken stored fold is ignored: the log has everything
		}
	}
	for e, err := range swarm.Events(s.Log, s.read) {
		if err == nil {
			err = s.applyEvent(e)
		}
		if err != nil {
			return err
		}
		s.ruleEvents.add(e)
		s.read = e.Seq
	}
	return nil
}

func (s *Service) applyEvent(e *swarm.Event) error {
	if e.Kind == swarm.HandoffStored {
		return s.applyMail(e)
	}
	f, _, err := fact.Of(e)
	switch {
	case e.Kind == swarm.Control && err != nil: // the loop and the turns report a command that cannot be read
		return nil //nolint:nilerr // see above
	case err != nil:
		return err
	}
	if p, ok := f.Body.(*swarm.Plan); !ok || p.Kind.Team() { // agents of a pipeline are members of no team
		s.team.Apply(f)
	}
	switch e.Kind {
	case swarm.RunStarted:
		if start, err := swarm.Body[swarm.RunStart](e); err == nil { // views of the run report a start that cannot be read
			s.growth.Work(start.Dir)
		}
	case swarm.PlanAdded:
		p := f.Body.(*swarm.Plan)
		s.rules.Add(p)
		s.growth.Add(p)
		s.plans = append(s.plans, p)
	case swarm.HandoffConsumed:
		a := s.agent(e.Agent)
		a.Read = max(a.Read, f.Body.(swarm.Consumption).Upto)
	case swarm.TurnEnded:
		if end := f.Body.(swarm.CallEnd); end.Status == swarm.CallOK {
			s.agent(e.Agent).Output = output{e.Turn, e.Task, end.Output, e.Seq}
		}
	case swarm.AgentEnded:
		s.rules.End(e.Agent, f.Body.(swarm.AgentEnd).Reason)
		s.growth.End(e.Agent)
	case swarm.AgentRestarted: // earlier mail was returned to its senders
		s.rules.Start(e.Agent)
		s.growth.Start(e.Agent)
		s.agent(e.Agent).Began = e.Seq
	case swarm.ApprovalAsked:
		if a := f.Body.(swarm.Approval); a.Growth != nil {
			s.growth.Ask(a.ID, e.Agent, *a.Growth)
		}
	case swarm.RunEnded:
		s.over = true
	}
	return nil
}

// starts is how often an agent was started again.
func (s *Service) starts(agent string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.team.Member(agent); m != nil {
		return m.Starts
	}
	return 0
}

// applyMail folds an envelope.
func (s *Service) applyMail(e *swarm.Event) error {
	env, err := swarm.Body[swarm.StoredEnvelope](e)
	if err != nil {
		return err
	}
	f, m := fact.Head(e), fact.Mail(e, &env)
	f.Body = m
	s.team.Apply(f)
	if e.Turn != "" && m.From != swarm.Orchestrator {
		s.agent(m.From).Sent++
	}
	a := s.agent(m.To)
	if m.Wakes {
		if a.From == nil {
			a.From = map[string]sentMail{}
		}
		a.From[m.From] = sentMail{e.Seq, e.Turn}
	}
	if mail.Urgent(env.Envelope) {
		a.Urgent = e.Seq
	}
	s.applyQuestion(&env.Envelope)
	switch m.From {
	case swarm.User:
		s.rules.Hear(m.To)
	case swarm.Orchestrator, swarm.Supervisor:
		id, ok, err := AnswerTo(e)
		if ok {
			s.growth.Answer(id)
			s.grown = append(s.grown, len(s.plans))
		}
		return err
	}
	return nil
}
