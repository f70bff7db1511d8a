package permission

import (
	"path"
	"strings"

	"swarm"
)

// Docs is the folder, in an agent's own, that it writes to in the phase PLANNING.
const Docs = "docs"

// Writing says why the phase forbids that a file is written, whose path is seen from the agent's folder.
func Writing(p swarm.Phase, file string) error {
	if p != swarm.PlanningPhase || strings.HasPrefix(path.Clean(file), Docs+"/") {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "the phase %s forbids to write %s", p, swarm.Quote(file)).WithHint(waitForWork)
}

// Acting says why the phase forbids something that may change files, and nobody can say which: a command, a tool that does not say that
// it only reads.
func Acting(p swarm.Phase, what string) error {
	if p != swarm.PlanningPhase {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "the phase %s forbids %s, which may change files", p, what).WithHint(waitForWork)
}

const waitForWork = "in PLANNING files are written below docs/ only, and nobody can allow more: write down what is to be done; a team with --phase IMPLEMENTATION does it"
