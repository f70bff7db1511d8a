package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/providerkind"
	"swarm/internal/sandbox"
)

// printConfinement prints, when a run starts, how far its programs are confined.
func (a *app) printConfinement(p *swarm.Plan) {
	if a.json {
		return
	}
	for _, s := range p.Providers {
		confined := providerkind.Of(s.Kind).Confined
		words := confined.Always
		if confined.KeyVar != "" && cmp.Or(s.Env[confined.KeyVar], os.Getenv(confined.KeyVar)) != "" {
			words = confined.WithKey
		}
		if p.Team != nil && p.Team.Phase == swarm.PlanningPhase {
			words = confined.Planning
		}
		if s.Sandbox != nil {
			words = "is confined by the operating system; " + networkOf(s.Sandbox)
			if sandbox.IsLandlock() {
				words = "is confined by Landlock, which holds less than bubblewrap; " + networkOf(s.Sandbox)
			}
		}
		if words != "" {
			fmt.Fprintf(a.stderr, "note: %s %s\n", s.Name, words)
		}
	}
}

// networkOf says what programs in a sandbox reach.
func networkOf(s *swarm.Sandbox) string {
	switch s.Network {
	case swarm.NetworkAll:
		return "it reaches every host, this machine's loopback interface too"
	case swarm.NetworkHosts:
		return "it reaches " + strings.Join(s.Hosts, ", ")
	}
	return "it reaches no host"
}

// examineSandbox checks whether `sandbox: os` works here, and by what.
func examineSandbox(b *compose.Bundle) finding {
	needed := slices.ContainsFunc(b.Plan.Providers, func(s swarm.ProviderSpec) bool { return s.Sandbox != nil })
	found, err := sandbox.Describe()
	if err != nil {
		return bad("sandbox", needed, err)
	}
	return finding{What: "sandbox", Found: found, Needed: needed}
}
