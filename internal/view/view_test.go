package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/plan"
)

func fold(t testing.TB, r *Run, events []swarm.Event) *Run {
	t.Helper()
	for i := range events {
		if err := r.Apply(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// The view agrees with the loop: whenever the log has all that the loop knows, both have the same
// state of every task.
func TestFollowsTheLoop(t *testing.T) {
	for seed := range uint64(60) {
		s := newSim(t, seed, somePlans(seed)...)
		r, seen := New("r1"), 0
		s.rest = func() {
			fold(t, r, s.events[seen:])
			seen = len(s.events)
			for i := range s.sched.Len() {
				got, want := r.At(i), s.sched.Waits(i)
				if st := s.sched.Status(i); got.Status != st && !(st == swarm.Pending && got.Status == swarm.Waiting && want != nil) {
					t.Fatalf("seed %d, event %d: %s is %s, the loop says %s", seed, seen, got.Name, got.Status, st)
				}
				if !slices.EqualFunc(got.Waits, want, func(a, b plan.Wait) bool { return reflect.DeepEqual(a, b) }) {
					t.Fatalf("seed %d, event %d: %s waits for %v, the loop says %v", seed, seen, got.Name, got.Waits, want)
				}
				if got.Iteration != s.sched.Iteration(i) || got.Iterations != s.sched.Iterations(i) {
					t.Fatalf("seed %d: %s is in iteration %d of %d", seed, got.Name, got.Iteration, got.Iterations)
				}
			}
		}
		fold(t, r, s.run()[seen:])
		cut := swarm.Usage{Calls: r.Usage.CutCalls, CutCalls: r.Usage.CutCalls} // the loop does not know of turns that a crash has cut
		if r.Usage.Minus(cut) != s.usage || r.Status != swarm.Completed || r.Ended != s.now {
			t.Fatalf("seed %d: ended as %+v with %+v, want %+v", seed, r.Head, r.Usage, s.usage)
		}
	}
}

// A fold that is stored and restored after any event gives the same picture and the same stored
// fold as one that never was.
func TestStoredAnywhere(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		events := newSim(t, seed, somePlans(seed)...).run()
		whole := New("r1")
		var pictures []Picture
		for i := range events {
			fold(t, whole, events[i:i+1])
			pictures = append(pictures, whole.Picture())
		}
		want := whole.Marshal()
		for k := range events {
			stored := fold(t, New("r1"), events[:k]).Marshal()
			r, err := Unmarshal(stored)
			if err != nil {
				t.Fatal(err)
			}
			if again := r.Marshal(); !bytes.Equal(stored, again) {
				t.Fatalf("seed %d: stored after event %d as\n%s\nand after reading it as\n%s", seed, k, stored, again)
			}
			for i := k; i < len(events); i++ {
				fold(t, r, events[i:i+1])
				if i >= k+8 && i < len(events)-1 { // a difference that lasts shows in the end
					continue
				}
				if got := r.Picture(); !reflect.DeepEqual(got, pictures[i]) {
					t.Fatalf("seed %d: stored after event %d, the picture after event %d (%s) is\n%+v\nwant\n%+v", seed, k, i+1, events[i].Kind, got, pictures[i])
				}
			}
			if got := r.Marshal(); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: stored after event %d, it ends as\n%s\nwant\n%s", seed, k, got, want)
			}
		}
	}
}

func TestStoredSizeGoesByThePlan(t *testing.T) {
	size := func(iterations int) int {
		s := newSim(t, 1, chain(10, iterations))
		s.calm = true
		return len(fold(t, New("r1"), s.run()).Marshal())
	}
	if few, many := size(2), size(200); many > few+few/10 {
		t.Errorf("the stored fold of 2 iterations has %d bytes, of 200 iterations %d", few, many)
	}
}

// chain is a plan in which each task depends on the one before.
func chain(tasks, iterations int) *swarm.Plan {
	p := &swarm.Plan{Kind: swarm.PipelineRun, Name: "main", MaxParallel: 16, Groups: []swarm.Group{{Iterations: iterations}}}
	for i := range tasks {
		name := fmt.Sprint("task-", i)
		t := swarm.Task{Name: name, Agent: name, Prompt: swarm.HashOf([]byte(name))}
		if i > 0 {
			t.DependsOn = []swarm.Dependency{{Task: fmt.Sprint("task-", i-1), Condition: swarm.OnAny}}
		}
		p.Tasks = append(p.Tasks, t)
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "sh"})
	}
	return p
}

func TestOldStoredFoldsAreRefused(t *testing.T) {
	for _, stored := range []string{"", "{", `{"version":0}`, `{"version":999}`, `{"version":1,"groups":[{"iteration":5,"iterations":2}]}`,
		`{"version":1,"tasks":[{"name":"a","group":3}]}`, `{"version":1,"groups":[{"iteration":1,"iterations":1}],"tasks":[{"name":"a"},{"name":"a"}]}`} {
		if r, err := Unmarshal([]byte(stored)); err == nil || swarm.KindOf(err) != swarm.Storage {
			t.Errorf("%q gave %v, %v", stored, r, err)
		}
	}
}

// A script is a small run written by hand: plan → code → check, two iterations.
func script(t testing.TB) *sim {
	p := &swarm.Plan{Name: "main", Groups: []swarm.Group{{Iterations: 2}}, Agents: []swarm.Agent{{Name: "planner", Provider: "sh"}, {Name: "coder", Provider: "claude"}, {Name: "check", Provider: "sh"}},
		Tasks: []swarm.Task{{Name: "plan", Agent: "planner"},
			{Name: "code", Agent: "coder", DependsOn: []swarm.Dependency{{Task: "plan", Condition: swarm.OnAny}}},
			{Name: "check", Agent: "check", DependsOn: []swarm.Dependency{{Task: "code", Condition: swarm.OnSuccess}}}}}
	s := newSim(t, 1, p)
	s.calm = true
	return s
}

func TestPicture(t *testing.T) {
	s := script(t)
	s.advance()
	r := fold(t, New("r1"), s.events)
	p := r.Picture()
	var got []string
	for _, task := range p.Tasks {
		got = append(got, fmt.Sprintf("%s %s %v %d/%d", task.Name, task.Status, task.Waits, task.Iteration, task.Iterations))
	}
	for _, a := range p.Agents {
		got = append(got, fmt.Sprintf("@%s %s %s", a.Name, a.Status, a.Task))
	}
	want := []string{"plan running [] 1/2", "code waiting [plan] 1/2", "check waiting [code] 1/2", "@planner running plan", "@coder waiting code", "@check waiting check"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if p.ID != "r1" || p.Name != "main" || p.Status != swarm.Running || p.Owner.PID != 7 {
		t.Errorf("head: %+v", p.Head)
	}
	if left := p.Abandoned("its process is gone"); left.Status != swarm.Interrupted || left.Tasks[0].Status != swarm.Pending || left.Agents[0].Status != swarm.Idle || p.Tasks[0].Status != swarm.Running {
		t.Errorf("abandoned: %+v, and what it was made from: %+v", left, p)
	}
}

func TestOutputsAndAttempts(t *testing.T) {
	s := script(t)
	s.advance()
	i := s.running[0]
	out := func(text string, status swarm.CallState, kind swarm.ErrorKind, turn swarm.TurnID) {
		s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: "plan", Agent: "planner", Turn: turn},
			swarm.CallEnd{ID: string(turn), Status: status, Kind: kind, Reason: "no \"PASS\"", Output: swarm.HashOf([]byte(text)), Bytes: int64(len(text)), Usage: swarm.Usage{Calls: 1, InputTokens: 10}})
	}
	out("good", swarm.CallOK, "", "plan/1/1")
	s.sched.Ended(i, swarm.Completed)
	s.tellEnd(i, swarm.TaskCompleted, "")
	s.tell(swarm.Event{Kind: swarm.IterationStarted}, swarm.Iteration{Iteration: 2, Of: 2})
	s.tell(swarm.Event{Kind: swarm.TaskStarted, Task: "plan"}, swarm.Iteration{Iteration: 2, Of: 2})
	s.tell(swarm.Event{Kind: swarm.TurnStarted, Task: "plan", Turn: "plan/2/1"}, swarm.TurnStart{Iteration: 2, Attempt: 1, Start: 1, Provider: "sh"})
	out("bad", swarm.CallFailed, swarm.Unexpected, "plan/2/1")
	s.tell(swarm.Event{Kind: swarm.TaskRetrying, Task: "plan", Turn: "plan/2/1"}, swarm.Retry{Iteration: 2, Attempt: 1, Reason: "no \"PASS\"", After: 2 * time.Second})
	r := fold(t, New("r1"), s.events)
	got, _ := r.Task("plan")
	if got.Output != (Output{swarm.HashOf([]byte("bad")), "plan/2/1", 3}) || got.Good != (Output{swarm.HashOf([]byte("good")), "plan/1/1", 4}) {
		t.Errorf("outputs: %+v, good %+v", got.Output, got.Good)
	}
	if got.Status != swarm.Waiting || len(got.Waits) != 1 || got.Waits[0].For != plan.ForRetry || got.Waits[0].Until != s.now.Add(2*time.Second) || got.Reason != `no "PASS"` {
		t.Errorf("retrying: %+v", got)
	}
	if got.Iteration != 2 || got.Attempt != 1 || got.Usage.Calls != 2 || got.Usage.InputTokens != 20 || got.Busy != 2*time.Millisecond {
		t.Errorf("counts: %+v", got)
	}
}

func TestWhy(t *testing.T) {
	s := script(t)
	s.advance()
	r := fold(t, New("r1"), s.events)
	for _, name := range []string{"check", "@check"} {
		chain, err := r.Why(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := chain.String(), "check waits for code\ncode waits for plan\nplan is running\n"; got != want || chain.Path().String() != "check → code → plan" {
			t.Errorf("%s: %q, %s", name, got, chain.Path())
		}
	}
	if _, err := r.Why("chek"); err == nil || !strings.Contains(err.(*swarm.Error).Hint, `"check"`) {
		t.Errorf("a wrong name: %v", err)
	}
}

// A turn at a desk waits for an external worker, until it ends. A desk that is archived is shown where it is.
func TestOutsideWorker(t *testing.T) {
	s := script(t)
	s.advance()
	about := func(kind swarm.EventKind, turn swarm.TurnID) swarm.Event {
		return swarm.Event{Kind: kind, Task: "plan", Agent: "planner", Turn: turn}
	}
	until := time.Unix(1000, 0).UTC()
	s.tell(about(swarm.TurnStarted, "plan/1/1"), swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1})
	s.tell(about(swarm.DeskOpened, "plan/1/1"), swarm.DeskOpening{Dir: "/desks/plan", Worker: swarm.ExternalWorker, Until: until})
	r, err := Unmarshal(fold(t, New("r1"), s.events).Marshal())
	if err != nil {
		t.Fatal(err)
	}
	waits := func() []Wait { task, _ := r.Task("plan"); return task.Waits }
	if w := waits(); len(w) != 1 || w[0].For != "worker" || w[0].Reason != "/desks/plan" || !w[0].Until.Equal(until) || w[0].Since.IsZero() {
		t.Errorf("it waits for %+v", w)
	}
	gone := r.Picture().Abandoned("gone")
	if w := gone.Tasks[0].Waits; len(w) != 0 {
		t.Errorf("nobody drives it, and it waits for %+v", w)
	}
	s.tell(about(swarm.TurnEnded, "plan/1/1"), swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.TimedOut})
	s.tell(about(swarm.TurnStarted, "plan/1/2"), swarm.TurnStart{Iteration: 1, Attempt: 2, Start: 1})
	fold(t, r, s.events)
	if w := waits(); len(w) != 0 {
		t.Errorf("another turn has started, and it waits for %+v", w)
	}
	s.tell(about(swarm.DeskOpened, "plan/1/2"), swarm.DeskOpening{Dir: "/desks/plan", Worker: swarm.CommandWorker, Archived: "/desks/_archive/plan.1"})
	fold(t, r, s.events)
	if w := waits(); len(w) != 0 {
		t.Errorf("we have started the worker, and it waits for %+v", w)
	}
	c := NewCollector()
	for i := range s.events {
		if err := c.Take(&s.events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := c.Turns[0].Desk.Dir, c.Turns[1].Desk.Dir; a != "/desks/_archive/plan.1" || b != "/desks/plan" {
		t.Errorf("the desks are %s and %s", a, b)
	}
}

// A run that is paused, interrupted and resumed by another process is still paused.
func TestPauseOutlastsAnInterruption(t *testing.T) {
	s := script(t)
	s.tell(swarm.Event{Kind: swarm.RunPausing}, nil)
	s.tell(swarm.Event{Kind: swarm.RunPaused}, nil)
	s.tell(swarm.Event{Kind: swarm.RunInterrupted}, swarm.Reason{Reason: "Ctrl-C"})
	r := fold(t, New("r1"), s.events)
	if r.Status != swarm.Interrupted || r.Reason != "Ctrl-C" {
		t.Errorf("left: %s, %q", r.Status, r.Reason)
	}
	s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{PID: 9, Fence: 2})
	fold(t, r, s.events)
	if plan, _ := r.Task("plan"); r.Status != swarm.Paused || r.Reason != "" || plan.Waits[0].String() != "the run to be resumed" {
		t.Errorf("taken up: %s, %q, %+v", r.Status, r.Reason, plan)
	}
	s.tell(swarm.Event{Kind: swarm.Control}, swarm.ControlCommand{Command: swarm.CommandCancel})
	if fold(t, r, s.events); r.Status != swarm.Running {
		t.Errorf("cancelled while paused: %s", r.Status)
	}
}

func TestBadEvents(t *testing.T) {
	r := fold(t, New("r1"), script(t).events)
	next := r.Seq + 1
	if err := r.Apply(&swarm.Event{Seq: next + 1, Kind: swarm.Tick}); err == nil || r.Seq != next-1 {
		t.Errorf("a hole: %v, and the fold is at %d", err, r.Seq)
	}
	for _, e := range []swarm.Event{{Kind: swarm.TaskStarted, Task: "nosuch"}, {Kind: swarm.TurnEnded, Task: "plan", Data: []byte(`{"status":7}`)},
		{Kind: swarm.TurnStarted, Task: "plan", Data: []byte(`{"attempt":`)}, {Kind: swarm.IterationStarted, Data: []byte(`{"iteration":2,"group":9}`)},
		{Kind: swarm.IterationStarted, Data: []byte(`{"iteration":4}`)}, {Kind: swarm.PlanAdded, Data: []byte(`{"tasks":[{"name":"plan"}]}`)}, {Kind: swarm.RunEnded}} {
		e.Seq = r.Seq + 1
		if err := r.Apply(&e); err == nil || !strings.Contains(err.Error(), string(e.Kind)) || r.Seq != e.Seq {
			t.Errorf("%s %s: %v", e.Kind, e.Data, err)
		}
	}
	if err := r.Apply(&swarm.Event{Seq: 1, Kind: swarm.RunEnded}); err != nil || r.Status != swarm.Running {
		t.Errorf("an old event again: %v, %s", err, r.Status)
	}
}

func TestCollect(t *testing.T) {
	s := script(t)
	s.tell(swarm.Event{Kind: swarm.HandoffStored, To: "@planner"}, swarm.Envelope{Kind: swarm.Handoff, ID: "e1", FromNodeID: "boss", ToNodeID: "planner"})
	mail := int64(len(s.events))
	s.advance()
	s.tell(swarm.Event{Kind: swarm.TurnTool, Task: "plan", Turn: "plan/1/1"}, swarm.ToolUse{Name: "Read"})
	s.tell(swarm.Event{Kind: swarm.TurnStarted, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 2, Provider: "sh", Prompt: "p", Spans: []swarm.Span{{From: "ids", End: 4}}, Inputs: swarm.Inputs{Upto: mail}})
	s.tell(swarm.Event{Kind: swarm.TurnTool, Task: "plan", Turn: "plan/1/1"}, swarm.ToolUse{Name: "Write"})
	s.tell(swarm.Event{Kind: swarm.TurnFile, Task: "plan", Turn: "plan/1/1"}, swarm.FileChange{Path: "a.go"})
	s.tell(swarm.Event{Kind: swarm.HandoffStored, To: "@boss", Agent: "planner", Turn: "plan/1/1"}, swarm.Envelope{Kind: swarm.Handoff, ID: "e2", FromNodeID: "planner", ToNodeID: "boss"})
	s.tell(swarm.Event{Kind: swarm.HandoffStored, To: "@planner", Agent: "boss"}, swarm.Envelope{Kind: swarm.Handoff, ID: "e3", FromNodeID: "boss", ToNodeID: "planner"})
	byTool := int64(len(s.events))
	s.tell(swarm.Event{Kind: swarm.HandoffConsumed, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.Inputs{Upto: byTool})
	s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Unexpected, Reason: "no", Output: "o",
		Bytes: 9, Verdicts: []swarm.Verdict{{Part: "file"}}, Inputs: swarm.Inputs{Upto: byTool}})
	s.tell(swarm.Event{Kind: swarm.RunEnded}, swarm.RunEnd{Status: swarm.Failed})
	d, err := Collect(func(yield func(*swarm.Event, error) bool) {
		for _, e := range s.events {
			if !yield(&e, nil) {
				return
			}
		}
	})
	if err != nil || len(d.Turns) != 1 {
		t.Fatal(d, err)
	}
	turn := d.Turns[0]
	if turn.ID != "plan/1/1" || turn.Starts != 2 || !turn.Retried || turn.Status != swarm.Failed || turn.Took(time.Time{}) != 6*time.Millisecond ||
		len(turn.Tools) != 1 || turn.Tools[0].Name != "Write" || len(turn.Verdicts) != 1 || turn.Output.Bytes != 9 || len(turn.Spans) != 1 {
		t.Errorf("turn: %+v", turn)
	}
	if len(turn.Files) != 1 || turn.Files[0] != "a.go" {
		t.Errorf("files: %v", turn.Files)
	}
	for i, want := range []Receipt{
		{Seq: mail, State: MailAnswered, Turn: "plan/1/1", Prompt: "p", Answer: "e2"},
		{Seq: byTool - 1, State: MailUndeliverable, Reason: "run ended"},
		{Seq: byTool, State: MailInjected, Turn: "plan/1/1"}, // it was read by a tool, and stands in no prompt
	} {
		got := d.Envelopes[i].Receipt
		if got.Stored.IsZero() || got.Injected.IsZero() != (want.Turn == "") || got.Answered.IsZero() != (want.Answer == "") || got.Returned.IsZero() != (want.Reason == "") {
			t.Errorf("times of receipt %d: %+v", i, got)
		}
		if got.Stored, got.Injected, got.Answered, got.Returned = (time.Time{}), (time.Time{}), (time.Time{}), (time.Time{}); got != want {
			t.Errorf("receipt %d: %+v, want %+v", i, got, want)
		}
	}
	if _, err := Collect(func(yield func(*swarm.Event, error) bool) {
		yield(&swarm.Event{Kind: swarm.TurnEnded, Data: []byte("{")}, nil)
	}); err == nil {
		t.Error("a broken event was taken")
	}
}

func TestApprovals(t *testing.T) {
	s := script(t)
	s.tell(swarm.Event{Kind: swarm.TaskStarted, Task: "plan", Agent: "planner"}, swarm.Iteration{Iteration: 1, Of: 1})
	s.tell(swarm.Event{Kind: swarm.TurnStarted, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1})
	ask := func(id string) {
		s.tell(swarm.Event{Kind: swarm.ApprovalAsked, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.Approval{ID: id, What: "use Bash", Tool: "Bash", Input: json.RawMessage(`{"command":"make"}`)})
	}
	stands := func(want swarm.Status, open int) {
		t.Helper()
		p := fold(t, New("r1"), s.events).Picture()
		if p.Agents[0].Status != want || len(p.Approvals) != open {
			t.Errorf("@planner is %s with %d approvals, want %s with %d", p.Agents[0].Status, len(p.Approvals), want, open)
		}
	}
	ask("a1")
	stands(swarm.Blocked, 1)
	p := fold(t, New("r1"), s.events).Picture()
	if task := p.Tasks[0]; task.Status != swarm.Running || len(task.Waits) != 1 || task.Waits[0].For != plan.ForPerson {
		t.Errorf("the task is %s and waits for %v", task.Status, task.Waits)
	}
	if text := p.Approvals[0].Text; text != "run make" {
		t.Errorf("the approval says %q", text)
	}
	if task := p.Abandoned("gone").Tasks[0]; len(task.Waits) != 1 {
		t.Errorf("of a run that nobody drives, the task waits for %v", task.Waits)
	}
	if chain, err := fold(t, New("r1"), s.events).Why("plan"); err != nil || !strings.Contains(chain.String(), "a person: may it run make? swarm approve a1") {
		t.Errorf("why: %s, %v", chain, err)
	}
	s.tell(swarm.Event{Kind: swarm.ApprovalAnswered, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.ApprovalAnswer{ID: "a1", OK: true})
	stands(swarm.Running, 0)
	ask("a2")
	s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: "plan", Agent: "planner", Turn: "plan/1/1"}, swarm.CallEnd{Status: swarm.CallCut, Kind: swarm.CutToSpeak})
	if p := fold(t, New("r1"), s.events).Picture(); len(p.Approvals) != 0 {
		t.Errorf("the turn has ended, and still asks: %+v", p.Approvals)
	}
}

func TestReportShape(t *testing.T) {
	p := fold(t, New("r1"), script(t).events).Picture()
	b, err := json.Marshal(Report{p, Details{Turns: []Turn{}, Envelopes: []Envelope{}, Topics: []Topic{}, Artifacts: []json.RawMessage{}}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"run", "tasks", "agents", "edges", "turns", "envelopes", "topics", "artifacts", "usage"} {
		if v, ok := got[key]; !ok || string(v) == "null" {
			t.Errorf("%s is %s", key, v)
		}
		delete(got, key)
	}
	if len(got) > 0 {
		t.Errorf("more than the contract has: %v", got)
	}
}

// members finds the same as encoding/json.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{ "a" : "x\"y\\" , "b":{"c":[1,"]"]}, "d":null}`, `{"a":"\\\""}`, `{"a"`, `{"a":}`, `[`, ``, `{"reason":"é\u00e9"}`, "{\"\":\"0\xa9\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := members{rest: data}
		got := map[string]string{}
		for m.next() {
			got[string(m.key)] = string(m.value)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil {
			return // what was never written by us only must not be fatal
		}
		if m.bad {
			t.Fatalf("%q was refused", data)
		}
		for k, v := range want {
			raw, ok := got[k]
			if ok && raw != string(v) {
				t.Fatalf("%q: %q is %q, want %q", data, k, raw, v)
			}
			var s, s2 string
			if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' && ok && (!set(&s2, []byte(raw)) || s != s2) {
				t.Fatalf("%q: %q is read as %q, want %q", data, raw, s2, s)
			}
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(fold(f, New("r1"), newSim(f, 3, somePlans(3)...).run()[:60]).Marshal())
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := Unmarshal(b); err == nil {
			r.Picture()
			r.Marshal()
		}
	})
}

// A turn that is cut with its process counts with what it has reserved, in the task, its agent and the
// run: while no process drives the run, and after the next one does, once. A turn that ends counts
// with what it has used.
func TestCutTurnsAreInTheUsage(t *testing.T) {
	for name, reserves := range map[string]swarm.Usage{"with a budget": {Calls: 1, InputTokens: 100, OutputTokens: 50}, "without": {}} {
		s := newSim(t, 1, &swarm.Plan{Kind: swarm.PipelineRun, Groups: []swarm.Group{{Iterations: 1}}, Agents: []swarm.Agent{{Name: "a"}}, Tasks: []swarm.Task{{Name: "a", Agent: "a"}}})
		s.tell(swarm.Event{Kind: swarm.TaskStarted, Task: "a", Agent: "a"}, swarm.Iteration{Iteration: 1})
		start := swarm.Event{Kind: swarm.TurnStarted, Task: "a", Agent: "a", Turn: "a/1/1"}
		s.tell(start, swarm.TurnStart{Attempt: 1, Start: 1, Reserves: reserves})
		want := swarm.Usage{Calls: 1, CutCalls: 1}
		if reserves.Calls > 0 {
			reserves.OutputTokens = 70
			s.tell(swarm.Event{Kind: swarm.TurnReserved, Task: "a", Agent: "a", Turn: "a/1/1"}, reserves)
			want.InputTokens, want.OutputTokens, want.Estimated = 100, 70, true
		}
		check := func(when string, p Picture, want swarm.Usage) {
			t.Helper()
			if p.Usage != want || p.Tasks[0].Usage != want || p.Agents[0].Usage != want {
				t.Errorf("%s, %s: %+v, %+v, %+v, want %+v", name, when, p.Usage, p.Tasks[0].Usage, p.Agents[0].Usage, want)
			}
		}
		r := fold(t, New("r1"), s.events)
		check("while it runs", r.Picture(), swarm.Usage{})
		check("without a driver", r.Picture().Abandoned("gone"), want)
		s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{Fence: 2})
		s.tell(start, swarm.TurnStart{Attempt: 1, Start: 2, Reserves: reserves})
		check("taken over", fold(t, New("r1"), s.events).Picture(), want)
		used := swarm.Usage{Calls: 1, InputTokens: 7}
		s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: "a", Agent: "a", Turn: "a/1/1"}, swarm.CallEnd{Status: swarm.CallOK, Usage: used})
		check("at its end", fold(t, New("r1"), s.events).Picture(), want.Plus(used))
		check("at its end", fold(t, New("r1"), s.events).Picture().Abandoned("gone"), want.Plus(used))
	}
}

// The swarm of a cut turn goes on with the next start, and its end counts all that it has used. If
// the turn is refused instead, what the swarm had reserved counts, once. A refused start that no crash
// cut has used nothing.
func TestACutSwarmIsInTheUsage(t *testing.T) {
	reserves, used := swarm.Usage{Calls: 5, InputTokens: 100}, swarm.Usage{Calls: 6, InputTokens: 80}
	for name, c := range map[string]struct {
		owned, again bool
		end          swarm.CallEnd
		want         swarm.Usage
	}{
		"goes on":      {true, true, swarm.CallEnd{Status: swarm.CallOK, Usage: used}, used},
		"is cancelled": {true, false, swarm.CallEnd{Status: swarm.CallCut, Kind: swarm.CutByCancel, Unbegun: true}, reserves.AsCut()},
		"has no room":  {false, false, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.OverBudget, Unbegun: true}, swarm.Usage{}},
	} {
		s := newSim(t, 1, &swarm.Plan{Kind: swarm.PipelineRun, Groups: []swarm.Group{{Iterations: 1}}, Agents: []swarm.Agent{{Name: "a"}},
			Tasks: []swarm.Task{{Name: "a", Agent: "a", Swarm: &swarm.SwarmTask{}}}})
		s.tell(swarm.Event{Kind: swarm.TaskStarted, Task: "a", Agent: "a"}, swarm.Iteration{Iteration: 1})
		start := swarm.Event{Kind: swarm.TurnStarted, Task: "a", Agent: "a", Turn: "a/1/1"}
		s.tell(start, swarm.TurnStart{Attempt: 1, Start: 1, Reserves: reserves})
		if c.owned {
			s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{Fence: 2})
		}
		if c.again {
			s.tell(start, swarm.TurnStart{Attempt: 1, Start: 2, Reserves: reserves})
		}
		s.tell(swarm.Event{Kind: swarm.TurnEnded, Task: "a", Agent: "a", Turn: "a/1/1"}, c.end)
		if p := fold(t, New("r1"), s.events).Picture(); p.Usage != c.want || p.Tasks[0].Usage != c.want || p.Agents[0].Usage != c.want {
			t.Errorf("a swarm that %s: %+v, %+v, %+v, want %+v", name, p.Usage, p.Tasks[0].Usage, p.Agents[0].Usage, c.want)
		}
	}
}
