package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"swarm/internal/modeltest"
)

// vendors are the vendors of models over HTTP, as a compose file names them.
var vendors = []string{"anthropic", "openai"}

// A clerk notes when a model on this machine gets requests. It delays the first ones until there is
// a crowd.
type clerk struct {
	crowd int

	mu    sync.Mutex
	asked []time.Time
	all   chan struct{} // closed when the crowd is complete
}

// serve starts a model that always gives the same answer.
func (c *clerk) serve(answer modeltest.Answer) *modeltest.Server {
	c.all = make(chan struct{})
	s := modeltest.Start(answer)
	s.Reply = func(modeltest.Request) modeltest.Answer {
		now := time.Now()
		c.mu.Lock()
		all := c.all
		if c.asked = append(c.asked, now); len(c.asked) == c.crowd {
			close(all)
		}
		wait := len(c.asked) < c.crowd
		c.mu.Unlock()
		if wait {
			select {
			case <-all:
			case <-time.After(time.Minute):
				return modeltest.Answer{Status: 400, Message: "they do not come all at once"}
			}
		}
		return answer
	}
	return s
}

// note notes a request.
func (c *clerk) note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, time.Now())
}

// take returns the times noted since the last call. Another number than n is an error.
func (c *clerk) take(n int) ([]time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked, c.all = nil, make(chan struct{})
	if len(asked) != n {
		return nil, fmt.Errorf("the model was asked %d times, and not %d", len(asked), n)
	}
	return asked, nil
}

// gaps returns the times from one request to the next.
func (c *clerk) gaps(n int) (gaps []time.Duration, err error) {
	asked, err := c.take(n)
	for i := 1; i < len(asked); i++ {
		gaps = append(gaps, asked[i].Sub(asked[i-1]))
	}
	return gaps, err
}

// modelFile makes a compose file in which so many agents are models, each with a chain of tasks.
func modelFile(vendor, url string, agents, tasks int, prompt string) string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"provider: m\nmax_parallel: %d\nproviders:\n  m: {kind: %s, base_url: %q, models: {medium: tiny}}\nagents:\n",
		agents, vendor, url+"/v1")
	for a := range agents {
		fmt.Fprintf(&b, "  a%d: {}\n", a)
	}
	b.WriteString("tasks:\n")
	for t := range tasks {
		for a := range agents {
			fmt.Fprintf(&b, "  a%dt%d: {agent: a%d, prompt-string: %q", a, t, a, prompt)
			if t > 0 {
				fmt.Fprintf(&b, ", depends_on: [a%dt%d]", a, t-1)
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}

// buildSDK builds the program that calls models by their vendors' own libraries.
func (l *lab) buildSDK() error {
	if l.sdk != "" {
		return nil
	}
	fmt.Fprintln(os.Stderr, "building the program with the vendors' libraries; the first time takes some minutes")
	path := filepath.Join(l.dir, "sdk")
	out, err := exec.Command("go", "-C", filepath.Join("bench", "sdk"), "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the program with the vendors' libraries cannot be built: %w\n%s", err, out)
	}
	l.sdk = path
	return nil
}

// ask calls the model by the vendor's library.
func (l *lab) ask(vendor, url string, callers, each int, prompt string) error {
	cmd := l.command(l.dir, l.sdk, vendor, url, strconv.Itoa(callers), strconv.Itoa(each))
	cmd.Stdin = strings.NewReader(prompt)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// turns measures what we add to a request to a model: the time from one request to the next in a
// run in which each turn waits for the one before. The floor is the same requests by the vendor's
// library, one after the other.
func (l *lab) turns() error {
	if err := l.buildSDK(); err != nil {
		return err
	}
	const turns = 200
	prompt := strings.Repeat("do what has to be done, well. ", 140)
	answer := modeltest.Answer{
		Text:  strings.Repeat("here is what I have done, and why. ", 60),
		Usage: modeltest.Usage{Input: 1000, Output: 500},
	}
	for _, vendor := range vendors {
		var c clerk
		server := c.serve(answer)
		dir, err := l.project("turns-"+vendor, modelFile(vendor, server.URL, 1, turns, prompt))
		if err != nil {
			return err
		}
		noted := func(do func() error) func() ([]time.Duration, error) {
			return func() ([]time.Duration, error) {
				if err := do(); err != nil {
					return nil, err
				}
				return c.gaps(turns)
			}
		}
		got, err := inTurn(5,
			noted(func() error { _, err := l.measure(dir, l.swarm, "up"); return err }),
			noted(func() error { return l.ask(vendor, server.URL, 1, turns, prompt) }))
		server.Close()
		if err != nil {
			return err
		}
		ours, floor := p50(slices.Concat(got[0]...), itself), p50(slices.Concat(got[1]...), itself)
		l.add(row{
			"turn of a model over HTTP, `" + vendor + "`", short(ours), short(floor) + " the vendor's library",
			short(ours-floor) + " ours", "≤ 2 ms", ours-floor <= 2*time.Millisecond})
	}
	return nil
}

// crowd measures how many turns a second 1,000 models do, against as many callers of the vendor's
// library. The clock runs from the first request until the program has ended, when everything is on
// disk. No request is answered before all agents have sent one.
func (l *lab) crowd() error {
	if err := l.buildSDK(); err != nil {
		return err
	}
	const agents, each, prompt = 1000, 5, "Say something."
	answer := modeltest.Answer{Text: strings.Repeat("well, ", 30), Usage: modeltest.Usage{Input: 10, Output: 60}}
	for _, vendor := range vendors {
		c := clerk{crowd: agents}
		server := c.serve(answer)
		dir, err := l.project("crowd-"+vendor, modelFile(vendor, server.URL, agents, each, prompt))
		if err != nil {
			return err
		}
		perTurn := func(do func() error) func() (time.Duration, error) {
			return func() (time.Duration, error) {
				err := do()
				end := time.Now()
				if err != nil {
					return 0, err
				}
				asked, err := c.take(agents * each)
				if err != nil {
					return 0, err
				}
				return end.Sub(asked[0]) / (agents * each), nil
			}
		}
		got, err := inTurn(5,
			perTurn(func() error { _, err := l.measure(dir, l.swarm, "up"); return err }),
			perTurn(func() error { return l.ask(vendor, server.URL, agents, each, prompt) }))
		server.Close()
		if err != nil {
			return err
		}
		ours, floor := p50(got[0], itself), p50(got[1], itself)
		r := ratio(floor, ours)
		l.add(row{
			"1,000 models at once, `" + vendor + "`", rate(ours), rate(floor) + " the vendor's library",
			fmt.Sprintf("%.0f %%", 100*r), "≥ 70 %", r >= 0.7})
	}
	return nil
}

func rate(each time.Duration) string { return fmt.Sprintf("%.0f turns/s", 1/each.Seconds()) }
