package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// reads is a tool that gives a long text, another for each call.
func reads(size int) provider.Request {
	n := 0
	return provider.Request{Prompt: "Read.", ToolSpecs: []swarm.ToolSpec{{Name: "read"}},
		Call: func(context.Context, string, json.RawMessage) (string, error) {
			n++
			return fmt.Sprintf("text %d. ", n) + strings.Repeat("x", size), nil
		}}
}

func reading(id int) modeltest.Answer {
	return modeltest.Answer{Calls: []modeltest.Call{{ID: fmt.Sprint("c", id), Name: "read", Args: "{}"}}}
}

// A turn may call tools often. When its requests grow too large, the oldest results are left out of
// them. The session keeps all.
func TestLongTurnsLeaveOutOldResults(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		var script []modeltest.Answer
		for n := range 80 {
			script = append(script, reading(n))
		}
		b := newBench(t, kind, append(script, modeltest.Answer{Text: "Read."})...)
		r := reads(10_000)
		r.Context = 20_000
		reply, err := b.turn(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		cuts, before := 0, 0
		for n, asked := range b.server.Requests() {
			if len(asked.Body) > 100_000 {
				t.Errorf("request %d has %d bytes", n, len(asked.Body))
			}
			if n > 0 && !strings.Contains(string(asked.Body), fmt.Sprintf("text %d. xxx", n)) {
				t.Errorf("request %d does not have the newest result", n)
			}
			if out := strings.Count(string(asked.Body), "[The result had 10"); out != before {
				cuts, before = cuts+1, out
			}
		}
		if cuts < 5 || cuts > 25 || reply.LeftOut != before || reply.LeftOut < 70 {
			t.Errorf("results were left out in %d steps, %d at last, and the reply says %d", cuts, before, reply.LeftOut)
		}
		if len(reply.Messages) != 161 || len(reply.Messages[1].Results[0].Text) < 10_000 {
			t.Errorf("the session has %d messages, the first result %d bytes", len(reply.Messages), len(reply.Messages[1].Results[0].Text))
		}
		if told, _ := b.message(swarm.DeltaStderr); !strings.Contains(told, "the turn has more than 20000 tokens: its ") {
			t.Errorf("people are told %q", told)
		}
	})
}

// A model that makes the same call again and again is given up, and so is one that never ends.
func TestTurnsWithoutEnd(t *testing.T) {
	b := newBench(t, "openai", reading(1))
	r := reads(0)
	r.Call = func(context.Context, string, json.RawMessage) (string, error) { return "the same", nil }
	reply, err := b.turn(t.Context(), r)
	if e := b.fails(swarm.NoResult, reply, err); len(b.server.Requests()) != 50 || e.Msg != "the model has made the same call of read 50 times in a row, with the same result" {
		t.Errorf("%d requests: %v", len(b.server.Requests()), e)
	}
	if n := len(reply.Messages); n != 100 || !strings.Contains(reply.Messages[n-1].Text, "The turn was cut off here: the model has made the same call") {
		t.Errorf("the session has %d messages", n)
	}
	b = newBench(t, "openai", reading(1))
	reply, err = b.turn(t.Context(), reads(0))
	if e := b.fails(swarm.NoResult, reply, err); len(b.server.Requests()) != 200 || !strings.Contains(e.Msg, "in 200 answers") {
		t.Errorf("%d requests: %v", len(b.server.Requests()), e)
	}
}

// The next attempt goes on from what a turn did before its time or a limit ended it. An attempt that
// failed for what it sent is not repeated.
func TestWorkOfAFailedTurn(t *testing.T) {
	for _, c := range []struct {
		name string
		last modeltest.Answer
		kept bool
	}{
		{"limit", modeltest.Answer{Status: 429, After: "90"}, true},
		{"refused", modeltest.Answer{Status: 400, Message: "I do not like it"}, false},
		{"cut off", modeltest.Answer{Text: "It is", Stop: "length"}, false},
	} {
		b := newBench(t, "openai", reading(1), c.last)
		reply, err := b.turn(t.Context(), reads(5))
		if err == nil || len(reply.Messages) != map[bool]int{true: 2, false: 0}[c.kept] {
			t.Errorf("%s: %+v, %v", c.name, reply.Messages, err)
		}
	}
	eachKind(t, func(t *testing.T, kind string) { // the next attempt
		b := newBench(t, kind, modeltest.Answer{Text: "Fine."})
		_, err := b.turn(t.Context(), provider.Request{Session: "a/1/1", Fresh: "Go on.", History: []swarm.ChatMessage{
			{Role: swarm.RoleUser, Text: "Read."},
			{Role: swarm.RoleAssistant, Calls: []swarm.ToolCall{{ID: "c1", Name: "read", Args: "{}"}}},
			{Role: swarm.RoleUser, Results: []swarm.ToolResult{{Call: "c1", Text: "text"}}, Text: "It was cut off."},
		}})
		if body := string(b.server.Requests()[0].Body); err != nil || !strings.Contains(body, `It was cut off.\n\nGo on.`) || strings.Count(body, `"role":"user"`) != 2 {
			t.Errorf("%s, %v", body, err)
		}
	})
	ctx, stop := context.WithCancelCause(t.Context())
	b := newBench(t, "openai", reading(1), reading(2))
	r := reads(5)
	call, calls := r.Call, 0
	r.Call = func(ctx context.Context, tool string, args json.RawMessage) (string, error) {
		if calls++; calls == 2 {
			stop(swarm.Errorf(swarm.TimedOut, "timed out after 40s"))
		}
		return call(ctx, tool, args)
	}
	reply, err := b.turn(ctx, r)
	b.fails(swarm.TimedOut, reply, err)
	if len(reply.Messages) != 2 || reply.Messages[1].Text != "\nThe turn was cut off here: timed out after 40s. What you did until then stands. Go on from there." {
		t.Errorf("%+v", reply.Messages)
	}
}

// A turn that is cut while its server fails has the server's words. An answer ends the trouble.
func TestTroubleOfACutTurn(t *testing.T) {
	b := newBench(t, "openai", modeltest.Answer{Status: 500, After: "30", Message: "runner died"})
	ctx, stop := context.WithCancelCause(t.Context())
	reply, err := b.model.Turn(ctx, provider.Request{Prompt: "Read.", Model: "tiny"}, func(d swarm.Delta) {
		if d.Kind == swarm.DeltaStderr {
			stop(swarm.Errorf(swarm.TimedOut, "timed out after 40s"))
		}
	})
	if swarm.KindOf(err) != swarm.TimedOut || !strings.HasPrefix(reply.Trouble, "the server failed (500)") || !strings.Contains(reply.Trouble, "runner died") {
		t.Errorf("%q, %v", reply.Trouble, err)
	}
	b = newBench(t, "openai", modeltest.Answer{Status: 500}, modeltest.Answer{Text: "Fine."})
	if reply, err := b.turn(t.Context(), provider.Request{Prompt: "Read."}); err != nil || reply.Trouble != "" {
		t.Errorf("%q, %v", reply.Trouble, err)
	}
}
