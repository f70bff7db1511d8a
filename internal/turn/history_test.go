package turn_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/provider"
)

// chats is a model that answers with a text after a call of a tool, and keeps what it is asked.
func chats(asked *provider.Request, text, result string) liveAgent {
	return func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		*asked = r
		return provider.Reply{Output: []byte(text), Bytes: int64(len(text)), Messages: []swarm.ChatMessage{
			{Role: swarm.RoleAssistant, Calls: []swarm.ToolCall{{ID: "1", Name: "look", Args: "{}"}}},
			{Role: swarm.RoleUser, Results: []swarm.ToolResult{{Call: "1", Text: result}}},
			{Role: swarm.RoleAssistant, Text: text},
		}}, nil
	}
}

// told is the conversation that a model is sent, in short.
func told(r provider.Request) string {
	var b strings.Builder
	for _, m := range append(r.History, swarm.ChatMessage{Role: swarm.RoleUser, Text: r.Fresh}) {
		fmt.Fprintf(&b, "%s:%s", m.Role[:1], strings.Join(strings.Fields(m.Text), " "))
		for _, c := range m.Calls {
			b.WriteString("(" + c.Name + ")")
		}
		for _, x := range m.Results {
			b.WriteString("[" + x.Text + "]")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A model over HTTP is sent what was said before, from the log: prompts, calls, results and answers.
// A turn that failed is not part of it, a crash changes nothing, and a reset begins anew.
func TestAModelIsSentItsSession(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	var asked provider.Request
	b.do(ask("coder", 1, 1), chats(&asked, "one", "r1"))
	const head = "u:You are kind. Your SWARM_TASK_ID is coder. Your SWARM_AGENT_ID is coder. You are on iteration 1 of 9. Work.\n"
	if told(asked) != head || asked.Stable != len("You are kind.\n\n") || asked.Session != "" {
		t.Errorf("at first it is sent\n%s", told(asked))
	}
	fails := func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		return provider.Reply{}, swarm.Errorf(swarm.NoResult, "no")
	}
	if r, err := b.runner(fails).Do(t.Context(), "root", ask("coder", 2, 1)); err != nil || r.Status != swarm.CallFailed {
		t.Fatalf("%+v, %v", r, err)
	}
	ctx, kill := context.WithCancelCause(t.Context())
	dies := func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		asked = r
		kill(errors.New("killed"))
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}
	if _, err := b.runner(dies).Do(ctx, "root", ask("coder", 2, 2)); err == nil {
		t.Fatal("the process goes on")
	}
	first := told(asked)
	if want := head + "a:(look)\nu:[r1]\na:one\nu:Your SWARM_TASK_ID is coder. Your SWARM_AGENT_ID is coder. You are on iteration 2 of 9. Work. --- Why attempt 1 failed --- no --- End ---\n"; first != want {
		t.Errorf("in its second turn it is sent\n%s\nwant\n%s", first, want)
	}
	b.do(ask("coder", 2, 2), chats(&asked, "two", "r2"))
	if told(asked) != first || asked.Session != "coder/1/1" {
		t.Errorf("after a crash it is sent\n%s\nin the session %s", told(asked), asked.Session)
	}
	b.do(ask("coder", 3, 1), chats(&asked, "three", "r3"))
	if got := told(asked); !strings.HasPrefix(got, first) || !strings.Contains(got, "u:[r2]\na:two\n") || strings.Count(got, "You are kind") != 1 {
		t.Errorf("in its third turn it is sent\n%s", got)
	}
	b.append(nil, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: b.json(swarm.ControlCommand{Command: swarm.CommandReset, Target: "coder"})})
	four, five := ask("coder", 4, 1), ask("coder", 5, 1)
	four.Since, five.Since = 1<<40, 1<<40 // the loop has read the reset
	b.do(four, chats(&asked, "four", "r4"))
	if want := strings.ReplaceAll(head, "iteration 1", "iteration 4"); told(asked) != want || asked.Session != "" {
		t.Errorf("after the reset it is sent\n%s\nin the session %s", told(asked), asked.Session)
	}
	b.do(five, chats(&asked, "five", "r5"))
	if asked.Session != "coder/4/1" || strings.Contains(told(asked), "one") {
		t.Errorf("the new session is %s:\n%s", asked.Session, told(asked))
	}
}

// With the limit the oldest turns lose the results of their tools, then everything but a line. The
// first prompt stays, most turns only add to what was sent before, and the log says what is missing.
func TestAModelIsSentNoMoreThanItsContext(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	var asked provider.Request
	result := strings.Repeat("x", 6_000)
	steps, before := 0, ""
	for n := 1; n <= 60; n++ {
		b.do(ask("coder", n, 1), chats(&asked, fmt.Sprintf("answer %d %s", n, strings.Repeat("y", 2000)), result))
		all := ""
		for i := range asked.History {
			all += asked.History[i].Role + asked.History[i].Text
			for _, x := range asked.History[i].Results {
				all += x.Text
			}
		}
		if len(all) > 4*32_000 {
			t.Fatalf("turn %d is sent %d bytes", n, len(all))
		}
		if n > 1 && !strings.Contains(asked.History[0].Text, "You are kind.") {
			t.Fatalf("turn %d does not get the first prompt:\n%s", n, asked.History[0].Text)
		}
		if n > 3 && !strings.Contains(all, fmt.Sprintf("answer %d ", n-3)) {
			t.Fatalf("turn %d does not know the turn three before", n)
		}
		if !strings.HasPrefix(all, before) {
			steps++
		}
		before = all
	}
	if steps < 2 || steps > 15 {
		t.Errorf("what was sent before was changed %d times", steps)
	}
	if !strings.Contains(before, "- coder/2/1: Work.; tools: look; answer: answer 2 yyy") ||
		!strings.Contains(before, "[The result had 6000 bytes.") || !strings.Contains(before, result) {
		t.Errorf("the last turn is sent\n%s", strings.NewReplacer("yyyyyyyyyy", "", "xxxxxxxxxx", "").Replace(before))
	}
	starts := b.events(swarm.TurnStarted)
	last, err := swarm.Body[swarm.TurnStart](&starts[len(starts)-1])
	b.check(err)
	if h := last.History; h == nil || h.Turns != 59 || h.Dropped == 0 || h.Short <= h.Dropped || h.Short > 56 || h.Tokens > 32_000 {
		t.Errorf("the log says of the last turn: %+v", h)
	}
}

// Turns with long results do not need a cut each: the kept ones lose their results, too. A turn with
// few words becomes a line that has all of them, so that what is sent does not grow with the turns.
func TestASessionOfLongTurnsIsCutInSteps(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	var asked provider.Request
	cuts, before := 0, swarm.History{}
	for n := 1; n <= 20; n++ {
		b.do(ask("coder", n, 1), chats(&asked, fmt.Sprintf("answer %d", n), strings.Repeat("x", 40_000)))
		starts := b.events(swarm.TurnStarted)
		start, err := swarm.Body[swarm.TurnStart](&starts[len(starts)-1])
		b.check(err)
		if h := start.History; h != nil {
			if h.Short != before.Short || h.Dropped != before.Dropped {
				cuts++
			}
			if before = *h; h.Short >= h.Turns || h.Tokens > 32_000 {
				t.Errorf("turn %d: %+v", n, h)
			}
		}
	}
	if before.Dropped < 12 {
		t.Errorf("the last turn is sent %+v", before)
	}
	for n := 2; n < 20; n++ {
		line := fmt.Sprintf("- coder/%d/1: Work.; look {}; answer: answer %d ", n, n)
		if whole := fmt.Sprintf("a:answer %d\n", n); strings.Contains(told(asked), line) == strings.Contains(told(asked), whole) {
			t.Errorf("the answer of turn %d is not there once:\n%s", n, strings.ReplaceAll(told(asked), "xxxxxxxxxx", ""))
		}
	}
	if cuts < 3 || cuts > 9 {
		t.Errorf("20 turns were cut %d times", cuts)
	}
}

// A first prompt that is longer than the limit is sent, and the newest turns are kept all the same.
func TestALongFirstPromptLeavesRoomForTheTurns(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	plan, err := swarm.FindPlan(b.log, "plan:1")
	b.check(err)
	small := *plan
	small.Agents = []swarm.Agent{plan.Agents[0], plan.Agents[1]}
	small.Agents[1].Context.Tokens = 8_000
	b.append(nil, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: b.json(small)})
	for n := 1; n <= 8; n++ {
		b.do(ask("planner", n, 1), send("coder", strings.Repeat("spec ", 1_600)))
	}
	var asked provider.Request
	for n := 1; n <= 12; n++ {
		turn := ask("coder", n, 1)
		turn.Ref = "plan:2"
		b.do(turn, chats(&asked, fmt.Sprintf("answer %d", n), strings.Repeat("x", 100)))
	}
	if n := strings.Count(told(asked), "spec"); n != 8*1_600 {
		t.Fatalf("the first prompt has %d words", n)
	}
	for n := 1; n <= 11; n++ {
		if !strings.Contains(told(asked), fmt.Sprintf("a:answer %d\n", n)) {
			t.Errorf("turn %d is cut", n)
		}
	}
}

// Images of tools belong to the session. A turn whose results are left out has none, and says so.
func TestAModelIsShownTheImagesOfItsSession(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	var asked provider.Request
	image := swarm.ToolImage{MIMEType: "image/png", Data: bytes.Repeat([]byte{7}, 200_000)}
	looks := func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		reply, err := chats(&asked, "a cat", "[an image, shown to the model]")(ctx, r, live)
		reply.Messages[1].Results[0].Images = []swarm.ToolImage{image}
		return reply, err
	}
	shown := func() (n int) {
		for _, m := range asked.History {
			for _, x := range m.Results {
				for _, i := range x.Images {
					if i.MIMEType != image.MIMEType || !bytes.Equal(i.Data, image.Data) {
						t.Errorf("another image: %s, %d bytes", i.MIMEType, len(i.Data))
					}
					n++
				}
			}
		}
		return n
	}
	b.do(ask("coder", 1, 1), looks)
	b.do(ask("coder", 2, 1), looks)
	if shown() != 1 || !strings.Contains(told(asked), "u:[[an image, shown to the model]]") {
		t.Errorf("the second turn is shown %d images:\n%s", shown(), told(asked))
	}
	for n := 3; n <= 30; n++ { // each counts for 1,600 of the 32,000 tokens
		b.do(ask("coder", n, 1), looks)
	}
	if n := shown(); n < 3 || n >= 20 || !strings.Contains(told(asked), "look {} = [an image, no longer shown to the model]; answer: a cat") {
		t.Errorf("the last turn is shown %d images:\n%s", n, told(asked))
	}
}

// The first turn of an agent in a session of lines tells its server that others follow.
func TestALineHasLaterTurns(t *testing.T) {
	for _, more := range []bool{true, false} {
		b := newTeam(t, "anthropic", swarm.Approvals{})
		plan, err := swarm.FindPlan(b.log, "plan:1")
		b.check(err)
		line := *plan
		line.More = more
		b.append(nil, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: b.json(line)})
		var asked provider.Request
		c := at("", 1)
		c.Of = 1
		if b.do(c, chats(&asked, "one", "r1")); asked.Later != more {
			t.Errorf("with more lines %v, the model is told that turns follow: %v", more, asked.Later)
		}
	}
}

// withSubstitute adds a plan in which another provider may do the coder's turns, and in a team the
// coder leads.
func (b *team) withSubstitute(kind string, team *swarm.Team) {
	b.Helper()
	plan, err := swarm.FindPlan(b.log, "plan:1")
	b.check(err)
	more := *plan
	more.Team = team
	more.Providers = []swarm.ProviderSpec{plan.Providers[0], {Name: "other", Kind: kind}}
	b.append(nil, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: b.json(more)})
}

// at is a turn of the coder that a provider does.
func at(provider string, iteration int) flow.Call {
	c := ask("coder", iteration, 1)
	c.Ref, c.Provider = "plan:2", provider
	return c
}

// Models over HTTP that do an agent's turns in turn have one session. Each gets what the others have
// read and done, cut to its own context.
func TestASubstituteModelContinuesTheSession(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	b.withSubstitute("anthropic", nil)
	var asked provider.Request
	b.do(at("", 1), chats(&asked, "one", "r1"))
	b.do(at("other", 2), chats(&asked, "two", "r2"))
	if got := told(asked); asked.Session != "coder/1/1" || !strings.Contains(got, "u:You are kind.") || !strings.Contains(got, "a:(look)\nu:[r1]\na:one\n") {
		t.Errorf("the substitute is sent, in the session %q:\n%s", asked.Session, got)
	}
	b.do(at("", 3), chats(&asked, "three", "r3"))
	if got := told(asked); asked.Session != "coder/1/1" || !strings.Contains(got, "a:one\n") || !strings.Contains(got, "u:[r2]\na:two\n") || strings.Count(got, "You are kind") != 1 {
		t.Errorf("the agent's own model is sent, in the session %q:\n%s", asked.Session, got)
	}
}

// A session that begins in the middle of a run gets the goal: after a reset, and at a program that
// does the turns in the place of another provider.
func TestANewSessionIsGivenTheGoal(t *testing.T) {
	for _, kinds := range [][2]string{{"openai", "claude-code"}, {"codex", "anthropic"}, {"claude-code", "codex"}} {
		b := newTeam(t, kinds[0], swarm.Approvals{})
		b.withSubstitute(kinds[1], &swarm.Team{Lead: "coder"})
		store := func(id, text string) {
			e := swarm.Envelope{Kind: swarm.Handoff, ID: id, FromNodeID: swarm.User, ToNodeID: "coder", Payload: swarm.Payload{Message: text}}
			b.append(nil, swarm.Event{Kind: swarm.HandoffStored, Key: swarm.MailKey(e.Ref()), To: swarm.ToAgent("coder"), Agent: swarm.User, Data: b.json(e)})
		}
		var asked provider.Request
		var kind string // of the provider that does the turn
		works := func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
			reply, err := chats(&asked, "fine", "r")(ctx, r, live)
			if r.Session == "" {
				asked.Fresh = r.Prompt
			}
			if kind == "codex" || kind == "claude-code" {
				reply.Messages, reply.Session = nil, cmp.Or(r.Session, string(r.Turn))
			}
			return reply, err
		}
		const again = "Message 1 is the goal, which you were given in an earlier turn. --- Message 1 from user (handoff, id goal) --- Build a bridge. --- End message 1 ---"
		store(swarm.GoalID, "Build a bridge.")
		kind = kinds[0]
		b.do(at("", 1), works)
		if got := told(asked); !strings.Contains(got, "Build a bridge.") || strings.Contains(got, again) {
			t.Errorf("%s: the first turn is sent\n%s", kinds, got)
		}
		store("two", "Hurry.")
		kind = kinds[1]
		b.do(at("other", 2), works)
		if got := told(asked); !strings.Contains(got, again+" --- Message 2 from user (handoff, id two) --- Hurry.") || strings.Contains(got, "fine") {
			t.Errorf("%s: the substitute is sent\n%s", kinds, got)
		}
		b.append(nil, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: b.json(swarm.ControlCommand{Command: swarm.CommandReset, Target: "coder"})})
		store("three", "How far are you?")
		kind = kinds[0]
		reset := at("", 3)
		reset.Since = 1 << 40 // the loop has read the reset
		b.do(reset, works)
		if got := told(asked); !strings.Contains(got, again+" --- Message 2 from user (handoff, id three) --- How far") || strings.Contains(got, "Hurry") {
			t.Errorf("%s: after the reset it is sent\n%s", kinds, got)
		}
		store("four", "And now?")
		next := at("", 4)
		next.Since = 1 << 40
		b.do(next, works)
		if got := asked.Fresh; strings.Contains(got, "bridge") || !strings.Contains(got, "And now?") {
			t.Errorf("%s: the turn after it is sent\n%s", kinds, got)
		}
	}
}
