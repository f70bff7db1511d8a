package main

import (
	"fmt"

	"swarm"
	"swarm/internal/providerkind"
)

// printConfinement prints, when a run starts, how far its programs are confined.
func (a *app) printConfinement(p *swarm.Plan) {
	if a.json {
		return
	}
	for _, s := range p.Providers {
		confined := providerkind.Of(s.Kind).Confined
		words := confined.Always
		if p.Team != nil && p.Team.Phase == swarm.PlanningPhase {
			words = confined.Planning
		}
		if words != "" {
			fmt.Fprintf(a.stderr, "note: %s %s\n", s.Name, words)
		}
	}
}
