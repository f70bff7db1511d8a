package replay

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"swarm"
)

// bodies holds the type of the body of each kind. A kind that is missing here has no body.
var bodies = map[swarm.EventKind]any{
	swarm.RunStarted: swarm.RunStart{}, swarm.RunOwned: swarm.Ownership{}, swarm.RunInterrupted: swarm.Reason{}, swarm.RunEnded: swarm.RunEnd{},
	swarm.RunPausing: nil, swarm.RunPaused: nil, swarm.RunUnpaused: nil, swarm.Tick: nil, swarm.AgentRestarted: nil, swarm.AgentPaused: nil, swarm.AgentResumed: nil,
	swarm.PlanAdded: swarm.Plan{}, swarm.IterationStarted: swarm.Iteration{}, swarm.TaskStarted: swarm.Iteration{}, swarm.TaskRetrying: swarm.Retry{}, swarm.LimitReached: swarm.Limit{}, swarm.LimitEnded: swarm.Limit{}, swarm.TaskBlocked: swarm.Reason{},
	swarm.TaskCompleted: swarm.TaskEnd{}, swarm.TaskFailed: swarm.TaskEnd{}, swarm.TaskSkipped: swarm.TaskEnd{}, swarm.TaskCancelled: swarm.TaskEnd{}, swarm.BudgetSpent: swarm.Reason{},
	swarm.TurnStarted: swarm.TurnStart{}, swarm.TurnReserved: swarm.Usage{}, swarm.TurnTool: swarm.ToolUse{}, swarm.TurnFile: swarm.FileChange{}, swarm.TurnSession: swarm.TurnInSession{},
	swarm.TurnEnded: swarm.CallEnd{}, swarm.TurnCarriedOver: swarm.CallEnd{}, swarm.ActionStarted: swarm.ActionStart{}, swarm.ActionEnded: swarm.CallEnd{}, swarm.CallEnded: swarm.CallEnd{}, swarm.LoopEnded: swarm.CallEnd{}, swarm.Control: swarm.ControlCommand{},
	swarm.HandoffStored: swarm.StoredEnvelope{}, swarm.HandoffConsumed: swarm.Consumption{}, swarm.HandoffInjected: swarm.Injection{}, swarm.HandoffReturned: swarm.Return{},
	swarm.ReplyOverdue: swarm.Overdue{}, swarm.AgentEnded: swarm.AgentEnd{}, swarm.WaitBegan: swarm.AgentWait{}, swarm.WaitEnded: swarm.AgentWait{}, swarm.ApprovalAsked: swarm.Approval{},
	swarm.ApprovalAnswered: swarm.ApprovalAnswer{}, swarm.ArtifactStored: swarm.Artifact{}, swarm.TopicPublished: swarm.TopicEntry{}, swarm.TreeRecorded: swarm.Snapshot{},
	swarm.DeskOpened: swarm.DeskOpening{}, swarm.DeskChanged: swarm.DeskStatus{}, swarm.DeskCollected: swarm.DeskCollection{}, swarm.Notice: swarm.Reason{},
	swarm.CheckStarted: swarm.GoalCheck{}, swarm.CheckEnded: swarm.CallEnd{},
}

// renumbered lists the fields that hold numbers of events. Other fields of the same type are
// counts, sizes and fences.
var renumbered = []string{"TurnStart.Inputs.From", "TurnStart.Inputs.Upto", "TurnStart.Topics", "TurnStart.Rules", "TurnStart.Outputs",
	"CallEnd.Inputs.From", "CallEnd.Inputs.Upto", "CallEnd.Wrote", "CallEnd.Shown", "StoredEnvelope.Read", "Consumption.Inputs.From", "Consumption.Inputs.Upto", "Injection.Inputs.From", "Injection.Inputs.Upto"}

var counts = []string{"Ownership.Fence", "TurnStart.Owner", "CallEnd.Bytes", "Artifact.Bytes", "Artifact.Tokens", "DeskCollection.Files.Bytes",
	"CallEnd.Exchange.Bytes", "CallEnd.Exchange.Line", "CallEnd.Exchange.Results", "TurnStart.History.Tokens"}

// This test fails when a body gains a number: [player.renumber] has to know whether it is the
// number of an event.
func TestAllNumbersOfEventsAreRenumbered(t *testing.T) {
	var found []string
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ == reflect.TypeFor[swarm.Usage]() || typ == reflect.TypeFor[swarm.Plan]() {
			return // amounts, and what people wrote
		}
		switch typ.Kind() {
		case reflect.Int64:
			if typ.Name() == "int64" && !slices.Contains(found, path) {
				found = append(found, path)
			}
		case reflect.Struct:
			for i := range typ.NumField() {
				if f := typ.Field(i); f.IsExported() {
					walk(path+"."+f.Name, f.Type)
				}
			}
		}
	}
	for _, kind := range swarm.EventKinds {
		body, known := bodies[kind]
		if !known {
			t.Errorf("the body of %s is not looked at", kind)
		}
		if body != nil {
			walk(reflect.TypeOf(body).Name(), reflect.TypeOf(body))
		}
	}
	want := slices.Concat(renumbered, counts)
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("bodies have the numbers\n%s\nand known are\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

// An event without a number in its body is copied byte by byte.
func TestNumbers(t *testing.T) {
	p := &player{new: copier{pairs: []pair{{2, 20}, {5, 50}}}}
	for _, c := range []struct{ kind, key, data, want, wantKey string }{
		{"handoff_consumed", "used:a:2", `{"from":2,"upto":5,"turn":"a/1/1"}`, `{"from":20,"upto":50,"turn":"a/1/1"}`, "used:a:20"},
		{"handoff_consumed", "used:a:0", `{"upto":4}`, `{"upto":20}`, "used:a:0"},
		{"handoff_injected", "injected:t:1:2:5:ls", `{"from":2,"upto":5,"start":1,"tool":"ls","text":"","bytes":0}`, `{"from":20,"upto":50,"start":1,"tool":"ls","text":"","bytes":0}`, "injected:t:1:20:50:ls"},
		{"turn_ended", "end:t", `{"id":"t","call":"","status":"ok","inputs":{"upto":5},"wrote":9}`, `{"id":"t","call":"","status":"ok","inputs":{"upto":50},"wrote":50}`, "end:t"},
		{"turn_tool", "", `{"name":"x","output":"{\"seq\":5}"}`, `{"name":"x","output":"{\"seq\":5}"}`, ""},
	} {
		got, err := p.renumber(swarm.Event{Kind: swarm.EventKind(c.kind), Agent: "a", Turn: "t", Key: c.key, Data: []byte(c.data)})
		if err != nil || string(got.Data) != c.want || got.Key != c.wantKey {
			t.Errorf("%s became %s under %s: %v", c.data, got.Data, got.Key, err)
		}
	}
}

// Facts that different records cause have different keys, also if a record has no number in the new
// log.
func TestKeysOfFactsStayDifferent(t *testing.T) {
	p := &player{new: copier{pairs: []pair{{2, 20}, {5, 50}}}}
	for key, want := range map[string]string{
		"run_pausing:2": "run_pausing:20", "run_pausing:3": "run_pausing+1:20", "run_pausing:4": "run_pausing+2:20", "run_pausing:5": "run_pausing:50",
		"run_pausing:1": "run_pausing+1:0",
	} {
		if got, err := p.renumberKey(&swarm.Event{Kind: swarm.RunPausing, Key: key}); err != nil || got != want {
			t.Errorf("%s became %s, %v, and not %s", key, got, err, want)
		}
	}
}
