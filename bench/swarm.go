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

// swarmFile makes a compose file whose agents are one model, with a tool for files.
func swarmFile(url, root string, agents, iterations int) string {
	return fmt.Sprintf("provider: m\nmax_parallel: %d\nproviders:\n  m: {kind: anthropic, base_url: %q, models: {medium: tiny, large: tiny}}\n"+
		"swarm: {max_agents: %d, max_iterations_per_agent: %d}\nagents:\n  any: {tools: [file_list]%s}\n", agents, url+"/v1", agents, iterations, root)
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
	early atomic.Int64 // bytes of the prompt of iteration 5
	late  atomic.Int64 // of the last prompt without a warning
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
	switch n := int64(len(r.Prompt) + len(r.System)); i {
	case of:
		return modeltest.Answer{Text: `{"action": "done", "response": "It grows."}`, Usage: usage}
	case 5:
		w.early.Store(n)
	case of - 3:
		w.late.Store(n)
	}
	return modeltest.Answer{Text: fmt.Sprintf(`{"action": "tool_call", "tool": "file_list", "tool_params": {"path": ".", "depth": %d}}`, 1+i%5), Usage: usage}
}

// solve runs a swarm of so many agents, so many of them at once.
func (l *lab) solve(name, root string, reply func(modeltest.Request) modeltest.Answer, agents, atOnce, iterations int) (c cost, err error) {
	err = l.withSwarm(name, root, reply, agents, atOnce, iterations, func(dir string, argv ...string) error {
		c, err = l.measure(dir, argv...)
		return err
	})
	return c, err
}

// withSwarm prepares a swarm of so many agents and has a function run it.
func (l *lab) withSwarm(name, root string, reply func(modeltest.Request) modeltest.Answer, agents, atOnce, iterations int, do func(dir string, argv ...string) error) error {
	server := modeltest.Start(modeltest.Answer{})
	defer server.Close()
	server.Reply = reply
	dir, err := l.project(name, swarmFile(server.URL, root, agents, iterations))
	if err != nil {
		return err
	}
	file, err := subtasksFile(dir, agents)
	if err != nil {
		return err
	}
	return do(dir, l.swarm, "solve", "Compare the markets", "--plan", file, "--agents", fmt.Sprint(atOnce))
}

// iterations measures what we add to an iteration of a swarm: the time from one request to the next,
// in which the turn's end and its action are written to disk. The floor is the same requests by the
// vendor's library.
func (l *lab) iterations() error {
	if err := l.buildSDK(); err != nil {
		return err
	}
	const agents, each = 20, 25
	const n = agents*each + 1 // and the answer
	var w worker
	var c clerk
	server := c.serve(modeltest.Answer{Text: "It grows.", Usage: modeltest.Usage{Input: 1000, Output: 30}})
	defer server.Close()
	if _, err := l.solve("iterations", "", func(r modeltest.Request) modeltest.Answer { c.note(); return w.answer(r) }, agents, 1, each); err != nil {
		return err
	}
	ours, err := c.gaps(n)
	if err == nil {
		err = l.ask("anthropic", server.URL, 1, n, strings.Repeat("do what has to be done, well. ", 140))
	}
	if err != nil {
		return err
	}
	floor, err := c.gaps(n)
	if err != nil {
		return err
	}
	slices.Sort(ours)
	p99, library := ours[len(ours)*99/100], p50(floor, itself)
	l.add(row{
		"iteration of a swarm, durable", short(p50(ours, itself)), short(library) + " the vendor's library",
		short(p99-library) + " ours, p99", "≤ 2 ms", p99-library <= 2*time.Millisecond})
	return l.flat()
}

// flat measures how the prompts grow in a swarm whose tool gives long results.
func (l *lab) flat() error {
	dir, err := l.project("flat", "")
	if err != nil {
		return err
	}
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a-document-about-the-market-%03d.md", i)), nil, 0o600); err != nil {
			return err
		}
	}
	var w worker
	if _, err := l.solve("flat", ", root: .", w.answer, 1, 1, 25); err != nil {
		return err
	}
	early, late := w.early.Load(), w.late.Load()
	g := float64(late) / float64(early)
	l.add(row{
		"prompt of a swarm's iteration 22, results of 8 KB", kilobytes(late), kilobytes(early) + " iteration 5",
		times(g), "≤ 1.1×", g <= 1.1})
	return nil
}

// swarms measures a swarm of 1,000 agents whose model takes 100 ms, and how its cost grows. The floor
// is the same requests by the vendor's library.
func (l *lab) swarms() error {
	if err := l.buildSDK(); err != nil {
		return err
	}
	const iterations, delay = 25, 100 * time.Millisecond
	w := worker{delay: delay}
	per := map[int]cost{}
	for _, agents := range []int{10, 100, 1000} {
		before := w.asked.Load()
		c, err := l.solve(fmt.Sprint("swarm", agents), "", w.answer, agents, agents, iterations)
		if err != nil {
			return err
		}
		if got, want := w.asked.Load()-before, int64(agents*iterations+1); got != want { // and the answer
			return fmt.Errorf("the model was asked %d times, and not %d", got, want)
		}
		per[agents] = c
	}
	server := modeltest.Start(modeltest.Answer{})
	defer server.Close()
	server.Reply = w.answer
	start := time.Now()
	if err := l.ask("anthropic", server.URL, 1000, iterations, strings.Repeat("do what has to be done, well. ", 140)); err != nil {
		return err
	}
	library, ideal := since(start), (iterations+1)*delay
	r := ratio(per[1000].wall, ideal)
	l.add(row{
		"1,000 agents × 25 iterations, model of 100 ms", short(per[1000].wall), short(library) + " the vendor's library; " + short(ideal) + " the model alone",
		times(r), "≤ 1.5×", r <= 1.5})
	var peaks []int64
	for _, agents := range []int{10, 1000} {
		quick := worker{}
		err := l.withSwarm(fmt.Sprint("swarm", agents), "", quick.answer, agents, agents, iterations, func(dir string, argv ...string) error {
			peak, err := l.memory(dir, argv...)
			peaks = append(peaks, peak)
			return err
		})
		if err != nil {
			return err
		}
	}
	each := (peaks[1] - peaks[0]) / 990
	l.add(row{
		"memory of an agent, 1,000 in a swarm", kilobytes(each), megabytes(peaks[0]) + " a swarm of 10",
		kilobytes(each), "≤ 100 KB", each <= 100_000})
	few, many := per[10].cpu/(10*iterations), per[1000].cpu/(1000*iterations)
	g := ratio(many, few)
	l.add(row{
		"CPU of an iteration, 1,000 agents", short(many), short(few) + " 10 agents; " + short(per[100].cpu/(100*iterations)) + " 100",
		times(g), "≤ 1.1×", g <= 1.1})
	return nil
}
