package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"swarm/internal/modeltest"
)

// swarmFile makes a compose file whose agents are one model, with tools for files.
func swarmFile(url string, agents, iterations int) string {
	return fmt.Sprintf("provider: m\nmax_parallel: %d\nproviders:\n  m: {kind: anthropic, base_url: %q, models: {medium: tiny, large: tiny}}\n"+
		"swarm: {max_agents: %d, max_iterations_per_agent: %d}\nagents:\n  any: {tools: [file_list]}\n", agents, url+"/v1", agents, iterations)
}

// subtasksFile writes a division of a query into so many parts.
func subtasksFile(dir string, agents int) (string, error) {
	type subtask struct {
		Description string `json:"description"`
	}
	parts := make([]subtask, agents)
	for i := range parts {
		parts[i].Description = fmt.Sprintf("Look at part %d of the market", i)
	}
	text, err := json.Marshal(map[string]any{"subtasks": parts})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "subtasks.json")
	return file, os.WriteFile(file, text, 0o600)
}

// A worker is the model of all agents of a swarm. It calls a tool in each iteration, and is done in
// the last one.
type worker struct {
	delay time.Duration
	asked atomic.Int64
	bytes [3]atomic.Int64 // of the longest prompts: of all, of iteration 5, and of the last but one
}

func (w *worker) answer(r modeltest.Request) modeltest.Answer {
	w.asked.Add(1)
	time.Sleep(w.delay)
	usage := modeltest.Usage{Input: 1000, Output: 30}
	var i, of int
	if _, budget, ok := strings.Cut(r.Prompt, "## Budget: Iteration "); !ok {
		return modeltest.Answer{Text: "The answer.", Usage: usage}
	} else if _, err := fmt.Sscanf(budget, "%d of %d", &i, &of); err != nil {
		return modeltest.Answer{Status: 400, Message: err.Error()}
	}
	n := int64(len(r.Prompt) + len(r.System))
	w.longest(0, n)
	switch i {
	case of:
		return modeltest.Answer{Text: `{"action": "done", "response": "It grows."}`, Usage: usage}
	case 5:
		w.longest(1, n)
	case of - 3: // the last before the warning
		w.longest(2, n)
	}
	return modeltest.Answer{Text: fmt.Sprintf(`{"action": "tool_call", "tool": "file_list", "tool_params": {"path": ".", "depth": %d}}`, 1+i%5), Usage: usage}
}

func (w *worker) longest(i int, n int64) {
	for {
		old := w.bytes[i].Load()
		if n <= old || w.bytes[i].CompareAndSwap(old, n) {
			return
		}
	}
}

// solve runs a swarm of so many agents.
func (l *lab) solve(name string, w *worker, agents, iterations int) (c cost, peak int64, err error) {
	server := modeltest.Start(modeltest.Answer{})
	defer server.Close()
	server.Reply = w.answer
	dir, err := l.project(name, swarmFile(server.URL, agents, iterations))
	if err != nil {
		return c, 0, err
	}
	file, err := subtasksFile(dir, agents)
	if err != nil {
		return c, 0, err
	}
	before := w.asked.Load()
	c, err = l.measure(dir, l.swarm, "solve", "Compare the markets", "--plan", file, "--agents", fmt.Sprint(agents))
	want := int64(agents * iterations)
	if agents > 1 {
		want++ // the synthesis
	}
	if got := w.asked.Load() - before; err == nil && got != want {
		err = fmt.Errorf("the model was asked %d times, and not %d", got, want)
	}
	return c, peak, err
}

// iterations measures what we add to an iteration of a swarm: the time from one request to the next,
// in which the turn's end and its action are written to disk.
func (l *lab) iterations() error {
	const n = 500
	var w worker
	var asked []time.Time
	server := modeltest.Start(modeltest.Answer{})
	defer server.Close()
	server.Reply = func(r modeltest.Request) modeltest.Answer {
		asked = append(asked, time.Now()) // one agent asks, so one request is open at a time
		return w.answer(r)
	}
	dir, err := l.project("iterations", swarmFile(server.URL, 1, n))
	if err != nil {
		return err
	}
	file, err := subtasksFile(dir, 1)
	if err != nil {
		return err
	}
	if _, err := l.measure(dir, l.swarm, "solve", "Compare the markets", "--plan", file); err != nil {
		return err
	}
	if len(asked) != n {
		return fmt.Errorf("the model was asked %d times, and not %d", len(asked), n)
	}
	var gaps []time.Duration
	for i := 1; i < len(asked); i++ {
		gaps = append(gaps, asked[i].Sub(asked[i-1]))
	}
	slices.Sort(gaps)
	p99 := gaps[len(gaps)*99/100]
	l.add(row{
		"iteration of a swarm, with request and answer", short(gaps[len(gaps)/2]), "none",
		short(p99) + " p99", "≤ 2 ms p99", p99 <= 2*time.Millisecond})
	at5, last := w.bytes[1].Load(), w.bytes[2].Load()
	grows := float64(last) / float64(at5)
	l.add(row{
		"prompt of a swarm's iteration 497", kilobytes(last), kilobytes(at5) + " iteration 5",
		times(grows), "≤ 1.1×", grows <= 1.1})
	return nil
}

// swarms measures a swarm of 1,000 agents whose model takes 100 ms, and how its cost grows.
func (l *lab) swarms() error {
	const iterations, delay = 25, 100 * time.Millisecond
	per := map[int]cost{}
	for _, agents := range []int{10, 100, 1000} {
		w := worker{delay: delay}
		c, _, err := l.solve(fmt.Sprint("swarm", agents), &w, agents, iterations)
		if err != nil {
			return err
		}
		per[agents] = c
	}
	ideal := (iterations + 1) * delay
	r := ratio(per[1000].wall, ideal)
	l.add(row{
		"1,000 agents × 25 iterations, model of 100 ms", short(per[1000].wall), short(ideal) + " the model alone",
		times(r), "≤ 1.5×", r <= 1.5})
	few, many := per[10].cpu/(10*iterations), per[1000].cpu/(1000*iterations)
	g := ratio(many, few)
	l.add(row{
		"CPU of an iteration, 1,000 agents", short(many), short(few) + " 10 agents; " + short(per[100].cpu/(100*iterations)) + " 100",
		times(g), "≤ 1.1×", g <= 1.1})
	return nil
}
