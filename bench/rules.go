package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// schedule measures the ready set alone: a chain is added to a schedule and run to its end. The
// floor is a goroutine and a channel for each node.
func (l *lab) schedule() error {
	small, large := chainPlan(100), chainPlan(10_000)
	got, err := inTurn(41,
		func() (time.Duration, error) { return timePlan(small, 100) },
		func() (time.Duration, error) { return timePlan(large, 1) },
		func() (time.Duration, error) { return goroutines(100, 100), nil },
		func() (time.Duration, error) { return goroutines(10_000, 1), nil })
	if err != nil {
		return err
	}
	at := func(i int) time.Duration { return p50(got[i], itself) }
	for _, c := range []struct {
		name        string
		ours, floor time.Duration
	}{{"100", at(0), at(2)}, {"10,000", at(1), at(3)}} {
		r := ratio(c.ours, c.floor)
		l.add(row{
			"scheduler per node, " + c.name + " nodes", short(c.ours), short(c.floor) + " goroutine, channel",
			times(r), "≤ 3×", r <= 3})
	}
	r := ratio(at(1), at(0))
	l.add(row{"scheduler per node, 10,000 against 100", short(at(1)), short(at(0)), times(r), "≤ 2×", r <= 2})
	few, many := allocations(small), allocations(large)
	l.add(row{
		"allocations per node, 10,000 against 100", fmt.Sprintf("%.2f", many), fmt.Sprintf("%.2f", few),
		times(many / few), "constant", many <= 1.1*few})
	return nil
}

func chainPlan(n int) *swarm.Plan {
	p := &swarm.Plan{Groups: []swarm.Group{{Iterations: 1}}}
	for i := range n {
		t := swarm.Task{Name: "t" + strconv.Itoa(i), Agent: "t" + strconv.Itoa(i)}
		if i > 0 {
			t.DependsOn = []swarm.Dependency{{Task: "t" + strconv.Itoa(i-1), Condition: swarm.OnSuccess}}
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

func timePlan(p *swarm.Plan, rounds int) (time.Duration, error) {
	start := time.Now()
	for range rounds {
		if err := runPlan(p); err != nil {
			return 0, err
		}
	}
	return since(start) / time.Duration(rounds*len(p.Tasks)), nil
}

func runPlan(p *swarm.Plan) error {
	s := plan.New()
	if err := s.Add(p); err != nil {
		return err
	}
	for step := s.Next(); step.Kind == plan.StepRun; step = s.Next() {
		s.Ended(step.Task, swarm.Completed)
	}
	if !s.Done() {
		return fmt.Errorf("a chain of %d is stuck", len(p.Tasks))
	}
	return nil
}

func allocations(p *swarm.Plan) float64 {
	return testing.AllocsPerRun(5, func() { _ = runPlan(p) }) / float64(len(p.Tasks))
}

func goroutines(n, rounds int) time.Duration {
	start := time.Now()
	for range rounds {
		steps := make([]chan struct{}, n+1)
		for i := range steps {
			steps[i] = make(chan struct{})
		}
		for i := range n {
			go func() { <-steps[i]; close(steps[i+1]) }()
		}
		close(steps[0])
		<-steps[n]
	}
	return since(start) / time.Duration(rounds*n)
}

// prompt takes its figures from the package's own benchmark, which measures its floors in turn with
// it.
func (l *lab) prompt() error {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkExpand$", "./internal/prompt").
		CombinedOutput()
	if err != nil {
		return fmt.Errorf("go test: %w\n%s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		name, is := strings.CutPrefix(line, "BenchmarkExpand/")
		if !is {
			continue
		}
		figures := figuresOf(line)
		name = strings.ReplaceAll(trailer.ReplaceAllString(strings.Fields(name)[0], ""), "_", " ")
		took := short(time.Duration(figures["ns/prompt"]))
		if figures["bytes/prompt"] == 0 {
			return fmt.Errorf("the benchmark says something else than it did:\n%s", line)
		}
		if strings.HasPrefix(name, "1000") {
			r := figures["×faster-than-regexps"]
			l.add(row{
				"expand a prompt: " + name, took,
				short(time.Duration(figures["ns/prompt"]*r)) + " three regexp passes", times(r) + " faster", "≥ 9×",
				r >= 9})
			continue
		}
		r := figures["×copy"]
		l.add(row{
			"expand a prompt: " + name, took, short(time.Duration(figures["ns/prompt"]/r)) + " one copy", times(r),
			"≤ 3×", r <= 3})
	}
	return nil
}

var trailer = regexp.MustCompile(`-\d+$`)

// figuresOf reads the figures of a benchmark's line, by unit.
func figuresOf(line string) map[string]float64 {
	fields := strings.Fields(line)
	figures := map[string]float64{}
	for i := 2; i+1 < len(fields); i += 2 {
		figures[fields[i+1]], _ = strconv.ParseFloat(fields[i], 64)
	}
	return figures
}
