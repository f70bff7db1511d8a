package agentapi

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/sqlite"
	"swarm/internal/station"
)

// swarming makes the log of a swarm whose three agents are there: two workers without a role, and a
// lawyer. Six agents may be there in all, and each may send two messages.
func swarming(t *testing.T, spawn string) (*Service, []string) {
	t.Helper()
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	worker, lawyer := swarm.Agent{Provider: "m"}, swarm.Agent{Name: "lawyer", Provider: "law", Tools: []string{"web_search"}}
	names := []string{station.Name("r", 0), station.Name("r", 1), station.Name("r", 2), station.Name("r", 3)}
	rules := &swarm.Swarm{Workers: 3, Iterations: 25, Messages: 2, Worker: worker, Roles: []swarm.Agent{lawyer}}
	p := swarm.Plan{Kind: swarm.SwarmRun, Team: &swarm.Team{Lead: swarm.Supervisor, MaxAgents: 6}, Approvals: swarm.Approvals{Spawn: spawn},
		Providers: []swarm.ProviderSpec{{Name: "m"}, {Name: "law"}}, Agents: []swarm.Agent{{Name: swarm.Supervisor, Provider: "m"}}, Swarm: rules}
	for i, name := range names[:3] {
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "m"})
		rules.Subtasks = append(rules.Subtasks, swarm.Subtask{ID: fmt.Sprint("t", i+1), Description: "work", Agent: name})
	}
	add(t, log, swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: swarm.Encode(p)})
	return &Service{Run: "r", Log: log}, names
}

// fails calls a tool, which must fail with this text or hint.
func fails(t *testing.T, h *TurnHandle, tool, args, want string) {
	t.Helper()
	answer, err := h.Call(t.Context(), tool, json.RawMessage(args))
	if got := fmt.Sprint(err, " (", swarm.HintOf(err), ")"); err == nil || !strings.Contains(got, want) {
		t.Errorf("%s %s: %s, %s, want %s", tool, args, answer, got, want)
	}
}

// Every type of message arrives as such. Other types, unknown receivers and messages above the limit
// are refused with what is possible.
func TestMessagesOfASwarm(t *testing.T) {
	s, names := swarming(t, "auto")
	for i, kind := range swarm.MessageTypes {
		from := s.BeginTurn(names[i%2], names[i%2], swarm.NewTurnID(names[i%2], i+1, 1), 1, swarm.Inputs{})
		args := fmt.Sprintf(`{"to": %q, "type": %q, "message": "hello %d"}`, names[2], kind, i)
		if i == 4 {
			fails(t, from, "send_handoff", args, fmt.Sprintf("%s has reached its limit of messages: 2", names[0]))
			fails(t, from, "send_handoff", args, "swarm: {max_messages_per_agent: 3}")
			from = s.BeginTurn(swarm.Supervisor, swarm.Supervisor, "supervisor/2/1", 1, swarm.Inputs{})
		}
		call[SendResult](t, from, "send_handoff", args)
		call[SendResult](t, from, "send_handoff", args) // the same message, which does not count again
	}
	items := inboxOf(t, s, names[2])
	for i, item := range items {
		if got := mail.MetaOf(item.Envelope).Type; got != swarm.MessageTypes[i] {
			t.Errorf("message %d has the type %q", i, got)
		}
	}
	if len(items) != len(swarm.MessageTypes) {
		t.Errorf("%d messages arrived", len(items))
	}
	h := s.BeginTurn(names[2], names[2], swarm.NewTurnID(names[2], 1, 1), 1, swarm.Inputs{})
	fails(t, h, "send_handoff", `{"to": "nobody", "message": "x"}`, "Unknown agent: 'nobody'. Valid agents: supervisor, "+names[0]+", "+names[1])
	fails(t, h, "send_handoff", `{"to": "supervisor", "type": "order", "message": "x"}`, "choose one of request, offer, accept, delegation, info")
	call[SendResult](t, h, "send_handoff", `{"to": "supervisor", "message": "x"}`)
	if got := mail.MetaOf(inboxOf(t, s, swarm.Supervisor)[0].Envelope).Type; got != "info" {
		t.Errorf("a message without a type is of the type %q", got)
	}
}

// A worker's request for help becomes another worker with the description as its subtask. It is
// answered by the supervisor. The role that has the skill is taken.
func TestHelpInASwarm(t *testing.T) {
	s, names := swarming(t, "auto")
	asker := s.BeginTurn(names[0], names[0], swarm.NewTurnID(names[0], 1, 1), 1, swarm.Inputs{})
	help := `{"help_description": "Look at the law", "help_skills": ["nothing", "web_search"]}`
	request := call[requestResult](t, asker, "request_help", help).Request
	fails(t, asker, "request_help", `{"help_description": "Look at Europe"}`, "has asked for help already, and nobody has answered yet. Each agent may have 1 helper")
	for range 2 { // a crash repeats the call
		if _, err := s.Grant(t.Context(), 0, request); err != nil {
			t.Fatal(err)
		}
	}
	state, _, err := s.SwarmState(swarm.Supervisor)
	if err != nil || len(state.Agents) != 4 || state.Agents[3].Name != names[3] || state.Agents[3].Task != "Look at the law" {
		t.Fatalf("%+v, %v", state, err)
	}
	if p := s.plans[1]; p.Agents[0].Provider != "law" || len(p.Agents[0].Tools) != 1 || p.Agents[0].Name != names[3] {
		t.Errorf("the helper is %+v", p.Agents)
	}
	told := inboxOf(t, s, names[0])
	if len(told) != 1 || told[0].FromNodeID != swarm.Supervisor || !strings.Contains(told[0].Payload.Message, names[3]+" has joined the team") {
		t.Errorf("the agent that asked is told %+v", told)
	}
	fails(t, asker, "request_help", `{"help_description": "Look at Europe"}`, names[0]+" has had help already: "+names[3]+". Each agent may have 1 helper")

	// two more fill the swarm, so that the request of the last one is refused by mail
	requests := make([]string, 3)
	for i, name := range names[1:] {
		h := s.BeginTurn(name, name, swarm.NewTurnID(name, 1, 1), 1, swarm.Inputs{})
		requests[i] = call[requestResult](t, h, "request_help", `{"help_description": "More"}`).Request
	}
	for _, r := range requests {
		if _, err := s.Grant(t.Context(), 0, r); err != nil {
			t.Fatal(err)
		}
	}
	last := inboxOf(t, s, names[3])
	if len(last) != 1 || !strings.Contains(last[0].Payload.Message, "the swarm is full: it has had 6 agents, and may have 6 in all") {
		t.Errorf("the last one is told %+v", last)
	}
	for _, name := range []string{station.Name("r", 4), station.Name("r", 5)} {
		if s.team.Member(name) == nil {
			t.Errorf("there is no %s", name)
		}
	}
}

// A file may have a person asked, or nobody come.
func TestHelpThatAPersonDecidesAbout(t *testing.T) {
	s, names := swarming(t, "ask")
	asker := s.BeginTurn(names[0], names[0], swarm.NewTurnID(names[0], 1, 1), 1, swarm.Inputs{})
	request := call[requestResult](t, asker, "request_help", `{"help_description": "Look at the law"}`).Request
	if err := s.Decide(t.Context(), request, Decision{Reason: "work alone"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Grant(t.Context(), 0, request); err != nil {
		t.Fatal(err)
	}
	if told := inboxOf(t, s, names[0]); len(told) != 1 || !strings.HasPrefix(told[0].Payload.Message, "Denied: work alone.") {
		t.Errorf("the agent that asked is told %+v", told)
	}
	s, names = swarming(t, "deny")
	asker = s.BeginTurn(names[0], names[0], swarm.NewTurnID(names[0], 1, 1), 1, swarm.Inputs{})
	fails(t, asker, "request_help", `{"help_description": "Look at the law"}`, "`approvals: {spawn: deny}` in the compose file")
}

// An entry of the task list is claimed once, by an agent or by the one that is added for it.
func TestTaskList(t *testing.T) {
	s, names := swarming(t, "auto")
	turn := func(i int) *TurnHandle {
		return s.BeginTurn(names[i], names[i], swarm.NewTurnID(names[i], 1, 1), 1, swarm.Inputs{})
	}
	first := call[taskResult](t, turn(0), "task_add", `{"description": "Look at the law"}`).ID
	if again := call[taskResult](t, turn(0), "task_add", `{"description": "Look at the law"}`).ID; again != first || first != "t4" {
		t.Errorf("the same entry is %s and %s", first, again)
	}
	second := call[taskResult](t, turn(0), "task_add", `{"description": "Then at Europe", "depends_on": ["t4"]}`).ID
	fails(t, turn(0), "task_add", `{"description": "x", "depends_on": ["t9"]}`, `there is no entry "t9" in the task list`)
	fails(t, turn(1), "task_claim", `{"id": "t1"}`, "open are t4, t5")
	fails(t, turn(1), "task_claim", `{"id": "t5"}`, "t5 waits for t4")
	claims := make(chan error, 2)
	for _, h := range []*TurnHandle{turn(1), turn(2)} {
		go func() {
			_, err := h.Call(t.Context(), "task_claim", json.RawMessage(`{"id": "t4"}`))
			claims <- err
		}()
	}
	a, b := <-claims, <-claims
	if (a == nil) == (b == nil) {
		t.Fatalf("two claims: %v, %v", a, b)
	}
	holder := s.team.Swarm.Tasks[0].Agent
	fails(t, turn(0), "task_claim", `{"id": "t4"}`, holder+" has claimed t4 already")
	if _, err := s.Assign(t.Context(), 0, first); err != nil {
		t.Fatal(err)
	}
	state, _, err := s.SwarmState(names[0])
	if err != nil || len(state.Agents) != 3 || len(state.Tasks) != 2 || state.Tasks[0].State != holder+" works on it" || state.Tasks[1].State != "open, waits for t4" {
		t.Fatalf("%+v, %v", state, err)
	}
	add(t, s.Log, swarm.Event{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey(holder, 0), Agent: holder, Data: swarm.Encode(swarm.AgentEnd{Outcome: swarm.OutcomeDone})})
	for range 2 { // a crash repeats it
		if _, err := s.Assign(t.Context(), 0, second); err != nil {
			t.Fatal(err)
		}
	}
	state, _, err = s.SwarmState(names[0])
	if err != nil || len(state.Agents) != 4 || state.Agents[3].Task != "Then at Europe" || state.Tasks[0].State != "done by "+holder || state.Tasks[1].State != names[3]+" works on it" {
		t.Fatalf("%+v, %v", state, err)
	}
	fails(t, turn(0), "task_claim", `{"id": "t5"}`, names[3]+" has claimed t5 already")
}
