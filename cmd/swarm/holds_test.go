package main

import (
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/compose"
)

// Of every program with a shell of its own it is said at the start how far it is held; of others there is nothing to say.
func TestHolds(t *testing.T) {
	for _, kind := range compose.Presets() {
		_, said := holds[kind]
		if _, planned := planningHolds[kind]; planned != said {
			t.Errorf("%s: said %v, and in PLANNING %v", kind, said, planned)
		}
		if model := slices.Contains([]string{"anthropic", "openai"}, kind); said == model {
			t.Errorf("%s: said %v", kind, said)
		}
	}
	var told strings.Builder
	a := &app{stderr: &told}
	a.sayHolds(&swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "mine", Kind: "opencode"}, {Name: "sh", Kind: "command"}}})
	if want := "note: mine has no sandbox: it does what its own settings do not forbid\n"; told.String() != want {
		t.Errorf("said %q, want %q", told.String(), want)
	}
}
