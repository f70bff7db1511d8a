package turn_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/provider"
)

func (b *team) publish(texts ...string) {
	b.Helper()
	for _, text := range texts {
		_, err := (&agentapi.Service{Run: "run", Log: b.log}).Publish(b.Context(), "facts", b.json(text))
		b.check(err)
	}
}

// A session is told of a finding once, unless it may not have read it: when the turn failed, or when the
// session is another. The full prompt always tells it.
func TestASessionIsToldAFindingOnce(t *testing.T) {
	b := newTeam(t, "claude-code", swarm.Approvals{})
	var asked provider.Request
	in := func(session string, err error) liveAgent {
		return func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
			asked = r
			return provider.Reply{Session: session}, err
		}
	}
	look := func(when string, wantOne, wantTwo bool) {
		t.Helper()
		one, two := strings.Contains(asked.Fresh, "- user: one (topic: facts)\n"), strings.Contains(asked.Fresh, "- user: two (topic: facts)\n")
		if one != wantOne || two != wantTwo || strings.Contains(asked.Fresh, "## Shared Findings\n") != (wantOne || wantTwo) {
			t.Errorf("%s it is sent\n%s", when, asked.Fresh)
		}
		if !strings.Contains(asked.Prompt, "## Shared Findings\n- user: one (topic: facts)\n") {
			t.Errorf("%s the full prompt is\n%s", when, asked.Prompt)
		}
	}
	b.do(ask("coder", 1, 1), in("s", nil)) // the session begins
	b.publish("one")
	if r, err := b.runner(in("s", swarm.Errorf(swarm.Exited, "exit status 1"))).Do(t.Context(), "root", ask("coder", 2, 1)); err != nil || r.Status != swarm.CallFailed {
		t.Fatalf("%+v, %v", r, err)
	}
	look("at first", true, false)
	b.do(ask("coder", 2, 2), in("s", nil))
	look("after the failure", true, false)
	b.publish("two")
	b.do(ask("coder", 3, 1), in("s", nil))
	look("with a second one", false, true)
	b.do(ask("coder", 4, 1), in("other", nil)) // the program had lost the session, and was sent the full prompt
	look("in the session that has both", false, false)
	b.do(ask("coder", 5, 1), in("other", nil))
	look("in the other session", false, false)
	b.do(ask("planner", 1, 1), in("", nil))
	b.do(ask("planner", 2, 1), in("p", nil))
	look("without a session", true, true)
}

// After a crash the same turn is asked the same, whatever was published since.
func TestATurnThatIsDoneAgainIsToldTheSameFindings(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	b.publish("one")
	ctx, kill := context.WithCancelCause(t.Context())
	var first, again, next string
	crashes := func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		first = r.Prompt
		kill(context.Canceled)
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}
	if _, err := b.runner(crashes).Do(ctx, "root", ask("coder", 1, 1)); err == nil {
		t.Fatal("the process goes on")
	}
	b.publish("two")
	b.do(ask("coder", 1, 1), hears(&again))
	b.do(ask("coder", 2, 1), hears(&next))
	if again != first || !strings.Contains(first, "- user: one") || strings.Contains(first, "- user: two") || !strings.Contains(next, "- user: two") {
		t.Errorf("it is asked\n%s\nand again\n%s\nand then\n%s", first, again, next)
	}
	starts := b.events(swarm.TurnStarted)
	var start, last swarm.TurnStart
	b.check(json.Unmarshal(starts[1].Data, &start))
	b.check(json.Unmarshal(starts[2].Data, &last))
	if entries := b.events(swarm.TopicPublished); start.Topics != entries[0].Seq || last.Topics != entries[1].Seq {
		t.Errorf("the starts name the entries %d and %d of %+v", start.Topics, last.Topics, entries)
	}
}

// A replayed turn is told what the recorded one was told. When that is not there yet, it waits for it.
func TestAReplayIsToldTheRecordedFindings(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	path := filepath.Join(t.TempDir(), "run.cassette")
	r, err := provider.Record(path, provider.CassetteHeader{})
	b.check(err)
	b.check(r.Write(provider.RecordedTurn{Turn: "planner/1/1", Acts: []provider.Act{{Tool: "publish_data", Args: json.RawMessage(`{"topic":"facts","data":"two"}`), Published: 1}}}))
	b.check(r.Write(provider.RecordedTurn{Turn: "coder/1/1", Topics: 2}))
	b.check(r.Write(provider.RecordedTurn{Turn: "coder/2/1", Topics: 1, Acts: []provider.Act{{Tool: provider.OthersFinding, Args: json.RawMessage(`{"topic":"facts","data":"three"}`), Published: 2}}}))
	b.check(r.Close())
	f, err := os.Open(path)
	b.check(err)
	defer f.Close()
	prompts := map[string]string{}
	h := b.runner(func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		if r.Agent == "coder" { // the planner's turn has no word in it
			prompts[r.Turn] = r.Prompt
		}
		return provider.Reply{}, nil
	})
	h.AgentAPI.Recorded = true
	h.Replay, err = provider.OpenCassette(f)
	b.check(err)
	turns := make(chan error, 2)
	for _, agent := range []string{"coder", "planner"} { // each waits for what comes of the other, and of a person
		go func() {
			r, err := h.Do(t.Context(), "root", ask(agent, 1, 1))
			if err == nil && r.Status != swarm.CallOK {
				err = swarm.Errorf(r.Kind, "%s", r.Reason)
			}
			turns <- err
		}()
	}
	b.publish("one")
	b.check(<-turns)
	b.check(<-turns)
	if got := prompts["coder/1/1"]; !strings.Contains(got, "- user: one (topic: facts)\n- planner: two (topic: facts)\n") {
		t.Errorf("the first is asked\n%s", got)
	}
	if r, err := h.Do(t.Context(), "root", ask("coder", 2, 1)); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := prompts["coder/2/1"]; !strings.Contains(got, "- user: one") || strings.Contains(got, "two") {
		t.Errorf("the second is asked\n%s", got)
	}
	if entries := b.events(swarm.TopicPublished); len(entries) != 3 || entries[2].Agent != swarm.User || string(entries[2].Data) != `{"topic":"facts","data":"three"}` {
		t.Errorf("published: %+v", entries)
	}
}
