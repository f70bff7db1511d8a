package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// sendsPacks stores context packs with these ids and sends each to the coder, in a message of its
// own.
func sendsPacks(ids ...string) liveAgent {
	return func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		for _, id := range ids {
			content, _ := json.Marshal(map[string]any{"packId": id, "goal": "reach " + id, "docRefs": []map[string]string{{"path": "plan.md", "excerpt": "by " + id}}})
			args, _ := json.Marshal(map[string]string{"kind": "contextpack", "name": id, "content": string(content)})
			if _, err := r.Call(ctx, "put_artifact", args); err != nil {
				return provider.Reply{}, err
			}
			args, _ = json.Marshal(map[string]string{"to": "coder", "message": "see " + id, "contextRef": "contextpack://pack/" + id})
			if _, err := r.Call(ctx, "send_handoff", args); err != nil {
				return provider.Reply{}, err
			}
		}
		return provider.Reply{Output: []byte("sent")}, nil
	}
}

// A prompt has the packs that came with the turn's mail, merged, and its spans mark their bytes.
func TestPacksStandInThePrompt(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	b.do(ask("planner", 1, 1), sendsPacks("one", "two", "one"))
	var asked string
	b.do(ask("coder", 1, 1), hears(&asked))
	const want = "You are kind.\n\n--- Context pack contextpack://pack/one, contextpack://pack/two ---\nGoal: reach one\n\n  reach two\nPhase: IMPLEMENTATION. Mode: AUTO.\n" +
		"Docs:\n- plan.md:\n  by two\nLeft out for room, or replaced by what came later: plan.md (replaced)\n--- End context pack ---\n\n--- Message 1 from planner "
	if !strings.Contains(asked, want) {
		t.Errorf("it is asked\n%s\nwithout\n%s", asked, want)
	}
	var start swarm.TurnStart
	starts := b.events(swarm.TurnStarted)
	b.check(json.Unmarshal(starts[len(starts)-1].Data, &start))
	for _, s := range start.Spans {
		if s.From == "pack" && (s.Name != "contextpack://pack/one contextpack://pack/two" || !strings.HasPrefix(asked[s.Start:s.End], "--- Context pack ") || !strings.HasSuffix(asked[s.Start:s.End], "--- End context pack ---")) {
			t.Errorf("%+v: %s", s, asked[s.Start:s.End])
		}
	}
	if b.do(ask("coder", 2, 1), hears(&asked)); strings.Contains(asked, "Context pack") {
		t.Errorf("a turn without mail has a pack:\n%s", asked)
	}
}

// A session gets a pack again only if it may not have read it: the turn failed, or the session is
// another one.
func TestASessionIsSentAPackOnce(t *testing.T) {
	b := newTeam(t, "claude-code", swarm.Approvals{})
	var asked provider.Request
	in := func(session string, err error) liveAgent {
		return func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
			asked = r
			return provider.Reply{Session: session}, err
		}
	}
	const referred = "You already have this context of your mail: contextpack://pack/one;"
	look := func(when string, wantOne, wantTwo bool) {
		t.Helper()
		one, two := strings.Contains(asked.Fresh, "reach one"), strings.Contains(asked.Fresh, "reach two")
		if one != wantOne || two != wantTwo || strings.Contains(asked.Fresh, referred) == wantOne {
			t.Errorf("%s it is sent\n%s", when, asked.Fresh)
		}
		if !strings.Contains(asked.Prompt, "reach one") {
			t.Errorf("%s the full prompt is\n%s", when, asked.Prompt)
		}
	}
	b.do(ask("coder", 1, 1), in("s", nil)) // the session begins
	b.do(ask("planner", 1, 1), sendsPacks("one"))
	if r, err := b.runner(in("s", swarm.Errorf(swarm.Exited, "exit status 1"))).Do(t.Context(), "root", ask("coder", 2, 1)); err != nil || r.Status != swarm.CallFailed {
		t.Fatalf("%+v, %v", r, err)
	}
	look("at first", true, false)
	b.do(ask("coder", 2, 2), in("s", nil))
	look("after the failure", true, false)
	b.do(ask("planner", 2, 1), sendsPacks("one", "two"))
	b.do(ask("coder", 3, 1), in("other", nil)) // the program had lost the session, and was sent the full prompt
	look("with two of them", false, true)
	b.do(ask("planner", 3, 1), sendsPacks("one"))
	b.do(ask("coder", 4, 1), in("other", nil))
	look("in the session that has both", false, false)
	b.do(ask("coder", 5, 1), in("third", nil))
	b.do(ask("planner", 4, 1), sendsPacks("one"))
	b.do(ask("coder", 6, 1), in("third", nil))
	look("in a session that has none", true, false)
}

// After a crash the same turn gets the same prompt, with a pack that is new to the session.
func TestATurnThatIsDoneAgainHasItsPacks(t *testing.T) {
	b := newTeam(t, "claude-code", swarm.Approvals{})
	remembers := func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		return provider.Reply{Session: "s"}, nil
	}
	b.do(ask("coder", 1, 1), remembers)
	b.do(ask("planner", 1, 1), sendsPacks("one"))
	b.do(ask("coder", 2, 1), remembers)
	b.do(ask("planner", 2, 1), sendsPacks("one", "two"))
	ctx, kill := context.WithCancelCause(t.Context())
	var first, again string
	crashes := func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		first = r.Fresh
		kill(context.Canceled)
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}
	if _, err := b.runner(crashes).Do(ctx, "root", ask("coder", 3, 1)); err == nil {
		t.Fatal("the process goes on")
	}
	b.do(ask("coder", 3, 1), func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		again = r.Fresh
		return provider.Reply{Session: "s"}, nil
	})
	if again != first || !strings.Contains(first, "reach two") || strings.Contains(first, "reach one") {
		t.Errorf("it is sent\n%s\nand again\n%s", first, again)
	}
}
