package agentapi

import (
	"context"
	"strings"

	"swarm"
	"swarm/internal/station"
	"swarm/internal/subtask"
)

// A SwarmState is what the prompts of a swarm tell about it.
type SwarmState struct {
	Query      swarm.Hash
	Workers    int // that work at once
	Iterations int // of one agent
	MaxAgents  int
	Roles      []string
	Agents     []SwarmAgent // without the supervisor
}

// A SwarmAgent is an agent of a swarm, its subtask, and how it ended.
type SwarmAgent struct {
	Name    string
	Task    string
	Turn    swarm.TurnID // its last turn
	Outcome swarm.Outcome
	Reason  string
	Waits   []string // agents that must end before it begins
}

// Task returns the subtask of an agent.
func (s *SwarmState) Task(agent string) string {
	for _, a := range s.Agents {
		if a.Name == agent {
			return a.Task
		}
	}
	return ""
}

// SwarmState returns the state of a swarm, and the newest event that it comes from.
func (s *Service) SwarmState() (*SwarmState, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, 0, err
	}
	first := s.plans[0]
	if first.Swarm == nil {
		return nil, 0, swarm.Errorf(swarm.Storage, "run %s is no swarm", s.Run)
	}
	state := &SwarmState{Query: first.Swarm.Query, Workers: first.Swarm.Workers, Iterations: first.Swarm.Iterations, MaxAgents: first.Team.MaxAgents}
	for _, r := range first.Swarm.Roles {
		state.Roles = append(state.Roles, r.Name)
	}
	for _, p := range s.plans {
		if p.Swarm == nil {
			continue
		}
		for _, t := range p.Swarm.Subtasks {
			state.Agents = append(state.Agents, s.swarmAgent(t))
		}
	}
	return state, s.read, nil
}

func (s *Service) swarmAgent(t swarm.Subtask) SwarmAgent {
	a := SwarmAgent{Name: t.Agent, Task: t.Description}
	m := s.team.Member(t.Agent)
	if m == nil {
		return a
	}
	a.Turn = m.Turn
	if m.End != nil {
		a.Outcome, a.Reason = m.End.Outcome, m.End.Reason
	}
	if m.Effort != nil {
		for _, need := range m.Effort.Needs {
			if other := s.team.Member(need); other != nil && other.End == nil {
				a.Waits = append(a.Waits, need)
			}
		}
	}
	return a
}

// divisionKey is the key of the plan that divides a swarm's query.
const divisionKey = "plan:division"

// Divide adds an agent for each subtask that a turn of the supervisor names. Without a turn, one
// agent gets the whole query. It returns the sequence number of the plan. Repeating it finds the plan
// in the log and does nothing.
func (s *Service) Divide(ctx context.Context, fence int64, turn string) (int64, error) {
	if e, done, err := s.Log.Find(divisionKey); err != nil || done {
		return e.Seq, err
	}
	subtasks, err := s.subtasks(turn)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	err = s.follow()
	var first *swarm.Plan
	if err == nil {
		first = s.plans[0]
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	kept, dropped := subtask.Cap(subtasks, first.Team.MaxAgents)
	p := Divided(s.Run, first, kept)
	events := []swarm.Event{{Kind: swarm.PlanAdded, Key: divisionKey, To: swarm.ToLoop(swarm.RootLoop), Agent: swarm.Supervisor, Data: swarm.Encode(p)}}
	if len(dropped) > 0 {
		why := swarm.Reason{Reason: "the query has more subtasks than there may be agents; left out: " + strings.Join(dropped, ", "),
			Hint: "raise swarm.max_agents in the compose file"}
		events = append(events, swarm.NewEvent(swarm.Notice, why))
	}
	seqs, err := s.Log.Append(ctx, swarm.Batch{Fence: fence, Events: events})
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}

// subtasks reads the subtasks that a turn of the supervisor names.
func (s *Service) subtasks(turn string) ([]swarm.Subtask, error) {
	if turn == "" {
		state, _, err := s.SwarmState()
		if err != nil {
			return nil, err
		}
		query, err := s.Log.Body(state.Query)
		return []swarm.Subtask{{ID: "t1", Description: string(query)}}, err
	}
	end, ok, err := swarm.FindBody[swarm.CallEnd](s.Log, swarm.EndKey(turn))
	if err != nil || !ok {
		return nil, swarm.Errorf(swarm.Storage, "the log has no end of the turn %s: %w", turn, err)
	}
	text, err := s.Log.Body(end.Output)
	if err != nil {
		return nil, err
	}
	return subtask.ReadAnswer(string(text))
}

// Divided returns the plan that adds an agent for each subtask to a swarm.
func Divided(run swarm.RunID, first *swarm.Plan, subtasks []swarm.Subtask) *swarm.Plan {
	p := *first
	p.Agents, p.Edges, p.Swarm = nil, nil, &swarm.Swarm{Query: first.Swarm.Query, Workers: first.Swarm.Workers, Iterations: first.Swarm.Iterations,
		Timeout: first.Swarm.Timeout, Messages: first.Swarm.Messages}
	for i, t := range subtasks {
		a := first.Swarm.Worker
		for _, r := range first.Swarm.Roles {
			if strings.EqualFold(r.Name, t.Role) {
				a = r
			}
		}
		a.Name, t.Agent = station.Name(run, i), station.Name(run, i)
		p.Agents = append(p.Agents, a)
		p.Swarm.Subtasks = append(p.Swarm.Subtasks, t)
	}
	return &p
}
