package agentapi

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/secret"
	"swarm/internal/sqlite"
)

// growing makes the log of a team whose planner may request new agents.
func growing(t *testing.T, spawn string) *sqlite.Log {
	t.Helper()
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	p := team
	p.Team, p.Approvals, p.Providers = &swarm.Team{Lead: "planner", MaxAgents: 4}, swarm.Approvals{Spawn: spawn}, []swarm.ProviderSpec{{Name: "sh"}}
	p.Agents = []swarm.Agent{{Name: "planner", Provider: "sh", Permissions: swarm.Permissions{Spawn: true}}, {Name: "coder", Provider: "sh"}, {Name: "tester", Provider: "sh"}}
	add(t, log, swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: swarm.Encode(p)})
	return log
}

const helper = `{"name":"helper","instructions":"help","edges":["coder"]}`

func inboxOf(t *testing.T, s *Service, agent string) []mail.Item {
	t.Helper()
	items, err := s.Unread(agent, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// A growth request, from the question to the new agent's first message.
func TestGrowing(t *testing.T) {
	log := growing(t, "")
	s := &Service{Run: "r", Log: log}
	handle := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	request := call[requestResult](t, handle, "spawn_node", helper).Request
	if again := call[requestResult](t, handle, "spawn_node", `{"edges":["@Coder"],"instructions":"help","name":"Helper","provider":"sh"}`).Request; again != request {
		t.Errorf("the same wish is %s and %s", request, again)
	}
	if events := all(t, log); len(events) != 3 || events[2].Kind != swarm.ApprovalAsked || events[2].To != swarm.ToLoop(swarm.RootLoop) || events[2].Turn != "planner/1/1" {
		t.Fatalf("%+v", events[2:])
	}
	tried := s.BeginTurn("planner", "planner", "planner/1/2", 1, swarm.Inputs{})
	if again := call[requestResult](t, tried, "spawn_node", helper).Request; again != request {
		t.Errorf("asked by the next attempt, the same wish is %s and %s", request, again)
	}
	other := s.BeginTurn("planner", "planner", "planner/2/1", 1, swarm.Inputs{})
	if _, err := other.Call(t.Context(), "spawn_node", json.RawMessage(helper)); err == nil || !strings.Contains(err.Error(), "planner has asked for an agent of that name") {
		t.Errorf("the next turn asks again: %v", err)
	}
	if sent, err := s.Sent("planner/1/1"); err != nil || len(sent) != 0 { // it has no start here
		t.Error(sent, err)
	}
	for tool, args := range map[string]string{"send_handoff": `{"to":"@Helper","message":"x"}`, "wait_for": `{"agents":["helper"]}`} {
		if _, err := other.Call(t.Context(), tool, json.RawMessage(args)); err == nil || !strings.Contains(err.Error(), "helper has not joined yet") {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if _, err := s.Grant(t.Context(), 0, request); err == nil {
		t.Error("what nobody has answered is granted")
	}
	person := &Service{Run: "r", Log: log}
	if err := person.Decide(t.Context(), request, Decision{OK: true, Actor: swarm.Actor{By: "a test"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Grant(t.Context(), 0, request); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, log, swarm.PlanAdded); n != 2 {
		t.Errorf("there are %d plans", n)
	}
	if got := messages(inboxOf(t, s, "helper")); got != "help" {
		t.Errorf("helper has got %q", got)
	}
	answers := inboxOf(t, s, "planner")
	if len(answers) != 1 || answers[0].FromNodeID != swarm.Orchestrator || answers[0].Kind != swarm.Handoff || !answers[0].Payload.Status.OK ||
		!strings.HasPrefix(answers[0].Payload.Message, "Granted: helper has joined the team") || !strings.Contains(string(answers[0].Payload.Structured), request) {
		t.Errorf("planner was told %+v", answers)
	}
	if again := call[requestResult](t, other, "create_edge", `{"from":"tester","to":"helper"}`).Request; again == request {
		t.Error(again)
	}
	h := s.BeginTurn("helper", "helper", "helper/1/1", 1, swarm.Inputs{})
	call[SendResult](t, h, "send_handoff", `{"to":"planner","message":"found"}`)
	call[SendResult](t, h, "send_handoff", `{"to":"coder","message":"found"}`)
	for tool, args := range map[string]string{"send_handoff": `{"to":"tester","message":"x"}`, "spawn_node": `{"name":"mine","instructions":"x"}`, "create_edge": `{"from":"helper","to":"tester"}`} {
		if _, err := h.Call(t.Context(), tool, json.RawMessage(args)); err == nil {
			t.Errorf("helper may %s %s", tool, args)
		}
	}
	// A turn that began before is told of the team as it was then.
	brief := func(answered int) string {
		text, _, _, err := s.Present("planner", &swarm.Team{Lead: "planner"}, answered, nil)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before, after := brief(0), brief(1)
	if strings.Contains(before, "helper") || !strings.Contains(after, "team: planner, coder, tester, helper.") || !strings.Contains(after, "write to: coder, helper.") {
		t.Errorf("before %q, after %q", before, after)
	}
}

// An agent that may not make requests is told what would allow it, and is not offered the tools.
func TestWishesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ spawn, agent, tool, args, want string }{
		{"auto", "coder", "spawn_node", helper, "coder may not use spawn_node"},
		{"auto", "coder", "create_edge", `{"from":"coder","to":"planner"}`, "coder may not use create_edge"},
		{"deny", "coder", "spawn_node", helper, "coder may not use spawn_node"}, // the capability comes first
		{"deny", "planner", "spawn_node", helper, "approvals: {spawn: deny}"},
		{"deny", "planner", "create_edge", `{"from":"tester","to":"planner"}`, "approvals: {spawn: deny}"},
		{"auto", "planner", "spawn_node", `{"name":"coder","instructions":"x"}`, `the name "coder" is taken`},
	} {
		log := growing(t, c.spawn)
		s := &Service{Log: log}
		_, err := s.BeginTurn(c.agent, c.agent, swarm.TurnID(c.agent+"/1/1"), 1, swarm.Inputs{}).Call(t.Context(), c.tool, json.RawMessage(c.args))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if n := len(all(t, log)); n != 2 {
			t.Errorf("%+v: %d events", c, n)
		}
	}
	s := &Service{Log: growing(t, "")}
	for agent, want := range map[string]int{"planner": 2, "coder": 0} {
		n := 0
		for _, spec := range s.Tools(agent) {
			if spec.Name == "spawn_node" || spec.Name == "create_edge" {
				n++
			}
		}
		if n != want {
			t.Errorf("%s is told of %d tools", agent, n)
		}
	}
}

// With automatic approval, request and answer are one batch.
func TestAutomaticAnswers(t *testing.T) {
	log := growing(t, "auto")
	h := (&Service{Log: log}).BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	call[requestResult](t, h, "spawn_node", helper)
	if events := all(t, log); len(events) != 4 || events[2].Kind != swarm.ApprovalAsked || events[3].Kind != swarm.ApprovalAnswered || events[3].To != swarm.ToControl {
		t.Errorf("%+v", events)
	}
}

// Of many concurrent answers one counts, and the error of the others names it.
func TestFirstAnswer(t *testing.T) {
	log := growing(t, "")
	s := &Service{Run: "r", Log: log}
	id := call[requestResult](t, s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{}), "spawn_node", helper).Request
	var wg sync.WaitGroup
	var mu sync.Mutex
	good := 0
	for i := range 8 {
		wg.Go(func() {
			err := (&Service{Run: "r", Log: log}).Decide(t.Context(), id, Decision{OK: i%2 == 0, Reason: strings.Repeat("x", i), Actor: swarm.Actor{By: "number " + string(rune('0'+i))}})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				good++
			case !errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), "by number "):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, log, swarm.ApprovalAnswered); n != 1 || good != 1 {
		t.Errorf("%d answers are there, and %d were told that theirs is", n, good)
	}
}

func TestEdits(t *testing.T) {
	log := growing(t, "")
	s := &Service{Run: "r", Log: log}
	id := call[requestResult](t, s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{}), "spawn_node", helper).Request
	for text, want := range map[string]string{
		``: "the request is empty", `{}`: `"name" is missing`, `{"name":"coder","instructions":"x"}`: "taken", `{"name":"x","instructions":"x","provider":"nosuch"}`: "provider",
		`{"from":"coder","to":"tester"}`: `there is no argument "from"`, `{"name":"x","instructions":"y"}garbage`: "not JSON",
	} {
		if err := s.Decide(t.Context(), id, Decision{OK: true, Edit: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, d := range []Decision{{Edit: []byte(`{"name":"x","instructions":"y"}`)}, {Reason: strings.Repeat("x", 2001)}} {
		if err := s.Decide(t.Context(), id, d); err == nil {
			t.Errorf("%.40v", d)
		}
	}
	if n := len(all(t, log)); n != 3 {
		t.Fatalf("%d events", n)
	}
	if err := s.Decide(t.Context(), id, Decision{OK: true, Edit: []byte(`{"name":"Reader","instructions":"read"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Grant(t.Context(), 0, id); err != nil {
		t.Fatal(err)
	}
	if got := messages(inboxOf(t, s, "planner")); !strings.Contains(got, `Not as you asked: name is "reader" instead of "helper"; edges is "" instead of "coder"; its instructions are others: read.`) {
		t.Error(got)
	}
	if got := messages(inboxOf(t, s, "reader")); got != "read" {
		t.Error(got)
	}
}

// An approved request that has become impossible is refused, and the requester is told: the team is
// full, or the name is taken.
func TestGrantedTooLate(t *testing.T) {
	log := growing(t, "auto")
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	first, second := call[requestResult](t, h, "spawn_node", helper).Request, call[requestResult](t, h, "spawn_node", `{"name":"late","instructions":"x"}`).Request
	for _, id := range []string{first, second} {
		if _, err := s.Grant(t.Context(), 0, id); err != nil {
			t.Fatal(err)
		}
	}
	answers := inboxOf(t, s, "planner")
	if len(answers) != 2 || answers[1].Payload.Status.OK || !strings.HasPrefix(answers[1].Payload.Message, "Allowed, but it cannot be done: the team is full: it has 4 agents, and may have 4. You had asked to bring in @late") {
		t.Errorf("%+v", answers)
	}
	if n := count(t, log, swarm.PlanAdded); n != 2 || len(inboxOf(t, s, "late")) != 0 {
		t.Errorf("%d plans", n)
	}
}

// A replaced owner grants nothing.
func TestGrantIsTheOwners(t *testing.T) {
	log := growing(t, "auto")
	s := &Service{Log: log}
	id := call[requestResult](t, s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{}), "spawn_node", helper).Request
	owner, err := log.Own(t.Context(), "1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Grant(t.Context(), owner.Fence+1, id); !errors.Is(err, swarm.ErrFenced) || count(t, log, swarm.PlanAdded) != 1 {
		t.Error(err)
	}
	if _, err := s.Grant(t.Context(), owner.Fence, id); err != nil {
		t.Error(err)
	}
}

func TestAnswersThatCannotBeGiven(t *testing.T) {
	log := growing(t, "")
	s := &Service{Run: "r", Log: log}
	add(t, log, swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey("coder/1/1/t"), Agent: "coder", Turn: "coder/1/1", Data: swarm.Encode(swarm.Approval{ID: "coder/1/1/t", What: "use Bash", Tool: "Bash"})})
	if err := s.Decide(t.Context(), "coder/1/1/t", Decision{OK: true, Edit: []byte(`{}`)}); err == nil || !strings.Contains(err.Error(), "not edited") {
		t.Error(err)
	}
	if err := s.Decide(t.Context(), "coder/1/1/t", Decision{Reason: "use another", Message: "m-1", Actor: swarm.Actor{By: "a test"}}); err != nil {
		t.Error(err)
	}
	events := all(t, log)
	last := events[len(events)-1]
	answer, err := swarm.Body[swarm.ApprovalAnswer](&last)
	if err != nil || last.To != swarm.ToControl || !reflect.DeepEqual(answer, swarm.ApprovalAnswer{ID: "coder/1/1/t", Reason: "use another", Message: "m-1", Actor: swarm.Actor{By: "a test"}}) {
		t.Errorf("%+v to %s, %v", answer, last.To, err)
	}
	before := len(all(t, log))
	if err := s.Decide(t.Context(), "coder/1/1/t", Decision{OK: true}); !errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), "coder/1/1/t was denied by a test at ") || len(all(t, log)) != before {
		t.Errorf("a second answer, while the turn has not heard the first: %v", err)
	}
	asked, err := s.question("coder/1/1/t")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.answer(t.Context(), asked, swarm.ApprovalAnswer{ID: asked.ID, OK: true}, nil); !errors.Is(err, ErrAnswered) || len(all(t, log)) != before {
		t.Errorf("two at the same time: %v", err)
	}
	if err := s.Decide(t.Context(), "nosuch", Decision{OK: true}); swarm.KindOf(err) != swarm.NotFound {
		t.Error(err)
	}
	id := call[requestResult](t, s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{}), "spawn_node", helper).Request
	add(t, log, swarm.Event{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Data: json.RawMessage(`{}`)})
	if err := s.Decide(t.Context(), id, Decision{OK: true}); err == nil || !strings.Contains(err.Error(), "run r has ended") {
		t.Error(err)
	}
}

// No secret gets into the log by a growth request, its answer, or an error.
func TestSecretsOfWishes(t *testing.T) {
	log := growing(t, "")
	const canary = "canary-0123456789"
	s := &Service{Log: log, Redact: secret.New([]string{"API_KEY=" + canary}, nil).Bytes}
	h := s.BeginTurn("planner", "planner", "planner/1/1", 1, swarm.Inputs{})
	id := call[requestResult](t, h, "spawn_node", `{"name":"helper","instructions":"use `+canary+`"}`).Request
	for _, args := range []string{`{"name":"` + canary + `","instructions":"x"}`, `{"name":"x","instructions":"x","role":"` + canary + `"}`, `{"name":"x","instructions":"x","edges":["` + canary + `"]}`} {
		if _, err := h.Call(t.Context(), "spawn_node", json.RawMessage(args)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", args, err)
		}
	}
	err := s.Decide(t.Context(), id, Decision{Reason: "not with " + canary})
	_, err2 := s.Grant(t.Context(), 0, id)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for _, e := range all(t, log) {
		if strings.Contains(string(e.Data), "canary") {
			t.Errorf("event %d: %s", e.Seq, e.Data)
		}
	}
	if got := messages(inboxOf(t, s, "planner")); !strings.HasPrefix(got, "Denied: not with [secret API_KEY].") {
		t.Error(got)
	}
}
