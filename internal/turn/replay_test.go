package turn_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/mail"
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
	h := b.runner(hears(&prompt))
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

// What a turn was given between two tools it is given again, to the letter and at the same place among what it read, and a person's
// message comes again with the turn in which it came.
func TestAReplayIsGivenWhatCameBetweenTwoTools(t *testing.T) {
	urgent := swarm.Envelope{Kind: swarm.Handoff, ID: "m-made", FromNodeID: swarm.User, ToNodeID: "coder", Payload: swarm.Payload{Message: "stop that"}, Meta: json.RawMessage(`{"priority":"high"}`)}
	later := urgent
	later.ID, later.Payload.Message, later.Meta = "m-later", "and then", nil
	act := func(b *team, e swarm.Envelope) provider.Act {
		return provider.Act{Tool: provider.OthersMail, Args: b.json(e), To: e.ToNodeID}
	}
	replay := func(t *testing.T, text string) (*team, flow.Result) {
		b := newTeam(t, "script", swarm.Approvals{})
		path := filepath.Join(t.TempDir(), "run.cassette")
		r, err := provider.Record(path, provider.CassetteHeader{})
		b.check(err)
		b.check(r.Write(provider.RecordedTurn{Turn: "coder/1/1", Acts: []provider.Act{act(b, urgent), act(b, later)}, Read: []string{"m-made", "m-later"},
			Asides: []provider.Aside{{Tool: "ls", Mail: []string{"m-made"}, Text: provider.Text(text)}}}))
		b.check(r.Close())
		f, err := os.Open(path)
		b.check(err)
		defer f.Close()
		var prompt string
		h := b.runner(hears(&prompt))
		h.Replay, err = provider.OpenCassette(f)
		b.check(err)
		end, err := h.Do(t.Context(), "root", ask("coder", 1, 1))
		b.check(err)
		return b, end
	}
	text := mail.NewRules().Aside("coder", []mail.Item{{Envelope: urgent}})
	b, end := replay(t, text)
	given := b.events(swarm.HandoffInjected)
	var in swarm.Injection
	if len(given) == 1 {
		b.check(json.Unmarshal(given[0].Data, &in))
	}
	stored := b.events(swarm.HandoffStored)
	if end.Status != swarm.CallOK || len(given) != 1 || len(stored) != 2 || in.Upto != stored[0].Seq || in.Tool != "ls" || in.Text != swarm.HashOf([]byte(text)) || end.Inputs.Upto != stored[1].Seq {
		t.Errorf("it was given %+v and read %+v: %+v", in, end.Inputs, end)
	}
	if _, end := replay(t, text+"more"); end.Kind != swarm.Mismatch || !strings.Contains(end.Reason, "what the turn coder/1/1 was given beside the answer of ls is not the recorded one") {
		t.Errorf("given something else, it ended with %+v", end)
	}
}
