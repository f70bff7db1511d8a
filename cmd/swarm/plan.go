package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/term"
)

func (a *app) planCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "plan [PIPELINE | TASK…]",
		Short: "Show what would run, in which order, by whom and for how much at most",
		Long: `Show what "swarm up" would run: the tasks in the order in which they could start if all went well, who does them on which provider, and the most that
it can take: turns with all retries, and the largest prompts. Nothing is started.`,
		Example: "  swarm plan\n  swarm plan main --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := src.options(a, args)
			if err != nil {
				return err
			}
			o.Stdin = func() ([]byte, error) { return nil, nil }
			b, err := compose.Compile(o)
			if err != nil {
				return err
			}
			f, err := forecastOf(b)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(f)
			}
			return f.print(a)
		},
	}
	src.flags(cmd)
	return cmd
}

// A forecast is what a run would do.
type forecast struct {
	Pipeline    string         `json:"pipeline,omitempty"`
	Steps       []forecastStep `json:"steps"`
	MaxParallel int            `json:"max_parallel"`
	Budget      swarm.Budget   `json:"budget,omitzero"`
	MaxTurns    int            `json:"max_turns"`         // with all iterations and retries
	MaxInput    int64          `json:"max_input_tokens"`  // of all prompts at their largest; an estimate
	MaxUSD      float64        `json:"max_usd,omitempty"` // for those, at the providers' prices
	Unpriced    []string       `json:"unpriced,omitempty"`
}

type forecastStep struct {
	Stage      int           `json:"stage"` // steps of a stage can run side by side
	Task       string        `json:"task"`
	Agent      string        `json:"agent"`
	Provider   string        `json:"provider"`
	Model      string        `json:"model,omitempty"`
	After      []string      `json:"after,omitempty"`
	Iterations int           `json:"iterations"`
	Retries    int           `json:"retries,omitempty"`
	Timeout    time.Duration `json:"timeout_ns,omitempty"`
	MaxPrompt  int64         `json:"max_prompt_bytes"`
}

// forecastOf plays the plan through with everything going well.
func forecastOf(b *compose.Bundle) (*forecast, error) {
	p := &b.Plan
	texts := map[swarm.Hash][]byte{}
	for _, body := range b.Bodies {
		texts[swarm.HashOf(body)] = body
	}
	agents, prices := map[string]swarm.Agent{}, map[string]swarm.Price{}
	for _, ag := range p.Agents {
		agents[ag.Name] = ag
	}
	f := &forecast{Pipeline: p.Name, MaxParallel: p.MaxParallel, Budget: p.Budget, Steps: []forecastStep{}}
	for _, s := range p.Providers {
		if prices[s.Name] = s.Price; s.Price == (swarm.Price{}) {
			f.Unpriced = append(f.Unpriced, s.Name)
		}
	}
	once := *p
	once.Groups = make([]swarm.Group, len(p.Groups)) // one iteration shows the order
	once.MaxParallel = 0
	s := plan.New()
	if err := s.Add(&once); err != nil {
		return nil, err
	}
	for stage := 1; !s.Done(); stage++ {
		var running []int
		for step := s.Next(); step.Kind == plan.StepRun || step.Kind == plan.StepSkip; step = s.Next() {
			if step.Kind == plan.StepSkip {
				continue // it runs only when something fails
			}
			running = append(running, step.Task)
		}
		for _, i := range running {
			t, ag := s.Task(i), agents[s.Task(i).Agent]
			step := forecastStep{Stage: stage, Task: t.Name, Agent: t.Agent, Provider: ag.Provider, Model: firstOf(t.Model, ag.Model, t.Tier, ag.Tier),
				Iterations: p.Groups[t.Group].Iterations, Retries: t.Retries, Timeout: t.Timeout}
			for _, d := range t.DependsOn {
				step.After = append(step.After, d.Task)
			}
			for _, hash := range []swarm.Hash{t.Prompt, ag.Role} {
				if text := texts[hash]; text != nil {
					tpl, err := prompt.Unmarshal(text)
					if err != nil {
						return nil, err
					}
					step.MaxPrompt += tpl.MaxBytes(swarm.MaxOutput)
				}
			}
			turns := step.Iterations * (1 + t.Retries)
			tokens := int64(turns) * swarm.EstimateTokens(step.MaxPrompt)
			f.MaxTurns += turns
			f.MaxInput += tokens
			f.MaxUSD += prices[ag.Provider].Input * float64(tokens) / 1e6
			f.Steps = append(f.Steps, step)
			s.Ended(i, swarm.Completed)
		}
		if len(running) == 0 {
			break
		}
	}
	return f, nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func (f *forecast) print(a *app) error {
	table := term.NewTable("STAGE", "TASK", "AGENT", "PROVIDER", "AFTER", "RUNS", "LARGEST PROMPT").Right(0, 5, 6)
	for _, s := range f.Steps {
		on := s.Provider
		if s.Model != "" {
			on += " " + s.Model
		}
		runs := fmt.Sprint(s.Iterations)
		if s.Retries > 0 {
			runs += fmt.Sprintf(" (+%d)", s.Iterations*s.Retries)
		}
		table.Row(fmt.Sprint(s.Stage), s.Task, "@"+s.Agent, on, strings.Join(s.After, ", "), runs, term.Bytes(s.MaxPrompt))
	}
	if err := a.table(table); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\nat most %s", count(f.MaxTurns, "turn"))
	if c := f.Budget.Calls; c > 0 && int64(f.MaxTurns) > c {
		fmt.Fprintf(a.stdout, ", of which the budget allows %d", c)
	}
	fmt.Fprintf(a.stdout, ", ~%s tokens of prompts", term.Count(f.MaxInput))
	if f.Budget.Tokens > 0 {
		fmt.Fprintf(a.stdout, " (budget: %s in and out)", term.Count(f.Budget.Tokens))
	}
	if f.MaxUSD > 0 || f.Budget.USD > 0 {
		fmt.Fprintf(a.stdout, ", %s for them (budget: %s)", term.USD(f.MaxUSD), term.USD(f.Budget.USD))
	}
	fmt.Fprintln(a.stdout)
	if f.Budget.USD > 0 && len(f.Unpriced) > 0 {
		fmt.Fprintf(a.stdout, "without a price, and so counted as $0: %s\n", strings.Join(f.Unpriced, ", "))
	}
	return nil
}
