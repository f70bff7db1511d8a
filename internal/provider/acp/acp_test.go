package acp_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/provider/acp"
)

func TestTurn(t *testing.T) {
	h := newTheatre(t, "good")
	reply := h.good(h.request("say I look at it.", "think hm", "plan one", "tool edit Write a.go", "edited "+h.dir+"/a.go", "tool read look", "done found it", "say All", "say  done.", "tokens", "cost 0.25"))
	if string(reply.Output) != "All done." || reply.Bytes != 9 || reply.Exit != 0 {
		t.Errorf("%q", reply.Output)
	}
	if want := (swarm.Usage{InputTokens: 29, OutputTokens: 7, CachedTokens: 11, USD: 0.25}); reply.Usage != want {
		t.Errorf("usage %+v, want %+v", reply.Usage, want)
	}
	want := `session 
text I look at it.
thinking hm
tool call-0 Write a.go {"a":"Write a.go"}  false
tool_done call-0 Write a.go   false
file DIR/a.go
tool call-6 look {"a":"look"}  false
tool_done call-6 look  found it false
text 
text All
text done.
usage {Calls:0 InputTokens:0 OutputTokens:0 CachedTokens:0 USD:0.25 Estimated:false CutCalls:0}
usage {Calls:0 InputTokens:29 OutputTokens:7 CachedTokens:11 USD:0.25 Estimated:false CutCalls:0}
`
	if told := h.told(); told != want {
		t.Errorf("told\n%s\nwant\n%s", told, want)
	}
}

// TestLongPrompt: a prompt is not an argument, and may be longer than a pipe's buffer.
func TestLongPrompt(t *testing.T) {
	h := newTheatre(t, "good")
	long := strings.Repeat("p", 2<<20)
	reply := h.good(h.request("say " + long))
	if reply.Bytes != int64(len(long)) || len(reply.Output) != provider.MaxOutput {
		t.Errorf("%d bytes, of which %d were kept", reply.Bytes, len(reply.Output))
	}
}

// TestBurst: updates that come faster than they can be passed on are not lost, and keep their
// order.
func TestBurst(t *testing.T) {
	many := 20000
	if testing.Short() {
		many = 2000
	}
	h := newTheatre(t, "good")
	h.good(h.request(fmt.Sprint("many ", many)))
	var b strings.Builder
	for i := range many {
		fmt.Fprintf(&b, "%d\n", i)
	}
	var said strings.Builder
	for _, d := range h.deltas {
		said.WriteString(d.Text)
	}
	if said.String() != b.String() {
		t.Errorf("%d bytes were said, and %d heard", b.Len(), said.Len())
	}
}

func TestSession(t *testing.T) {
	h := newTheatre(t, "good")
	who := func(change func(*provider.Request)) (pid, session string) {
		t.Helper()
		r := h.request("say", "who")
		change(&r)
		words := strings.Fields(string(h.good(r).Output))
		return words[0], words[1]
	}
	pid, session := who(func(*provider.Request) {})
	goOn := func(r *provider.Request) { r.Session, r.Fresh, r.Prompt = session, "who", "say the whole prompt" }

	if pid2, session2 := who(goOn); pid2 != pid || session2 != session {
		t.Errorf("%s %s went on as %s %s", pid, session, pid2, session2)
	}
	if pid2, session2 := who(func(*provider.Request) {}); pid2 != pid || session2 == session {
		t.Errorf("a new session in %s is %s in %s", pid, session2, pid2)
	}
	pid3, session3 := who(func(r *provider.Request) { goOn(r); r.Env = map[string]string{"MORE": "x"} })
	if pid3 == pid || session3 != session {
		t.Errorf("with another environment %s %s went on as %s %s", pid, session, pid3, session3)
	}
	if pid4, session4 := who(func(r *provider.Request) { goOn(r); r.Agent = "coder" }); pid4 == pid3 || session4 != session {
		t.Errorf("another agent has %s %s", pid4, session4)
	}
	if strings.Contains(h.told(), "long ago") {
		t.Error("what was said in earlier turns was told again")
	}
}

func TestSessionThatIsGone(t *testing.T) {
	for _, part := range []string{"good", "poor"} { // one has forgotten it, the other cannot even be asked
		h := newTheatre(t, part)
		r := h.request("say the whole prompt")
		r.Session, r.Fresh = "lost", "say only what is new"
		if reply := h.good(r); string(reply.Output) != "the whole prompt" || reply.Session == "lost" {
			t.Errorf("%s: %q in %s", part, reply.Output, reply.Session)
		}
		if !strings.Contains(h.told(), "stderr the session lost is gone") {
			t.Errorf("%s: %s", part, h.told())
		}
	}
}

func TestCostIsTheTurns(t *testing.T) {
	h := newTheatre(t, "good")
	first := h.good(h.request("say a", "cost 0.25"))
	r := h.request("say b", "cost 0.75")
	r.Session, r.Fresh = first.Session, r.Prompt
	if second := h.good(r); first.Usage.USD != 0.25 || second.Usage.USD != 0.5 {
		t.Errorf("%v, then %v", first.Usage.USD, second.Usage.USD)
	}
	// Another process does not know what the session had cost, so no cost is reported.
	h.close()
	h2 := newTheatre(t, "good")
	if third, err := h2.turn(r); err != nil || third.Usage.USD != 0 {
		t.Errorf("%+v, %v", third.Usage, err)
	}
}

func TestModel(t *testing.T) {
	h := newTheatre(t, "good")
	r := h.request("who")
	r.Model = "large"
	if reply := h.good(r); !strings.HasSuffix(string(reply.Output), " large") {
		t.Errorf("%q", reply.Output)
	}
	r.Model = "larg"
	if _, err := h.turn(r); swarm.KindOf(err) != swarm.BadInput || !strings.Contains(hint(err), `did you mean "large"`) {
		t.Errorf("%v (%s)", err, hint(err))
	}
	poor := newTheatre(t, "poor")
	if _, err := poor.turn(r); swarm.KindOf(err) != swarm.BadInput || hint(err) == "" {
		t.Errorf("%v", err)
	}
}

// The mode of a session is that of the provider, by the option or the method that the agent has.
func TestMode(t *testing.T) {
	for _, c := range []struct {
		part, mode, variable string
		want                 string // what the agent is in, or the error
		hint                 string
	}{
		{part: "good"},
		{part: "good", mode: "code", want: "code"},
		{part: "good", mode: "cod", want: `the agent of the provider "actors" has no mode "cod"`, hint: `did you mean "code"`},
		{part: "poor", mode: "code", want: `the agent of the provider "actors" does not let its mode be chosen`, hint: "take `mode` away"},
		{part: "codex", want: "workspace-write"}, // in its own, another model would review our tools
		{part: "codex", mode: "agent", want: "agent"},
		{part: "codex", mode: "read-only", want: "read-only"},
		{part: "codex", mode: "agent-full", want: `the agent of the provider "actors" has no mode "agent-full"`, hint: `did you mean "agent-full-access"`},
		{part: "codex", variable: "agent", want: "agent"}, // as the user wants it
	} {
		t.Run(c.part+" "+c.mode, func(t *testing.T) {
			h := newTheatre(t, c.part, func(s *swarm.ProviderSpec) {
				if s.Mode = c.mode; c.variable != "" {
					s.Env["INITIAL_AGENT_MODE"] = c.variable
				}
			})
			for range 2 { // a later turn in the same session
				reply, err := h.turn(h.request("say mode ", "mode"))
				got := strings.TrimPrefix(string(reply.Output), "mode")
				if err != nil {
					got = err.Error()
				}
				if strings.TrimSpace(got) != c.want || !strings.Contains(hint(err), c.hint) || err != nil && swarm.KindOf(err) != swarm.BadInput {
					t.Errorf("%q (%s), want %q", got, hint(err), c.want)
				}
			}
		})
	}
}

func hint(err error) string {
	if e, ok := err.(*swarm.Error); ok {
		return e.Hint
	}
	return ""
}

func TestOurServer(t *testing.T) {
	h := newTheatre(t, "good")
	want := `[{"headers":[{"name":"Authorization","value":"Bearer [secret SWARM_AGENT_TOKEN]"}],"name":"swarm","type":"http","url":"http://127.0.0.1:9/mcp"}]`
	if reply := h.good(h.request("servers")); string(reply.Output) != want {
		t.Errorf("%s", reply.Output)
	}
	self, _ := os.Executable()
	want = `[{"args":["mcp"],"command":"` + self + `","env":[{"name":"SWARM_URL","value":"http://127.0.0.1:9"},{"name":"SWARM_AGENT_TOKEN","value":"[secret SWARM_AGENT_TOKEN]"}],"name":"swarm"}]`
	poor := newTheatre(t, "poor")
	if reply := poor.good(poor.request("servers")); string(reply.Output) != want {
		t.Errorf("%s", reply.Output)
	}
	// This agent would write the servers into the arguments of another program.
	want = `[{"args":["mcp"],"command":"` + self + `","env":[],"name":"swarm"}]`
	claude := newTheatre(t, "claude")
	if reply := claude.good(claude.request("servers")); string(reply.Output) != want {
		t.Errorf("%s", reply.Output)
	}
	r := h.request("servers")
	r.Door = swarm.ToolEndpoint{}
	if reply := h.good(r); string(reply.Output) != "[]" {
		t.Errorf("%s", reply.Output)
	}
}

// cutWhen cuts a turn as soon as the agent says something.
func (h *theatre) cutWhen(r provider.Request, why error) error {
	ctx, cut := context.WithCancelCause(h.Context())
	defer cut(nil)
	go func() {
		<-h.heard
		cut(why)
	}()
	_, err := h.agent.Turn(ctx, r, h.live)
	return err
}

func TestInterrupt(t *testing.T) {
	h := newTheatre(t, "good")
	first := strings.Fields(string(h.good(h.request("who")).Output))
	<-h.heard
	r := h.request("", "wait")
	r.Session, r.Fresh = first[1], "wait"
	if err := h.cutWhen(r, swarm.Errorf(swarm.CutToSpeak, "somebody speaks")); swarm.KindOf(err) != swarm.CutToSpeak {
		t.Fatalf("%v", err)
	}
	r.Fresh = "who"
	if again := strings.Fields(string(h.good(r).Output)); !slices.Equal(again, first) {
		t.Errorf("%v went on as %v", first, again)
	}
}

// TestLateCancel: a turn that is cut ends at once, and its program may stop later. The next turn
// waits for that and continues the session.
func TestLateCancel(t *testing.T) {
	h := newTheatre(t, "good")
	first := strings.Fields(string(h.good(h.request("who")).Output))
	<-h.heard
	r, stop := h.request(""), h.dir+"/stop"
	r.Session, r.Fresh = first[1], "obey "+stop
	if err := h.cutWhen(r, swarm.Errorf(swarm.CutToSpeak, "somebody speaks")); swarm.KindOf(err) != swarm.CutToSpeak {
		t.Fatalf("%v", err)
	}
	again := make(chan []string)
	go func() {
		r.Fresh = "who"
		reply, err := h.turn(r)
		if err != nil {
			t.Error(err)
		}
		again <- strings.Fields(string(reply.Output))
	}()
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := <-again; !slices.Equal(again, first) {
		t.Errorf("%v went on as %v", first, again)
	}
}

// TestLateCancelIsCut: a turn that waits for the program of the turn before is cut like any other.
func TestLateCancelIsCut(t *testing.T) {
	h := newTheatre(t, "good")
	if err := h.cutWhen(h.request("obey "+h.dir+"/never"), swarm.Errorf(swarm.CutToSpeak, "somebody speaks")); swarm.KindOf(err) != swarm.CutToSpeak {
		t.Fatalf("%v", err)
	}
	ctx, cut := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := h.agent.Turn(ctx, h.request("say hi"), h.live)
		ended <- err
	}()
	cut(swarm.Errorf(swarm.CutByCancel, "no longer wanted"))
	if err := <-ended; swarm.KindOf(err) != swarm.CutByCancel {
		t.Errorf("%v", err)
	}
}

// TestNeverObeys: a program that does not stop is ended, and the next turn has another.
func TestNeverObeys(t *testing.T) {
	h := newTheatre(t, "good")
	acp.SetLimits(h.agent, provider.Silence, time.Millisecond)
	r := h.request("obey " + h.dir + "/never")
	if err := h.cutWhen(r, swarm.Errorf(swarm.CutToSpeak, "somebody speaks")); swarm.KindOf(err) != swarm.CutToSpeak {
		t.Fatalf("%v", err)
	}
	if reply := h.good(h.request("say here")); string(reply.Output) != "here" {
		t.Errorf("%q", reply.Output)
	}
}

// TestSilence: a model that says nothing for too long fails the turn, and its program is ended.
func TestSilence(t *testing.T) {
	h := newTheatre(t, "good")
	acp.SetLimits(h.agent, time.Millisecond, provider.SettleTime)
	_, err := h.turn(h.request("wait"))
	if swarm.KindOf(err) != swarm.NoResult || !strings.Contains(err.Error(), "the agent said nothing for 1ms") || !strings.Contains(hint(err), "network") {
		t.Errorf("%v (%s)", err, hint(err))
	}
	if left := process.OfRun(h.run()); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestCancel: a turn that is cut for good leaves no process behind, however the agent behaves.
func TestCancel(t *testing.T) {
	for _, word := range []string{"wait", "hang"} {
		h := newTheatre(t, "good")
		if err := h.cutWhen(h.request(word), swarm.Errorf(swarm.CutByCancel, "no longer wanted")); swarm.KindOf(err) != swarm.CutByCancel {
			t.Errorf("%s: %v", word, err)
		}
		if left := process.OfRun(h.run()); len(left) > 0 {
			t.Errorf("%s: %v are left", word, left)
		}
	}
}

func TestMisbehaviour(t *testing.T) {
	for name, c := range map[string]struct {
		part, prompt string
		kind         swarm.ErrorKind
		says         string // of the error; of the output when there is none
		hint         string
	}{
		"dies":               {"good", "die 3", swarm.Exited, "exit status 3: last words", "swarm logs"},
		"is killed":          {"good", "die 9", swarm.Crashed, "ended by signal 9 (killed)", "no memory"},
		"exits 137":          {"good", "die 137", swarm.Exited, "exit status 137: last words", "no memory"},
		"just ends":          {"good", "die 0", swarm.NoResult, "it ended in the middle of its turn: last words", "Agent Client Protocol"},
		"half a line":        {"half", "", swarm.NoResult, "it ended in the middle of its turn", "Agent Client Protocol"},
		"a line of 1 GB":     {"flood", "", swarm.Protocol, "it wrote a line of more than 8 MB", "Agent Client Protocol"},
		"16 MB of chatter":   {"chatter", "", "", "after all", ""},
		"odd messages":       {"odd", "", "", "still here", ""},
		"does not listen":    {"deaf", "", swarm.Protocol, "it sent more than 64 requests without reading the answers", ""},
		"another version":    {"future", "", swarm.Protocol, "it speaks version 99 of the Agent Client Protocol", "version 1"},
		"a senseless answer": {"nonsense", "", swarm.Protocol, "its answer to initialize cannot be read", ""},
		"no session id":      {"nameless", "", swarm.Protocol, "it began a session without an id", ""},
		"is no agent":        {"shell", "", swarm.Exited, "exit status 2: usage: shell FILE", ""},
		"a line of its log":  {"good", "log [info] hello\nsay fine", "", "fine", ""},
		"says nothing":       {"good", "", swarm.NoResult, "it ended its turn and said nothing", "standard error"},
		"only uses tools":    {"good", "tool other x\ndone y", "", "", ""},
		"too long":           {"good", "say some\nstop max_tokens", swarm.NoResult, "the answer was cut", "ask for less"},
		"too many questions": {"good", "say some\nstop max_turn_requests", swarm.NoResult, "more often than it may", "ask for less"},
		"refuses":            {"good", "say no\nstop refusal", swarm.NoResult, "the model refused to answer", "other words"},
		"cancels itself":     {"good", "say no\nstop cancelled", swarm.NoResult, "swarm has not cancelled it", ""},
		"no login":           {"good", "fail -32000 Authentication required", swarm.NotSignedIn, "Authentication required", "sign in"},
		"a bad key":          {"good", "fail -32603 401 Unauthorized", swarm.NotSignedIn, "401 Unauthorized", "sign in"},
		"rate limit":         {"good", "fail -32603 Internal error: 429 Too Many Requests", swarm.RateLimited, "429 Too Many Requests", "wait a while"},
		"only in words":      {"codex", "say exceeded retry limit, last status: 429 Too Many Requests", swarm.RateLimited, "429 Too Many Requests", "wait a while"},
		"those of another":   {"good", "say exceeded retry limit, last status: 429 Too Many Requests", "", "exceeded retry limit", ""},
		"another failure":    {"good", "fail -32603 the disk is full", swarm.NoResult, "the agent failed: the disk is full", "try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newTheatre(t, c.part)
			reply, err := h.turn(h.request(c.prompt))
			got := string(reply.Output)
			if err != nil {
				got = err.Error()
			}
			if swarm.KindOf(err) != c.kind || !strings.Contains(got, c.says) || !strings.Contains(hint(err), c.hint) {
				t.Errorf("%s: %s (%s), want %s: %s (%s)", swarm.KindOf(err), got, hint(err), c.kind, c.says, c.hint)
			}
			if err != nil && swarm.KindOf(err) != swarm.NoResult {
				if left := process.OfRun(h.run()); len(left) > 0 {
					t.Errorf("%v are left", left)
				}
			}
		})
	}
}

// TestNeverAnswers: a silent program is ended by the task's timeout.
func TestNeverAnswers(t *testing.T) {
	h := newTheatre(t, "mute")
	ctx, cut := context.WithCancelCause(t.Context())
	go func() {
		for len(process.OfRun(h.run())) == 0 {
			runtime.Gosched()
		}
		cut(swarm.Errorf(swarm.TimedOut, "timed out after 1s"))
	}()
	if _, err := h.agent.Turn(ctx, h.request("say hi"), h.live); swarm.KindOf(err) != swarm.TimedOut {
		t.Errorf("%v", err)
	}
	if left := process.OfRun(h.run()); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// TestFloodTakesNoMemory: however much a program says, only a little of it is kept.
func TestFloodTakesNoMemory(t *testing.T) {
	h := newTheatre(t, "flood")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = h.turn(h.request("say hi"))
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 128<<20 {
		t.Errorf("%d MB were used", grown>>20)
	}
}

// TestTwoTurnsAtOnce: each turn has its own program, and one of them stays.
func TestTwoTurnsAtOnce(t *testing.T) {
	h := newTheatre(t, "good")
	var both sync.WaitGroup
	pids := make([]string, 2)
	meet := make(chan struct{})
	for i := range pids {
		both.Go(func() {
			r := h.request("tool other x", "ask", "who")
			r.Turn = swarm.TurnID(fmt.Sprintf("plan/%d/1", i+1))
			r.Ask = func(context.Context, swarm.Approval) (bool, string, error) { // which brings both to the same point
				select {
				case meet <- struct{}{}:
				case <-meet:
				}
				return true, "", nil
			}
			reply, err := h.agent.Turn(t.Context(), r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			pids[i] = strings.Fields(strings.TrimPrefix(string(reply.Output), "once"))[0]
		})
	}
	both.Wait()
	if pids[0] == pids[1] {
		t.Errorf("both were done by %s", pids[0])
	}
	if left := process.OfRun(h.run()); len(left) != 1 {
		t.Errorf("%v wait for the next turn", left)
	}
}

func TestSecretsStaySecret(t *testing.T) {
	h := newTheatre(t, "good")
	reply, err := h.turn(h.request("variable MY_API_KEY", "mutter $MY_API_KEY $SWARM_AGENT_TOKEN", "tool other x", "fail -32603 bad key $MY_API_KEY $SWARM_AGENT_TOKEN"))
	all := fmt.Sprintf("%s %s %s %v %s", h.told(), reply.Output, reply.Stderr, err, hint(err))
	if strings.Contains(all, modelKey) || strings.Contains(all, agentToken) || !strings.Contains(all, "[secret MY_API_KEY]") {
		t.Errorf("%s", all)
	}
}

func TestCheck(t *testing.T) {
	h := newTheatre(t, "good")
	self, _ := os.Executable()
	if got := h.agent.(provider.Checker).Check(t.Context()); got != (provider.Health{Found: true, Path: self, Version: "actor 1.2.3"}) {
		t.Errorf("%+v", got)
	}
	shell := newTheatre(t, "shell")
	if got := shell.agent.(provider.Checker).Check(t.Context()); !got.Found || got.Problem != "exit status 2: usage: shell FILE" {
		t.Errorf("%+v", got)
	}
	mute := newTheatre(t, "mute")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if got := mute.agent.(provider.Checker).Check(ctx); got.Problem != "it does not answer" || got.Hint == "" {
		t.Errorf("%+v", got)
	}
	missing, err := acp.Open(swarm.ProviderSpec{Name: "gem", Kind: "acp", Command: []string{"no-such-program"}}, provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := missing.(provider.Checker).Check(t.Context()); got.Found || got.Problem != `the program "no-such-program" of the provider "gem" is not there` || got.Hint == "" {
		t.Errorf("%+v", got)
	}
	if _, err := missing.Turn(t.Context(), provider.Request{Dir: t.TempDir()}, nil); swarm.KindOf(err) != swarm.NotFound {
		t.Errorf("%v", err)
	}
}

func TestOpenWantsAProgram(t *testing.T) {
	for _, command := range [][]string{nil, {""}, {"gemini", "a\x00b"}} {
		if _, err := acp.Open(swarm.ProviderSpec{Name: "gem", Kind: "acp", Command: command}, provider.Options{}); swarm.KindOf(err) != swarm.BadInput || hint(err) == "" {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestClosed(t *testing.T) {
	h := newTheatre(t, "good")
	h.good(h.request("say hi"))
	h.close()
	if _, err := h.turn(h.request("say hi")); swarm.KindOf(err) != swarm.Stopped {
		t.Errorf("%v", err)
	}
}

func TestGeminiIsLookedAt(t *testing.T) {
	bin, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(bin+"/gemini", []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo 0.61.0\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	look := func(variables ...string) provider.Health {
		a, err := acp.Open(swarm.ProviderSpec{Name: "gemini", Kind: "gemini", Command: []string{bin + "/gemini"}}, provider.Options{Dir: home, Environ: append(variables, "PATH="+os.Getenv("PATH"), "HOME="+home)})
		if err != nil {
			t.Fatal(err)
		}
		return a.(provider.Checker).Check(t.Context())
	}
	want := provider.Health{Found: true, Path: bin + "/gemini", Version: "0.61.0", Signed: "yes", With: "GEMINI_API_KEY"}
	if got := look("GEMINI_API_KEY=" + modelKey); got != want {
		t.Errorf("%+v", got)
	}
	if got := look(); got.Signed != "no" || got.Problem == "" || !strings.Contains(got.Hint, "GEMINI_API_KEY") {
		t.Errorf("%+v", got)
	}
	if err := os.MkdirAll(home+"/.gemini", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/.gemini/oauth_creds.json", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if want.With = "a Google account"; look() != want {
		t.Errorf("%+v", look())
	}
}
