package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/home"
	"swarm/internal/provider"
	"swarm/internal/secret"
)

// A witness keeps what it sees.
type witness struct{ seen []string }

func (w *witness) Event(*swarm.Event) {}
func (w *witness) Delta(_ string, d provider.Delta) {
	said := d.Text
	if d.Tool != nil {
		said = fmt.Sprintf("%s%s", d.Tool.Input, d.Tool.Output)
	}
	w.seen = append(w.seen, said)
}

// What tools are told and say holds no secret either.
func TestStreamsHoldNoSecret(t *testing.T) {
	const canary = "sk-canary-0123456789"
	h, err := home.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	s := newStreams(h, "run", secret.New([]string{"API_KEY=" + canary}, nil), w)
	tool := &swarm.ToolUse{Name: "send", Input: json.RawMessage(`{"to":"` + canary + `"}`), Output: "sent " + canary}
	for _, d := range []provider.Delta{{Kind: provider.DeltaText, Text: "it is " + canary + "\n"}, {Kind: provider.DeltaTool, Tool: tool}} {
		s.Delta(flow.Call{ID: "a/1/1", Task: "a"}, 1, d)
	}
	s.Silent(flow.Call{ID: "a/1/1", Task: "a"})
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(w.seen, "|"), "it is [secret API_KEY]\n|{\"to\":\"[secret API_KEY]\"}sent [secret API_KEY]"; got != want {
		t.Errorf("seen: %s", got)
	}
}
