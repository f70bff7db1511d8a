package compose

import (
	"strings"
	"testing"

	"swarm"
)

// The place of a provider is its declaration, else the agent that names it, else the file's
// default, else nowhere.
func TestPlacesOfWhatMayBeMissing(t *testing.T) {
	const file = `provider: codex
providers:
  mine: {kind: command, command: [cat]}
agents:
  a: {provider: mine, root: sub}
  b: {provider: gemini}
  c:
tasks: {one: {agent: a, prompt-string: x}, two: {agent: b, prompt-string: x}, three: {agent: c, prompt-string: x}}
`
	places := func(o Options) Places {
		t.Helper()
		o.File, o.Source, o.Prompts, o.Dir = "swarm.yaml", []byte(file), folder{}, "/here"
		b, err := Compile(o)
		if err != nil {
			t.Fatal(err)
		}
		return b.Places
	}
	p := places(Options{})
	for name, want := range map[string]Place{"mine": {"swarm.yaml", 3, 3}, "gemini": {"swarm.yaml", 6, 17}, "codex": {"swarm.yaml", 1, 11}} {
		if p.Providers[name] != want {
			t.Errorf("the provider %s stands at %v, want %v", name, p.Providers[name], want)
		}
	}
	if want := (Place{"swarm.yaml", 5, 29}); p.Roots["a"] != want {
		t.Errorf("the root of a stands at %v, want %v", p.Roots["a"], want)
	}
	if p := places(Options{Provider: "opencode"}); p.Providers["opencode"] != (Place{}) {
		t.Errorf("a provider of the command line stands at %v", p.Providers["opencode"])
	}
	if p := places(Options{Set: []string{"agents.c.provider=opencode"}}); p.Providers["opencode"] != (Place{File: "--set agents.c.provider=opencode"}) {
		t.Errorf("a provider of a --set stands at %v", p.Providers["opencode"])
	}
}

// A password with one of / ? # ends the part of an address that has the host. Digits before it look
// like a port, so the rest would be named in messages.
func TestAnAddressWhosePasswordIsTakenForAPortIsNoStore(t *testing.T) {
	for address, good := range map[string]bool{
		"postgres://me@host:5432/db":           true,
		"postgresql://host:5432/db?user=me":    true,
		"postgres://me@host/db?user=me@server": true,
		"postgres://me:12#very-secret@host/db": false,
		"postgres://me:12/very-secret@host/db": false,
		"postgres://me:12?very-secret@host/db": false,
		"postgres://me:x/very-secret@host/db":  false,
		"redis://host/db":                      false,
	} {
		got, _, err := StoreOf(Options{File: "swarm.yaml", Source: []byte("store: '" + address + "'\n")})
		if good && (err != nil || got != address) || !good && (err == nil || strings.Contains(err.Error()+swarm.HintOf(err), "very-secret")) {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}
