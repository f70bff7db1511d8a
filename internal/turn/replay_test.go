package turn_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// A replayed turn has the mail that the recorded one had, were it more than a prompt is given now, and no other.
func TestAReplayHasTheRecordedMail(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	for n := range 12 {
		b.do(ask("planner", n+1, 1), send("coder", strings.Repeat("x", 8000)))
	}
	var ids []string
	for _, e := range b.events(swarm.HandoffStored) {
		var env swarm.Envelope
		b.check(json.Unmarshal(e.Data, &env))
		ids = append(ids, env.Ref())
	}
	path := filepath.Join(t.TempDir(), "run.cassette")
	r, err := provider.Record(path, provider.CassetteHeader{})
	b.check(err)
	b.check(r.Write(provider.RecordedTurn{Turn: "coder/1/1", Mail: ids[:10]}))
	b.check(r.Write(provider.RecordedTurn{Turn: "coder/2/1", Mail: ids[10:11]}))
	b.check(r.Close())
	f, err := os.Open(path)
	b.check(err)
	defer f.Close()
	var prompt string
	h := b.hand(hears(&prompt))
	h.Replay, err = provider.OpenCassette(f)
	b.check(err)
	for n, want := range []int{10, 1} {
		if r, err := h.Do(t.Context(), "root", ask("coder", n+1, 1)); err != nil || r.Status != swarm.CallOK {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := strings.Count(prompt, "--- Message "); got != want {
			t.Errorf("turn %d is given %d messages, and was given %d", n+1, got, want)
		}
	}
}
