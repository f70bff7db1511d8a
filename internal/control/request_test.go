package control

import (
	"path/filepath"
	"testing"

	"swarm"
	"swarm/internal/compose"
)

// A client that may start runs in one folder cannot name paths outside that folder, whichever key
// it sets.
func TestConfine(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name    string
		plan    swarm.Plan
		refused bool
	}{
		{"nothing", swarm.Plan{}, false},
		{"desks inside", swarm.Plan{Desks: filepath.Join(dir, "desks")}, false},
		{"desks outside", swarm.Plan{Desks: "/elsewhere"}, true},
		{"files inside", swarm.Plan{Tasks: []swarm.Task{{Files: []string{filepath.Join(dir, "a.csv")}}}}, false},
		{"files outside", swarm.Plan{Tasks: []swarm.Task{{Files: []string{filepath.Join(dir, "a.csv"), "/etc/passwd"}}}}, true},
		{"workdir outside", swarm.Plan{Tasks: []swarm.Task{{Workdir: "/elsewhere"}}}, true},
	} {
		err := confine(&Begin{Dir: dir, Bundle: &compose.Bundle{Plan: c.plan}}, dir)
		if refused := swarm.KindOf(err) == swarm.Denied; refused != c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
