package main

import (
	"fmt"

	"swarm"
)

// holds is what keeps an agent's program from doing whatever it likes, by the kind of its provider. It has a shell of its own, so
// that is what it brings itself, and nothing that we do.
var holds = map[string]string{
	"claude-code": "changes files in its folders, and refuses itself whatever else it would ask for; it has no sandbox on unless your settings say so",
	"codex":       "is held by its own sandbox, workspace-write",
	"opencode":    "has no sandbox: it does what its own settings do not forbid",
	"gemini":      "asks before it does what its tools do not list; it has no sandbox on unless your settings say so",
	"acp":         "is held by nothing but what it asks for by itself",
}

// sayHolds says at the start of a run how far its programs are held.
func (a *app) sayHolds(p *swarm.Plan) {
	if a.json {
		return
	}
	for _, s := range p.Providers {
		if held, ok := holds[s.Kind]; ok {
			fmt.Fprintf(a.stderr, "note: %s %s\n", s.Name, held)
		}
	}
}
