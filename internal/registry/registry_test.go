package registry

import (
	"errors"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

func TestEveryKindHasAConstructor(t *testing.T) {
	names := append(providerkind.Names(), providerkind.Notify)
	for _, name := range names {
		if openers[name] == nil {
			t.Errorf("the kind %q has a row, and nothing opens it", name)
		}
	}
	if len(openers) != len(names) {
		t.Errorf("%d constructors for %d kinds", len(openers), len(names))
	}
}

func TestOpenRefusesUnknownKinds(t *testing.T) {
	for kind, hint := range map[string]string{"": "choose one of command, script", "comand": `did you mean "command"?`} {
		_, err := Open(swarm.ProviderSpec{Name: "x", Kind: kind}, provider.Options{})
		var e *swarm.Error
		if !errors.As(err, &e) || e.Kind != swarm.BadInput || !strings.Contains(e.Hint, hint) {
			t.Errorf("%q: %v with the hint %q", kind, err, e.Hint)
		}
	}
}
