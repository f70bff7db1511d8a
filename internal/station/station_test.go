package station_test

import (
	"testing"

	"swarm"
	"swarm/internal/station"
)

func TestNames(t *testing.T) {
	for _, run := range []swarm.RunID{"", "r1", "20261116-abcdef"} {
		seen := map[string]bool{}
		for i := range 1000 {
			name := station.Name(run, i)
			if err := swarm.CheckAgentName(name); err != nil {
				t.Fatal(err)
			}
			if seen[name] {
				t.Fatalf("run %q has two agents called %s", run, name)
			}
			seen[name] = true
			if name != station.Name(run, i) {
				t.Fatalf("agent %d has two names", i)
			}
		}
	}
	if station.Name("r1", 0) == station.Name("r2", 0) && station.Name("r1", 0) == station.Name("r3", 0) {
		t.Error("all runs have the same names")
	}
}
