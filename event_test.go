package swarm_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"swarm"
)

// TestEventKinds keeps the list of kinds complete, because streams of events are filtered by it.
func TestEventKinds(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`EventKind = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	for _, m := range all {
		if !slices.Contains(swarm.EventKinds, swarm.EventKind(m[1])) {
			t.Errorf("EventKinds lacks %s", m[1])
		}
	}
	if len(all) != len(swarm.EventKinds) {
		t.Errorf("%d kinds, and %d in the list", len(all), len(swarm.EventKinds))
	}
}
