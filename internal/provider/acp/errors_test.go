package acp

import (
	"testing"

	"swarm"
)

// TestComplaintHasTheLastWords: an agent whose own program has died says "Internal error", and the
// reason on standard error.
func TestComplaintHasTheLastWords(t *testing.T) {
	g := &agentProgram{host: &host{}}
	err := g.explain(&rpcError{Code: -32603, Message: "Internal error"}, []byte("starting\nit cannot be used with root privileges\n"))
	const want = "the agent failed: Internal error: starting | it cannot be used with root privileges"
	if swarm.KindOf(err) != swarm.NoResult || err.Error() != want {
		t.Errorf("it is said as %q, want %q", err, want)
	}
}
