package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/plan"
)

// A sheet is a plan as text: "c: a b=success" depends on a (any) and on b's success.
func sheet(lines string, groups ...swarm.Group) *swarm.Plan {
	p := &swarm.Plan{Groups: groups}
	if len(groups) == 0 {
		p.Groups = []swarm.Group{{Iterations: 1}}
	}
	for line := range strings.Lines(lines) {
		name, deps, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "" {
			continue
		}
		t := swarm.Task{Name: name, Agent: name}
		for _, d := range strings.Fields(deps) {
			on, condition, ok := strings.Cut(d, "=")
			if !ok {
				condition = "any"
			}
			t.DependsOn = append(t.DependsOn, swarm.Dependency{Task: on, Condition: swarm.Condition(condition)})
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

// run runs a plan to its end, one task at a time, with the given ends, and records what happened.
func run(t *testing.T, p *swarm.Plan, end func(task string, iteration int) swarm.Status) string {
	t.Helper()
	s := plan.New()
	if err := s.Add(p); err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		step := s.Next()
		switch step.Kind {
		case plan.StepRun:
			name := s.Task(step.Task).Name
			st := end(name, step.Iteration)
			s.Ended(step.Task, st)
			out = append(out, fmt.Sprintf("%s %s", name, st))
		case plan.StepSkip:
			out = append(out, fmt.Sprintf("%s skipped: %s", s.Task(step.Task).Name, step.Reason))
		case plan.StepCancel:
			out = append(out, fmt.Sprintf("%s cancelled: %s", s.Task(step.Task).Name, step.Reason))
		case plan.StepIterate:
			out = append(out, fmt.Sprintf("iteration %d", step.Iteration))
		case plan.StepNone:
			if !s.Done() {
				t.Fatalf("tasks are pending and none can run:\n%s", strings.Join(out, "\n"))
			}
			return strings.Join(out, "\n")
		}
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct{ name, plan, fails, want string }{
		{"a chain of any runs on after a failure", "a:\nb: a", "a", "a failed\nb completed"},
		{"success is not met by a failure", "a:\nb: a=success", "a", "a failed\nb skipped: a failed, and this runs on its success"},
		{"failure is met by a failure", "a:\nb: a=failure", "a", "a failed\nb completed"},
		{"failure is not met by success", "a:\nb: a=failure", "", "a completed\nb skipped: a completed, and this runs on its failure"},
		{"skips travel on", "a:\nb: a=success\nc: b", "a", "a failed\nb skipped: a failed, and this runs on its success\nc skipped: b was skipped"},
		{"always is met by a skip", "a:\nb: a=success\nc: b=always", "a", "a failed\nb skipped: a failed, and this runs on its success\nc completed"},
		{"any on a skipped one is met when another was not skipped", "a:\nb: a=success\nc: b a", "a", "a failed\nb skipped: a failed, and this runs on its success\nc completed"},
		{"all of several", "a:\nb:\nc: a=success b=success", "b", "a completed\nb failed\nc skipped: b failed, and this runs on its success"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, sheet(c.plan), func(task string, _ int) swarm.Status {
				if slices.Contains(strings.Fields(c.fails), task) {
					return swarm.Failed
				}
				return swarm.Completed
			})
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestIterations(t *testing.T) {
	completed := func(string, int) swarm.Status { return swarm.Completed }
	got := run(t, sheet("a:\nb: a", swarm.Group{Iterations: 2}), completed)
	if want := "a completed\nb completed\niteration 2\na completed\nb completed"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p := sheet("a:\nb: a", swarm.Group{Iterations: 3}, swarm.Group{Iterations: 1})
	p.Tasks[1].Group = 1
	got = run(t, p, completed)
	if want := "a completed\niteration 2\na completed\niteration 3\na completed\nb completed"; got != want {
		t.Errorf("another group waits for all iterations: got\n%s\nwant\n%s", got, want)
	}
}

func TestWaits(t *testing.T) {
	p := sheet("a:\nb: a\nc:\nd:\ne:")
	p.Tasks[2].Agent = "a"
	p.MaxParallel = 2
	s := plan.New()
	if err := s.Add(p); err != nil {
		t.Fatal(err)
	}
	for s.Next().Kind == plan.StepRun {
	}
	for i, want := range []string{"[]", "[a]", "[@a, busy with a]", "[]", "[a free slot]"} {
		if got := fmt.Sprint(s.Waits(i)); got != want {
			t.Errorf("%s waits for %s, want %s", s.Task(i).Name, got, want)
		}
	}
	s.Wait(0, plan.Wait{For: plan.ForPerson, Reason: "decide"})
	if got := fmt.Sprint(s.Waits(0)); got != "[a person: decide]" {
		t.Errorf("a held task waits for %s", got)
	}
	if step := s.Next(); step.Kind != plan.StepRun || s.Task(step.Task).Name != "c" {
		t.Errorf("the agent of a held task is free: got %+v", step)
	}
}

// Pausing an agent holds back its turns and no others. Queued tasks keep their place.
func TestPauseAgent(t *testing.T) {
	p := sheet("a:\nb:\nc:\nd: a")
	p.Tasks[1].Agent = "a"
	s := plan.New()
	if err := s.Add(p); err != nil {
		t.Fatal(err)
	}
	next := func() string {
		if step := s.Next(); step.Kind == plan.StepRun {
			return s.Task(step.Task).Name
		}
		return "nothing"
	}
	if !s.PauseAgent("a", true) || s.PauseAgent("a", true) || s.PauseAgent("nosuch", true) || s.PausedAgents() != 1 {
		t.Error("it was paused twice, or not at all, or somebody unknown was")
	}
	if one, two := next(), next(); one != "c" || two != "nothing" {
		t.Errorf("a is paused, and %s and %s run", one, two)
	}
	if got := fmt.Sprint(s.Waits(0), s.Waits(1), s.Waits(3)); got != "[@a to be resumed] [@a to be resumed] [a]" {
		t.Errorf("they wait for %s", got)
	}
	if !s.PauseAgent("a", false) || s.PauseAgent("a", false) || s.PausedAgents() != 0 {
		t.Error("it was resumed twice, or not at all")
	}
	if one, two := next(), next(); one != "a" || two != "nothing" {
		t.Errorf("resumed, %s and %s run", one, two)
	}
	s.PauseAgent("a", true) // its turn finishes
	s.Ended(0, swarm.Completed)
	if one, two := next(), next(); one != "d" || two != "nothing" {
		t.Errorf("paused again, %s and %s run", one, two)
	}
	s.PauseAgent("a", false)
	if one := next(); one != "b" {
		t.Errorf("resumed again, %s runs", one)
	}
}

func TestStop(t *testing.T) {
	s := plan.New()
	if err := s.Add(sheet("a:\nb: a\nc: a", swarm.Group{Iterations: 5})); err != nil {
		t.Fatal(err)
	}
	a := s.Next()
	s.Stop("budget")
	for _, want := range []string{"b", "c"} {
		if step := s.Next(); step.Kind != plan.StepCancel || s.Task(step.Task).Name != want || step.Reason != "budget" {
			t.Fatalf("got %+v, want %s cancelled", step, want)
		}
	}
	if s.Next().Kind != plan.StepNone || s.Done() {
		t.Fatal("a runs still")
	}
	s.Ended(a.Task, swarm.Completed)
	if s.Next().Kind != plan.StepNone || !s.Done() {
		t.Fatal("no other iteration begins")
	}
}

func TestAddRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: a":                 "dependency cycle: a → a",
		"a: b\nb: a":           "dependency cycle: a → b → a",
		"x:\na: b\nb: c\nc: a": "dependency cycle: a → b → c → a",
		"a: nosuch":            `the task "a" depends on "nosuch", which is not in the plan`,
		"a:\na:":               `the task "a" is in the plan twice`,
	} {
		s := plan.New()
		if err := s.Add(sheet(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		if s.Len() != 0 || !s.Done() {
			t.Errorf("%q: a refused plan changed something", text)
		}
	}
}

func TestGrow(t *testing.T) {
	s := plan.New()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	alone := func(lines string) *swarm.Plan { // each task a group of its own
		p := sheet(lines, swarm.Group{Iterations: 1}, swarm.Group{Iterations: 1})
		p.Tasks[1].Group = 1
		return p
	}
	check(s.Add(alone("a:\nb:")))
	s.Ended(s.Next().Task, swarm.Completed)
	check(s.Add(alone("c: a\nd: b")))
	if s.Next().Task != 1 || s.Next().Task != 2 || s.Next().Kind != plan.StepNone {
		t.Fatal("b was ready first, then c, whose dependency has ended already; d waits for b")
	}
	s.Ended(1, swarm.Completed)
	if s.Next().Task != 3 {
		t.Fatal("d runs after b")
	}
}

// TestNothingIsStuck runs random plans with random ends, limits, shared agents, retries, cancels, turns
// that wait for room in the budget, and pauses, many turns at once, and checks each start against the
// rules.
func TestNothingIsStuck(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(30)
		p := &swarm.Plan{MaxParallel: r.IntN(5)}
		for range 1 + r.IntN(3) {
			p.Groups = append(p.Groups, swarm.Group{Iterations: 1 + r.IntN(3)})
		}
		for i := range n {
			task := swarm.Task{Name: fmt.Sprint("t", i), Agent: fmt.Sprint("a", r.IntN(n)), Group: i * len(p.Groups) / n}
			if r.IntN(3) == 0 {
				task.Base, task.Concurrency = fmt.Sprint("base", r.IntN(3)), 1
			}
			for j := range i {
				if r.IntN(n) < 3 {
					task.DependsOn = append(task.DependsOn, swarm.Dependency{Task: fmt.Sprint("t", j), Condition: swarm.Condition(swarm.Conditions[r.IntN(4)])})
				}
			}
			p.Tasks = append(p.Tasks, task)
		}
		s := plan.New()
		if err := s.Add(p); err != nil {
			t.Fatal(err)
		}
		var live, held []int
		busy, copies := map[string]int{}, map[string]int{}
		for steps := 0; !s.Done(); steps++ {
			if steps > 100_000 {
				t.Fatalf("seed %d: does not end", seed)
			}
			for {
				step := s.Next()
				if step.Kind == plan.StepNone {
					break
				}
				if step.Kind != plan.StepRun {
					continue
				}
				task := s.Task(step.Task)
				live = append(live, step.Task)
				busy[task.Agent]++
				copies[task.Base]++
				for _, d := range task.DependsOn {
					on, _ := s.Find(d.Task)
					if st := s.Status(on); !st.Ended() || s.Group(on) != s.Group(step.Task) && s.Iteration(on) < s.Iterations(on) {
						t.Fatalf("seed %d: %s started before %s, which is %s", seed, task.Name, d.Task, st)
					}
				}
				if busy[task.Agent] > 1 {
					t.Fatalf("seed %d: agent %s has two turns", seed, task.Agent)
				}
				if task.Concurrency > 0 && copies[task.Base] > 1 {
					t.Fatalf("seed %d: two copies of %s run", seed, task.Base)
				}
				if p.MaxParallel > 0 && len(live) > p.MaxParallel {
					t.Fatalf("seed %d: %d turns run", seed, len(live))
				}
			}
			switch {
			case len(held) > 0 && (len(live) == 0 || r.IntN(2) == 0):
				s.Again(held[0])
				held = held[1:]
			case len(live) > 0:
				k := r.IntN(len(live))
				i := live[k]
				live = slices.Delete(live, k, k+1)
				busy[s.Task(i).Agent]--
				copies[s.Task(i).Base]--
				end := swarm.CallEnd{}
				if r.IntN(4) == 0 {
					end = swarm.CallEnd{Kind: swarm.OverBudget, Crowded: true, Unbegun: r.IntN(2) == 0}
				}
				s.EndTurn(i, &end)
				if s.MayFit(i, &end) {
					s.AwaitRoom(i)
					continue
				}
				switch r.IntN(8) {
				case 0:
					s.Wait(i, plan.Wait{For: plan.ForRetry})
					held = append(held, i)
				case 1, 2:
					s.Ended(i, swarm.Failed)
				default:
					s.Ended(i, swarm.Completed)
				}
				if other := r.IntN(n); r.IntN(20) == 0 && s.Status(other) == swarm.Pending {
					s.Ended(other, swarm.Cancelled)
				}
			case !s.Done():
				t.Fatalf("seed %d: tasks are pending and none can run", seed)
			}
		}
	}
}

func TestCycle(t *testing.T) {
	graph := func(edges string) func(int) []int {
		return func(i int) (succ []int) {
			for _, e := range strings.Fields(edges) {
				if int(e[0]-'0') == i {
					succ = append(succ, int(e[1]-'0'))
				}
			}
			return succ
		}
	}
	for edges, want := range map[string]string{
		"": "[]", "01 12 23": "[]", "01 02 13 23": "[]", "00": "[0]", "01 10": "[0 1]", "01 12 23 31": "[1 2 3]", "32 21 13": "[1 3 2]",
	} {
		if got := fmt.Sprint(plan.Cycle(4, graph(edges))); got != want {
			t.Errorf("%s: got %s, want %s", edges, got, want)
		}
	}
	deep := plan.Cycle(1_000_000, func(i int) []int { return []int{(i + 1) % 1_000_000} })
	if len(deep) != 1_000_000 {
		t.Errorf("a cycle of a million: got %d", len(deep))
	}
}

// BenchmarkSchedule measures the cost per node of the schedule alone, BenchmarkFloor that of a
// goroutine and a channel per node.
func BenchmarkSchedule(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		p := &swarm.Plan{Groups: []swarm.Group{{Iterations: 1}}}
		for i := range n {
			t := swarm.Task{Name: fmt.Sprint("t", i), Agent: fmt.Sprint("t", i)}
			if i > 0 {
				t.DependsOn = []swarm.Dependency{{Task: fmt.Sprint("t", i-1), Condition: swarm.OnSuccess}}
			}
			p.Tasks = append(p.Tasks, t)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := plan.New()
				if err := s.Add(p); err != nil {
					b.Fatal(err)
				}
				for step := s.Next(); step.Kind == plan.StepRun; step = s.Next() {
					s.Ended(step.Task, swarm.Completed)
				}
				if !s.Done() {
					b.Fatal("stuck")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/node")
		})
	}
}

func BenchmarkFloor(b *testing.B) {
	const n = 100
	for b.Loop() {
		chans := make([]chan struct{}, n+1)
		for i := range chans {
			chans[i] = make(chan struct{})
		}
		for i := range n {
			go func() { <-chans[i]; close(chans[i+1]) }()
		}
		close(chans[0])
		<-chans[n]
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/node")
}
