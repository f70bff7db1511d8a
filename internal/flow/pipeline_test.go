package flow_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/wording"
)

// A world answers a loop from a script: how each turn ends, and what else happens while it runs. It
// records what the loop does. Its clock advances only when the loop waits for nothing else.
type world struct {
	plan    swarm.Plan
	ends    map[string]string // by turn: "ok" (the default), "cut", "never", "crowded", "crowded late", "limit 3h", or an error kind
	before  map[string]string // by turn: control words that come right before its end, as "word target"
	after   map[string]string // and right after it
	now     time.Time
	seq     int64
	pending []flow.Signal
	told    []string
	reason  string        // of the run's end
	jump    time.Duration // passes before the next signal
}

func (w *world) Do(c flow.Call) (flow.Result, error) { return flow.Result{Plan: &w.plan}, nil }

func (w *world) Go(c flow.Call) error {
	w.told = append(w.told, strings.TrimSuffix("go "+c.ID+" by "+c.Provider, " by "))
	end := flow.Result{CallEnd: swarm.CallEnd{ID: c.ID, Status: swarm.CallOK, Usage: swarm.Usage{Calls: 1}}}
	switch how := w.ends[c.ID]; how {
	case "", "ok":
	case "never":
		w.control(w.before[c.ID])
		return nil
	case "cut":
		end.Status, end.Kind = swarm.CallCut, swarm.CutByCancel
	case "crowded": // the budget has no room for it, because of what others have reserved
		end.CallEnd = swarm.CallEnd{ID: c.ID, Status: swarm.CallFailed, Kind: swarm.OverBudget, Reason: "why", Unbegun: true, Crowded: true}
	case "crowded late": // the same for its first request
		end.CallEnd = swarm.CallEnd{ID: c.ID, Status: swarm.CallFailed, Kind: swarm.OverBudget, Reason: "why", Crowded: true}
	default:
		end.Status, end.Kind, end.Reason = swarm.CallFailed, swarm.ErrorKind(how), "why"
		if lasts, ok := strings.CutPrefix(how, "limit "); ok {
			wait, _ := time.ParseDuration(lasts)
			end.Kind, end.Limit = swarm.RateLimited, &swarm.Limit{Provider: cmp.Or(c.Provider, "p"), Until: w.now.Add(wait)}
		}
	}
	w.control(w.before[c.ID])
	w.signal(ended(end.CallEnd))
	w.control(w.after[c.ID])
	return nil
}

func (w *world) control(words string) {
	for _, line := range strings.Split(words, ",") {
		word, target, _ := strings.Cut(line, " ")
		agent, _, _ := strings.Cut(target, "/")
		switch word {
		case "":
		case "end":
			w.signal(ended(swarm.CallEnd{ID: target, Status: swarm.CallOK, Inputs: swarm.Inputs{Upto: w.seq}}))
		case "asked": // "asked w by coder"
			id, by, _ := strings.Cut(target, " by ")
			w.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.ApprovalAsked, Agent: by, Body: swarm.Approval{ID: id, Growth: &swarm.GrowthRequest{}}}})
		case "answered":
			w.signal(answered(target))
		case "denied":
			s := answered(target)
			s.Body = swarm.ApprovalAnswer{ID: target, Reason: "too dear"}
			w.signal(s)
		case "approved":
			s := answered(target)
			s.Body = swarm.ApprovalAnswer{ID: target, OK: true}
			w.signal(s)
		case "owned":
			w.signal(owned)
		case "mail": // a person writes to the agent
			w.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.HandoffStored, Body: plan.Mail{From: swarm.User, To: target, Wakes: true}}})
		case "waits":
			w.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.WaitBegan, Agent: agent, Turn: swarm.TurnID(target), Body: swarm.AgentWait{For: []string{"others"}}}})
		case "goes":
			w.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.WaitEnded, Agent: agent, Turn: swarm.TurnID(target), Body: swarm.AgentWait{}}})
		default:
			w.signal(said(swarm.Command(word), target))
		}
	}
}

// ended makes the signal of a turn's end.
func ended(end swarm.CallEnd) flow.Signal {
	agent, _, _ := strings.Cut(end.ID, "/")
	return flow.Signal{Fact: flow.Fact{Kind: swarm.TurnEnded, Agent: agent, Turn: swarm.TurnID(end.ID), Body: end}, Result: flow.Result{CallEnd: end}}
}

// answered makes the signal of an answer to a growth request.
func answered(id string) flow.Signal {
	return flow.Signal{Fact: flow.Fact{Kind: swarm.ApprovalAnswered, Body: swarm.ApprovalAnswer{ID: id}}}
}

// owned makes the signal that a new process drives the run.
var owned = flow.Signal{Fact: flow.Fact{Kind: swarm.RunOwned}}

// said makes the signal of a person's command.
func said(word swarm.Command, target string) flow.Signal {
	return flow.Signal{Fact: flow.Fact{Kind: swarm.Control, Body: swarm.ControlCommand{Command: word, Target: target}}}
}

func (w *world) signal(s flow.Signal) {
	w.seq++
	s.Seq = w.seq
	w.pending = append(w.pending, s)
}

func (w *world) Tell(f flow.Fact) error {
	line := string(f.Kind)
	switch {
	case f.Task != "":
		line += " " + f.Task
	case f.Kind == swarm.AgentPaused || f.Kind == swarm.AgentResumed:
		line += " " + f.Agent
	}
	switch b := f.Body.(type) {
	case swarm.TaskEnd:
		if b.Reason != "" {
			line += ": " + b.Reason
		}
	case swarm.Limit:
		line += fmt.Sprintf(" %s until %s", b.Provider, b.Until.UTC().Format("15:04"))
		if b.Use != "" {
			line += ", use " + b.Use
		}
		if b.Early {
			line += ", early"
		}
	case swarm.Retry:
		if b.Room {
			line += " for room"
			break
		}
		line += fmt.Sprintf(" after %s", b.After)
	case swarm.RunEnd:
		if w.reason = b.Reason; b.Why != nil {
			w.reason = wording.Text(*b.Why)
		}
		line += fmt.Sprintf(" %s %d", b.Status, b.Exit)
	case swarm.Iteration:
		line += fmt.Sprintf(" %d/%d", b.Iteration, b.Of)
	}
	w.told = append(w.told, line)
	return nil
}

var errStuck = errors.New("the loop waits for nothing")

func (w *world) Next(most time.Duration) (flow.Signal, error) {
	if len(w.pending) > 0 {
		s := w.pending[0]
		w.pending = w.pending[1:]
		w.now, w.jump = w.now.Add(w.jump), 0
		return s, nil
	}
	if most == 0 {
		return flow.Signal{}, errStuck
	}
	w.now = w.now.Add(most)
	return flow.Signal{Fact: flow.Fact{Kind: swarm.Tick}}, nil
}

func (w *world) Now() time.Time { return w.now }

func tasks(names string, change func(t *swarm.Task)) swarm.Plan {
	p := swarm.Plan{Groups: []swarm.Group{{Iterations: 1}}}
	for i, name := range strings.Fields(names) {
		t := swarm.Task{Name: name, Agent: name}
		if i > 0 {
			t.DependsOn = []swarm.Dependency{{Task: p.Tasks[i-1].Name, Condition: swarm.OnSuccess}}
		}
		if change != nil {
			change(&t)
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

func TestPipeline(t *testing.T) {
	retries := func(n int) func(*swarm.Task) { return func(t *swarm.Task) { t.Retries = n } }
	onFailure := func(f swarm.OnFailure) func(*swarm.Task) { return func(t *swarm.Task) { t.OnFailure = f } }
	abreast := tasks("a b c", nil) // a and b at once, then c
	abreast.Tasks[1].DependsOn = nil
	for _, c := range []struct {
		name  string
		world world
		want  string
	}{
		{"a chain", world{plan: tasks("a b", nil)}, `
			task_started a 1/1
			go a/1/1
			task_completed a
			task_started b 1/1
			go b/1/1
			task_completed b
			run_ended completed 0`},
		{"a failure skips what needs its success, and the run has failed", world{plan: tasks("a b", nil), ends: map[string]string{"a/1/1": "exited"}}, `
			task_started a 1/1
			go a/1/1
			task_failed a: why
			task_skipped b: a failed, and this runs on its success
			run_ended failed 1`},
		{"retries wait 1 s, 2 s, 4 s", world{plan: tasks("a", retries(3)), ends: map[string]string{"a/1/1": "exited", "a/1/2": "crashed", "a/1/3": "timed_out"}}, `
			task_started a 1/1
			go a/1/1
			task_retrying a after 1s
			go a/1/2
			task_retrying a after 2s
			go a/1/3
			task_retrying a after 4s
			go a/1/4
			task_completed a
			run_ended completed 0`},
		{"after expect they do not wait", world{plan: tasks("a", retries(1)), ends: map[string]string{"a/1/1": "unexpected", "a/1/2": "unexpected"}}, `
			task_started a 1/1
			go a/1/1
			task_retrying a after 0s
			go a/1/2
			task_failed a: why
			run_ended failed 1`},
		{"a cancelled turn is not tried again", world{plan: tasks("a b", retries(5)), ends: map[string]string{"a/1/1": "cut"}}, `
			task_started a 1/1
			go a/1/1
			task_cancelled a: it was cancelled
			task_skipped b: a was cancelled, and this runs on its success
			run_ended failed 1`},
		{"nor is one that failed before it could be cut", world{plan: tasks("a b", retries(5)), ends: map[string]string{"a/1/1": "exited"}, before: map[string]string{"a/1/1": "cancel a"}}, `
			task_started a 1/1
			go a/1/1
			task_cancelled a: it was cancelled
			task_skipped b: a was cancelled, and this runs on its success
			run_ended failed 1`},
		{"but what was completed before it could be cut is", world{plan: tasks("a b", retries(5)), before: map[string]string{"a/1/1": "cancel a"}}, `
			task_started a 1/1
			go a/1/1
			task_completed a
			task_started b 1/1
			go b/1/1
			task_completed b
			run_ended completed 0`},
		{"a turn that others leave no room for waits, and goes before others", world{plan: abreast, ends: map[string]string{"a/1/1": "crowded"}}, `
			task_started a 1/1
			go a/1/1
			task_started b 1/1
			go b/1/1
			task_retrying a for room
			task_completed b
			go a/1/2
			task_completed a
			task_started c 1/1
			go c/1/1
			task_completed c
			run_ended completed 0`},
		{"two that keep each other out go one after the other", world{plan: abreast, ends: map[string]string{"a/1/1": "crowded late", "b/1/1": "crowded late"}}, `
			task_started a 1/1
			go a/1/1
			task_started b 1/1
			go b/1/1
			task_retrying a for room
			task_retrying b for room
			go a/1/2
			task_completed a
			go b/1/2
			task_completed b
			task_started c 1/1
			go c/1/1
			task_completed c
			run_ended completed 0`},
		{"if no turn can make room, the budget is spent", world{plan: abreast, ends: map[string]string{"a/1/1": "crowded", "a/1/2": "crowded"}}, `
			task_started a 1/1
			go a/1/1
			task_started b 1/1
			go b/1/1
			task_retrying a for room
			task_completed b
			go a/1/2
			budget_spent
			task_cancelled a: budget
			task_cancelled c: budget
			run_ended failed 3`},
		{"one that was cancelled and is crowded out does not end the budget", world{plan: abreast, ends: map[string]string{"a/1/1": "crowded"}, before: map[string]string{"a/1/1": "cancel a"}}, `
			task_started a 1/1
			go a/1/1
			task_started b 1/1
			go b/1/1
			task_cancelled a: it was cancelled
			task_completed b
			task_started c 1/1
			go c/1/1
			task_completed c
			run_ended failed 1`},
		{"one that waits for room is cancelled", world{plan: abreast, ends: map[string]string{"a/1/1": "crowded"}, after: map[string]string{"a/1/1": "cancel a"}}, `
			task_started a 1/1
			go a/1/1
			task_started b 1/1
			go b/1/1
			task_retrying a for room
			task_cancelled a: it was cancelled
			task_completed b
			task_started c 1/1
			go c/1/1
			task_completed c
			run_ended failed 1`},
		{"of an older log, which does not say why there was no room, the budget is spent", world{plan: abreast, ends: map[string]string{"a/1/1": "over_budget"}}, `
			task_started a 1/1
			go a/1/1
			task_started b 1/1
			go b/1/1
			budget_spent
			task_cancelled a: budget
			task_cancelled c: budget
			task_completed b
			run_ended failed 3`},
		{"no budget is no failure to try again", world{plan: tasks("a b", retries(5)), ends: map[string]string{"a/1/1": "over_budget"}}, `
			task_started a 1/1
			go a/1/1
			budget_spent
			task_cancelled a: budget
			task_cancelled b: budget
			run_ended failed 3`},
		{"on_failure stop ends the run", world{plan: tasks("a b c", onFailure(swarm.FailStop)), ends: map[string]string{"b/1/1": "exited"}}, `
			task_started a 1/1
			go a/1/1
			task_completed a
			task_started b 1/1
			go b/1/1
			task_failed b: why
			task_cancelled c: b failed
			run_ended failed 1`},
		{"on_failure skip is no failure", world{plan: tasks("a b", onFailure(swarm.FailSkip)), ends: map[string]string{"a/1/1": "exited"}}, `
			task_started a 1/1
			go a/1/1
			task_skipped a: it failed: why
			task_skipped b: a was skipped, and this runs on its success
			run_ended completed 0`},
		{"on_failure escalate waits for a person, who has it tried again", world{plan: tasks("a", onFailure(swarm.FailEscalate)), ends: map[string]string{"a/1/1": "exited"}, after: map[string]string{"a/1/1": "retry a"}}, `
			task_started a 1/1
			go a/1/1
			task_blocked a
			approval_asked a
			go a/1/2
			task_completed a
			run_ended completed 0`},
		{"or approves that", world{plan: tasks("a", onFailure(swarm.FailEscalate)), ends: map[string]string{"a/1/1": "exited"}, after: map[string]string{"a/1/1": "approved a/1/1/other,approved a/1/1/retry"}}, `
			task_started a 1/1
			go a/1/1
			task_blocked a
			approval_asked a
			go a/1/2
			task_completed a
			run_ended completed 0`},
		{"or denies it", world{plan: tasks("a", onFailure(swarm.FailEscalate)), ends: map[string]string{"a/1/1": "exited"}, after: map[string]string{"a/1/1": "answered a/1/1/retry,approved a/1/1/retry"}}, `
			task_started a 1/1
			go a/1/1
			task_blocked a
			approval_asked a
			task_failed a: why
			run_ended failed 1`},
		{"or gives it up", world{plan: tasks("a", onFailure(swarm.FailFix)), ends: map[string]string{"a/1/1": "exited"}, after: map[string]string{"a/1/1": "cancel a"}}, `
			task_started a 1/1
			go a/1/1
			task_blocked a
			task_cancelled a: it was cancelled
			run_ended failed 1`},
		{"a failure mended by a later iteration is none", world{plan: func() swarm.Plan {
			p := tasks("a", nil)
			p.Groups[0].Iterations = 2
			return p
		}(), ends: map[string]string{"a/1/1": "exited"}}, `
			task_started a 1/2
			go a/1/1
			task_failed a: why
			iteration_started 2/2
			task_started a 2/2
			go a/2/1
			task_completed a
			run_ended completed 0`},
		{"cancelling the run cancels what has not begun", world{plan: tasks("a b", nil), after: map[string]string{"a/1/1": "cancel"}, ends: map[string]string{"b/1/1": "cut"}}, `
			task_started a 1/1
			go a/1/1
			task_completed a
			task_started b 1/1
			go b/1/1
			task_cancelled b: it was cancelled
			run_ended cancelled 1`},
		{"one agent is paused, which is told, and resumed", world{plan: tasks("a b", nil), before: map[string]string{"a/1/1": "pause b,pause b"}, after: map[string]string{"a/1/1": "resume b,resume b"}}, `
			task_started a 1/1
			go a/1/1
			agent_paused b
			task_completed a
			notice
			agent_resumed b
			task_started b 1/1
			go b/1/1
			task_completed b
			run_ended completed 0`},
		{"an agent is reset: its attempts are counted anew", world{plan: tasks("a", retries(1)), ends: map[string]string{"a/1/1": "exited", "a/1/2": "reset", "a/1/3": "exited"}, before: map[string]string{"a/1/2": "reset a"}}, `
			task_started a 1/1
			go a/1/1
			task_retrying a after 1s
			go a/1/2
			go a/1/3
			task_retrying a after 1s
			go a/1/4
			task_completed a
			run_ended completed 0`},
		{"one that waits for its next attempt is reset, and has it at once", world{plan: tasks("a", retries(1)), ends: map[string]string{"a/1/1": "exited", "a/1/2": "exited"}, after: map[string]string{"a/1/1": "reset a"}}, `
			task_started a 1/1
			go a/1/1
			task_retrying a after 1s
			go a/1/2
			task_retrying a after 1s
			go a/1/3
			task_completed a
			run_ended completed 0`},
		{"a pause lets running turns finish and starts none", world{plan: tasks("a b", nil), after: map[string]string{"a/1/1": "pause,resume"}}, `
			task_started a 1/1
			go a/1/1
			task_completed a
			task_started b 1/1
			go b/1/1
			run_pausing
			run_unpaused
			task_completed b
			run_ended completed 0`},
		{"a turn that does not match stops the run", world{plan: tasks("a b", retries(3)), ends: map[string]string{"a/1/1": "mismatch"}}, `
			task_started a 1/1
			go a/1/1
			task_failed a: why
			task_cancelled b: another turn does not match
			run_ended failed 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &c.world
			w.now = time.Unix(0, 0)
			if _, err := flow.Pipeline(w, flow.Call{ID: "root", Kind: "pipeline", Ref: "plan"}); err != nil {
				t.Fatalf("%v after\n%s", err, strings.Join(w.told, "\n"))
			}
			want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
			if got := strings.Join(w.told, "\n"); got != want {
				t.Errorf("got\n%s\n\nwant\n%s", got, want)
			}
		})
	}
}

func TestWallTime(t *testing.T) {
	p := tasks("a b", nil)
	p.Budget.Wall = time.Minute
	w := &world{plan: p, ends: map[string]string{"a/1/1": "never"}, now: time.Unix(0, 0)}
	_, err := flow.Pipeline(w, flow.Call{ID: "root", Ref: "plan"})
	if !errors.Is(err, errStuck) {
		t.Fatalf("the running turn is waited for, got %v", err)
	}
	want := "task_started a 1/1\ngo a/1/1\nbudget_spent\ntask_cancelled b: budget"
	if got := strings.Join(w.told, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if w.now != time.Unix(60, 0) {
		t.Errorf("it was noticed at %s", w.now)
	}
}

func TestPauseStopsTheClocks(t *testing.T) {
	p := tasks("a", func(t *swarm.Task) { t.Retries = 1 })
	w := &world{plan: p, ends: map[string]string{"a/1/1": "exited"}, after: map[string]string{"a/1/1": "pause"}, now: time.Unix(0, 0)}
	_, err := flow.Pipeline(w, flow.Call{ID: "root", Ref: "plan"})
	if !errors.Is(err, errStuck) {
		t.Fatalf("a paused run waits for nothing but a person, got %v", err)
	}
	want := "task_started a 1/1\ngo a/1/1\ntask_retrying a after 1s\nrun_pausing\nrun_paused"
	if got := strings.Join(w.told, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// line is a plan in which each task is a group of its own, as in lines.
func line(tasks ...swarm.Task) swarm.Plan {
	var p swarm.Plan
	for i, t := range tasks {
		t.Group = i
		p.Tasks = append(p.Tasks, t)
		p.Groups = append(p.Groups, swarm.Group{Iterations: 1})
	}
	return p
}

func TestWaitingForAgents(t *testing.T) {
	needs := func(task string) []swarm.Dependency {
		return []swarm.Dependency{{Task: task, Condition: swarm.OnNeeded}}
	}
	for _, c := range []struct {
		name  string
		world world
		want  string
	}{
		{"who waits for an agent that fails has failed", world{ends: map[string]string{"pm_1/1/1": "exited"},
			plan: line(swarm.Task{Name: "pm_1", Agent: "pm"}, swarm.Task{Name: "ba_1", Agent: "ba", DependsOn: needs("pm_1")}, swarm.Task{Name: "qa_1", Agent: "qa", DependsOn: needs("ba_1")})}, `
			task_started pm_1 1/1
			go pm_1/1/1
			task_failed pm_1: why
			task_failed ba_1: Referenced agent @pm failed: why
			task_failed qa_1: Referenced agent @ba failed: Referenced agent @pm failed: why
			run_ended failed 1`},
		{"at once, whoever else it waits for", world{ends: map[string]string{"pm_1/1/1": "exited", "qa_1/1/1": "never"},
			plan: line(swarm.Task{Name: "qa_1", Agent: "qa"}, swarm.Task{Name: "pm_1", Agent: "pm"}, swarm.Task{Name: "ba_1", Agent: "ba", DependsOn: append(needs("qa_1"), needs("pm_1")...), Awaits: []string{"dev"}})}, `
			task_started qa_1 1/1
			go qa_1/1/1
			task_started pm_1 1/1
			go pm_1/1/1
			task_failed pm_1: why
			task_failed ba_1: Referenced agent @pm failed: why`},
		{"an output that is awaited lets the task start", world{
			plan: line(swarm.Task{Name: "ba_1", Agent: "ba", Awaits: []string{"pm"}}, swarm.Task{Name: "pm_1", Agent: "pm"})}, `
			task_started pm_1 1/1
			go pm_1/1/1
			task_completed pm_1
			task_started ba_1 1/1
			go ba_1/1/1
			task_completed ba_1
			run_ended completed 0`},
		{"one that nobody can make any more fails it at once", world{
			plan: line(swarm.Task{Name: "ba_1", Agent: "ba", Awaits: []string{"pm"}}, swarm.Task{Name: "qa_1", Agent: "qa"})}, `
			task_started qa_1 1/1
			go qa_1/1/1
			task_completed qa_1
			task_failed ba_1: Agent @pm has no output to reference, and nothing is left that could make one
			run_ended failed 1`},
		{"a wait ends after its time, and says for whom", world{ends: map[string]string{"pm_1/1/1": "never"},
			plan: line(swarm.Task{Name: "pm_1", Agent: "pm"}, swarm.Task{Name: "ba_1", Agent: "ba", Awaits: []string{"dev", "qa"}, WaitTimeout: time.Minute})}, `
			task_started pm_1 1/1
			go pm_1/1/1
			task_failed ba_1: timed out after 1m0s waiting for @dev, @qa`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &c.world
			w.now = time.Unix(0, 0)
			if _, err := flow.Pipeline(w, flow.Call{ID: "root", Ref: "plan"}); err != nil && !errors.Is(err, errStuck) {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
			if got := strings.Join(w.told, "\n"); got != want {
				t.Errorf("got\n%s\n\nwant\n%s", got, want)
			}
		})
	}
}

// TestClocksStandWhileNobodyDrives: an hour without a driver does not count as wall time.
func TestClocksStandWhileNobodyDrives(t *testing.T) {
	p := tasks("a b", nil)
	p.Budget.Wall = time.Minute
	w := &world{plan: p, now: time.Unix(0, 0)}
	w.signal(owned)
	w.jump = time.Hour
	if _, err := flow.Pipeline(w, flow.Call{ID: "root", Ref: "plan"}); err != nil {
		t.Fatal(err)
	}
	if got := w.told[len(w.told)-1]; got != "run_ended completed 0" {
		t.Errorf("got %s", strings.Join(w.told, "\n"))
	}
}
