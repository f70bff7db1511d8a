package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"swarm"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// one returns one of the values.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// chance is true in p of 100 cases.
func chance(r *rand.Rand, p int) bool { return r.IntN(100) < p }

// randomPlan makes the plan of a seed, with the texts that it names.
func randomPlan(seed uint64) (p swarm.Plan, bodies [][]byte) {
	r := dice(seed, "plan")
	p = swarm.Plan{Kind: swarm.PipelineRun, MaxParallel: r.IntN(4), Providers: []swarm.ProviderSpec{{Name: "sim", Kind: providerkind.ACP}},
		Approvals: swarm.Approvals{Tools: one(r, "", "ask", "auto", "deny"), Spawn: one(r, "", "ask", "auto", "deny")}}
	if p.MaxParallel == 0 || chance(r, 50) {
		p.MaxParallel = 0
	}
	switch r.IntN(10) {
	case 0:
		p.Budget.Calls = int64(1 + r.IntN(6))
	case 1:
		p.Budget.Tokens = int64(500 + r.IntN(5000))
	case 2:
		p.Budget.Wall = time.Duration(1+r.IntN(600)) * time.Second
	}
	if chance(r, 50) {
		randomTeam(r, &p)
		return p, nil
	}
	return p, randomTasks(r, &p)
}

func randomTeam(r *rand.Rand, p *swarm.Plan) {
	p.Kind = swarm.TeamRun
	names := []string{"lead", "a", "b", "c", "d"}[:2+r.IntN(4)]
	for _, name := range names {
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "sim", Permissions: swarm.Permissions{Spawn: chance(r, 30), Orchestrate: name == "lead" && chance(r, 50)}})
	}
	for i, name := range names[1:] {
		p.Edges = append(p.Edges, swarm.Edge{From: "lead", To: name, Both: chance(r, 70)})
		if i > 0 && chance(r, 60) {
			p.Edges = append(p.Edges, swarm.Edge{From: names[i], To: name, Both: chance(r, 50)})
		}
	}
	p.Team = &swarm.Team{Lead: "lead", Mode: one(r, swarm.AutoMode, swarm.AutoMode, swarm.InteractiveMode), MaxAgents: 8,
		ReplyTimeout: time.Duration(r.IntN(300)) * time.Second, OnStall: one(r, "", swarm.StallPauses, swarm.StallFails)}
	if chance(r, 50) {
		retries := r.IntN(3)
		p.Team.Retries = &retries
	}
}

func randomTasks(r *rand.Rand, p *swarm.Plan) (bodies [][]byte) {
	n := 1 + r.IntN(7)
	groups := 1 + r.IntN(2)
	for range groups {
		p.Groups = append(p.Groups, swarm.Group{Iterations: one(r, 1, 1, 2, 3)})
	}
	agents := 1 + r.IntN(n)
	for i := range agents {
		p.Agents = append(p.Agents, swarm.Agent{Name: fmt.Sprint("w", i), Provider: "sim"})
		if i > 0 && chance(r, 70) {
			p.Edges = append(p.Edges, swarm.Edge{From: fmt.Sprint("w", r.IntN(i)), To: fmt.Sprint("w", i), Both: chance(r, 50)})
		}
	}
	for i := range n {
		t := swarm.Task{Name: fmt.Sprint("t", i), Agent: fmt.Sprint("w", r.IntN(agents)), Group: i * groups / n, Retries: r.IntN(3),
			OnFailure: one(r, "", swarm.FailContinue, swarm.FailStop, swarm.FailSkip, swarm.FailFix, swarm.FailEscalate)}
		text := "do " + t.Name
		for j := range i {
			if !chance(r, 35) {
				continue
			}
			d := swarm.Dependency{Task: fmt.Sprint("t", j), Condition: one(r, swarm.OnSuccess, swarm.OnSuccess, swarm.OnFailed, swarm.OnAny, swarm.OnAlways)}
			t.DependsOn = append(t.DependsOn, d)
			if d.Condition == swarm.OnSuccess {
				text += "\n{{output:" + d.Task + "}}"
			}
		}
		if chance(r, 30) {
			t.Expect = &swarm.Expect{Matches: "good"}
		}
		if chance(r, 30) {
			t.Timeout = time.Duration(1+r.IntN(60)) * time.Second
		}
		if len(t.DependsOn) > 0 && chance(r, 10) {
			t.WaitTimeout = time.Duration(1+r.IntN(300)) * time.Second
		}
		tpl, _, err := prompt.Parse(prompt.Source{File: t.Name, Text: []byte(text)}, nil)
		if err != nil {
			panic(err)
		}
		body := tpl.Marshal()
		t.Prompt = swarm.HashOf(body)
		bodies = append(bodies, body)
		p.Tasks = append(p.Tasks, t)
	}
	return bodies
}
