package agenttoken

import (
	"strings"
	"testing"
)

func TestATokenIsOneAgentOfOneRunOfThisProcess(t *testing.T) {
	mine := New("run-1")
	for _, name := range []string{"planner", "coder", "coder.2", "a"} {
		token := mine.For(name)
		if got, ok := mine.Agent(token); got != name || !ok {
			t.Errorf("the token of %s is that of %q, %v", name, got, ok)
		}
		if rest, ok := strings.CutPrefix(token, mine.Beginning()); !ok || len(rest) > MaxRest {
			t.Errorf("the token of %s reads %s", name, token)
		}
		if !strings.HasPrefix(token, "swa_") || strings.Contains(token, name) && len(name) > 2 {
			t.Errorf("the token of %s reads %s", name, token)
		}
		for what, other := range map[string]*Tokens{"another process": New("run-1"), "another run": {"run-2", mine.begin, mine.secret}, "a run that ends the same": {"run-1\x00coder", mine.begin, mine.secret}} {
			if got, ok := other.Agent(token); ok {
				t.Errorf("%s takes the token of %s as that of %q", what, name, got)
			}
		}
		for i := range token {
			if bent := token[:i] + string(token[i]^1) + token[i+1:]; bent != token {
				if got, ok := mine.Agent(bent); ok {
					t.Errorf("%s is taken as the token of %q", bent, got)
				}
			}
		}
	}
	if mine.For("planner") == mine.For("coder") {
		t.Error("two agents have one token")
	}
}

// FuzzTokens: whatever is shown, it is an agent's token only if it is the one that the agent was given.
func FuzzTokens(f *testing.F) {
	tokens := New("run-1")
	for _, seed := range []string{"", "swa_", tokens.For("planner"), tokens.For(""), tokens.For("planner") + "=", tokens.For("planner") + "\n", New("run-1").For("planner")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, shown string) {
		if agent, ok := tokens.Agent(shown); ok && (shown != tokens.For(agent) || agent == "") {
			t.Errorf("%q is taken as the token of %q", shown, agent)
		}
	})
}
