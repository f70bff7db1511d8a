package growth

import (
	"cmp"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
)

// A Team is who is there and what is asked for. It grows with the plan, and belongs to one goroutine at a time.
type Team struct {
	plan   swarm.Plan // the first one: what holds for the whole run
	dir    string     // where it works
	agents []swarm.Agent
	at     map[string]int // where each stands in agents
	ended  map[string]bool
	open   map[string]openRequest // growth requests that nobody has answered, by their ids
}

// An openRequest is a growth request of somebody.
type openRequest struct {
	by      string
	request swarm.GrowthRequest
}

// NewTeam is one that nobody belongs to yet.
func NewTeam() *Team {
	return &Team{at: map[string]int{}, ended: map[string]bool{}, open: map[string]openRequest{}}
}

// Work says in which folder the run works.
func (t *Team) Work(dir string) { t.dir = dir }

// Add lets the agents of a plan join.
func (t *Team) Add(p *swarm.Plan) {
	if t.plan.Kind == "" {
		t.plan = *p
	}
	for _, a := range p.Agents {
		t.at[a.Name] = len(t.agents)
		t.agents = append(t.agents, a)
	}
}

// End notes that an agent has no turn any more, and Start that it has turns again.
func (t *Team) End(agent string)   { t.ended[agent] = true }
func (t *Team) Start(agent string) { delete(t.ended, agent) }

// Ask notes a growth request, and Answer that it was dealt with.
func (t *Team) Ask(id, by string, w swarm.GrowthRequest) { t.open[id] = openRequest{by, w} }
func (t *Team) Answer(id string)                         { delete(t.open, id) }

// Wanted says whether somebody has asked for an agent of this name, and the growth request is not dealt with.
func (t *Team) Wanted(name string) bool {
	for _, q := range t.open {
		if q.request.Spawn != nil && q.request.Spawn.Name == name {
			return true
		}
	}
	return false
}

// Mode says what happens to growth requests: ask a person, auto, or deny.
func (t *Team) Mode() string {
	if t.plan.Approvals.Spawn == "" {
		return "ask"
	}
	return t.plan.Approvals.Spawn
}

// Offers says whether an agent is told of a tool that makes growth requests.
func (t *Team) Offers(agent, tool string) bool {
	a, _ := t.find(agent)
	return a.Permissions.Spawn || tool == edgeTool && a.Permissions.Orchestrate
}

// May says whether an agent may ask for something at all, by the tool that makes such growth requests.
func (t *Team) May(agent, tool string) error {
	if t.Offers(agent, tool) {
		return nil
	}
	e := swarm.Errorf(swarm.Denied, "%s may not use %s: it lacks the permission", agent, tool)
	if tool == edgeTool {
		return e.WithHint("a person can give it in swarm.yaml, with agents: {%s: {permissions: {spawn: true}}} or {orchestrate: true}", agent)
	}
	return e.WithHint("a person can give it in swarm.yaml, with agents: {%s: {permissions: {spawn: true}}}; request_help asks for one", agent)
}

// Fill is a growth request with what goes without saying: a new agent is of the provider of who asks, and is joined with that one anyway.
func (t *Team) Fill(agent string, w swarm.GrowthRequest) swarm.GrowthRequest {
	if w.Spawn == nil {
		return w
	}
	s := *w.Spawn
	if s.Provider == "" {
		from, _ := t.find(agent)
		s.Provider = from.Provider
	}
	s.Edges = slices.DeleteFunc(slices.Clone(s.Edges), func(name string) bool { return name == agent })
	return swarm.GrowthRequest{Spawn: &s}
}

// Check says whether a growth request that was filled can be had as things stand. Of the growth requests that are open, id is not held against itself.
func (t *Team) Check(id, agent string, w swarm.GrowthRequest, rules *mail.Rules) error {
	if err := t.full(id, agent); err != nil {
		return err
	}
	if w.Edge != nil {
		return checkEdge(agent, *w.Edge, rules)
	}
	s := *w.Spawn
	if err := swarm.CheckAgentName(s.Name); err != nil {
		return err
	}
	if _, taken := t.find(s.Name); taken {
		return swarm.Errorf(swarm.BadInput, "the name %q is taken by another agent of this run", s.Name).WithHint("choose another name, such as %s-2", s.Name)
	}
	for other, q := range t.open {
		if other != id && q.request.Spawn != nil && q.request.Spawn.Name == s.Name {
			return swarm.Errorf(swarm.BadInput, "the name %q is taken: %s has asked for an agent of that name, and nobody has answered yet", s.Name, q.by).
				WithHint("wait for the answer, or choose another name")
		}
	}
	if names := t.providers(); !slices.Contains(names, s.Provider) {
		return swarm.Errorf(swarm.BadInput, "no agent of this run uses a provider %s", swarm.Quote(s.Provider)).WithHint("%s", swarm.DidYouMean(s.Provider, names))
	}
	if s.Role != "" && t.role(s.Role) == nil {
		e := swarm.Errorf(swarm.BadInput, "no agent of this run has the role %s", swarm.Quote(s.Role))
		if names := t.roles(); len(names) > 0 {
			return e.WithHint("%s", swarm.DidYouMean(s.Role, names))
		}
		return e.WithHint("leave role out, and say in instructions what it is")
	}
	for _, name := range s.Edges {
		if err := living(agent, name, rules); err != nil {
			return err
		}
	}
	if most, n := t.most(), t.living(); n >= most {
		return swarm.Errorf(swarm.Denied, "the team is full: it has %d agents, and may have %d", n, most).
			WithHint("hand the work to an agent that is there; a person can allow more in swarm.yaml, with swarm: {max_agents: %d}", n+1)
	}
	return nil
}

func checkEdge(agent string, e swarm.EdgeRequest, rules *mail.Rules) error {
	err := living(agent, e.From, rules)
	if err == nil {
		err = living(agent, e.To, rules)
	}
	switch {
	case err != nil:
		return err
	case e.From == e.To:
		return swarm.Errorf(swarm.BadInput, "an edge joins two agents, and %s is one", e.From)
	case rules.Edge(e.From, e.To) && (!e.Bidirectional || rules.Edge(e.To, e.From)):
		return swarm.Errorf(swarm.BadInput, "%s may write to %s already", e.From, e.To).WithHint("send_handoff needs no other edge")
	}
	return nil
}

// full says whether an agent has asked for so much that it has to wait for answers.
func (t *Team) full(id, agent string) error {
	n := 0
	for other, q := range t.open {
		if q.by == agent && other != id {
			n++
		}
	}
	if n < maxOpen {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s has %d requests that nobody has answered", agent, n).WithHint("go on with other work; the answers come to your inbox")
}

// living says whether somebody means, by a name, an agent that still has turns.
func living(speaker, name string, rules *mail.Rules) error {
	found, err := rules.Find(speaker, name)
	if err == nil && rules.Ended(found) {
		return swarm.Errorf(swarm.BadInput, "agent %s has ended", found).WithHint("it gets no mail any more; name another agent")
	}
	return err
}

// Grown is what the plan grows by when a growth request that was checked is granted. A new agent has the tools, the model and the environment of
// the agent whose role it is given, or of who asks, if that one is of the same provider: nothing that no agent of its kind has. It may
// bring about no other.
func (t *Team) Grown(agent string, w swarm.GrowthRequest) swarm.Plan {
	p := swarm.Plan{Kind: t.plan.Kind, Tasks: []swarm.Task{}, Groups: []swarm.Group{}, Agents: []swarm.Agent{}, Approvals: t.plan.Approvals, Budget: t.plan.Budget,
		MaxParallel: t.plan.MaxParallel, Servers: t.plan.Servers, Team: t.plan.Team}
	if e := w.Edge; e != nil {
		p.Edges = []swarm.Edge{{From: e.From, To: e.To, Both: e.Bidirectional}}
		return p
	}
	from, _ := t.find(agent)
	p.Agents = []swarm.Agent{t.made(from, *w.Spawn)}
	for _, other := range append([]string{agent}, w.Spawn.Edges...) {
		p.Edges = append(p.Edges, swarm.Edge{From: other, To: w.Spawn.Name, Both: true})
	}
	for _, s := range t.plan.Providers {
		if s.Name == w.Spawn.Provider {
			p.Providers = []swarm.ProviderSpec{s}
		}
	}
	return p
}

// made is a new agent.
func (t *Team) made(from swarm.Agent, s swarm.SpawnRequest) swarm.Agent {
	a := swarm.Agent{Name: s.Name, Provider: s.Provider, Root: from.Root}
	like := from
	if role := t.role(s.Role); role != nil {
		a.Role, a.RoleName = role.Role, s.Role
		if role.Provider == s.Provider && t.inside(from, *role) { // it works in no folder that is closed to who asks, and has no tool that was given for one
			like = *role
		}
	}
	if like.Provider == s.Provider {
		a.Model, a.Tier, a.Tools, a.Env, a.Root = like.Model, like.Tier, like.Tools, like.Env, like.Root
	}
	return a
}

// inside says whether one agent's folder is another's or lies in it. Without one of its own an agent works in the run's.
func (t *Team) inside(outer, inner swarm.Agent) bool {
	a, b := cmp.Or(outer.Root, t.dir), cmp.Or(inner.Root, t.dir)
	return a == b || a != "" && strings.HasPrefix(b, strings.TrimSuffix(a, "/")+"/")
}

// Gets tells what an agent that is asked for would have, for who is to allow it.
func (t *Team) Gets(agent string, s swarm.SpawnRequest) string {
	from, _ := t.find(agent)
	a := t.made(from, s)
	text := "provider " + a.Provider
	if s.Role != "" {
		text += ", role " + s.Role
	}
	if a.Root != "" {
		text += ", root " + a.Root
	}
	if len(a.Tools) > 0 {
		text += ", tools " + strings.Join(a.Tools, " ")
	}
	if len(s.Edges) > 0 {
		text += ", joined with " + strings.Join(s.Edges, ", ")
	}
	return text
}

func (t *Team) find(name string) (swarm.Agent, bool) {
	i, ok := t.at[name]
	if !ok {
		return swarm.Agent{}, false
	}
	return t.agents[i], true
}

func (t *Team) most() int {
	if t.plan.Team == nil || t.plan.Team.MaxAgents <= 0 {
		return usualAgents
	}
	return t.plan.Team.MaxAgents
}

func (t *Team) living() int { return len(t.agents) - len(t.ended) }

func (t *Team) providers() (names []string) {
	for _, s := range t.plan.Providers {
		names = append(names, s.Name)
	}
	return names
}

// role is the first agent that has a role of this name.
func (t *Team) role(name string) *swarm.Agent {
	for i := range t.agents {
		if name != "" && roleOf(&t.agents[i]) == name {
			return &t.agents[i]
		}
	}
	return nil
}

func (t *Team) roles() (names []string) {
	for i := range t.agents {
		if name := roleOf(&t.agents[i]); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// roleOf is what an agent's role is called: the prompt that the file names for it, else the one that has the agent's name.
func roleOf(a *swarm.Agent) string {
	switch {
	case a.Role == "":
		return ""
	case a.RoleName != "":
		return a.RoleName
	}
	return a.Name
}
