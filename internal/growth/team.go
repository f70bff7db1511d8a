package growth

import (
	"cmp"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
)

// A Team is the state of a run's agents and their open requests. It grows with the plan. It has no
// mutex: its owner uses it from one goroutine at a time.
type Team struct {
	plan   swarm.Plan     // the first plan: what holds for the whole run
	dir    string         // the run's folder
	agents []*swarm.Agent // of the plans, which nobody changes
	at     map[string]int // index in agents, by name
	ended  map[string]bool
	open   map[string]openRequest // unanswered requests, by id

	subtasks map[string]string // of a swarm: the subtask of each worker
	helpers  map[string]string // of a swarm: the agent that came to help, by the one that asked
}

// An openRequest is a request and the agent that made it.
type openRequest struct {
	by      string
	request swarm.GrowthRequest
}

// NewTeam returns an empty team.
func NewTeam() *Team {
	return &Team{at: map[string]int{}, ended: map[string]bool{}, open: map[string]openRequest{}, subtasks: map[string]string{}, helpers: map[string]string{}}
}

// Work sets the run's folder.
func (t *Team) Work(dir string) { t.dir = dir }

// Add adds the agents of a plan.
func (t *Team) Add(p *swarm.Plan) {
	if t.plan.Kind == "" {
		t.plan = *p
	}
	for i := range p.Agents {
		t.at[p.Agents[i].Name] = len(t.agents)
		t.agents = append(t.agents, &p.Agents[i])
	}
	t.addSubtasks(p)
}

// End records that an agent gets no more turns, and Start that it gets turns again.
func (t *Team) End(agent string)   { t.ended[agent] = true }
func (t *Team) Start(agent string) { delete(t.ended, agent) }

// Ask records a request, and Answer its answer.
func (t *Team) Ask(id, by string, w swarm.GrowthRequest) { t.open[id] = openRequest{by, w} }
func (t *Team) Answer(id string)                         { delete(t.open, id) }

// Wanted reports whether an open request asks for an agent of this name.
func (t *Team) Wanted(name string) bool {
	for _, q := range t.open {
		if q.request.Spawn != nil && q.request.Spawn.Name == name {
			return true
		}
	}
	return false
}

// Mode returns what happens to requests: ask (a person), auto, or deny.
func (t *Team) Mode() string {
	if t.plan.Approvals.Spawn == "" {
		return "ask"
	}
	return t.plan.Approvals.Spawn
}

// Offers reports whether an agent is offered a tool that makes requests.
func (t *Team) Offers(agent, tool string) bool {
	a, _ := t.find(agent)
	return a.Permissions.Spawn || tool == edgeTool && a.Permissions.Orchestrate
}

// May returns an error if an agent lacks the permission for a tool that makes requests.
func (t *Team) May(agent, tool string) error {
	if t.Offers(agent, tool) {
		return nil
	}
	e := swarm.Errorf(swarm.Denied, "%s may not use %s: it lacks the permission", agent, tool)
	if tool == edgeTool {
		return e.WithHint("a person can give it in swarm.yaml, "+
			"with agents: {%s: {permissions: {spawn: true}}} or {orchestrate: true}", agent)
	}
	return e.WithHint("a person can give it in swarm.yaml, "+
		"with agents: {%s: {permissions: {spawn: true}}}; request_help asks for one", agent)
}

// Fill completes a request. The new agent has the requester's provider by default. It is always
// joined with the requester, so that edge is left out.
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

// Check returns an error if a filled request is not possible now. The open request with this id is
// the request itself, so it does not count as a conflict.
func (t *Team) Check(id, agent string, w swarm.GrowthRequest, rules *mail.Rules) error {
	if err := t.checkOpen(id, agent); err != nil {
		return err
	}
	if w.Edge != nil {
		return checkEdge(agent, *w.Edge, rules)
	}
	s := *w.Spawn
	if t.Swarm() {
		if err := t.checkHelp(id, agent); err != nil || s.Name == "" { // it gets its name later
			return cmp.Or(err, t.checkRoom())
		}
	}
	if err := swarm.CheckAgentName(s.Name); err != nil {
		return err
	}
	if _, taken := t.find(s.Name); taken {
		return swarm.Errorf(swarm.BadInput, "the name %q is taken by another agent of this run", s.Name).
			WithHint("choose another name, such as %s-2", s.Name)
	}
	for other, q := range t.open {
		if other != id && q.request.Spawn != nil && q.request.Spawn.Name == s.Name {
			const msg = "the name %q is taken: %s has asked for an agent of that name, and nobody has answered yet"
			return swarm.Errorf(swarm.BadInput, msg, s.Name, q.by).
				WithHint("wait for the answer, or choose another name")
		}
	}
	if names := t.providers(); !slices.Contains(names, s.Provider) {
		return swarm.Errorf(swarm.BadInput, "no agent of this run uses a provider %s", swarm.Quote(s.Provider)).
			WithHint("%s", swarm.DidYouMean(s.Provider, names))
	}
	if s.Role != "" && t.role(s.Role) == nil {
		e := swarm.Errorf(swarm.BadInput, "no agent of this run has the role %s", swarm.Quote(s.Role))
		if names := t.roles(); len(names) > 0 {
			return e.WithHint("%s", swarm.DidYouMean(s.Role, names))
		}
		return e.WithHint("leave role out, and say in instructions what it is")
	}
	for _, name := range s.Edges {
		if err := checkLiving(agent, name, rules); err != nil {
			return err
		}
	}
	return t.checkRoom()
}

// checkRoom returns an error if there are as many agents as there may be.
func (t *Team) checkRoom() error {
	most, n, full := t.most(), t.living(), "the team is full: it has %d agents, and may have %d"
	if t.Swarm() {
		full = "the swarm is full: it has had %d agents, and may have %d in all"
	}
	if n < most {
		return nil
	}
	return swarm.Errorf(swarm.Denied, full, n, most).
		WithHint("hand the work to an agent that is there; "+
			"a person can allow more in swarm.yaml, with swarm: {max_agents: %d}", n+1)
}

func checkEdge(agent string, e swarm.EdgeRequest, rules *mail.Rules) error {
	err := checkLiving(agent, e.From, rules)
	if err == nil {
		err = checkLiving(agent, e.To, rules)
	}
	switch {
	case err != nil:
		return err
	case e.From == e.To:
		return swarm.Errorf(swarm.BadInput, "an edge joins two agents, and %s is one", e.From)
	case rules.Edge(e.From, e.To) && (!e.Bidirectional || rules.Edge(e.To, e.From)):
		return swarm.Errorf(swarm.BadInput, "%s may write to %s already", e.From, e.To).
			WithHint("send_handoff needs no other edge")
	}
	return nil
}

// checkOpen returns an error if an agent has too many open requests.
func (t *Team) checkOpen(id, agent string) error {
	n := 0
	for other, q := range t.open {
		if q.by == agent && other != id {
			n++
		}
	}
	if n < maxOpen {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s has %d requests that nobody has answered", agent, n).
		WithHint("go on with other work; the answers come to your inbox")
}

// checkLiving returns an error if a name, as the speaker uses it, is not an agent that still gets
// turns.
func checkLiving(speaker, name string, rules *mail.Rules) error {
	found, err := rules.Find(speaker, name)
	if err == nil && rules.Ended(found) {
		return swarm.Errorf(swarm.BadInput, "agent %s has ended", found).WithHint("it gets no mail any more; name another agent")
	}
	return err
}

// Grown returns the plan that a granted request adds. A new agent gets tools, model and environment
// from the agent whose role it has, or else from the requester, if that one has the same provider.
// So it has nothing that no agent of its kind has. It gets no permissions, so it cannot spawn
// agents itself.
func (t *Team) Grown(agent string, w swarm.GrowthRequest) swarm.Plan {
	p := swarm.Plan{
		Kind: t.plan.Kind, Tasks: []swarm.Task{}, Groups: []swarm.Group{}, Agents: []swarm.Agent{},
		Approvals: t.plan.Approvals, Budget: t.plan.Budget, MaxParallel: t.plan.MaxParallel, Servers: t.plan.Servers,
		Team: t.plan.Team,
	}
	if e := w.Edge; e != nil {
		p.Edges = []swarm.Edge{{From: e.From, To: e.To, Both: e.Bidirectional}}
		return p
	}
	from, _ := t.find(agent)
	p.Agents = []swarm.Agent{t.newAgent(from, *w.Spawn)}
	for _, other := range append([]string{agent}, w.Spawn.Edges...) {
		p.Edges = append(p.Edges, swarm.Edge{From: other, To: w.Spawn.Name, Both: true})
	}
	for _, s := range t.plan.Providers {
		if p.Agents[0].Uses(s.Name) {
			p.Providers = append(p.Providers, s)
		}
	}
	return p
}

// newAgent returns the agent that a request asks for.
func (t *Team) newAgent(from swarm.Agent, s swarm.SpawnRequest) swarm.Agent {
	a := swarm.Agent{Name: s.Name, Provider: s.Provider, Root: from.Root}
	like := from
	if role := t.role(s.Role); role != nil {
		a.Role, a.RoleName = role.Role, s.Role
		// The new agent must not work in a folder that is closed to the requester, nor have tools that
		// were given for such a folder.
		if role.Provider == s.Provider && t.inside(from, *role) {
			like = *role
		}
	}
	if like.Provider == s.Provider {
		a.Model, a.Tier, a.Tools, a.Env, a.Root = like.Model, like.Tier, like.Tools, like.Env, like.Root
		a.Session, a.Context, a.OnLimit, a.Budget = like.Session, like.Context, like.OnLimit, like.Budget
	}
	return a
}

// inside reports whether the inner agent's folder is in the outer agent's. An agent without its own
// folder works in the run's.
func (t *Team) inside(outer, inner swarm.Agent) bool {
	a, b := cmp.Or(outer.Root, t.dir), cmp.Or(inner.Root, t.dir)
	return a == b || a != "" && strings.HasPrefix(b, strings.TrimSuffix(a, "/")+"/")
}

// Gets describes what a requested agent would have, for the person who decides.
func (t *Team) Gets(agent string, s swarm.SpawnRequest) string {
	from, _ := t.find(agent)
	a := t.newAgent(from, s)
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
	return *t.agents[i], true
}

func (t *Team) most() int {
	if t.plan.Team == nil || t.plan.Team.MaxAgents <= 0 {
		return defaultAgents
	}
	return t.plan.Team.MaxAgents
}

// living is the number of agents that count against the limit. In a swarm all agents that ever were
// count, but for the supervisor.
func (t *Team) living() int {
	if t.Swarm() {
		return len(t.agents) - 1
	}
	return len(t.agents) - len(t.ended)
}

// Room is how many agents may still join.
func (t *Team) Room() int { return max(0, t.most()-t.living()) }

func (t *Team) providers() (names []string) {
	for _, s := range t.plan.Providers {
		names = append(names, s.Name)
	}
	return names
}

// role returns the first agent that has a role of this name.
func (t *Team) role(name string) *swarm.Agent {
	for i := range t.agents {
		if name != "" && roleOf(t.agents[i]) == name {
			return t.agents[i]
		}
	}
	return nil
}

func (t *Team) roles() (names []string) {
	for i := range t.agents {
		if name := roleOf(t.agents[i]); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// roleOf returns the name of an agent's role: the prompt that the file names for it, or else the
// agent's own name.
func roleOf(a *swarm.Agent) string {
	switch {
	case a.Role == "":
		return ""
	case a.RoleName != "":
		return a.RoleName
	}
	return a.Name
}
