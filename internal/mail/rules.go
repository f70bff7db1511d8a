package mail

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/providerkind"
)

// Rules know the agents and who may write to whom. They grow with the plan. They have no mutex:
// their owner uses them from one goroutine at a time.
type Rules struct {
	agents   []string          // in the order of the file
	known    map[string]bool   // the agents as a set
	copy     map[string]string // by agent that is a copy: its suffix, such as ".2"
	doers    map[string]string // by task: its agent
	edges    map[[2]string]bool
	joined   map[string]bool   // agents that declared edges name
	everyone bool              // all agents may write to each other
	team     bool              // agents outlive their tasks
	leads    map[string]bool   // agents that may see everybody's work
	heard    map[string]bool   // agents to which a person has written: they may write back
	ended    map[string]string // agents that get no more turns, with the reason
	mute     map[string]bool   // agents that cannot write at all
	commands map[string]bool   // agents that act by commands instead of tools
	// owed lists the messages that ask for a reply where no edge leads back, by receiver of the message
	// and receiver of the reply. Each permits one reply.
	owed map[[2]string][]string
}

// NewRules returns the rules of these plans.
func NewRules(plans ...*swarm.Plan) *Rules {
	r := &Rules{
		known: map[string]bool{}, copy: map[string]string{}, doers: map[string]string{}, edges: map[[2]string]bool{},
		joined: map[string]bool{}, leads: map[string]bool{}, heard: map[string]bool{}, ended: map[string]string{},
		mute: map[string]bool{}, commands: map[string]bool{}, owed: map[[2]string][]string{},
	}
	for _, p := range plans {
		r.Add(p)
	}
	return r
}

// Add adds a plan. Its edges are the declared ones, and those of its dependencies: an agent may
// write to agents whose tasks depend on its own.
func (r *Rules) Add(p *swarm.Plan) {
	r.everyone = r.everyone || p.Kind == swarm.SwarmRun
	r.team = r.team || p.Kind.Team()
	if p.Team != nil {
		r.leads[p.Team.Lead] = true
	}
	mute, commands := map[string]bool{}, map[string]bool{} // by provider
	for _, s := range p.Providers {
		kind := providerkind.Of(s.Kind)
		mute[s.Name], commands[s.Name] = kind.Tools == providerkind.NoTools, kind.Commands
	}
	for _, a := range p.Agents {
		if a.Permissions.Orchestrate {
			r.leads[a.Name] = true
		}
		if r.known[a.Name] {
			continue
		}
		r.known[a.Name], r.mute[a.Name], r.commands[a.Name] = true, mute[a.Provider], commands[a.Provider]
		r.agents = append(r.agents, a.Name)
		if a.Base != "" {
			r.copy[a.Name] = strings.TrimPrefix(a.Name, a.Base)
		}
	}
	for _, e := range p.Edges {
		r.joined[e.From], r.joined[e.To] = true, true
		r.join(e.From, e.To)
		if e.Both {
			r.join(e.To, e.From)
		}
	}
	for _, t := range p.Tasks {
		r.doers[t.Name] = t.Agent
	}
	for _, t := range p.Tasks {
		for _, d := range t.DependsOn {
			if doer := r.doers[d.Task]; doer != "" {
				r.join(doer, t.Agent)
			}
		}
	}
}

func (r *Rules) join(from, to string) {
	if from != to {
		r.edges[[2]string{from, to}] = true
	}
}

// Hear records that a person has written to an agent. From then on the agent may write to
// [swarm.User].
func (r *Rules) Hear(agent string) { r.heard[agent] = true }

// Ask records a message that asks for a reply. Its receiver may reply to this message, even without
// an edge.
func (r *Rules) Ask(e swarm.Envelope) {
	if asks(e) {
		r.Owe(e.ToNodeID, ReplyTo(e), e.Ref())
	}
}

// Owe permits an agent one reply to the message with this ref.
func (r *Rules) Owe(agent, to, ref string) {
	pair := [2]string{agent, to}
	if !r.May(agent, to) && !slices.Contains(r.owed[pair], ref) {
		r.owed[pair] = append(r.owed[pair], ref)
	}
}

// Answer records that an agent has written to another. That answers the oldest message that asked
// for a reply there.
func (r *Rules) Answer(agent, to string) {
	pair := [2]string{agent, to}
	if owed := r.owed[pair]; len(owed) > 1 {
		r.owed[pair] = owed[1:]
	} else {
		delete(r.owed, pair)
	}
}

// Answers returns the agents to which an agent may write only because they wait for its reply.
func (r *Rules) Answers(agent string) (names []string) {
	for _, to := range r.agents {
		if len(r.owed[[2]string{agent, to}]) > 0 && !r.May(agent, to) && !r.Ended(to) {
			names = append(names, to)
		}
	}
	return names
}

// End records that an agent gets no more turns. From then on mail to it is refused.
func (r *Rules) End(agent, reason string) { r.ended[agent] = reason }

// Start records that an ended agent gets turns again.
func (r *Rules) Start(agent string) { delete(r.ended, agent) }

// Ended reports whether an agent gets no more turns.
func (r *Rules) Ended(agent string) bool {
	_, ended := r.ended[agent]
	return ended
}

// Team reports whether agents outlive their tasks, so that they can wait for each other and report
// done.
func (r *Rules) Team() bool { return r.team }

// Sees reports whether an agent may see another's work: it leads, or one of them may write to the
// other.
func (r *Rules) Sees(agent, other string) bool {
	return r.leads[agent] || r.May(agent, other) || r.May(other, agent)
}

// Find returns the agent that a speaker means by a name, or an error that lists the agents.
func (r *Rules) Find(speaker, name string) (string, error) {
	agent, ok := r.find(speaker, name)
	if !ok || agent == swarm.User {
		return "", r.unknown(speaker, name)
	}
	return agent, nil
}

// Agents returns all agents, in the order of the file.
func (r *Rules) Agents() []string { return r.agents }

// Receivers returns the agents to which an agent may write, in the order of the file.
func (r *Rules) Receivers(from string) (names []string) {
	for _, to := range r.agents {
		if r.May(from, to) && !r.Ended(to) {
			names = append(names, to)
		}
	}
	return names
}

// Joined reports whether a declared edge starts or ends at the agent.
func (r *Rules) Joined(agent string) bool { return r.joined[agent] }

// Edge reports whether one agent may hand work to another.
func (r *Rules) Edge(from, to string) bool { return r.everyone || r.edges[[2]string{from, to}] }

// May reports whether a participant may write to another at any time. People may write to every
// agent, and these may answer.
func (r *Rules) May(from, to string) bool {
	switch {
	case from == to:
		return false
	case from == swarm.User:
		return true
	case to == swarm.User:
		return r.heard[from]
	}
	return r.Edge(from, to)
}

// find returns the agent that a speaker means by a name, in upper or lower case. A copy means the
// copies beside it.
func (r *Rules) find(speaker, name string) (string, bool) {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "@"))
	if name == swarm.User {
		return name, true
	}
	if beside := name + r.copy[speaker]; r.known[beside] {
		return beside, true
	}
	return name, r.known[name]
}

func (r *Rules) unknown(speaker, name string) error {
	name = strings.TrimPrefix(strings.TrimSpace(name), "@")
	valid := r.others(speaker)
	e := swarm.Errorf(swarm.BadInput, "Unknown agent: '%s'. Valid agents: %s", short(name), list(valid))
	if near := swarm.Nearest(name, valid); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

// others returns all other agents: first those to which the agent may write.
func (r *Rules) others(agent string) []string {
	names := r.Receivers(agent)
	for _, other := range r.agents {
		if other != agent && !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	return names
}

// receivers returns everyone to whom an agent may write now, people included.
func (r *Rules) receivers(from string) []string {
	names := append(r.Receivers(from), r.Answers(from)...)
	if r.May(from, swarm.User) {
		names = append(names, swarm.User)
	}
	return names
}

// noEdge returns the error for a message without permission. It lists the receivers that are
// allowed, so that a model can correct itself.
func (r *Rules) noEdge(from, to string) error {
	if to == from {
		const msg = "%s cannot write to itself. It may write to: %s"
		return swarm.Errorf(swarm.BadInput, msg, from, list(r.receivers(from))).
			WithHint("write to one of those; what you want to find again, publish_data or put_artifact keeps")
	}
	if to == swarm.User {
		const msg = "no person has written to %s. %s may write to: %s"
		return swarm.Errorf(swarm.BadInput, msg, from, from, list(r.Receivers(from))).
			WithHint("a person reads what you say at the end of your turn; request_help asks for one")
	}
	const msg = "there is no edge from %s to %s. %s may write to: %s"
	const hint = `write to one of those; who asks for a response may be answered once; ` +
		`a person can allow more in swarm.yaml, with edges: ["%s -> %s"]`
	return swarm.Errorf(swarm.BadInput, msg, from, to, from, list(r.receivers(from))).WithHint(hint, from, to)
}

func hasEnded(agent, why string) error {
	e := swarm.Errorf(swarm.BadInput, "agent %s has ended", agent)
	if why != "" {
		e.Msg += ": " + short(why)
	}
	return e.WithHint("it gets no mail any more; write to another agent. A person can start it again: swarm start @%s", agent)
}

func list(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return excerpt.List(names, 50)
}

// short shortens a text to a part of one line.
func short(text string) string { return excerpt.Head(oneLine(text), 60) }

// oneLine replaces line breaks and control characters by blanks.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD")))
}
