package permission

import (
	"path"
	"strings"

	"swarm"
)

// Docs is the folder, relative to an agent's own, in which PLANNING allows writing.
const Docs = "docs"

// Writing returns an error if the phase forbids writing a file. Its path is relative to the agent's
// folder.
func Writing(p swarm.Phase, file string) error {
	if p != swarm.PlanningPhase || strings.HasPrefix(path.Clean(file), Docs+"/") {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "the phase %s forbids to write %s", p, swarm.Quote(file)).WithHint(waitForWork)
}

// Acting returns an error if the phase forbids an action that may change unknown files: a command,
// or a tool that is not declared read-only.
func Acting(p swarm.Phase, what string) error {
	if p != swarm.PlanningPhase {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "the phase %s forbids %s, which may change files", p, what).WithHint(waitForWork)
}

const waitForWork = "in PLANNING files are written below docs/ only, and nobody can allow more: " +
	"write down what is to be done; a team with --phase IMPLEMENTATION does it"
