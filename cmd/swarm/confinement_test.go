package main

import (
	"strings"
	"testing"

	"swarm"
)

func TestHolds(t *testing.T) {
	var told strings.Builder
	a := &app{stderr: &told}
	a.printConfinement(&swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "mine", Kind: "opencode"}, {Name: "sh", Kind: "command"}}})
	if want := "note: mine has no sandbox: it does what its own settings do not forbid\n"; told.String() != want {
		t.Errorf("said %q, want %q", told.String(), want)
	}
}
