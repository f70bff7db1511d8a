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
			if !station.Is(name) {
				t.Fatalf("%s is no name of an agent", name)
			}
			if name != station.Name(run, i) {
				t.Fatalf("agent %d has two names", i)
			}
		}
	}
	for _, name := range []string{"", "-2", "takao-", "takao-x", "my", "2"} {
		if station.Is(name) {
			t.Errorf("%q is a name of an agent", name)
		}
	}
	if station.Name("r1", 0) == station.Name("r2", 0) && station.Name("r1", 0) == station.Name("r3", 0) {
		t.Error("all runs have the same names")
	}
}
