package acp

import (
	"errors"
	"testing"
	"time"

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

// An agent that says when its quota resets has reached a limit.
func TestQuotaThatResets(t *testing.T) {
	g := &agentProgram{host: &host{}}
	for text, want := range map[string]time.Duration{
		"You have exhausted your capacity on this model. Your quota will reset after 3h2m10s.": 3*time.Hour + 2*time.Minute + 10*time.Second,
		"Resource has been exhausted (e.g. check quota).":                                      0,
	} {
		before := time.Now()
		e, ok := errors.AsType[*swarm.Error](g.explain(&rpcError{Code: 429, Message: text}, nil))
		if !ok || e.Kind != swarm.RateLimited {
			t.Fatalf("%s: %v", text, e)
		}
		if want == 0 && !e.Until.IsZero() || want > 0 && (e.Until.Before(before.Add(want)) || e.Until.After(time.Now().Add(want))) {
			t.Errorf("%s: until %s", text, e.Until)
		}
	}
}
