package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/a2a"
	"swarm/internal/compose"
	"swarm/internal/prompt"
	"swarm/internal/run"
)

// routes are what the server answers, and which agents it publishes.
func (a *app) routes(o serveOptions, d *drivers) (http.Handler, []a2a.Agent, error) {
	if !o.a2a {
		return d.window, nil, nil
	}
	published, err := a.published()
	if err != nil {
		return nil, nil, err
	}
	agents := a2a.New(a2a.Options{API: d.window, Agents: a.published, Version: version, Fault: a.complain})
	routes := http.NewServeMux()
	for _, path := range a2a.Paths {
		routes.Handle(path, agents)
	}
	routes.Handle("/", d.window)
	return routes, published, nil
}

// published are the agents of this folder's compose file.
func (a *app) published() ([]a2a.Agent, error) {
	b, _, err := a.composeTeam(&source{alone: true}, opening{}, swarm.AutoMode, swarm.ImplementationPhase)
	if err != nil {
		return nil, err
	}
	var all []a2a.Agent
	for _, agent := range b.Plan.Agents {
		all = append(all, a2a.Agent{Name: agent.Name, Description: describe(b, &agent), Lead: agent.Name == b.Plan.Team.Lead})
	}
	return all, nil
}

// describe says what an agent is for: the first paragraph of its role.
func describe(b *compose.Bundle, agent *swarm.Agent) string {
	const most = 600
	for _, body := range b.Bodies {
		var role prompt.Template
		if agent.Role == "" || swarm.HashOf(body) != agent.Role || json.Unmarshal(body, &role) != nil {
			continue
		}
		var text strings.Builder
		for _, part := range role.Parts {
			text.WriteString(part.String())
		}
		for paragraph := range strings.SplitSeq(text.String(), "\n\n") {
			words := excerpt.OneLine(paragraph)
			if strings.HasPrefix(words, "#") && !strings.Contains(strings.TrimSpace(paragraph), "\n") || words == "" {
				continue // a heading says less than what stands under it
			}
			return excerpt.Head(words, most)
		}
	}
	return "The agent " + agent.Name + " of a team of " + count(len(b.Plan.Agents), "agent") + "."
}

// takeUp goes on with the tasks that others gave to this folder's agents and that nobody works on: whoever gave them cannot.
func (d *drivers) takeUp(dir string) error {
	all, err := d.home.List(dir, false)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s = run.Current(d.home, s); s.Asked == nil || s.Status != swarm.Interrupted {
			continue
		}
		if paused, err := run.PauseWanted(d.home, s.ID); err != nil || paused {
			continue
		}
		if err := d.Resume(d.stops.ctx, s.ID); err != nil {
			d.app.complain(err)
		}
	}
	return nil
}
