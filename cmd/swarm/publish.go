package main

import (
	"encoding/json"
	"net/http"
	"strings"

	"swarm"
	"swarm/internal/a2a"
	"swarm/internal/api"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/excerpt"
	"swarm/internal/feed"
	"swarm/internal/prompt"
	"swarm/internal/term"
	"swarm/web"
)

// routes makes the handler of the server, and lists the agents that it publishes over A2A.
func (a *app) routes(o serveOptions, c *control.Control, d *control.Drivers, hub *feed.Hub) (http.Handler, []a2a.Agent, error) {
	apiRoutes := api.New(api.Options{Control: c, Start: d.Start, StartLine: a.lineStarter(d), Begin: d.Begin, Feed: hub, Page: web.Files()})
	if !o.a2a {
		return apiRoutes, nil, nil
	}
	agents := func() ([]a2a.Agent, error) { return publishedAgents(c) }
	published, err := agents()
	if err != nil {
		return nil, nil, err
	}
	byA2A := *c
	byA2A.Caller.How = swarm.HowA2A
	a2aRoutes := a2a.New(a2a.Options{Control: &byA2A, Start: d.Start, Feed: hub, Agents: agents, Version: version, Fault: a.complain})
	routes := http.NewServeMux()
	for _, path := range a2a.Paths {
		routes.Handle(path, a2aRoutes)
	}
	routes.Handle("/", apiRoutes)
	return routes, published, nil
}

// publishedAgents lists the agents of this folder's compose file.
func publishedAgents(c *control.Control) ([]a2a.Agent, error) {
	b, _, err := c.Team(control.Request{Alone: true})
	if err != nil {
		return nil, err
	}
	var all []a2a.Agent
	for _, agent := range b.Plan.Agents {
		all = append(all, a2a.Agent{Name: agent.Name, Description: describe(b, &agent), Lead: agent.Name == b.Plan.Team.Lead})
	}
	return all, nil
}

// describe returns the first paragraph of an agent's role, as the description in its card.
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
				continue // a heading says less than the paragraph below it
			}
			return excerpt.Head(words, most)
		}
	}
	return "The agent " + agent.Name + " of a team of " + term.Plural(len(b.Plan.Agents), "agent") + "."
}
