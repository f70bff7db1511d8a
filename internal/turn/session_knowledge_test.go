package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/flow"
	"swarm/internal/provider"
)

func (b *team) publish(texts ...string) {
	b.Helper()
	for _, text := range texts {
		_, err := (&agentapi.Service{Run: "run", Log: b.log}).Publish(b.Context(), "facts", b.json(text))
		b.check(err)
	}
}

// A session gets a finding once, unless it may not have read it: the turn failed, or the session is
// another one. The full prompt always has it.
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

// A finding or a pack is sent again if the turn that brought it is left out of the session. One
// that came with the first prompt is not sent again, because that prompt stays.
func TestASessionIsToldAgainWhatIsLeftOut(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	var asked provider.Request
	turn := 0
	works := func() {
		t.Helper()
		turn++
		b.do(ask("coder", turn, 1), chats(&asked, strings.Repeat("y", 20_000), ""))
		all := ""
		for _, m := range asked.History {
			all += m.Text
		}
		for _, text := range []string{"\n- user: zero", "\n- user: one"} {
			if turn > 2 && strings.Count(all+asked.Fresh, text) != 1 {
				t.Errorf("turn %d has %q %d times", turn, text, strings.Count(all+asked.Fresh, text))
			}
		}
	}
	last := func() (start swarm.TurnStart) {
		t.Helper()
		starts := b.events(swarm.TurnStarted)
		b.check(json.Unmarshal(starts[len(starts)-1].Data, &start))
		return start
	}
	b.publish("zero")
	works()
	b.publish("one")
	b.do(ask("planner", 1, 1), sendsPacks("one"))
	works()
	sent := 0
	for range 28 {
		works()
		if strings.Contains(asked.Fresh, "- user: one") {
			sent++
			if h := last().History; h == nil || h.Dropped < 2 {
				t.Errorf("turn %d is told again what it has: %+v", turn, h)
			}
			again, err := b.runner(hears(new(string))).Prompt(ask("coder", turn, 1), last())
			if b.check(err); again != asked.Prompt {
				t.Errorf("the prompt was\n%s\nand is\n%s", asked.Prompt, again)
			}
		}
	}
	if sent < 2 || sent > 14 {
		t.Errorf("the finding was sent again %d times", sent)
	}
	if begin := asked.History[0].Text; !strings.Contains(begin, "- coder/2/1: planner: see one Context: contextpack://pack/one Work.; tools:") {
		t.Errorf("the summary is\n%s", begin)
	}
	b.do(ask("planner", 2, 1), sendsPacks("one"))
	if works(); !strings.Contains(asked.Fresh, "Goal: reach one") {
		t.Errorf("the pack is not sent again:\n%s", asked.Fresh)
	}
	b.do(ask("planner", 3, 1), sendsPacks("one"))
	if works(); last().History.Dropped < turn-2 && !strings.Contains(asked.Fresh, "You already have this context of your mail: contextpack://pack/one;") {
		t.Errorf("the pack is sent twice:\n%s", asked.Fresh)
	}
}

// After a crash the same turn gets the same prompt, even if findings were published since.
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

// Making a prompt again gives the same prompt, even if mail came since or during the turn.
func TestAPromptIsMadeOnceMore(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	for n := range 12 {
		b.do(ask("planner", n+1, 1), send("coder", strings.Repeat("x", 8000)))
	}
	b.publish("one")
	var prompt string
	b.do(ask("coder", 1, 1), hears(&prompt))
	b.publish("two")
	b.do(ask("planner", 13, 1), send("coder", "more"))
	started := b.events(swarm.TurnStarted)
	start, err := swarm.Body[swarm.TurnStart](&started[12])
	b.check(err)
	again, err := b.runner(hears(&prompt)).Prompt(ask("coder", 1, 1), start)
	b.check(err)
	if again != prompt || !strings.Contains(prompt, "user: one") {
		t.Errorf("it was\n%s\nand is\n%s", prompt, again)
	}
	stored := b.events(swarm.HandoffStored)
	start.Inputs = swarm.Inputs{Upto: stored[11].Seq}
	if again, err = b.runner(hears(&prompt)).Prompt(ask("coder", 1, 1), start); err != nil || strings.Count(again, "--- Message ") != 12 {
		t.Errorf("of 12 messages it has %d: %v", strings.Count(again, "--- Message "), err)
	}
}

// A turn that continues a session is told what the session had cost in all. The log has it, so
// another process is told the same. A session that began in the run cost nothing before.
func TestASessionIsContinuedWithItsTotal(t *testing.T) {
	b := newTeam(t, "claude-code", swarm.Approvals{})
	var asked provider.Request
	in := func(session string, usd float64, err error) liveAgent {
		return func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
			asked = r
			reply := provider.Reply{Session: session}
			if usd > 0 {
				reply.SessionTotal = &swarm.Usage{USD: usd}
			}
			return reply, err
		}
	}
	want := func(session string, usd float64) {
		t.Helper()
		if total := asked.SessionTotal; asked.Session != session || (total == nil) != (session == "") || total != nil && total.USD != usd {
			t.Errorf("it goes on with the session %q, which had cost %+v, want %q and %v", asked.Session, total, session, usd)
		}
	}
	do := func(turn flow.Call, agent liveAgent) { // by a runner of its own, as another process
		t.Helper()
		_, err := b.runner(agent).Do(t.Context(), "root", turn)
		b.check(err)
	}
	do(ask("coder", 1, 1), in("s", 0, swarm.Errorf(swarm.CutToSpeak, "cut")))
	want("", 0)
	do(ask("coder", 1, 2), in("s", 0.25, nil))
	want("s", 0)
	do(ask("coder", 2, 1), in("s", 0.75, swarm.Errorf(swarm.Exited, "exit status 1")))
	want("s", 0.25)
	do(ask("coder", 2, 2), in("s", 0, nil))
	want("s", 0.75)
	do(ask("coder", 3, 1), in("other", 0.5, nil)) // the program had lost the session
	want("s", 0.75)
	do(ask("coder", 4, 1), in("other", 1, nil))
	want("other", 0.5)
}
