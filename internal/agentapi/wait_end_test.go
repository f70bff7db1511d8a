package agentapi

import (
	"encoding/json"
	"testing"
	"time"

	"swarm"
	"swarm/internal/mail"
)

// An agent that was started again has an empty inbox and gets mail. It can end again, and then gets
// none.
func TestAnAgentIsStartedAgain(t *testing.T) {
	log, again := opened(t)
	s, other := &Service{Log: log}, &Service{Log: again()}
	planner := starts(t, s, "planner", "planner/1/1")
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"one"}`)
	end := func(starts int) {
		add(t, log, swarm.Event{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey("coder", starts), Agent: "coder", Data: swarm.Encode(swarm.AgentEnd{Reason: "it was cancelled"})})
		if _, err := s.Return(t.Context(), "coder", swarm.NewMessage(swarm.BackCancelled)); err != nil {
			t.Fatal(err)
		}
	}
	write := func(s *Service, text string) error {
		_, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: text})
		return err
	}
	end(0)
	wrong(t, write(s, "two"), "agent coder has ended: it was cancelled", "it gets no mail any more; write to another agent. A person can start it again: swarm start @coder")
	add(t, log, swarm.Event{Kind: swarm.AgentRestarted, Key: "agent_restarted:coder:1", Agent: "coder"})
	for _, one := range []*Service{s, other} {
		if err := write(one, "three"); err != nil {
			t.Fatal(err)
		}
	}
	if _, items := begin(t, other, "coder", "coder/2/1"); len(items) != 2 || items[0].Payload.Message != "three" {
		t.Errorf("it reads %+v, and what came before it was started has gone back", items)
	}
	stored := count(t, log, swarm.HandoffStored)
	end(1)
	wrong(t, write(other, "four"), "agent coder has ended: it was cancelled", "it gets")
	if n := count(t, log, swarm.HandoffReturned); n != 3 {
		t.Errorf("%d envelopes went back, each once", n)
	}
	if n := count(t, log, swarm.HandoffStored) - stored; n != 2 {
		t.Errorf("the person is told %d times, want of both messages", n)
	}
}

// The error of a wait says what keeps the other agent.
func TestWhyAnAgentIsNotThrough(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	is := func(want string) {
		t.Helper()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.follow(); err != nil {
			t.Fatal(err)
		}
		if got := s.team.Busy("coder").String(); got != want {
			t.Errorf("it is said to be: %s, want: %s", got, want)
		}
	}
	planner := starts(t, s, "planner", "planner/1/1")
	is("it has no output yet; nobody has sent it work")
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"do it"}`)
	is("it has mail to read")
	add(t, log, swarm.Event{Kind: swarm.AgentPaused, Agent: "coder"})
	is("it is paused, and it has mail to read")
	add(t, log, swarm.Event{Kind: swarm.AgentResumed, Agent: "coder"})
	coder := starts(t, s, "coder", "coder/1/1")
	is("its turn coder/1/1 runs")
	add(t, log, swarm.Event{Kind: swarm.ApprovalAsked, Agent: "coder", Data: swarm.Encode(swarm.Approval{ID: "a1", What: "use Bash"})})
	is("in its turn coder/1/1 it waits for a person")
	add(t, log, swarm.Event{Kind: swarm.ApprovalAnswered, Agent: "coder", Data: swarm.Encode(swarm.ApprovalAnswer{ID: "a1"})})
	w := waits(t, coder, `{"agents":["tester"]}`)
	is("in its turn coder/1/1 it waits for tester")
	coder.End()
	<-w.over
	is("its turn coder/1/1 runs")
}

// A wait for an agent that gets no turn any more ends, because the run is about to end.
func TestAWaitEndsWithTheRun(t *testing.T) {
	for want, last := range map[string]swarm.Event{
		"the budget is spent":                   {Kind: swarm.BudgetSpent, Data: swarm.Encode(swarm.Reason{Reason: "10 calls were made"})},
		"the run is being ended":                {Kind: swarm.Control, To: swarm.ToControl, Data: swarm.Encode(swarm.ControlCommand{Command: swarm.CommandClose})},
		"planner has reported that all is done": {Kind: swarm.TurnEnded, Agent: "planner", Turn: "planner/1/1", Data: swarm.Encode(swarm.CallEnd{Status: swarm.CallOK, Done: true})},
	} {
		log, _ := opened(t)
		s := &Service{Log: log}
		led := team
		led.Team = &swarm.Team{Lead: "planner"}
		add(t, log, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: swarm.Encode(led)})
		coder, tester := starts(t, s, "coder", "coder/1/1"), starts(t, s, "tester", "tester/1/1")
		call[SendResult](t, coder, "send_handoff", `{"to":"tester","message":"look"}`)
		w := waits(t, coder, `{"agents":["tester"]}`)
		add(t, log, last)
		if !w.goesOn() {
			t.Errorf("its turn runs, and the wait is over: %v", w.err)
		}
		ends(t, s, tester, "done what came before")
		<-w.over
		wrong(t, w.err, "tester has no turn any more: "+want, "go on without it")
	}
}

// The loop is told of waits, but not by a process that has lost the run.
func TestTheLoopIsToldWhoWaits(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log, Loop: "root"}
	h := starts(t, s, "planner", "planner/1/1")
	w := waits(t, h, `{"agents":["coder"]}`)
	h.End()
	<-w.over
	events, err := log.Read(0, 10, swarm.ToLoop("root"))
	if err != nil || len(events) != 2 || events[0].Kind != swarm.WaitBegan || events[1].Kind != swarm.WaitEnded || events[1].Turn != "planner/1/1" {
		t.Errorf("the loop is told %+v, %v", events, err)
	}
	late := starts(t, &Service{Log: log, Loop: "root", Fence: 7}, "tester", "tester/1/1")
	if _, err := late.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["coder"]}`)); err == nil || count(t, log, swarm.WaitBegan) != 1 {
		t.Errorf("a late owner's agent waits: %v", err)
	}
}

// The timeout of a wait does not run while the run is paused.
func TestPausableTimer(t *testing.T) {
	p := newPausableTimer(time.Hour)
	defer p.stop()
	p.pause(true)
	p.pause(true)
	if p.timer.Stop() || p.left > time.Hour || p.left < time.Minute {
		t.Errorf("its timer runs, or %s are left", p.left)
	}
	p.pause(false)
	p.pause(false)
	if !p.timer.Stop() {
		t.Error("its timer stands")
	}
}
