package control

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/growth"
	"swarm/internal/run"
	"swarm/internal/subtask"
)

const (
	maxQuery = 64 << 10  // bytes
	maxCount = 1_000_000 // agents, or iterations
)

// planSwarm makes the plan of a swarm: the supervisor, and the rules for the agents that it will
// have. If a file divides the query, those agents are there from the beginning.
func (c *Control) planSwarm(r Request) (*Begin, error) {
	switch {
	case strings.TrimSpace(r.Query) == "":
		return nil, swarm.Errorf(swarm.BadInput, "the query is empty").WithHint(`write what is to be found out: swarm solve "Compare …"`)
	case strings.ContainsRune(r.Query, 0):
		return nil, swarm.Errorf(swarm.BadInput, "the query contains the character U+0000, which agents cannot read").WithHint("remove it; text files do not contain it, so this may be a binary file")
	case !inRange(r.Agents) || !inRange(r.Iterations):
		return nil, swarm.Errorf(swarm.BadInput, "agents and iterations are whole numbers from 1 to %d", maxCount).WithHint("leave them out for the defaults: 3 agents at once, 25 iterations")
	case len(r.Query) > maxQuery:
		return nil, swarm.Errorf(swarm.BadInput, "the query has %d bytes; %d are allowed", len(r.Query), maxQuery).
			WithHint("write it into a file of this folder, and have the query name the file")
	}
	if err := checkStrategy(r); err != nil {
		return nil, err
	}
	o, p, err := c.Compose(r)
	if swarm.KindOf(err) == swarm.NotFound && r.File == "" && len(r.Set) == 0 { // --provider is enough
		o.Source, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.Close()
	b, err := compose.CompileTeam(o)
	if err != nil {
		return nil, err
	}
	limits, plan := b.Settings.Swarm, &b.Plan
	plan.Budget = plan.Budget.Within(r.Budget)
	query := run.Redactor(plan)([]byte(r.Query))
	rules := &swarm.Swarm{Query: swarm.HashOf(query), Workers: or(r.Agents, swarm.DefaultWorkers), Iterations: or(r.Iterations, limits.MaxIterationsPerAgent),
		Timeout: limits.AgentTimeout, Messages: limits.MaxMessagesPerAgent, Workspace: limits.Workspace, Worker: plan.Agents[0], Approve: r.ApprovePlan, Replan: limits.Replan,
		Strategy: cmp.Or(swarm.Strategy(r.Strategy), limits.Strategy)}
	if b.DeclaresAgents {
		rules.Roles = plan.Agents
	}
	begin := &Begin{Bundle: b, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider, Args: r.Args, Origin: r.Origin, Replay: r.Replay, AnswerTo: r.AnswerTo}
	if err := begin.addTaken(rules); err != nil {
		return nil, err
	}
	growth.PlanSwarm(plan, rules, limits.MaxAgents, b.Supervisor)
	plan.Name = firstWords(string(query))
	b.Bodies = append(b.Bodies, query)
	if begin.Args == nil {
		begin.Args = []string{"solve", r.Query}
	}
	if rules.IsCouncil() {
		if err := checkCouncil(r, limits.MaxAgents); err != nil {
			return nil, err
		}
	}
	switch {
	case rules.IsCouncil():
		names, err := begin.names()
		if err != nil {
			return nil, err
		}
		growth.PlanCouncil(plan, names, string(query))
	case r.Subtasks != "":
		if err := begin.divide(r.Subtasks); err != nil {
			return nil, err
		}
	}
	if err := b.HoldAnswer(string(query)); err != nil {
		return nil, err
	}
	return begin, nil
}

// inRange says whether a number of agents or iterations is allowed, or not given.
func inRange(n *int) bool { return n == nil || *n >= 1 && *n <= maxCount }

// or returns a number that is given, or another one.
func or(n *int, other int) int {
	if n == nil {
		return other
	}
	return *n
}

// readLimited reads at most so many bytes of a file.
func readLimited(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// divide has a person's file divide the query.
func (b *Begin) divide(file string) error {
	text, err := readLimited(file, subtask.MaxFile+1)
	if err != nil {
		return swarm.Errorf(swarm.BadInput, "the plan cannot be read: %w", err)
	}
	all, err := subtask.ReadFile(text)
	if err != nil {
		if e, ok := errors.AsType[*swarm.Error](err); ok {
			e.File = file
		}
		return err
	}
	p := &b.Bundle.Plan
	for _, s := range all {
		if err := subtask.CheckRole(p.Swarm.Roles, s); err != nil {
			err.File = file
			return err
		}
	}
	if most := p.Team.MaxAgents; len(all) > most {
		return (&swarm.Error{Kind: swarm.BadInput, File: file, Msg: "there are more subtasks than there may be agents"}).
			WithHint("raise swarm.max_agents in the compose file, or divide the query into at most %d", most)
	}
	names, err := b.names()
	if err == nil {
		growth.AddWorkers(p, names, all)
	}
	return err
}

// names returns the run whose agents' names those of the plan are: a replay has the recorded agents.
func (b *Begin) names() (swarm.RunID, error) {
	b.id = swarm.NewRunID(time.Now().UTC())
	rec, err := b.Recording()
	if err != nil || rec == nil {
		return b.id, err
	}
	return rec.Header.Run, nil
}

// addTaken adds the names that no agent of the swarm gets. A replay has the recorded agents, whatever
// files there are now.
func (b *Begin) addTaken(rules *swarm.Swarm) error {
	rec, err := b.Recording()
	if err != nil || rec == nil {
		rules.Taken = run.TakenNames(rules)
		return err
	}
	for i := range rec.Events {
		if e := &rec.Events[i]; e.Kind == swarm.PlanAdded {
			p, err := swarm.PlanOf(e)
			if err == nil && p.Swarm != nil {
				rules.Taken = p.Swarm.Taken
			}
			return err
		}
	}
	return nil
}

// checkStrategy returns an error if there is no such strategy.
func checkStrategy(r Request) error {
	if r.Strategy == "" || slices.Contains(swarm.Strategies, r.Strategy) {
		return nil
	}
	return swarm.Errorf(swarm.BadInput, "there is no strategy %s", swarm.Quote(r.Strategy)).WithHint("%s", swarm.DidYouMean(r.Strategy, swarm.Strategies))
}

// checkCouncil returns an error if a request asks for what a council cannot do.
func checkCouncil(r Request, maxAgents int) error {
	most, members := min(maxAgents, swarm.MostCouncil), or(r.Agents, swarm.LeastCouncil)
	switch {
	case r.Subtasks != "":
		return swarm.Errorf(swarm.BadInput, "a council does not divide the query, so it takes no plan").WithHint("leave out --plan, or use --strategy team")
	case members < swarm.LeastCouncil || maxAgents < swarm.LeastCouncil:
		return swarm.Errorf(swarm.BadInput, "a council has at least %d members, which judge each other", swarm.LeastCouncil).
			WithHint("use --agents %d or more, and swarm.max_agents of as many, or --strategy team", swarm.LeastCouncil)
	case members > most && most < swarm.MostCouncil:
		return swarm.Errorf(swarm.BadInput, "there may be %d agents, and the council has %d", most, members).WithHint("raise swarm.max_agents in the compose file: --set swarm.max_agents=%d", members)
	case members > most:
		return swarm.Errorf(swarm.BadInput, "a council has at most %d members", most)
	}
	return nil
}
