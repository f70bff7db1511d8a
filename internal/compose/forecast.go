package compose

import (
	"cmp"
	"time"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/prompt"
)

// texts are the bodies by their hash.
func (b *Bundle) texts() map[swarm.Hash][]byte {
	texts := make(map[swarm.Hash][]byte, len(b.Bodies))
	for _, body := range b.Bodies {
		texts[swarm.HashOf(body)] = body
	}
	return texts
}

// A Forecast is what a run would do.
type Forecast struct {
	Pipeline    string         `json:"pipeline,omitempty"`
	Steps       []ForecastStep `json:"steps"`
	MaxParallel int            `json:"max_parallel"`
	Budget      swarm.Budget   `json:"budget,omitzero"`
	MaxTurns    int            `json:"max_turns"`         // with all iterations and retries
	MaxInput    int64          `json:"max_input_tokens"`  // of all prompts at their largest; an estimate
	MaxUSD      float64        `json:"max_usd,omitempty"` // for those, at the providers' prices
	Unpriced    []string       `json:"unpriced,omitempty"`
}

// A ForecastStep is a task in it.
type ForecastStep struct {
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

// Forecast plays the plan through with everything going well.
func (b *Bundle) Forecast() (*Forecast, error) {
	p, texts := &b.Plan, b.texts()
	agents, prices := map[string]swarm.Agent{}, map[string]swarm.Price{}
	for _, ag := range p.Agents {
		agents[ag.Name] = ag
	}
	f := &Forecast{Pipeline: p.Name, MaxParallel: p.MaxParallel, Budget: p.Budget, Steps: []ForecastStep{}}
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
			step := ForecastStep{Stage: stage, Task: t.Name, Agent: t.Agent, Provider: ag.Provider, Model: cmp.Or(t.Model, ag.Model, t.Tier, ag.Tier),
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
