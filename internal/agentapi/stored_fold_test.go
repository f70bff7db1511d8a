package agentapi

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
)

// A service that starts from a stored fold knows the same as one that has read the whole log,
// whatever the log contains.
func TestDigestIsTheWholeLog(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	add(t, log, swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Data: swarm.Encode(team)})
	for n := 0; n < 1500 && !t.Failed(); n += 30 {
		var events []swarm.Event
		for i := range 30 {
			events = append(events, anything(random, n+i))
		}
		add(t, log, events...)
		before := reads(t, &Service{Log: log, Folds: log})
		if err := before.saveFold(); err != nil {
			t.Fatal(err)
		}
		after, whole := reads(t, &Service{Log: log, Folds: log}), reads(t, &Service{Log: log})
		if after.ruleEvents.upto != whole.read {
			t.Fatalf("what was kept goes up to %d, not to %d", after.ruleEvents.upto, whole.read)
		}
		same(t, before, whole)
		same(t, after, whole)
	}
}

// reads makes a service read the log.
func reads(t *testing.T, s *Service) *Service {
	t.Helper()
	if _, err := s.Cursor("coder"); err != nil {
		t.Fatal(err)
	}
	return s
}

// The fold of a short log is not stored.
func TestDigestOfALongLog(t *testing.T) {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	add(t, log, swarm.Event{Kind: swarm.PlanAdded, Data: swarm.Encode(team)})
	for _, want := range []int64{0, 0, 5001, 5001, 10_001, 10_001} {
		s := reads(t, &Service{Log: log, Folds: log})
		if err := s.SaveFold(); err != nil {
			t.Fatal(err)
		}
		if upto, data, _ := log.LoadFold(foldName, foldVersion); upto != want || len(data) > 1000 {
			t.Errorf("%d events are kept up to %d in %d bytes, want %d", s.read, upto, len(data), want)
		}
		var events []swarm.Event
		for n := range 2500 {
			events = append(events, swarm.Event{Kind: swarm.HandoffStored, Agent: "planner", To: swarm.ToAgent("coder"), Data: swarm.Encode(swarm.Envelope{Kind: swarm.Handoff, ID: fmt.Sprint(n)})})
		}
		add(t, log, events...)
	}
}

// same compares the whole state of two services.
func same(t *testing.T, got, want *Service) {
	t.Helper()
	if x, y := string(swarm.Encode(got.team.TeamState)), string(swarm.Encode(want.team.TeamState)); x != y {
		t.Errorf("the team: %s, and the whole log says %s", x, y)
	}
	skip := []string{"Folds", "mu", "ruleEvents", "team"}
	for i := range reflect.TypeFor[Service]().NumField() {
		name := reflect.TypeFor[Service]().Field(i).Name
		x, y := reflect.ValueOf(got).Elem().Field(i), reflect.ValueOf(want).Elem().Field(i)
		if !slices.Contains(skip, name) && !reflect.DeepEqual(peek(x), peek(y)) {
			t.Errorf("%s: %+v, and the whole log says %+v", name, x, y)
		}
	}
}

// anything returns a random event that a log may contain. Most are mail and turns.
func anything(random *rand.Rand, n int) swarm.Event {
	names := []string{"planner", "coder", "tester", swarm.User}
	who, other := names[random.IntN(3)], names[random.IntN(4)]
	turn := swarm.NewTurnID(who, random.IntN(5), 1)
	e := swarm.Event{Kind: swarm.EventKinds[random.IntN(len(swarm.EventKinds))], Agent: who, Task: who, Turn: turn, Data: json.RawMessage(`{}`)}
	if random.IntN(2) == 0 {
		e.Kind = []swarm.EventKind{swarm.HandoffStored, swarm.HandoffConsumed, swarm.TurnStarted, swarm.TurnEnded}[random.IntN(4)]
	}
	if n < 800 && e.Kind == swarm.ApprovalAsked {
		e.Kind = swarm.TurnStarted // at first nobody has to ask
	}
	body := func(v any) { e.Data = swarm.Encode(v) }
	switch e.Kind {
	case swarm.RunEnded:
		if n < 1300 {
			e.Kind = swarm.Notice
		}
	case swarm.PlanAdded:
		body(swarm.Plan{Edges: []swarm.Edge{{From: "tester", To: "planner"}}})
	case swarm.HandoffStored:
		env := swarm.Envelope{Kind: []swarm.EnvelopeKind{swarm.Handoff, swarm.Signal}[random.IntN(2)], ID: fmt.Sprint(n), FromNodeID: names[random.IntN(4)], ToNodeID: other, Payload: swarm.Payload{Message: "hello"}}
		if random.IntN(3) == 0 {
			env.Meta = json.RawMessage(`{"priority":"high"}`)
		}
		if random.IntN(10) == 0 { // the run tells what came of a growth request
			env.FromNodeID, e.Key = swarm.Orchestrator, fmt.Sprint(swarm.MailKey(answerPrefix(swarm.Orchestrator)), "-", n)
			env.Payload.Structured = swarm.Encode(outcome{Request: fmt.Sprint(n % 7)})
		}
		e.Agent, e.To = env.FromNodeID, swarm.ToAgent(other)
		body(env)
	case swarm.HandoffConsumed:
		body(swarm.Inputs{Upto: int64(n)})
	case swarm.TurnEnded:
		body(swarm.CallEnd{ID: string(turn), Status: []swarm.CallState{swarm.CallOK, swarm.CallFailed, swarm.CallCut}[random.IntN(3)], Reason: fmt.Sprint("reason ", n), Output: swarm.HashOf(fmt.Append(nil, n))})
	case swarm.AgentEnded:
		body(swarm.AgentEnd{Reason: fmt.Sprint("because of ", n)})
	case swarm.ApprovalAsked:
		body(swarm.Approval{ID: fmt.Sprint(n % 7), Growth: &swarm.GrowthRequest{Edge: &swarm.EdgeRequest{From: who, To: "tester"}}})
	case swarm.ApprovalAnswered:
		body(swarm.ApprovalAnswer{ID: fmt.Sprint(n % 7), OK: n%2 == 0})
	}
	return e
}

// peek reads an unexported field.
func peek(v reflect.Value) any {
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem().Interface()
}
