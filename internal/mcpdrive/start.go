package mcpdrive

import (
	"context"

	"swarm"
	"swarm/internal/control"
)

// A budget is the part of the key's budget that one run gets.
type budget struct {
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens"`
	Calls  int64   `json:"calls"`
}

func (b budget) limit() swarm.Budget {
	return swarm.Budget{USD: b.USD, Tokens: b.Tokens, Calls: b.Calls}
}

// begun is the answer of a tool that starts a run.
type begun struct {
	Run  string `json:"run"`
	Next string `json:"next"`
}

// started returns the answer of a tool that starts a run.
func started(id string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return begun{id, "call wait_run with run " + id}, nil
}

// request returns a request for a run of this folder.
func (s *Server) request(b budget) control.Request {
	return control.Request{Dir: s.Control.Dir, Within: s.Control.Dir, Budget: b.limit(), Unattended: true}
}

func (s *Server) runPipeline(ctx context.Context, a struct {
	Pipeline string   `json:"pipeline"`
	Tasks    []string `json:"tasks"`
	Stdin    string   `json:"stdin"`
	Budget   budget   `json:"budget"`
},
) (any, error) {
	if a.Pipeline != "" && len(a.Tasks) > 0 {
		return nil, swarm.Errorf(swarm.BadInput, "a run is of a pipeline or of some tasks, not of both").WithHint("leave out pipeline or tasks")
	}
	r := s.request(a.Budget)
	r.Pipeline, r.Tasks, r.Stdin = a.Pipeline, a.Tasks, a.Stdin
	return started(s.Start(ctx, r))
}

func (s *Server) runTeam(ctx context.Context, a struct {
	Goal        string   `json:"goal"`
	To          string   `json:"to"`
	Done        []string `json:"done"`
	DoneCommand string   `json:"done_command"`
	Budget      budget   `json:"budget"`
},
) (any, error) {
	if a.Goal == "" {
		return nil, swarm.Errorf(swarm.BadInput, "the goal is empty").WithHint("write what the team is to do")
	}
	if k := s.Control.Caller.Key; a.DoneCommand != "" && (k == nil || !k.MayApprove) {
		return nil, swarm.Errorf(swarm.BadInput, "this client may not give a command that runs outside of any agent").
			WithHint("leave out done_command, or ask the person: team.expect in the compose file has such a command, and --may-approve of this server allows yours")
	}
	r := s.request(a.Budget)
	r.Goal, r.To, r.Done, r.DoneCommand = a.Goal, a.To, a.Done, a.DoneCommand
	return started(s.Start(ctx, r))
}

func (s *Server) runLine(ctx context.Context, a struct {
	Line   string `json:"line"`
	Budget budget `json:"budget"`
},
) (any, error) {
	return started(s.StartLine(ctx, s.request(a.Budget), a.Line))
}

func (s *Server) solve(ctx context.Context, a struct {
	Query    string `json:"query"`
	Agents   *int   `json:"agents"`
	Strategy string `json:"strategy"`
	Budget   budget `json:"budget"`
},
) (any, error) {
	if a.Query == "" {
		return nil, swarm.Errorf(swarm.BadInput, "the query is empty").WithHint("write what is to be found out")
	}
	r := s.request(a.Budget)
	r.Query, r.Agents, r.Strategy = a.Query, a.Agents, a.Strategy
	return started(s.Start(ctx, r))
}

// A projectView is what a compose file has.
type projectView struct {
	File      string        `json:"file"`
	Pipelines []string      `json:"pipelines,omitempty"`
	Tasks     []projectTask `json:"tasks,omitempty"`
	Agents    []string      `json:"agents,omitempty"`
	Edges     []string      `json:"edges,omitempty"`
	Next      string        `json:"next"`
}

type projectTask struct {
	Name      string   `json:"name"`
	Agent     string   `json:"agent"`
	DependsOn []string `json:"depends_on,omitempty"`
}

func (s *Server) project(context.Context, struct{}) (any, error) {
	all, err := s.Control.Project(s.request(budget{}))
	if err != nil {
		return nil, err
	}
	for _, p := range all.Problems {
		if p.Level == "error" {
			e := swarm.Errorf(swarm.BadInput, "%s", p.Error).WithHint("%s", p.Hint)
			e.File, e.Line, e.Column = p.File, p.Line, p.Column
			return nil, e
		}
	}
	v := projectView{File: all.File, Next: "run_pipeline starts tasks, run_team gives the agents a goal, run_line speaks to agents by name, solve asks a swarm"}
	for _, p := range all.Pipelines {
		v.Pipelines = append(v.Pipelines, p.Name)
	}
	for _, t := range all.Tasks {
		one := projectTask{Name: t.Name, Agent: t.Agent}
		for _, d := range t.DependsOn {
			one.DependsOn = append(one.DependsOn, d.Task)
		}
		v.Tasks = append(v.Tasks, one)
	}
	for _, a := range all.Agents {
		v.Agents = append(v.Agents, a.Name)
	}
	for _, e := range all.Edges {
		arrow := " -> "
		if e.Both {
			arrow = " <-> "
		}
		v.Edges = append(v.Edges, e.From+arrow+e.To)
	}
	return v, nil
}
