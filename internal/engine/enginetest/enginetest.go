// Package enginetest is the contract of an engine, as a suite of tests: after a crash at any
// append, the run continues as if there was none. Each engine runs it from a test of its own with
// [Run].
//
// The agents of these tests keep a record of their own, outside of the run's state. The tests
// compare the log with it.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/flow"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/storetest"
	"swarm/internal/turn"
)

// A Subject is an engine under test, and the store of its runs.
type Subject struct {
	Engine func(t *testing.T) engine.Engine // makes the engine of one run, which all processes that drive the run share
	Store  func(t *testing.T) swarm.Store   // makes an empty store
	Step   int                              // crash at each Step-th append only; 0 = at each
	Only   []string                         // the names of the cases to run; nil = all
	// Workers says that the engine, and not a process, owns a run: a process that goes on after a crash
	// has the fence of the one that crashed.
	Workers bool
	// Hanging makes two engines of one run. The first gives no sign of life while it works, so its
	// calls are given to the second. nil = the engine has no such thing.
	Hanging func(t *testing.T) (hangs, other engine.Engine)
}

// runID is the run of every test. Each test has a store of its own.
const runID = "run"

// Run tests an engine against the contract.
func Run(t *testing.T, run Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"a crash at every append", crashEverywhere},
		{"a team that crashes at every append", teamCrashes},
		{"a swarm that crashes at every append", some(swarmCrashes)},
		{"a council that crashes at every append", some(councilCrashes)},
		{"swarms whose agents misbehave", misbehave},
		{"swarms that waste what they can", bounded},
		{"a swarm with a budget that crashes at every append", some(swarmBudgetCrashes)},
		{"an agent that waits, and a crash at every append", waitCrashes},
		{"a late owner's agents cannot wait", lateWait},
		{"mail comes back and replies do not come, with a crash at every append", some(backCrashes)},
		{"single agents are held, ended and started, with a crash at every append", some(singleCrashes)},
		{"agents ask for others, and a crash at every append", some(growthCrashes)},
		{"a budget holds, with a crash at every append", budgetCrashes},
		{"a limit is waited out, with a crash at every append", limitCrashes},
		{"a plan grows while nobody drives the run", growAcrossCrash},
		{"what a loop told is seen when it comes to rest", idleTells},
		{"cancel cuts a running turn", cancelCuts},
		{"a cancel from before the crash is obeyed after it", cancelBeforeResume},
		{"a pause outlives a crash", pauseOutlives},
		{"a late owner can write nothing", lateOwner},
		{"another version of the loop is refused", otherVersion},
		{"two processes work for one run", workTogether},
		{"a turn is given to another process while the first one hangs", replaced},
	} {
		if run.Only == nil || slices.Contains(run.Only, c.name) {
			t.Run(c.name, func(t *testing.T) { c.test(t, run) })
		}
	}
}

// some has a long case crash at some appends only, unless the long tests are run.
func some(test func(*testing.T, Subject)) func(*testing.T, Subject) {
	return func(t *testing.T, run Subject) {
		if os.Getenv("SWARM_TEST_LONG") == "" {
			run.Step = max(run.Step, 7)
		}
		test(t, run)
	}
}

// A team is the outside world: agents that record their prompts.
type team struct {
	mu     sync.Mutex
	asked  map[swarm.TurnID][]string // prompts by turn
	answer func(ctx context.Context, r provider.Request) (string, error)
}

func (a *team) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	a.mu.Lock()
	a.asked[r.Turn] = append(a.asked[r.Turn], r.Prompt)
	a.mu.Unlock()
	text, err := a.answer(ctx, r)
	return provider.Reply{Output: []byte(text), Bytes: int64(len(text))}, err
}

func newTeam(answer func(ctx context.Context, r provider.Request) (string, error)) *team {
	return &team{asked: map[swarm.TurnID][]string{}, answer: answer}
}

// A harness is one run's log and the process that drives it.
type harness struct {
	t     *testing.T
	store swarm.Store
	dir   string // the folder in which the agents work
	run   engine.Engine
	team  *team
	tools func(*swarm.Agent, swarm.TurnID) (turn.Toolbox, error) // that models may call; nil = none
	keeps bool                                                   // the fence stays when another process goes on
	fence int64                                                  // of the last process that drove the run; 0 = none did

	called []swarm.TurnID // turns of a swarm whose tool was called; the team's mutex guards it
}

const (
	planKey       = "plan:1"
	leaseForTests = time.Minute
)

// rootCall returns the call by which the owner of a run starts its engine.
func rootCall(fence int64) flow.Call {
	return flow.Call{ID: "root", Kind: "pipeline", Ref: planKey, Fence: fence}
}

// newHarness makes a run with a plan. Each task's prompt reads the outputs of the tasks that it
// depends on.
func newHarness(t *testing.T, run Subject, p swarm.Plan, a *team) *harness {
	t.Helper()
	b := &harness{t: t, store: run.Store(t), dir: t.TempDir(), run: run.Engine(t), keeps: run.Workers, team: a}
	log, err := b.store.Create(t.Context(), runID)
	b.check(err)
	defer log.Close()
	bodies := b.fill(&p)
	_, err = log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.RunStarted}, {Kind: swarm.PlanAdded, Key: planKey, Data: swarm.Encode(p)}}, Bodies: bodies})
	b.check(err)
	return b
}

// fill gives tasks agents and prompts.
func (h *harness) fill(p *swarm.Plan) (bodies [][]byte) {
	if p.Providers == nil {
		p.Providers = []swarm.ProviderSpec{{Name: "team", Kind: providerkind.ACP}}
	}
	if p.Groups == nil && p.Team == nil {
		p.Groups = []swarm.Group{{Iterations: 1}}
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		t.Agent = t.Name
		if !slices.ContainsFunc(p.Agents, func(a swarm.Agent) bool { return a.Name == t.Name }) {
			p.Agents = append(p.Agents, swarm.Agent{Name: t.Name, Provider: "team"})
		}
		text := "do " + t.Name
		for _, d := range t.DependsOn {
			text += "\n{{output:" + d.Task + "}}"
		}
		tpl, _, err := prompt.Parse(prompt.Source{File: t.Name, Text: []byte(text)}, nil)
		h.check(err)
		body := tpl.Marshal()
		t.Prompt = swarm.HashOf(body)
		bodies = append(bodies, body)
	}
	return bodies
}

// drive drives the run as a process of its own would: it opens the log, owns the run, and gives it
// up at the end. after is the append at which it crashes, before or after the append is durable; 0
// = it does not crash.
func (h *harness) drive(after int, committed bool) (flow.Result, error) {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadWrite)
	h.check(err)
	defer log.Close()
	fence, _ := h.own(log)
	return h.run(h.t.Context(), h.adapters(storetest.Crash(log, after, committed)), rootCall(fence))
}

// own makes this process the owner of the run, or one that works for the owner. It returns the fence,
// and whether it is new.
func (h *harness) own(log swarm.Owned) (fence int64, taken bool) {
	h.t.Helper()
	if h.keeps && h.fence > 0 {
		h.check(log.Renew(h.t.Context(), h.fence, leaseForTests))
		return h.fence, false
	}
	owner, err := log.Own(h.t.Context(), flow.Version, leaseForTests)
	h.check(err)
	h.fence = owner.Fence
	return h.fence, true
}

func (h *harness) adapters(log swarm.Log) *engine.Adapters {
	runner := &turn.Runner{Run: runID, Log: log, Dir: h.dir, Provider: func(swarm.ProviderSpec) (provider.Provider, error) { return h.team, nil }, Toolbox: h.tools}
	return &engine.Adapters{Log: log, Turn: runner}
}

func (h *harness) control(word swarm.Command, target string) {
	h.t.Helper()
	h.append(swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Data: swarm.Encode(swarm.ControlCommand{Command: word, Target: target})}, nil)
}

func (h *harness) append(e swarm.Event, bodies [][]byte) {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadWrite)
	h.check(err)
	defer log.Close()
	_, err = log.Append(h.t.Context(), swarm.Batch{Events: []swarm.Event{e}, Bodies: bodies})
	h.check(err)
}

// events returns the log.
func (h *harness) events() []swarm.Event {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadOnly)
	h.check(err)
	defer log.Close()
	events, err := log.Read(0, 1<<20)
	h.check(err)
	return events
}

// checkHistory demands that the log tells this after a crash, and that each turn ended once.
func (h *harness) checkHistory(at int, committed bool, want []string) {
	h.t.Helper()
	got, ends := h.history()
	if !slices.Equal(got, want) {
		h.t.Errorf("crash at append %d, committed: %v: the log tells\n%s\nwant\n%s", at, committed, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for turn, n := range ends {
		if n != 1 {
			h.t.Errorf("crash at append %d: the turn %s ended %d times", at, turn, n)
		}
	}
}

// history returns the log without the parts that a crash may change: numbers, times, owners and
// second starts.
func (h *harness) history() (history []string, ends map[swarm.TurnID]int) {
	h.t.Helper()
	ends = map[swarm.TurnID]int{}
	for _, e := range h.events() {
		switch e.Kind {
		case swarm.TurnStarted:
			s, err := swarm.Body[swarm.TurnStart](&e)
			h.check(err)
			if s.Start > 1 {
				continue
			}
		case swarm.ActionStarted:
			s, err := swarm.Body[swarm.ActionStart](&e)
			h.check(err)
			if s.Start > 1 {
				continue
			}
		case swarm.TurnEnded:
			ends[e.Turn]++
		case swarm.RunOwned, swarm.Tick, swarm.Control, swarm.WaitBegan, swarm.WaitEnded:
			continue
		}
		history = append(history, strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Task, " ", e.Turn)))
	}
	slices.Sort(history) // Parallel turns may end in any order.
	return history, ends
}

func (h *harness) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// diamond is a plan with a retry, a fan-out, a fan-in and two iterations.
func diamond() swarm.Plan {
	on := func(names ...string) (deps []swarm.Dependency) {
		for _, n := range names {
			deps = append(deps, swarm.Dependency{Task: n, Condition: swarm.OnSuccess})
		}
		return deps
	}
	return swarm.Plan{MaxParallel: 2, Groups: []swarm.Group{{Iterations: 2}}, Tasks: []swarm.Task{
		{Name: "a", Retries: 1}, {Name: "b", DependsOn: on("a")}, {Name: "c", DependsOn: on("a")}, {Name: "d", DependsOn: on("b", "c")}}}
}

// work answers with the id of its turn. The first attempt at the task a fails.
func work(_ context.Context, r provider.Request) (string, error) {
	if r.Task == "a" && r.Attempt == 1 {
		return "bad", swarm.Errorf(swarm.Unexpected, "not good enough")
	}
	return "out of " + string(r.Turn), nil
}

func crashEverywhere(t *testing.T, run Subject) {
	clean := newHarness(t, run, diamond(), newTeam(work))
	if r, err := clean.drive(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	run.atEveryAppend(t, 20, func(at int, committed bool) bool {
		b := newHarness(t, run, diamond(), newTeam(work))
		crashed := crash(t, at, committed, b.drive)
		if crashed {
			b.checkAgainst(at, want, clean.team.asked)
		}
		return crashed
	})
}

// atEveryAppend calls try with the number of each append, with a crash before and after its commit.
// It stops when try reports that the run ended before the crash.
func (s Subject) atEveryAppend(t *testing.T, fewest int, try func(at int, committed bool) (crashed bool)) {
	t.Helper()
	step := max(s.Step, 1)
	if testing.Short() {
		step = max(step, 19)
	}
	for i, committed := range []bool{false, true} {
		at := 1 + i*(step/2) // another selection for each
		for try(at, committed) {
			at += step
		}
		if at < fewest {
			t.Fatalf("only %d appends were crashed at", at-1)
		}
		t.Logf("crashed at every append of %d, in steps of %d, committed: %v", at-1, step, committed)
	}
}

// crash drives a run until it crashes, and then drives it to its end.
func crash(t *testing.T, at int, committed bool, drive func(at int, committed bool) (flow.Result, error)) (crashed bool) {
	t.Helper()
	r, err := drive(at, committed)
	if err == nil {
		return false
	}
	if !errors.Is(err, storetest.ErrCrash) {
		t.Fatalf("crash at append %d: %v", at, err)
	}
	if r, err = drive(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("resumed after a crash at append %d: %+v, %v", at, r, err)
	}
	return true
}

// checkAgainst compares a run that crashed with one that did not, and the log with the agents' own
// records.
func (h *harness) checkAgainst(at int, want []string, asked map[swarm.TurnID][]string) {
	h.t.Helper()
	got, ends := h.history()
	if !slices.Equal(got, want) {
		h.t.Errorf("crash at append %d: the log tells\n%s\nwant\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for turn, n := range ends {
		if n != 1 {
			h.t.Errorf("crash at append %d: %s has %d ends", at, turn, n)
		}
	}
	again := 0
	for turn, prompts := range h.team.asked {
		if again += len(prompts) - 1; len(prompts) > 2 {
			h.t.Errorf("crash at append %d: %s was done %d times", at, turn, len(prompts))
		}
		for _, p := range prompts {
			if p != asked[turn][0] {
				h.t.Errorf("crash at append %d: %s was asked\n%s\nwithout a crash\n%s", at, turn, p, asked[turn][0])
			}
		}
	}
	if again > 2 {
		h.t.Errorf("crash at append %d: %d turns were done again, and 2 were in flight at the most", at, again)
	}
	if a, b2 := slices.Sorted(maps.Keys(h.team.asked)), slices.Sorted(maps.Keys(asked)); !slices.Equal(a, b2) {
		h.t.Errorf("crash at append %d: agents did %v, without a crash %v", at, a, b2)
	}
}
