package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/secret"
	"swarm/internal/sqlite"
	"swarm/internal/turn"
)

// A liveAgent is a provider implemented by a function that receives the stream's callback.
type liveAgent func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error)

func (a liveAgent) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	return a(ctx, r, live)
}

// A team is the log of a run in which a planner and a coder may write to each other.
type team struct {
	*bench
	kind string
}

func newTeam(t *testing.T, kind string, approvals swarm.Approvals) *team {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	b := &team{&bench{t, log}, kind}
	text, _, err := prompt.Parse(prompt.Source{File: "work.md", Text: []byte("Work.")}, nil)
	b.check(err)
	role, _, err := prompt.Parse(prompt.Source{File: "role.md", Text: []byte("You are kind.")}, nil)
	b.check(err)
	p := swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "team", Kind: kind}}, Groups: []swarm.Group{{Iterations: 9}}, Approvals: approvals,
		Edges: []swarm.Edge{{From: "planner", To: "coder", Both: true}}}
	for _, name := range []string{"planner", "coder"} {
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "team", Role: swarm.HashOf(role.Marshal())})
		p.Tasks = append(p.Tasks, swarm.Task{Name: name, Agent: name, Prompt: swarm.HashOf(text.Marshal())})
	}
	b.append(role.Marshal(), swarm.Event{Kind: swarm.RunStarted})
	b.append(text.Marshal(), swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: b.json(p)})
	return b
}

func (b *team) runner(a liveAgent) worker {
	b.Helper()
	h := b.owner(b.log, nil)
	h.Provider = func(swarm.ProviderSpec) (provider.Provider, error) { return a, nil }
	h.AgentAPI = &agentapi.Service{Run: "run", Log: b.log}
	return h
}

func ask(agent string, iteration, attempt int) flow.Call {
	return flow.Call{ID: string(swarm.NewTurnID(agent, iteration, attempt)), Kind: flow.KindTurn, Task: agent, Agent: agent, Iteration: iteration, Of: 9, Attempt: attempt, Ref: "plan:1"}
}

// do runs one turn of an agent, which must succeed.
func (b *team) do(c flow.Call, a liveAgent) flow.Result {
	b.Helper()
	r, err := b.runner(a).Do(b.Context(), "root", c)
	b.check(err)
	if r.Status != swarm.CallOK {
		b.Fatalf("%s: %+v", c.ID, r)
	}
	return r
}

func (b *team) events(kind swarm.EventKind) (found []swarm.Event) {
	b.Helper()
	all, err := b.log.Read(0, 10_000)
	b.check(err)
	for _, e := range all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

func send(to, message string) liveAgent {
	return func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		args, _ := json.Marshal(map[string]string{"to": to, "message": message})
		_, err := r.Call(ctx, "send_handoff", args)
		return provider.Reply{Output: []byte("sent")}, err
	}
}

// hears stores the prompt that it gets.
func hears(prompt *string) liveAgent {
	return func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		*prompt = r.Prompt
		return provider.Reply{Output: []byte("heard")}, nil
	}
}

func TestMailIsReadByOneTurnThatCommits(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	b.do(ask("planner", 1, 1), send("coder", "write it in Go"))
	fails := func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		if !strings.Contains(r.Prompt, "write it in Go") {
			t.Errorf("the mail is not in the prompt:\n%s", r.Prompt)
		}
		return provider.Reply{}, swarm.Errorf(swarm.Exited, "exit status 1")
	}
	if r, err := b.runner(fails).Do(t.Context(), "root", ask("coder", 1, 1)); err != nil || r.Status != swarm.CallFailed {
		t.Fatalf("%+v, %v", r, err)
	}
	if used := b.events(swarm.HandoffConsumed); len(used) != 0 {
		t.Errorf("a turn that failed has consumed its mail: %s", used[0].Data)
	}
	var second, third string
	r := b.do(ask("coder", 1, 2), hears(&second))
	if !strings.Contains(second, "write it in Go") || r.Inputs.Upto == 0 {
		t.Errorf("the next attempt has lost the mail (%+v):\n%s", r.Inputs, second)
	}
	if used := b.events(swarm.HandoffConsumed); len(used) != 1 || used[0].Turn != "coder/1/2" {
		t.Errorf("consumed: %+v", used)
	}
	if b.do(ask("coder", 2, 1), hears(&third)); strings.Contains(third, "write it in Go") {
		t.Errorf("the mail is read twice:\n%s", third)
	}
}

// Mail that comes while the turn runs can be read by a tool. It is consumed with the turn.
func TestMailThatIsReadByAToolIsConsumedToo(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	b.do(ask("coder", 1, 1), func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		planner := (&agentapi.Service{Run: "run", Log: b.log}).BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
		_, err := planner.Call(ctx, "send_handoff", json.RawMessage(`{"to":"coder","message":"by the way"}`))
		b.check(err)
		answer, err := r.Call(ctx, "read_inbox", json.RawMessage("{}"))
		if err != nil || !strings.Contains(answer, "by the way") {
			t.Errorf("%s, %v", answer, err)
		}
		return provider.Reply{}, nil
	})
	var next string
	if b.do(ask("coder", 2, 1), hears(&next)); strings.Contains(next, "by the way") {
		t.Errorf("the mail is read twice:\n%s", next)
	}
}

// Messages sent before a crash or a failure stand, and the next prompt lists them.
func TestATurnThatIsDoneAgainIsToldWhatItSent(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	ctx, kill := context.WithCancelCause(t.Context())
	crashed := func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		_, _ = send("coder", "step one")(ctx, r, live)
		kill(context.Canceled)
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}
	if _, err := b.runner(crashed).Do(ctx, "root", ask("planner", 1, 1)); err == nil {
		t.Fatal("the process goes on")
	}
	var again, attempt string
	sends := func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		again = r.Prompt
		_, _ = send("coder", "step one")(ctx, r, live)
		return provider.Reply{}, swarm.Errorf(swarm.Exited, "exit status 1")
	}
	if r, err := b.runner(sends).Do(t.Context(), "root", ask("planner", 1, 1)); err != nil || r.Status != swarm.CallFailed {
		t.Fatalf("%+v, %v", r, err)
	}
	b.do(ask("planner", 1, 2), hears(&attempt))
	for name, got := range map[string]string{"after the crash": again, "after the failure": attempt} {
		if strings.Count(got, "step one") != 1 || !strings.Contains(got, "already sent") {
			t.Errorf("%s it is asked\n%s", name, got)
		}
	}
	if stored := b.events(swarm.HandoffStored); len(stored) != 1 {
		t.Errorf("what was sent again by the same turn is %d messages", len(stored))
	}
}

func TestASessionGoesOnWithWhatIsNew(t *testing.T) {
	b := newTeam(t, "claude-code", swarm.Approvals{})
	turns := []provider.Request{}
	remembers := func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		turns = append(turns, r)
		return provider.Reply{Session: "s-" + r.Agent}, nil
	}
	b.do(ask("planner", 1, 1), remembers)
	b.do(ask("coder", 1, 1), remembers)
	b.do(ask("planner", 2, 1), remembers)
	if turns[0].Session != "" || turns[1].Session != "" || turns[2].Session != "s-planner" {
		t.Errorf("sessions: %q, %q, %q", turns[0].Session, turns[1].Session, turns[2].Session)
	}
	if first := turns[0]; first.Fresh != first.Prompt || !strings.Contains(first.Prompt, "You are kind.") {
		t.Errorf("the first turn is sent\n%s", first.Fresh)
	}
	if last := turns[2]; strings.Contains(last.Fresh, "You are kind.") || !strings.Contains(last.Fresh, "Work.") || !strings.Contains(last.Prompt, "You are kind.") {
		t.Errorf("the last turn is sent\n%s\nof\n%s", last.Fresh, last.Prompt)
	}
	starts := b.events(swarm.TurnStarted)
	var start swarm.TurnStart
	b.check(json.Unmarshal(starts[len(starts)-1].Data, &start))
	sent, err := b.log.Body(start.Sent)
	full, err2 := b.log.Body(start.Prompt)
	if err != nil || err2 != nil || string(sent) != turns[2].Fresh || string(full) != turns[2].Prompt || start.Session != "s-planner" {
		t.Errorf("the log has %q of %q (%v, %v)", sent, full, err, err2)
	}
}

func TestToolsAndFilesAreNoted(t *testing.T) {
	b := newTeam(t, "codex", swarm.Approvals{})
	b.do(ask("coder", 1, 1), func(_ context.Context, _ provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: "1", Name: "Read", Input: json.RawMessage(`{"path":"a"}`)}})
		live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: "2", Name: "Bash", Input: json.RawMessage(`"` + strings.Repeat("x", 9000) + `"`)}})
		live(swarm.Delta{Kind: swarm.DeltaFile, File: "main.go"})
		for began := time.Now(); time.Since(began) < time.Millisecond; { // so long they take at least
		}
		live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: "1", Name: "Read", Output: "text", Failed: true}})
		return provider.Reply{}, nil
	})
	var uses []swarm.ToolUse
	for _, e := range b.events(swarm.TurnTool) {
		var u swarm.ToolUse
		b.check(json.Unmarshal(e.Data, &u))
		uses = append(uses, u)
	}
	if len(uses) != 2 || uses[0].Name != "Read" || string(uses[0].Input) != `{"path":"a"}` || uses[0].Output != "text" || !uses[0].Failed {
		t.Errorf("uses: %+v", uses)
	}
	if len(uses) == 2 && (uses[1].Name != "Bash" || len(uses[1].Input) > 3000) {
		t.Errorf("a tool that never ended: %s with %d bytes", uses[1].Name, len(uses[1].Input))
	}
	for _, u := range uses {
		if u.Took < time.Millisecond {
			t.Errorf("%s took %s", u.Name, u.Took)
		}
	}
	if files := b.events(swarm.TurnFile); len(files) != 1 || !strings.Contains(string(files[0].Data), "main.go") {
		t.Errorf("files: %v", files)
	}
}

// answer appends a person's answer to a question, as agentapi does.
func (b *bench) answer(id string, ok bool) {
	b.append(nil, swarm.Event{Kind: swarm.ApprovalAnswered, Key: swarm.AnsweredKey(id), To: swarm.ToControl, Data: b.json(swarm.ApprovalAnswer{ID: id, OK: ok})})
}

func TestAPersonIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		asked int // how often
		want  bool
	}{
		"yes":    {"ask", 1, true},
		"no":     {"", 1, false},
		"always": {"auto", 0, true},
		"never":  {"deny", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTeam(t, "acp", swarm.Approvals{Tools: c.rule})
			wake, off := b.log.Watch()
			defer off()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				for range wake {
					if c.asked == 0 {
						return
					}
					if len(b.events(swarm.ApprovalAsked)) > 0 {
						b.answer("other", !c.want)
						b.answer("q1", c.want)
						return
					}
				}
			}()
			b.do(ask("coder", 1, 1), func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
				ok, reason, err := r.Ask(ctx, swarm.Approval{ID: "q1", What: "run make"})
				if c.rule == "deny" { // by rule, and not by a person
					if ok || swarm.KindOf(err) != swarm.Denied {
						t.Errorf("%v, %q, %v", ok, reason, err)
					}
				} else if ok != c.want || err != nil || ok == (reason != "") {
					t.Errorf("%v, %q, %v", ok, reason, err)
				}
				return provider.Reply{}, nil
			})
			<-answered
			if got := len(b.events(swarm.ApprovalAsked)); got != c.asked {
				t.Errorf("asked %d times, want %d", got, c.asked)
			}
		})
	}
}

// An approval covers one request. Repeating the request asks again. Only a start after a crash
// finds the answers of the start before, each for its own request, even if the program puts a new
// number into each.
func TestAnAnswerIsForOneAsking(t *testing.T) {
	b := newTeam(t, "acp", swarm.Approvals{})
	answers := func(words ...bool) (off func()) {
		wake, off := b.log.Watch()
		n := len(b.events(swarm.ApprovalAsked))
		go func() {
			for len(words) > 0 { // and no longer: the test may be over
				<-wake
				for asked := b.events(swarm.ApprovalAsked); len(words) > 0 && n < len(asked); n, words = n+1, words[1:] {
					b.answer(strings.TrimPrefix(asked[n].Key, swarm.AskedKey("")), words[0])
				}
			}
		}()
		return off
	}
	var said []bool
	asks := func(ctx context.Context, r provider.Request, start string, times int) {
		for range times {
			ok, _, err := r.Ask(ctx, swarm.Approval{ID: string(r.Turn) + "/x", What: "run make", Input: b.json(start)})
			b.check(err)
			said = append(said, ok)
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	off := answers(true, false)
	_, err := b.runner(func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		asks(ctx, r, "first", 2)
		stop(errors.New("killed"))
		return provider.Reply{}, context.Cause(ctx)
	}).Do(ctx, "root", ask("coder", 1, 1))
	off()
	if err == nil || !slices.Equal(said, []bool{true, false}) {
		t.Fatalf("%v, %v", said, err)
	}
	off = answers(true)
	defer off()
	said = nil
	b.do(ask("coder", 1, 1), func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		asks(ctx, r, "second", 3)
		return provider.Reply{}, nil
	})
	asked := b.events(swarm.ApprovalAsked)
	if !slices.Equal(said, []bool{true, false, true}) || len(asked) != 3 {
		t.Errorf("%v, asked %d times", said, len(asked))
	}
	for _, one := range asked {
		for _, other := range asked {
			if one.Key != other.Key && strings.HasPrefix(other.Key, one.Key) {
				t.Errorf("who writes the beginning %s means %s, too", one.Key, other.Key)
			}
		}
	}
}

// A question stays the same when the next start asks it in other words. An answer between the two
// starts counts.
func TestAnAnswerGivenWhileNobodyWaits(t *testing.T) {
	b := newTeam(t, "acp", swarm.Approvals{})
	ctx, stop := context.WithCancelCause(t.Context())
	wake, off := b.log.Watch()
	defer off()
	go func() {
		for range wake {
			if len(b.events(swarm.ApprovalAsked)) > 0 {
				stop(errors.New("killed"))
				return
			}
		}
	}()
	asks := func(call string) liveAgent {
		return func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
			ok, _, err := r.Ask(ctx, swarm.Approval{ID: "q1", What: "run make", Input: b.json(call)})
			if err == nil && !ok {
				err = errors.New("refused")
			}
			return provider.Reply{}, err
		}
	}
	if _, err := b.runner(asks("call-1")).Do(ctx, "root", ask("coder", 1, 1)); err == nil {
		t.Fatal("nobody was killed")
	}
	b.answer("q1", true)
	b.do(ask("coder", 1, 1), asks("call-2"))
}

// A turn that waits for an answer ends when it is cancelled.
func TestAskingEndsWithTheTurn(t *testing.T) {
	b := newTeam(t, "acp", swarm.Approvals{})
	r, err := b.runner(func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		b.append(nil, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: b.json(swarm.ControlCommand{Command: swarm.CommandCancel})})
		_, _, err := r.Ask(ctx, swarm.Approval{ID: "q1", What: "run make"})
		return provider.Reply{}, err
	}).Do(t.Context(), "root", ask("coder", 1, 1))
	if err != nil || r.Status != swarm.CallCut || r.Kind != swarm.CutByCancel {
		t.Errorf("%+v, %v", r, err)
	}
}

// The end of a turn that times out while it waits for a person names the open question.
func TestNobodyAnswersInTime(t *testing.T) {
	b := newTeam(t, "acp", swarm.Approvals{})
	var plan swarm.Plan
	b.check(json.Unmarshal(b.events(swarm.PlanAdded)[0].Data, &plan))
	for i := range plan.Tasks {
		plan.Tasks[i].Timeout = 500 * time.Millisecond
	}
	b.append(nil, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: b.json(plan)})
	c := ask("coder", 1, 1)
	c.Ref = "plan:2"
	r, err := b.runner(func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		_, _, err := r.Ask(ctx, swarm.Approval{ID: "q1", What: "run make"})
		return provider.Reply{}, err
	}).Do(t.Context(), "root", c)
	if want := "timed out after 500ms: nobody answered whether it may run make"; err != nil || r.Kind != swarm.TimedOut || r.Reason != want {
		t.Errorf("%+v, %v, want %q", r, err, want)
	}
}

func TestModelsAreOfferedOurToolsAlongEdges(t *testing.T) {
	b := newTeam(t, "openai", swarm.Approvals{})
	b.do(ask("coder", 1, 1), func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		if !slices.ContainsFunc(r.ToolSpecs, func(s swarm.ToolSpec) bool { return s.Name == "send_handoff" }) {
			t.Errorf("it is offered %d tools, and not send_handoff", len(r.ToolSpecs))
		}
		if r.Door != (swarm.ToolEndpoint{}) {
			t.Errorf("a model needs no door: %+v", r.Door)
		}
		return provider.Reply{}, nil
	})
}

// A reset cuts the running turn and drops the session: the next turn starts with the full prompt.
// The session of a turn that succeeds in spite of the reset is dropped, too.
func TestASessionIsForgotten(t *testing.T) {
	b := newTeam(t, "claude-code", swarm.Approvals{})
	reset := func(agent string) {
		b.append(nil, swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: b.json(swarm.ControlCommand{Command: swarm.CommandReset, Target: agent})})
	}
	seen := map[swarm.TurnID]provider.Request{}
	remembers := func(_ context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		seen[r.Turn] = r
		for range 2 {
			live(swarm.Delta{Kind: swarm.DeltaSession, Session: "s-" + string(r.Turn)})
		}
		live(swarm.Delta{Kind: swarm.DeltaSession, Session: strings.Repeat("s", 1<<20)}) // no real session has such a name
		return provider.Reply{Session: "s-" + string(r.Turn)}, nil
	}
	b.do(ask("planner", 1, 1), remembers)
	b.do(ask("coder", 1, 1), remembers)
	if notices := b.events(swarm.TurnSession); len(notices) != 2 || string(notices[0].Data) != `{"session":"s-planner/1/1"}` {
		t.Errorf("of its session the log says %+v", notices)
	}
	cut := ask("planner", 2, 1)
	cut.Since = b.events(swarm.TurnEnded)[1].Seq
	r, err := b.runner(func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		seen[r.Turn] = r
		reset("planner")
		<-ctx.Done()
		return provider.Reply{Session: r.Session}, context.Cause(ctx)
	}).Do(t.Context(), "root", cut)
	if err != nil || r.Status != swarm.CallCut || r.Kind != swarm.CutToReset || seen["planner/2/1"].Session != "s-planner/1/1" {
		t.Fatalf("%+v, %v", r, err)
	}
	later := func(c flow.Call) flow.Call { // whose loop has read what was said
		c.Since = 1 << 40
		return c
	}
	b.do(later(ask("planner", 2, 2)), remembers)
	if again := seen["planner/2/2"]; again.Session != "" || again.Fresh != again.Prompt {
		t.Errorf("after a reset it goes on with %q and is sent\n%s", again.Session, again.Fresh)
	}
	b.do(later(ask("planner", 3, 1)), remembers)
	if again := seen["planner/3/1"]; again.Session != "s-planner/2/2" {
		t.Errorf("its next session is %q", again.Session)
	}
	b.do(later(ask("coder", 2, 1)), func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		reset("coder") // when nobody looks for it any more
		return remembers(ctx, r, live)
	})
	b.do(later(ask("coder", 3, 1)), remembers)
	if seen["coder/2/1"].Session != "s-coder/1/1" || seen["coder/3/1"].Session != "" {
		t.Errorf("sessions of coder: %q, then %q", seen["coder/2/1"].Session, seen["coder/3/1"].Session)
	}
}

// An overtaker is a log that gets a message right before the first start of a turn.
type overtaker struct {
	swarm.Log
	send func()
}

func (o *overtaker) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	if send := o.send; send != nil && len(b.Events) > 0 && b.Events[0].Kind == swarm.TurnStarted {
		o.send = nil
		send()
	}
	return o.Log.Append(ctx, b)
}

// A message that comes between the prompt of a swarm's answer and the start of that turn stands in
// the prompt of the next attempt. No model is asked before, and no budget is used.
func TestAMessageThatOvertakesTheAnswerIsRead(t *testing.T) {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	b, query := &team{&bench{t, log}, "script"}, []byte("Compare two markets")
	b.append(query, swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: b.json(swarm.Plan{Kind: swarm.SwarmRun, Team: &swarm.Team{Lead: swarm.Supervisor, Mode: swarm.AutoMode},
		Providers: []swarm.ProviderSpec{{Name: "team", Kind: "script"}}, Agents: []swarm.Agent{{Name: swarm.Supervisor, Provider: "team"}}, Swarm: &swarm.Swarm{Query: swarm.HashOf(query)}})})
	var asked []string
	h := b.runner(func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		asked = append(asked, r.Prompt)
		return provider.Reply{Output: []byte("The answer.")}, nil
	})
	h.Log = &overtaker{b.log, func() {
		_, err := h.AgentAPI.FromUser(t.Context(), mail.Draft{To: swarm.Supervisor, Message: "Mind Samsung"})
		b.check(err)
	}}
	c := ask(swarm.Supervisor, 1, 1)
	c.Want = plan.WantAnswer
	r, err := h.Do(t.Context(), "root", c)
	if err != nil || r.Status != swarm.CallCut || r.Kind != swarm.CutToSpeak || r.Usage != (swarm.Usage{}) || len(asked) > 0 {
		t.Fatalf("%+v, %v, asked %q", r.CallEnd, err, asked)
	}
	c.ID, c.Attempt = "supervisor/1/2", 2
	r, err = h.Do(t.Context(), "root", c)
	if err != nil || r.Status != swarm.CallOK || len(asked) != 1 || !strings.Contains(asked[0], "Mind Samsung") {
		t.Errorf("%+v, %v, asked %q", r.CallEnd, err, asked)
	}
}

// An edited prompt stands for the mail that its author knew. Later mail, which the turn consumes as well, stands
// after it. So does the reason why an attempt with that prompt failed.
func TestAnEditedPromptIsFollowedByLaterMail(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	b.do(ask("planner", 1, 1), send("coder", "write it in Go"))
	known := b.events(swarm.HandoffStored)[0].Seq
	b.do(ask("planner", 2, 1), send("coder", "and test it"))
	var first, second, third string
	edited := func(c flow.Call, a liveAgent) flow.Result {
		h := b.runner(a)
		h.Edited = &turn.Edit{Turn: "coder/1/1", Text: "Write it in Rust.\n", Upto: known}
		r, err := h.Do(t.Context(), "root", c)
		b.check(err)
		return r
	}
	edited(ask("coder", 1, 1), func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		first = r.Prompt
		return provider.Reply{}, swarm.Errorf(swarm.Exited, "it broke")
	})
	r := edited(ask("coder", 1, 2), hears(&second))
	if used := b.events(swarm.HandoffConsumed); len(used) != 1 || r.Inputs.Upto <= known {
		t.Errorf("consumed: %+v, %+v", used, r.Inputs)
	}
	for attempt, got := range []string{first, second} {
		if !strings.HasPrefix(got, "Write it in Rust.\n\n--- Message 1 from planner") || strings.Contains(got, "in Go") || strings.Count(got, "and test it") != 1 ||
			strings.Contains(got, "it broke") != (attempt == 1) {
			t.Errorf("attempt %d is asked\n%s", attempt+1, got)
		}
	}
	if edited(ask("coder", 2, 1), hears(&third)); strings.Contains(third, "Rust") || strings.Contains(third, "and test it") {
		t.Errorf("the next turn is asked\n%s", third)
	}
}

// A turn that has the number of the edited one, and is for something else, has its own prompt. A notice says so.
func TestAnEditedPromptIsOfOnePurpose(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	var asked string
	h := b.runner(hears(&asked))
	h.Edited = &turn.Edit{Turn: "coder/1/1", Text: "Answer in one word.", Want: string(plan.WantAnswer)}
	_, err := h.Do(t.Context(), "root", ask("coder", 1, 1))
	b.check(err)
	notices := b.events(swarm.Notice)
	if strings.Contains(asked, "one word") || len(notices) != 1 || !strings.Contains(string(notices[0].Data), "the edited prompt is not used") {
		t.Errorf("it is asked %q; notices: %+v", asked, notices)
	}
}

// Secrets are removed from a prompt that a person has written.
func TestAnEditedPromptHasNoSecret(t *testing.T) {
	b := newTeam(t, "script", swarm.Approvals{})
	h := b.runner(hears(new(string)))
	hide := secret.New([]string{"API_KEY=" + canary}, nil)
	h.Redact, h.Cut = hide.Bytes, hide.Cut
	h.Edited = &turn.Edit{Turn: "coder/1/1", Text: "Log in with " + canary}
	_, err := h.Do(t.Context(), "root", ask("coder", 1, 1))
	b.check(err)
	start, err := swarm.Body[swarm.TurnStart](&b.events(swarm.TurnStarted)[0])
	b.check(err)
	if text, err := b.log.Body(start.Prompt); err != nil || string(text) != "Log in with [secret API_KEY]" {
		t.Errorf("the prompt is %q, %v", text, err)
	}
}
