package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/mail"
)

// A waiting is a call of wait_for that runs beside the test.
type waiting struct {
	answer waitResult
	err    error
	over   chan struct{}
}

// waits begins a wait. It returns when the log has the wait's begin, or the wait has ended.
func waits(t *testing.T, h *TurnHandle, args string) *waiting {
	t.Helper()
	w := &waiting{over: make(chan struct{})}
	wake, off := h.service.Log.Watch()
	defer off()
	before := count(t, h.service.Log, swarm.WaitBegan)
	go func() {
		defer close(w.over)
		var raw json.RawMessage
		if raw, w.err = h.Call(context.Background(), "wait_for", json.RawMessage(args)); w.err == nil {
			w.err = json.Unmarshal(raw, &w.answer)
		}
	}()
	for count(t, h.service.Log, swarm.WaitBegan) == before {
		select {
		case <-wake:
		case <-w.over:
			return w
		}
	}
	return w
}

func (w *waiting) goesOn() bool {
	select {
	case <-w.over:
		return false
	default:
		return true
	}
}

// A wait returns the output of the turn that read the message, not of an earlier turn, and not
// before the agent is idle.
func TestWaitFor(t *testing.T) {
	log, again := opened(t)
	s := &Service{Log: log}
	does(t, s, "coder", "coder/1/1", "old")
	planner := starts(t, s, "planner", "planner/1/1")
	coder := starts(t, s, "coder", "coder/2/1") // it runs already, and has not seen what is sent now
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"do it"}`)
	w := waits(t, planner, `{"agents":["Coder","coder"]}`)
	ends(t, s, coder, "older")
	long := strings.Repeat("ü", 5000)
	coder = starts(t, &Service{Log: again()}, "coder", "coder/3/1")
	add(t, again(), swarm.Event{Kind: swarm.Notice, Data: swarm.Encode(swarm.Reason{})})
	if !w.goesOn() {
		t.Fatalf("the wait is over before the mail was read: %+v, %v", w.answer, w.err)
	}
	ends(t, s, coder, long)
	<-w.over
	if w.err != nil || len(w.answer.Outputs) != 1 {
		t.Fatalf("%+v, %v", w.answer, w.err)
	}
	out := w.answer.Outputs[0]
	if out.Agent != "coder" || out.Turn != "coder/3/1" || out.Bytes != 10000 || out.Output != strings.Repeat("ü", maxHead/2) {
		t.Errorf("%s %s %d %d", out.Agent, out.Turn, out.Bytes, len(out.Output))
	}
	if whole := call[readResult](t, planner, "read_artifact", `{"ref":"`+out.Ref+`"}`); whole.Content != long || whole.Kind != "report" {
		t.Errorf("the ref %s has %d bytes", out.Ref, whole.Bytes)
	}
	// Without a new message the last output is returned at once. A short output has no ref.
	does(t, s, "coder", "coder/4/1", "short")
	w = waits(t, planner, `{"agents":["coder"]}`)
	<-w.over
	if w.err != nil || w.answer.Outputs[0] != (waitedOutput{Agent: "coder", Turn: "coder/4/1", Output: "short", Bytes: 5}) {
		t.Errorf("%+v, %v", w.answer, w.err)
	}
	if b, e := count(t, log, swarm.WaitBegan), count(t, log, swarm.WaitEnded); b != 2 || e != 2 {
		t.Errorf("%d waits began, %d ended", b, e)
	}
}

func TestWaitsThatCannotEnd(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	planner, coder, tester := starts(t, s, "planner", "planner/1/1"), starts(t, s, "coder", "coder/1/1"), starts(t, s, "tester", "tester/1/1")
	first := waits(t, planner, `{"agents":["coder"]}`)
	second := waits(t, tester, `{"agents":["coder"]}`)
	before := count(t, log, swarm.WaitBegan)
	for args, text := range map[string]string{
		`{"agents":["planner"]}`:            "waiting for planner would deadlock: coder → planner → coder",
		`{"agents":["tester"]}`:             "waiting for tester would deadlock: coder → tester → coder",
		`{"agents":["coder"]}`:              "coder cannot wait for itself",
		`{"agents":["nosuch"]}`:             "Unknown agent: 'nosuch'. Valid agents: planner, tester",
		`{"agents":["user"]}`:               "Unknown agent: 'user'. Valid agents: planner, tester",
		`{"agents":[]}`:                     "agents is empty",
		`{"agents":"tester"}`:               `the argument "agents" must be a list of strings`,
		`{"agents":["tester"],"timeout":0}`: `the argument "timeout" must be a whole number from 1 to 3600`,
	} {
		_, err := coder.Call(t.Context(), "wait_for", json.RawMessage(args))
		wrong(t, err, text, "")
	}
	_, err := planner.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["tester"]}`))
	wrong(t, err, "planner has no edge to tester or from it, and cannot wait for it", "wait for agents that you write to")
	_, err = planner.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["coder"]}`))
	wrong(t, err, "planner waits already", "wait for all you need in one call")
	if n := count(t, log, swarm.WaitBegan); n != before {
		t.Errorf("%d waits that were refused have begun", n-before)
	}
	// The end of a turn ends its wait, and with it the cycle.
	planner.End()
	<-first.over
	wrong(t, first.err, "the turn planner/1/1 has ended", "")
	third := waits(t, coder, `{"agents":["planner"]}`)
	if !third.goesOn() || !second.goesOn() {
		t.Errorf("%v, %v", third.err, second.err)
	}
	// The end of the awaited agent ends the wait, too, and so does the timeout.
	add(t, log, swarm.Event{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey("planner", 0), Agent: "planner", Data: swarm.Encode(swarm.Reason{Reason: "it was cancelled"})})
	<-third.over
	wrong(t, third.err, "planner has ended, and will not answer any more", "go on without it")
	_, err = coder.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["tester"],"timeout":1}`))
	wrong(t, err, "waiting for tester would deadlock: coder → tester → coder", "")
	tester.End()
	<-second.over
	_, err = coder.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["tester"],"timeout":1}`))
	wrong(t, err, "waited 1s for tester (its turn tester/1/1 runs)", "wait again")
	if swarm.KindOf(err) != swarm.TimedOut {
		t.Errorf("its kind is %s", swarm.KindOf(err))
	}
	coder.End()
	if b, e := count(t, log, swarm.WaitBegan), count(t, log, swarm.WaitEnded); b != 4 || e != 4 {
		t.Errorf("%d waits began, %d ended", b, e)
	}
}

// A report counts when the turn ends. A request for help is a message that asks for an answer.
func TestDoneAndHelp(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	h := starts(t, s, "tester", "tester/1/1")
	if _, done := h.Done(); done {
		t.Error("it is done at once")
	}
	call[struct{}](t, h, "report_done", `{"response":"half"}`)
	call[struct{}](t, h, "report_done", `{"response":"all is there"}`)
	request := call[requestResult](t, h, "request_help", `{"help_description":"blue or green?","help_skills":["taste"]}`).Request
	if again := call[requestResult](t, h, "request_help", `{"help_description":"blue or green?","help_skills":["taste"]}`).Request; again != request {
		t.Errorf("the same question is %s and %s", request, again)
	}
	h.End()
	if response, done := h.Done(); !done || response != "all is there" {
		t.Errorf("%q, %v", response, done)
	}
	items, _, err := s.UserMail(10)
	if err != nil || len(items) != 1 || items[0].ID != request || !mail.Expects(items[0].Envelope) || string(items[0].Payload.Structured) != `{"skills":["taste"]}` {
		t.Fatalf("%+v, %v", items, err)
	}
	if _, err := s.Answer(t.Context(), request, mail.Draft{Message: "green"}); err != nil {
		t.Fatal(err)
	}
	if _, items := begin(t, s, "tester", "tester/2/1"); len(items) != 1 || items[0].Payload.Message != "green" {
		t.Errorf("tester reads %+v", items)
	}
}

// A cycle of waits is detected across processes, each with a service of its own. The wait that
// began last is refused, even if both began before either service knew of the other.
func TestWaitsInACycleOverTwoProcesses(t *testing.T) {
	log, again := opened(t)
	here, there := &Service{Log: log}, &Service{Log: again()}
	planner, coder := starts(t, here, "planner", "planner/1/1"), starts(t, there, "coder", "coder/1/1")
	w := waits(t, planner, `{"agents":["coder"]}`)
	_, err := coder.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["planner"]}`))
	wrong(t, err, "waiting for planner would deadlock: coder → planner → coder", "end your turn")
	late, err := coder.beginWait([]string{"tester"}) // nothing is wrong with that yet
	if err != nil {
		t.Fatal(err)
	}
	late.names = []string{"planner"}
	_, err = late.watch(t.Context(), time.Minute)
	wrong(t, err, "waiting for planner would deadlock: coder → planner → coder", "end your turn")
	if !w.goesOn() {
		t.Errorf("the wait that began first is over: %v", w.err)
	}
	planner.End()
	<-w.over
}

// A pipeline has no wait_for, because its agents have no further turns.
func TestPipelinesHaveNoToolsOfTeams(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	s.resetFold()
	s.rules, s.read = mail.NewRules(&swarm.Plan{Kind: swarm.PipelineRun, Agents: team.Agents}), 2
	if n := len(s.Tools("coder")); n != 5 {
		t.Errorf("%d tools", n)
	}
	_, err := s.BeginTurn("coder", "t", "t/1/1", 1, swarm.Inputs{}).Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["planner"]}`))
	var e *swarm.Error
	if !errors.As(err, &e) || e.Msg != "wait_for exists in teams and swarms, and this run is neither" {
		t.Error(err)
	}
}

// A message that was returned when its receiver ended was not delivered. Sent again to the
// restarted agent, it is a new message: a wait does not return an earlier output, and a chosen id
// is not acknowledged twice.
func TestSaidAgainToWhoWasStartedAgain(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	planner := starts(t, s, "planner", "planner/1/1")
	does(t, s, "coder", "coder/1/1", "old")
	const do, own = `{"to":"coder","message":"do it"}`, `{"to":"coder","message":"mine","id":"own-1"}`
	first := call[SendResult](t, planner, "send_handoff", do)
	call[SendResult](t, planner, "send_handoff", own)
	add(t, log, swarm.Event{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey("coder", 0), Agent: "coder", Data: swarm.Encode(swarm.Reason{Reason: "it was cancelled"})})
	if _, err := s.Return(t.Context(), "coder", swarm.NewMessage(swarm.BackCancelled)); err != nil {
		t.Fatal(err)
	}
	add(t, log, swarm.Event{Kind: swarm.AgentRestarted, Key: "agent_restarted:coder:1", Agent: "coder"})
	_, err := planner.Call(t.Context(), "wait_for", json.RawMessage(`{"agents":["coder"]}`))
	wrong(t, err, "coder was ended and started again, and has not read what you sent it", "send it again")
	_, err = planner.Call(t.Context(), "send_handoff", json.RawMessage(own))
	wrong(t, err, `message "own-1": it went back unread when its receiver ended`, "send it under another id")
	second := call[SendResult](t, planner, "send_handoff", do)
	if third := call[SendResult](t, planner, "send_handoff", do); second.ID == first.ID || third != second {
		t.Errorf("sent as %+v, then as %+v and %+v", first, second, third)
	}
	w := waits(t, planner, `{"agents":["coder"]}`)
	if !w.goesOn() {
		t.Fatalf("%+v, %v", w.answer, w.err)
	}
	coder, items := begin(t, s, "coder", "coder/2/1")
	if messages(items) != "do it" {
		t.Errorf("coder reads %q", messages(items))
	}
	ends(t, s, coder, "new")
	<-w.over
	if w.err != nil || w.answer.Outputs[0].Output != "new" {
		t.Errorf("%+v, %v", w.answer, w.err)
	}
}
