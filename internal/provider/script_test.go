package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarm"
)

func parseScript(t testing.TB, src string) *Script {
	t.Helper()
	s, err := ParseScript("demo.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// turnOf makes the request for task/iteration/attempt by an agent.
func turnOf(task, agent string, iteration, attempt int) Request {
	return Request{Turn: swarm.NewTurnID(task, iteration, attempt), Task: task, Agent: agent, Iteration: iteration, Attempt: attempt, Prompt: "the prompt"}
}

func TestWhichEntryATurnTakes(t *testing.T) {
	s := parseScript(t, `
- {task: plan, say: planned}
- {task: test, iteration: 2, say: second}
- {task: test, say: others}
- {task: try, say: one}
- {task: try, say: two}
- {task: try, say: three}
- {task: mend, iteration: 1, say: bad}
- {task: mend, iteration: 1, say: good}
- {agent: coder, say: by the agent}
- {agent: coder, iteration: 3, say: by the agent in 3}
- {task: copied.2, say: the second copy}
- {task: copied, say: any copy}
`)
	for _, c := range []struct {
		task, agent        string
		iteration, attempt int
		want               string
	}{
		{"plan", "plan", 1, 1, "planned"},
		{"plan", "plan", 7, 3, "planned"},
		{"plan", "coder", 1, 1, "planned"}, // the task's before the agent's
		{"test", "test", 1, 1, "others"},
		{"test", "test", 2, 1, "second"},
		{"test", "test", 3, 1, "others"},
		{"try", "try", 1, 1, "one"},
		{"try", "try", 1, 2, "two"},
		{"try", "try", 2, 1, "two"},
		{"try", "try", 2, 2, "three"},
		{"try", "try", 9, 9, "three"}, // the last serves the rest
		{"mend", "mend", 1, 1, "bad"},
		{"mend", "mend", 1, 2, "good"},
		{"mend", "mend", 1, 3, "good"},
		{"code", "coder", 1, 1, "by the agent"},
		{"code", "coder", 3, 1, "by the agent in 3"},
		{"code.2", "coder.2", 1, 1, "by the agent"},
		{"copied.1", "copied.1", 1, 1, "any copy"},
		{"copied.2", "copied.2", 1, 1, "the second copy"},
	} {
		reply, err := s.Turn(t.Context(), turnOf(c.task, c.agent, c.iteration, c.attempt), nil)
		if err != nil || string(reply.Output) != c.want {
			t.Errorf("%s/%d/%d of %s says %q (%v), want %q", c.task, c.iteration, c.attempt, c.agent, reply.Output, err, c.want)
		}
	}
}

func TestTurnThatTheScriptDoesNotKnow(t *testing.T) {
	s := parseScript(t, "- {task: plan, say: a}\n- {task: test, iteration: 1, say: b}\n- {agent: coder, iteration: 1, say: c}\n")
	for _, c := range []struct {
		r    Request
		line int
		want string
	}{
		{turnOf("deploy", "deploy", 1, 1), 3, "nothing for the turn deploy/1/1 of @deploy"},
		{turnOf("test", "test", 2, 1), 2, "nothing for the turn test/2/1 of @test, only for others"},
		{turnOf("plam", "plam", 1, 1), 3, "nothing for the turn plam/1/1"},
	} {
		_, err := s.Turn(t.Context(), c.r, nil)
		e := wantKind(t, err, swarm.BadInput)
		if e.File != "demo.yaml" || e.Line != c.line || !strings.Contains(e.Msg, c.want) || !strings.Contains(e.Hint, "- {task: "+c.r.Task) {
			t.Errorf("%s: %v (%s), want line %d: %s", c.r.Turn, e, e.Hint, c.line, c.want)
		}
	}
}

func TestScriptIsStreamedAndExits(t *testing.T) {
	s := parseScript(t, "- task: code\n  say: |\n    I was asked:\n    {prompt}\n  exit: 3\n")
	var rec recorder
	reply, err := s.Turn(t.Context(), turnOf("code", "code", 1, 1), rec.live)
	if e := wantKind(t, err, swarm.Exited); e.Msg != "exit status 3" {
		t.Errorf("the error is %q", e.Msg)
	}
	const want = "I was asked:\nthe prompt\n"
	if string(reply.Output) != want || rec.said(swarm.DeltaText) != want || len(rec.deltas) != 2 || reply.Bytes != int64(len(want)) || reply.Exit != 3 {
		t.Errorf("reply %+v, streamed %v", reply, rec.deltas)
	}
}

func TestScriptCallsTools(t *testing.T) {
	s := parseScript(t, `
- task: code
  say: done
  call:
    - {tool: send_handoff, args: {to: tester, n: 0x10, f: 1.50, big: 12345678901234567890.12345, huge: -1e400, quoted: "1e400", yes: true, none: null, list: [a, {b: "c"}], date: 2024-01-02, text: "<&>"}}
    - {tool: report_done}
`)
	const args = `{"to":"tester","n":16,"f":1.50,"big":12345678901234567890.12345,"huge":-1e400,"quoted":"1e400","yes":true,"none":null,"list":["a",{"b":"c"}],"date":"2024-01-02","text":"<&>"}`
	r := turnOf("code", "code", 1, 1)
	show := func(deltas []swarm.Delta) (lines []string) {
		for _, d := range deltas {
			if d.Tool != nil {
				lines = append(lines, fmt.Sprintf("%s %s %s %s%s %v", d.Kind, d.Tool.ID, d.Tool.Name, d.Tool.Input, d.Tool.Output, d.Tool.Failed))
			} else {
				lines = append(lines, d.Text)
			}
		}
		return lines
	}
	check := func(name string, want ...string) {
		t.Helper()
		var rec recorder
		if _, err := s.Turn(t.Context(), r, rec.live); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(show(rec.deltas), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, strings.Join(want, "\n"))
		}
	}
	check("without a hook", "tool call-1 send_handoff "+args+" false", "tool call-2 report_done {} false", "done")
	r.Call = func(_ context.Context, tool string, got json.RawMessage) (string, error) {
		if tool == "report_done" {
			return "", errors.New("not yet")
		}
		return fmt.Sprintf("%t", string(got) == args), nil
	}
	check("with a hook", "tool call-1 send_handoff "+args+" false", "tool_done call-1 send_handoff true false",
		"tool call-2 report_done {} false", "tool_done call-2 report_done not yet true", "done")
}

func TestScriptSleepIsCut(t *testing.T) {
	s := parseScript(t, "- {task: code, say: never, sleep: 1000h}")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(swarm.Errorf(swarm.CutToSpeak, "a person spoke")) })
	reply, err := s.Turn(ctx, turnOf("code", "code", 1, 1), nil)
	wantKind(t, err, swarm.CutToSpeak)
	if len(reply.Output) != 0 {
		t.Errorf("it said %q", reply.Output)
	}
}

func TestScriptThatIsWrong(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "demo.yaml:1: the file says nothing"},
		{"# nothing\n", "demo.yaml:1: the file says nothing"},
		{"say: x", "demo.yaml:1:1: a script is a list"},
		{"[]", "demo.yaml:1:1: a script is a list"},
		{"- hello", "demo.yaml:1:3: an entry is a mapping"},
		{"- {say: x}", "demo.yaml:1:3: the entry does not say whose turn it is"},
		{"- {task: a, agent: b}", "demo.yaml:1:20: the entry names a task and an agent"},
		{"- {task: a, sya: x}", `demo.yaml:1:13: an entry has no key "sya"`},
		{"- task: a\n  say: x\n  say: y", "demo.yaml:3:3: the key say is there twice"},
		{"- {task: ../x}", `demo.yaml:1:10: "../x" is not a name for a task`},
		{"- {agent: user}", `demo.yaml:1:11: the name "user" is reserved`},
		{"- {task: a, iteration: 0}", `demo.yaml:1:24: iteration cannot be "0"`},
		{"- {task: a, iteration: two}", `demo.yaml:1:24: iteration cannot be "two"`},
		{"- {task: a, exit: 256}", `demo.yaml:1:19: exit cannot be "256"`},
		{"- {task: a, sleep: 5}", `demo.yaml:1:20: sleep cannot be "5"`},
		{"- {task: a, sleep: -1s}", `demo.yaml:1:20: sleep cannot be "-1s"`},
		{"- {task: a, say: [x]}", "demo.yaml:1:18: say is a text"},
		{"- {task: a, say: }", "say is a text"},
		{"- {task: a, call: x}", "demo.yaml:1:19: call is a list"},
		{"- {task: a, call: [{}]}", "demo.yaml:1:20: the call does not say which tool"},
		{"- {task: a, call: [{tool: x, args: [1]}]}", "demo.yaml:1:36: args is a mapping"},
		{"- {task: a, call: [{tool: x, args: {a: .nan}}]}", "demo.yaml:1:40: .nan is not a number"},
		{"- {task: a, call: [{tool: x, args: {a: 1, a: 2}}]}", "demo.yaml:1:43: a key of args must be"},
		{"- {task: a, say: &x y}\n- {task: b, say: *x}", `demo.yaml:2:18: the alias "x" stands for something else`},
		{"- {task: a, say: x}\n---\n- {task: b}", "a second document begins here"},
		{"- {task: a, say: \"x}", "demo.yaml:1:21: the file stops in the middle"},
		{"- task: a\n\tsay: x", "demo.yaml:2:1: a tab is used as indentation"},
		{strings.Repeat("&a ", 1<<20), "too many items"},
		{"- " + strings.Repeat("[", 100), "levels deep"},
		{strings.Repeat(" ", 5<<20), "larger than 4 MB"},
	} {
		_, err := ParseScript("demo.yaml", []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q gives %v, want %s", c.src, err, c.want)
			continue
		}
		wantKind(t, err, swarm.BadInput)
	}
}

func TestScriptsThatWork(t *testing.T) {
	for name, src := range map[string]string{
		"BOM": "\ufeff- {task: a, say: x}\n", "CRLF": "- task: a\r\n  say: x\r\n", "nothing said": "- {task: a}", "a number": "- {task: a, say: 42}", "quoted": `- {"task": "a"}`,
	} {
		if _, err := ParseScript("demo.yaml", []byte(src)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte("- {task: plan, say: hello}\n- {agent: coder, iteration: 2, say: \"{prompt}\", exit: 1, sleep: 1ms}\n"))
	f.Add([]byte("- task: a\n  call:\n    - {tool: x, args: {a: [1, 2.5, null, true, 0x1f], b: {c: d}}}\n  say: |\n    text\n"))
	f.Add([]byte("- &a {task: b, say: *a}\n--- \n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := ParseScript("f", src)
		if err != nil {
			var e *swarm.Error
			if !errors.As(err, &e) || e.Kind != swarm.BadInput || e.Msg == "" {
				t.Fatalf("not an error for people: %v", err)
			}
			return
		}
		for _, e := range s.entries {
			for _, c := range e.calls {
				if !json.Valid(c.args) {
					t.Fatalf("arguments that are not JSON: %s", c.args)
				}
			}
			if e.task == "" && e.agent == "" {
				t.Fatal("an entry for nobody")
			}
		}
	})
}
