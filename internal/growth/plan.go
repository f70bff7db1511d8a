package growth

import (
	"cmp"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// PlanSwarm turns a plan into the plan of a swarm. Its only agent is the supervisor, and the rules
// describe the agents that will join. The supervisor uses the provider own, or the provider of the
// workers if own is nil.
func PlanSwarm(p *swarm.Plan, rules *swarm.Swarm, maxAgents int, own *swarm.ProviderSpec) {
	rules.Worker.Role, rules.Worker.RoleName = "", ""
	supervisor := swarm.Agent{Name: swarm.Supervisor, Provider: rules.Worker.Provider, Model: rules.Worker.Model, Env: rules.Worker.Env, OnLimit: rules.Worker.OnLimit}
	if own != nil && own.Name != supervisor.Provider {
		supervisor = swarm.Agent{Name: swarm.Supervisor, Provider: own.Name}
		if !slices.ContainsFunc(p.Providers, func(s swarm.ProviderSpec) bool { return s.Name == own.Name }) {
			p.Providers = append(p.Providers, *own)
		}
	}
	for i := range p.Providers {
		spec := &p.Providers[i]
		rules.Worker = inTier(withFileTools(rules.Worker, spec), spec, "medium")
		for k := range rules.Roles {
			rules.Roles[k] = inTier(withFileTools(rules.Roles[k], spec), spec, "medium")
		}
		supervisor = inTier(supervisor, spec, "large")
	}
	p.Kind, p.Tasks, p.Groups, p.Edges = swarm.SwarmRun, []swarm.Task{}, []swarm.Group{}, nil
	p.Approvals.Spawn = cmp.Or(p.Approvals.Spawn, "auto") // the swarm asks nobody unless the file says so
	p.Team = &swarm.Team{Lead: swarm.Supervisor, Mode: swarm.AutoMode, Phase: swarm.ImplementationPhase, MaxAgents: maxAgents}
	p.Swarm, p.Agents = rules, []swarm.Agent{supervisor}
}

// withFileTools gives a model that lists no tools those for the files of the swarm's workspace. One
// that lists them and names no root has them there, too.
func withFileTools(a swarm.Agent, spec *swarm.ProviderSpec) swarm.Agent {
	if a.Provider == spec.Name && a.Tools == nil && providerkind.Of(spec.Kind).Tools == providerkind.InProcess {
		a.Tools = slices.Clone(fileTools)
	}
	return a
}

// withoutWriting takes the tool for writing files from an agent that has got the file tools unasked.
func withoutWriting(a swarm.Agent) swarm.Agent {
	if slices.Equal(a.Tools, fileTools) {
		a.Tools = []string{toolrule.FileRead, toolrule.FileList}
	}
	return a
}

// fileTools are the tools of a model that lists none.
var fileTools = []string{toolrule.FileRead, toolrule.FileWrite, toolrule.FileList}

// inTier has an agent use the model of a tier, if its provider has one and nothing else says which.
func inTier(a swarm.Agent, spec *swarm.ProviderSpec, tier string) swarm.Agent {
	if a.Provider == spec.Name && a.Model == "" && a.Tier == "" && spec.Models[tier] != "" {
		a.Tier = tier
	}
	return a
}

// PlanCouncil makes the plan of a swarm that of a council. Its members are there from the beginning, and
// no other joins. Each has the query itself as its subtask. The roles of the compose file take turns, so
// that members may have different providers.
func PlanCouncil(p *swarm.Plan, run swarm.RunID, query string) {
	rules := p.Swarm
	rules.Replan, rules.Workers = false, min(rules.Workers, p.Team.MaxAgents)
	p.Team.MaxAgents = rules.Workers
	if rules.Workspace != "" { // what a member writes there, the others could read
		rules.Worker = withoutWriting(rules.Worker)
		for i := range rules.Roles {
			rules.Roles[i] = withoutWriting(rules.Roles[i])
		}
	}
	members := make([]swarm.Subtask, rules.Workers)
	for i := range members {
		members[i] = swarm.Subtask{ID: "m" + strconv.Itoa(i+1), Description: query}
		if n := len(rules.Roles); n > 0 {
			members[i].Role = rules.Roles[i%n].Name
		}
	}
	AddWorkers(p, run, members)
}

// AddWorkers adds an agent for each subtask to the first plan of a swarm.
func AddWorkers(p *swarm.Plan, run swarm.RunID, subtasks []swarm.Subtask) {
	t := NewTeam()
	t.Add(p)
	divided := t.Workers(run, subtasks)
	p.Agents, p.Swarm.Subtasks = append(p.Agents, divided.Agents...), divided.Swarm.Subtasks
}
