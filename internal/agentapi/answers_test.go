package agentapi

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"swarm"
)

// The receiver of a message that asks for a response may answer it without an edge, once.
func TestAnAnswerNeedsNoEdge(t *testing.T) {
	log, again := opened(t)
	s := &Service{Run: "r1", Log: log}
	coder, tester := starts(t, s, "coder", "coder/1/1"), starts(t, s, "tester", "tester/1/1")
	ask := func(id, expectation string) SendResult {
		t.Helper()
		return call[SendResult](t, coder, "send_handoff", `{"to":"tester","message":"which?","id":"`+id+`","response":{"expectation":"`+expectation+`"}}`)
	}
	refused := func(h *TurnHandle, message string) {
		t.Helper()
		_, err := h.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"coder","message":"`+message+`"}`))
		wrong(t, err, "there is no edge from tester to coder. tester may write to: nobody", "write to one of those; who asks for a response may be answered once")
	}
	ask("q-0", "none")
	refused(tester, "one")
	ask("q-1", "optional")
	if d := s.Tools("tester")[0].Description; !strings.HasSuffix(d, "You may write to: nobody yet. You may answer once, since they ask for a response: coder.") {
		t.Error(d)
	}
	first := call[SendResult](t, tester, "send_handoff", `{"to":"coder","message":"one"}`)
	refused(tester, "two")
	// The turn runs again in another process: its messages stay sent.
	tester = (&Service{Run: "r1", Log: again()}).BeginTurn("tester", "task", "tester/1/1", 2, swarm.Inputs{})
	if second := call[SendResult](t, tester, "send_handoff", `{"to":"coder","message":"one"}`); second != first {
		t.Errorf("the answer is %v and %v", first, second)
	}
	refused(tester, "two")
	// Two questions permit two answers, and a reminder permits one more.
	ask("q-2", "required")
	ask("q-3", "required")
	call[SendResult](t, tester, "send_handoff", `{"to":"coder","message":"two"}`)
	call[SendResult](t, tester, "send_handoff", `{"to":"coder","message":"three"}`)
	refused(tester, "four")
	for range 2 {
		if _, err := s.Overdue(t.Context(), "coder/q-2", false); err != nil {
			t.Fatal(err)
		}
	}
	call[SendResult](t, tester, "send_handoff", `{"to":"coder","message":"four"}`)
	refused(tester, "five")
}

// Of two concurrent answers one is refused.
func TestAQuestionIsAnsweredOnce(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	coder, tester := starts(t, s, "coder", "coder/1/1"), starts(t, s, "tester", "tester/1/1")
	for round := range 20 {
		call[SendResult](t, coder, "send_handoff", `{"to":"tester","message":"which?","id":"`+strings.Repeat("q", round+1)+`","response":{"expectation":"required"}}`)
		var answers sync.WaitGroup
		var taken atomic.Int32
		for n := range 8 {
			answers.Go(func() {
				if _, err := tester.Call(t.Context(), "send_handoff", swarm.Encode(map[string]any{"to": "coder", "message": strings.Repeat("x", 10*round+n+1)})); err == nil {
					taken.Add(1)
				}
			})
		}
		if answers.Wait(); taken.Load() != 1 {
			t.Fatalf("round %d: %d answers were taken", round, taken.Load())
		}
	}
}

// There is no reminder of a reply whose asker has ended.
func TestNoReminderForAnAgentThatHasEnded(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	coder := starts(t, s, "coder", "coder/1/1")
	call[SendResult](t, coder, "send_handoff", `{"to":"tester","message":"which?","id":"q-1","response":{"expectation":"required"}}`)
	add(t, log, swarm.Event{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey("coder", 0), Agent: "coder", Data: swarm.Encode(swarm.AgentEnd{Reason: "it failed"})})
	if seq, err := s.Overdue(t.Context(), "coder/q-1", false); seq != 0 || err != nil || count(t, log, swarm.HandoffStored) != 1 {
		t.Errorf("%d, %v", seq, err)
	}
}
