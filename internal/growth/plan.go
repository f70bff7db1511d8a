package growth

import (
	"cmp"

	"swarm"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// PlanSwarm makes a plan that of a swarm: its only agent is the supervisor, which has the provider of
// the workers, and the rules say what the agents are like that it will have.
func PlanSwarm(p *swarm.Plan, rules *swarm.Swarm, maxAgents int) {
	rules.Worker.Role, rules.Worker.RoleName = "", ""
	supervisor := swarm.Agent{Name: swarm.Supervisor, Provider: rules.Worker.Provider, Model: rules.Worker.Model, Env: rules.Worker.Env}
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
		a.Tools = []string{toolrule.FileRead, toolrule.FileWrite, toolrule.FileList}
	}
	return a
}

// inTier has an agent use the model of a tier, if its provider has one and nothing else says which.
func inTier(a swarm.Agent, spec *swarm.ProviderSpec, tier string) swarm.Agent {
	if a.Provider == spec.Name && a.Model == "" && a.Tier == "" && spec.Models[tier] != "" {
		a.Tier = tier
	}
	return a
}
