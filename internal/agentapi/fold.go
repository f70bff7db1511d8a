package agentapi

import (
	"swarm"
	"swarm/internal/fact"
	"swarm/internal/growth"
	"swarm/internal/mail"
	"swarm/internal/plan"
)

// A standing is what only the tools have to know of an agent. The rest is known to the [plan.Team].
type standing struct {
	Read   int64            // up to where its mail is consumed, when it is no agent: a person
	Urgent int64            // the newest envelope in its inbox that is not to wait
	Output output           // of its last good turn
	From   map[string]place // by sender: the newest envelope that gives it a turn
	Began  int64            // when it was last started again after it had ended
}

// An output is what came of a turn.
type output struct {
	Turn, Task string
	Hash       swarm.Hash
	Seq        int64 // of the turn's end
}

// A place is where an envelope stands, and the turn that sent it.
type place struct {
	Seq  int64
	Turn string
}

// agent is what the tools know of somebody. The office is locked.
func (o *Office) agent(name string) *standing {
	s := o.agents[name]
	if s == nil {
		s = &standing{From: map[string]place{}}
		o.agents[name] = s
	}
	return s
}

// cursor is up to where somebody's mail is consumed. The office is locked.
func (o *Office) cursor(name string) int64 {
	if m := o.team.Member(name); m != nil {
		return m.Read
	}
	return o.agent(name).Read
}

// forget makes the office one that has read nothing. It is locked.
func (o *Office) forget() {
	o.rules, o.growth, o.agents, o.team = mail.NewRules(), growth.NewTeam(), map[string]*standing{}, plan.NewTeam()
	o.team.Rules = swarm.Team{Mode: swarm.AutoMode, Phase: swarm.ImplementationPhase}
	o.read, o.plans, o.grown, o.over, o.digest = 0, nil, nil, false, nil
	if o.Shelf != nil {
		o.digest = &digest{kept: map[string]int64{}}
	}
}

// follow folds what the log has gained. The office is locked.
func (o *Office) follow() error {
	if o.rules == nil {
		if o.forget(); o.open() != nil {
			o.forget() // what cannot be used is not there: the log has it all
		}
	}
	for {
		events, err := o.Log.Read(o.read, page)
		if err != nil || len(events) == 0 {
			return err
		}
		for i := range events {
			if err := o.take(&events[i]); err != nil {
				return err
			}
			o.digest.note(&events[i])
			o.read = events[i].Seq
		}
	}
}

func (o *Office) take(e *swarm.Event) error {
	if e.Kind == swarm.HandoffStored {
		return o.takeMail(e)
	}
	f, _, err := fact.Of(e)
	switch {
	case e.Kind == swarm.Control && err != nil: // the loop and the turns that obey control complain about it
		return nil //nolint:nilerr // see above
	case err != nil:
		return err
	}
	o.team.Apply(f)
	switch e.Kind {
	case swarm.RunStarted:
		if s, err := swarm.Body[swarm.RunStart](e); err == nil { // who shows runs complains about what cannot be read
			o.growth.Work(s.Dir)
		}
	case swarm.PlanAdded:
		p := f.Body.(*swarm.Plan)
		o.rules.Add(p)
		o.growth.Add(p)
		o.plans = append(o.plans, p)
	case swarm.HandoffConsumed:
		a := o.agent(e.Agent)
		a.Read = max(a.Read, f.Body.(swarm.Consumption).Upto)
	case swarm.TurnEnded:
		if end := f.Body.(swarm.CallEnd); end.Status == swarm.CallOK {
			o.agent(e.Agent).Output = output{e.Turn, e.Task, end.Output, e.Seq}
		}
	case swarm.AgentEnded:
		o.rules.End(e.Agent, f.Body.(swarm.AgentEnd).Reason)
		o.growth.End(e.Agent)
	case swarm.AgentStarted: // what came before has gone back
		o.rules.Start(e.Agent)
		o.growth.Start(e.Agent)
		o.agent(e.Agent).Began = e.Seq
	case swarm.ApprovalAsked:
		if a := f.Body.(swarm.Approval); a.Growth != nil {
			o.growth.Ask(a.ID, e.Agent, *a.Growth)
		}
	case swarm.RunEnded:
		o.over = true
	}
	return nil
}

// starts is how often an agent was started again.
func (o *Office) starts(agent string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.team.Member(agent); m != nil {
		return m.Starts
	}
	return 0
}

// takeMail folds what an envelope says.
func (o *Office) takeMail(e *swarm.Event) error {
	env, err := swarm.Body[swarm.StoredEnvelope](e)
	if err != nil {
		return err
	}
	f, m := fact.Head(e), fact.Mail(e, &env)
	f.Body = m
	o.team.Apply(f)
	a := o.agent(m.To)
	if m.Wakes {
		a.From[m.From] = place{e.Seq, e.Turn}
	}
	if mail.Urgent(env.Envelope) {
		a.Urgent = e.Seq
	}
	o.takeQuestion(&env.Envelope)
	switch m.From {
	case swarm.User:
		o.rules.Hear(m.To)
	case swarm.Orchestrator:
		id, ok, err := AnswerTo(e)
		if ok {
			o.growth.Answer(id)
			o.grown = append(o.grown, len(o.plans))
		}
		return err
	}
	return nil
}
