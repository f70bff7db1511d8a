package run

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/secret"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// A witness records the deltas that it is passed.
type witness struct{ seen []string }

func (w *witness) Event(*swarm.Event) {}
func (w *witness) Delta(_ string, d swarm.Delta) {
	said := d.Text + d.File + d.Session
	if d.Tool != nil {
		said = fmt.Sprintf("%s %s %s%s", d.Tool.ID, d.Tool.Name, d.Tool.Input, d.Tool.Output)
	}
	w.seen = append(w.seen, said)
}

// Names, inputs and outputs of tools hold no secret either, nor do names of files and sessions.
func TestStreamsHoldNoSecret(t *testing.T) {
	const canary = "sk-canary-0123456789"
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{}
	s := newStreams(h, "run", secret.New([]string{"API_KEY=" + canary}, nil), func(task, _ string, d swarm.Delta) { w.Delta(task, d) })
	tool := &swarm.ToolUse{ID: "id-" + canary, Name: "send " + canary, Input: json.RawMessage(`{"to":"` + canary + `"}`), Output: "sent " + canary}
	for _, d := range []swarm.Delta{{Kind: swarm.DeltaText, Text: "it is " + canary + "\n"}, {Kind: swarm.DeltaTool, Tool: tool},
		{Kind: swarm.DeltaFile, File: "/tmp/" + canary}, {Kind: swarm.DeltaSession, Session: "s-" + canary}} {
		s.Delta(flow.Call{ID: "a/1/1", Task: "a"}, 1, d)
	}
	s.Silent(flow.Call{ID: "a/1/1", Task: "a"})
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(w.seen, "|"), "it is [secret API_KEY]\n|id-[secret API_KEY] send [secret API_KEY] {\"to\":\"[secret API_KEY]\"}sent [secret API_KEY]|/tmp/[secret API_KEY]|s-[secret API_KEY]"; got != want {
		t.Errorf("seen: %s", got)
	}
}
