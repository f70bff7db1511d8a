package view

import (
	"cmp"
	"fmt"
	"slices"

	"swarm"
	"swarm/internal/fact"
	"swarm/internal/plan"
	"swarm/internal/wording"
)

// foldAgent folds an event about one agent.
func (r *Run) foldAgent(e *swarm.Event) error {
	switch e.Kind {
	case swarm.AgentPaused:
		r.sched.PauseAgent(e.Agent, true)
	case swarm.AgentResumed, swarm.AgentRestarted:
		r.sched.PauseAgent(e.Agent, false)
		r.Notices = slices.DeleteFunc(r.Notices, func(n Notice) bool { return n.Code == swarm.WaitsForPaused && n.Agent == e.Agent })
	case swarm.LimitEnded:
		return swarm.UseBody(e, func(l swarm.Limit) { r.sched.EndLimit(l.Provider) })
	case swarm.TurnSession:
		return swarm.UseBody(e, func(in swarm.TurnInSession) {
			if a, ok := r.agentAt[e.Agent]; ok {
				r.agents[a].Session, r.agents[a].Active = in.Session, e.Time
			}
		})
	}
	return nil
}

// route returns the providers that do an agent's turns.
func (r *Run) route(agent string) plan.Route {
	if i, ok := r.agentAt[agent]; ok {
		return plan.Route{Provider: r.agents[i].Provider, OnLimit: r.agents[i].OnLimit}
	}
	return plan.Route{}
}

// foldTeam passes an event to the model of the team.
func (r *Run) foldTeam(e *swarm.Event) error {
	if r.team == nil || e.Kind == swarm.PlanAdded || e.Kind == swarm.HandoffStored { // addMembers and foldMail pass these on
		return nil
	}
	f, _, err := fact.Of(e)
	if err == nil {
		r.team.Apply(f)
	}
	return err
}

// addMembers adds the agents of a team's plan. The picture shows each as a task that lasts as long
// as the run.
func (r *Run) addMembers(e *swarm.Event, p *swarm.Plan) {
	if r.team == nil {
		r.team = plan.NewTeam()
	}
	f := fact.Head(e)
	f.Body = p
	r.team.Apply(f)
	for _, m := range r.team.Members[len(r.tasks):] {
		r.addTask(task{Task: Task{Name: m.Name, Agent: m.Name, Status: swarm.Pending, Iteration: 1, Iterations: 1}})
	}
	r.addSubtasks(p)
}

// PausedFor returns why the run has paused itself, or "".
func (p *Picture) PausedFor() string {
	for _, n := range slices.Backward(p.Notices) {
		if n.Paused {
			return n.Reason
		}
	}
	return ""
}

// stuck returns why a running run does not move: the only agents with work are paused, or a person
// has to answer. Otherwise it returns "".
func (r *Run) stuck(p *Picture) string {
	var paused, question string
	for i := range p.Tasks {
		t := &p.Tasks[i]
		switch {
		case t.Status == swarm.Running && len(t.Waits) == 0, t.Status == swarm.Pending:
			return ""
		case t.Status != swarm.Waiting:
		case t.Waits[0].For == plan.ForPause && t.Waits[0].Agent != "" && r.team == nil:
			paused = cmp.Or(paused, t.Agent)
		case t.Subtask != nil && t.Waits[0].For == plan.ForPerson:
			question = cmp.Or(question, "the run waits for a person who approves the plan: "+t.Waits[0].Reason)
		case t.awaitsPerson:
			question = cmp.Or(question, fmt.Sprintf("the run waits for a person: @%s asks, %s", t.Agent, t.Waits[0].Reason))
		case t.Waits[0].For == plan.ForRetry, t.Waits[0].For == plan.ForLimit, t.Waits[0].For == plan.ForSlot, t.Waits[0].For == plan.ForRoom:
			return ""
		}
	}
	if r.team != nil {
		for _, agent := range r.team.Stuck() {
			paused = cmp.Or(paused, agent)
		}
	}
	if paused != "" {
		return wording.Text(swarm.NewMessage(swarm.WaitsForPaused, paused))
	}
	return question
}
