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

// Codex with a key of its own runs as `codex exec`, which cannot ask.
func TestHoldsCodex(t *testing.T) {
	for _, c := range []struct {
		inherited string
		env       map[string]string
		want      string
	}{
		{"", nil, "note: codex runs in its own sandbox (workspace-write); it asks a person before it does more, if its version can ask\n"},
		{"sk-x", nil, "note: codex runs in its own sandbox (workspace-write); with CODEX_API_KEY it cannot ask a person to do more\n"},
		{"", map[string]string{"CODEX_API_KEY": "$MINE"}, "note: codex runs in its own sandbox (workspace-write); with CODEX_API_KEY it cannot ask a person to do more\n"},
	} {
		t.Setenv("CODEX_API_KEY", c.inherited)
		var told strings.Builder
		(&app{stderr: &told}).printConfinement(&swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "codex", Kind: "codex", Env: c.env}}})
		if told.String() != c.want {
			t.Errorf("said %q, want %q", told.String(), c.want)
		}
	}
}
