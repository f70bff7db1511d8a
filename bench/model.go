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

// sellers are those who sell models over HTTP, as a compose file names them.
var sellers = []string{"anthropic", "openai"}

// A clerk notes when a model on this machine is asked. It has the first ones wait until there is a crowd.
type clerk struct {
	crowd int

	mu    sync.Mutex
	asked []time.Time
	all   chan struct{} // closed when the crowd is there
}

// serve starts a model that always says the same.
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

// take takes what was noted since the last time, and complains if it is not so much.
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

// gaps are the times from one question to the next.
func (c *clerk) gaps(n int) (gaps []time.Duration, err error) {
	asked, err := c.take(n)
	for i := 1; i < len(asked); i++ {
		gaps = append(gaps, asked[i].Sub(asked[i-1]))
	}
	return gaps, err
}

// modelFile is a compose file in which so many agents are models, each with a chain of tasks.
func modelFile(seller, url string, agents, tasks int, prompt string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "provider: m\nmax_parallel: %d\nproviders:\n  m: {kind: %s, base_url: %q, models: {medium: tiny}}\nagents:\n", agents, seller, url+"/v1")
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

// buildSDK builds what asks models by their sellers' own libraries.
func (l *lab) buildSDK() error {
	if l.sdk != "" {
		return nil
	}
	fmt.Fprintln(os.Stderr, "building what asks by the sellers' libraries; the first time that takes some minutes")
	path := filepath.Join(l.dir, "sdk")
	out, err := exec.Command("go", "-C", filepath.Join("bench", "sdk"), "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return fmt.Errorf("what asks by the sellers' libraries cannot be built: %w\n%s", err, out)
	}
	l.sdk = path
	return nil
}

// ask has the seller's library ask.
func (l *lab) ask(seller, url string, callers, each int, prompt string) error {
	cmd := l.command(l.dir, l.sdk, seller, url, strconv.Itoa(callers), strconv.Itoa(each))
	cmd.Stdin = strings.NewReader(prompt)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// turns is what we add to a question to a model: the time from one question to the next in a run in which each turn waits for
// the one before, against the same questions by the seller's library, one after the other.
func (l *lab) turns() error {
	if err := l.buildSDK(); err != nil {
		return err
	}
	const turns = 200
	prompt := strings.Repeat("do what has to be done, well. ", 140)
	answer := modeltest.Answer{Text: strings.Repeat("here is what I have done, and why. ", 60), Usage: modeltest.Usage{Input: 1000, Output: 500}}
	for _, seller := range sellers {
		var c clerk
		server := c.serve(answer)
		dir, err := l.project("turns-"+seller, modelFile(seller, server.URL, 1, turns, prompt))
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
			noted(func() error { return l.ask(seller, server.URL, 1, turns, prompt) }))
		server.Close()
		if err != nil {
			return err
		}
		ours, floor := p50(slices.Concat(got[0]...), itself), p50(slices.Concat(got[1]...), itself)
		l.add(row{"turn of a model over HTTP, `" + seller + "`", short(ours), short(floor) + " the seller's library", short(ours-floor) + " ours", "≤ 2 ms", ours-floor <= 2*time.Millisecond})
	}
	return nil
}

// crowd is how many turns a second 1,000 models get done, against as many callers of the seller's library. The clock runs from the
// first question until the program has ended, when all is on disk. Nobody is answered before all have asked.
func (l *lab) crowd() error {
	if err := l.buildSDK(); err != nil {
		return err
	}
	const agents, each, prompt = 1000, 5, "Say something."
	answer := modeltest.Answer{Text: strings.Repeat("well, ", 30), Usage: modeltest.Usage{Input: 10, Output: 60}}
	for _, seller := range sellers {
		c := clerk{crowd: agents}
		server := c.serve(answer)
		dir, err := l.project("crowd-"+seller, modelFile(seller, server.URL, agents, each, prompt))
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
			perTurn(func() error { return l.ask(seller, server.URL, agents, each, prompt) }))
		server.Close()
		if err != nil {
			return err
		}
		ours, floor := p50(got[0], itself), p50(got[1], itself)
		r := ratio(floor, ours)
		l.add(row{"1,000 models at once, `" + seller + "`", rate(ours), rate(floor) + " the seller's library", fmt.Sprintf("%.0f %%", 100*r), "≥ 70 %", r >= 0.7})
	}
	return nil
}

func rate(each time.Duration) string { return fmt.Sprintf("%.0f turns/s", 1/each.Seconds()) }
