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

// Rules are who is there and who may write to whom. They grow with the plan, and belong to one goroutine at a time.
type Rules struct {
	agents   []string          // in the file's order
	known    map[string]bool   //
	copy     map[string]string // the ".2" of an agent that is a copy
	doers    map[string]string // by task: who does it
	edges    map[[2]string]bool
	joined   map[string]bool   // agents that a plan's own edges name
	everyone bool              // everybody may write to everybody
	team     bool              // agents live on
	leads    map[string]bool   // agents that may look at everybody's work
	heard    map[string]bool   // agents that a person has written to: they may write back
	ended    map[string]string // agents that have no turn any more, and why
	mute     map[string]bool   // agents that can write to nobody
	commands map[string]bool   // agents that act by commands, not by tools
	// owed is, by who is asked and who gets the answer, the messages that want one and where no edge
	// leads back. Each allows one answer.
	owed map[[2]string][]string
}

// NewRules are the rules of these plans.
func NewRules(plans ...*swarm.Plan) *Rules {
	r := &Rules{known: map[string]bool{}, copy: map[string]string{}, doers: map[string]string{}, edges: map[[2]string]bool{}, joined: map[string]bool{},
		leads: map[string]bool{}, heard: map[string]bool{}, ended: map[string]string{}, mute: map[string]bool{}, commands: map[string]bool{},
		owed: map[[2]string][]string{}}
	for _, p := range plans {
		r.Add(p)
	}
	return r
}

// Add lets a plan join. Edges are those that it declares, and those of its dependencies: who works for another may hand to it.
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

// Hear notes that a person has written to an agent. From then on it may write to [swarm.User].
func (r *Rules) Hear(agent string) { r.heard[agent] = true }

// Ask notes a message that wants an answer: whoever gets it may answer that one message, whether an edge
// leads there or not.
func (r *Rules) Ask(e swarm.Envelope) {
	if asks(e) {
		r.Owe(e.ToNodeID, ReplyTo(e), e.Ref())
	}
}

// Owe lets an agent answer the message with a ref once.
func (r *Rules) Owe(agent, to, ref string) {
	pair := [2]string{agent, to}
	if !r.May(agent, to) && !slices.Contains(r.owed[pair], ref) {
		r.owed[pair] = append(r.owed[pair], ref)
	}
}

// Answer notes that an agent has written to another: of the messages that want an answer there, the
// oldest has it.
func (r *Rules) Answer(agent, to string) {
	pair := [2]string{agent, to}
	if owed := r.owed[pair]; len(owed) > 1 {
		r.owed[pair] = owed[1:]
	} else {
		delete(r.owed, pair)
	}
}

// Answers are those to whom an agent may write only because they wait for its answer.
func (r *Rules) Answers(agent string) (names []string) {
	for _, to := range r.agents {
		if len(r.owed[[2]string{agent, to}]) > 0 && !r.May(agent, to) && !r.Ended(to) {
			names = append(names, to)
		}
	}
	return names
}

// End notes that an agent has no turn any more. From then on nobody writes to it.
func (r *Rules) End(agent, reason string) { r.ended[agent] = reason }

// Start notes that an agent which had ended has turns again.
func (r *Rules) Start(agent string) { delete(r.ended, agent) }

// Ended says whether an agent has no turn any more.
func (r *Rules) Ended(agent string) bool {
	_, ended := r.ended[agent]
	return ended
}

// Team says whether agents live on, and can wait for each other and be done.
func (r *Rules) Team() bool { return r.team }

// Sees says whether an agent may look at another's work: those who may write to each other, one way or the other, and who leads.
func (r *Rules) Sees(agent, other string) bool {
	return r.leads[agent] || r.May(agent, other) || r.May(other, agent)
}

// Find is the agent that somebody means by a name, or an error that lists those there are.
func (r *Rules) Find(speaker, name string) (string, error) {
	agent, ok := r.find(speaker, name)
	if !ok || agent == swarm.User {
		return "", r.unknown(speaker, name)
	}
	return agent, nil
}

// Agents are all there are, in the file's order.
func (r *Rules) Agents() []string { return r.agents }

// Receivers are the agents to whom an agent may write, in the file's order.
func (r *Rules) Receivers(from string) (names []string) {
	for _, to := range r.agents {
		if r.May(from, to) && !r.Ended(to) {
			names = append(names, to)
		}
	}
	return names
}

// Joined says whether an edge that somebody has declared leads to the agent or from it.
func (r *Rules) Joined(agent string) bool { return r.joined[agent] }

// Edge says whether one agent may hand work to another.
func (r *Rules) Edge(from, to string) bool { return r.everyone || r.edges[[2]string{from, to}] }

// May says whether one may write to another, at any time. A person may write to everybody, and those may answer.
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

// find is the agent that somebody means by a name, in whatever case it is written. A copy means the copies beside it.
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

// others are all agents but one: first those to whom it may write, then the rest.
func (r *Rules) others(agent string) []string {
	names := r.Receivers(agent)
	for _, other := range r.agents {
		if other != agent && !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	return names
}

// receivers are all to whom somebody may write.
func (r *Rules) receivers(from string) []string {
	names := append(r.Receivers(from), r.Answers(from)...)
	if r.May(from, swarm.User) {
		names = append(names, swarm.User)
	}
	return names
}

func (r *Rules) noEdge(from, to string) error {
	if to == from {
		return swarm.Errorf(swarm.BadInput, "%s cannot write to itself. It may write to: %s", from, list(r.receivers(from))).
			WithHint("write to one of those; what you want to find again, publish_data or put_artifact keeps")
	}
	if to == swarm.User {
		return swarm.Errorf(swarm.BadInput, "no person has written to %s. %s may write to: %s", from, from, list(r.Receivers(from))).
			WithHint("a person reads what you say at the end of your turn; request_help asks for one")
	}
	return swarm.Errorf(swarm.BadInput, "there is no edge from %s to %s. %s may write to: %s", from, to, from, list(r.receivers(from))).
		WithHint(`write to one of those; who asks for a response may be answered once; a person can allow more in swarm.yaml, with edges: ["%s -> %s"]`, from, to)
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

// short is what somebody wrote, as a part of one line.
func short(text string) string { return excerpt.Head(oneLine(text), 60) }

// oneLine is text without anything that a terminal or a reader may take for more than a letter.
func oneLine(text string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD")))
}
