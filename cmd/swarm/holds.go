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

// planningHolds is the same in the phase PLANNING, where files are written below docs/ only. Whatever holds a program, what it has
// written elsewhere is seen when its turn ends.
var planningHolds = map[string]string{
	"claude-code": "is held to docs/ by its own permissions, and runs no commands; rules of your settings that allow more stay in force",
	"codex":       "is held to docs/ by its own sandbox",
	"opencode":    "is held to docs/ by its own permissions, and runs no commands; rules of your settings that allow some paths stay in force",
	"gemini":      "asks before it writes or runs anything, and is answered by the phase",
	"acp":         "is answered by the phase when it asks, and is held by nothing else",
	"command":     "is held by nothing; a turn in which it writes outside of docs/ fails",
}

// sayHolds says at the start of a run how far its programs are held.
func (a *app) sayHolds(p *swarm.Plan) {
	if a.json {
		return
	}
	words := holds
	if p.Team != nil && p.Team.Phase == swarm.PlanningPhase {
		words = planningHolds
	}
	for _, s := range p.Providers {
		if held, ok := words[s.Kind]; ok {
			fmt.Fprintf(a.stderr, "note: %s %s\n", s.Name, held)
		}
	}
}
