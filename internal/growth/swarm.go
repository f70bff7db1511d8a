package growth

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/station"
)

// Help makes the request of an agent of a swarm that asks for help. The new agent gets its name when
// the request is granted, because others may ask at the same time.
func (t *Team) Help(description string, skills []string) swarm.GrowthRequest {
	s := swarm.SpawnRequest{Instructions: strings.TrimSpace(description), Provider: t.plan.Swarm.Worker.Provider}
	if r := t.skilled(skills); r != nil {
		s.Role, s.Provider = r.Name, r.Provider
	}
	return swarm.GrowthRequest{Spawn: &s}
}

// Swarm reports whether the team is a swarm.
func (t *Team) Swarm() bool { return t.plan.Swarm != nil }

// skilled returns the role of the compose file that has most of the skills, or nil. A skill is the
// name of a role, or of a tool.
func (t *Team) skilled(skills []string) (best *swarm.Agent) {
	most := 0
	for i := range t.plan.Swarm.Roles {
		r, n := &t.plan.Swarm.Roles[i], 0
		for _, skill := range skills {
			skill = strings.TrimSpace(skill)
			has := func(tool string) bool { return strings.Contains(tool, skill) } // a tool may name its server, too
			if skill != "" && (strings.EqualFold(r.Name, skill) || slices.ContainsFunc(r.Tools, has)) {
				n++
			}
		}
		if n > most {
			best, most = r, n
		}
	}
	return best
}

// addSubtasks records who works on what, and who has had help.
func (t *Team) addSubtasks(p *swarm.Plan) {
	if p.Swarm == nil {
		return
	}
	for _, s := range p.Swarm.Subtasks {
		t.subtasks[s.Agent] = s.ID
		if s.For != "" {
			t.helpers[s.For] = s.Agent
		}
	}
}

// checkHelp returns an error if an agent has had its help already. The open request with this id is
// the request itself.
func (t *Team) checkHelp(id, agent string) error {
	const hint = "do it yourself, or write to a teammate with send_message"
	if helper := t.helpers[agent]; helper != "" {
		return swarm.Errorf(swarm.Denied, "%s has had help already: %s. Each agent may have 1 helper", agent, helper).WithHint(hint)
	}
	for other, q := range t.open {
		if other != id && q.by == agent && q.request.Spawn != nil {
			return swarm.Errorf(swarm.Denied, "%s has asked for help already, and nobody has answered yet. Each agent may have 1 helper", agent).
				WithHint("go on with other work; the answer comes to your inbox")
		}
	}
	return nil
}

// Subtasks returns the ids of all subtasks.
func (t *Team) Subtasks() (ids []string) {
	for _, a := range t.agents {
		if id, ok := t.subtasks[a.Name]; ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Worker returns the plan that adds the agent of a granted request to a swarm, with what it was asked
// for as its subtask.
func (t *Team) Worker(run swarm.RunID, agent string, s swarm.SpawnRequest) *swarm.Plan {
	id := "help-" + t.subtasks[agent]
	ids := t.Subtasks()
	for n := 2; slices.Contains(ids, id); n++ {
		id = "help-" + t.subtasks[agent] + "-" + strconv.Itoa(n)
	}
	return t.Workers(run, []swarm.Subtask{{ID: id, Description: s.Instructions, Role: s.Role, Agent: s.Name, For: agent}})
}

// Workers returns the plan that adds an agent for each subtask to a swarm. The agents of a run have
// the names of stations, in their order, unless a subtask names its agent.
func (t *Team) Workers(run swarm.RunID, subtasks []swarm.Subtask) *swarm.Plan {
	first := t.plan.Swarm
	p := t.plan
	p.Agents, p.Edges, p.Swarm = nil, nil, &swarm.Swarm{Query: first.Query, Workers: first.Workers, Iterations: first.Iterations,
		Timeout: first.Timeout, Messages: first.Messages}
	next := len(t.agents) - 1 // without the supervisor
	for _, s := range subtasks {
		a := first.Worker
		for _, r := range first.Roles {
			if strings.EqualFold(r.Name, s.Role) {
				a = r
			}
		}
		for taken := s.Agent == ""; taken; next++ {
			s.Agent = station.Name(cmp.Or(first.Names, run), next)
			_, taken = t.find(s.Agent) // a person may have named one so
			taken = taken || slices.Contains(first.Taken, s.Agent)
		}
		if a.Budget.LimitsUse() { // its agents have it together
			a.Like = cmp.Or(a.Name, "worker")
		}
		a.Name = s.Agent
		p.Agents = append(p.Agents, a)
		p.Swarm.Subtasks = append(p.Swarm.Subtasks, s)
	}
	return &p
}
