package compose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// texts returns the bodies by their hash.
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
	MaxTurns    int            `json:"max_turns"`                   // with all iterations and retries
	MaxInput    int64          `json:"max_input_tokens"`            // of all prompts at their largest; an estimate
	MinInput    int64          `json:"min_input_tokens"`            // the same with empty outputs in the prompts, without retries
	MaxOutput   int64          `json:"max_output_tokens,omitempty"` // of the answers in swarms; how long others are nobody knows
	MaxUSD      float64        `json:"max_usd,omitempty"`           // for those, at the providers' or the list prices; without the answers, if their length is not known
	Reported    []string       `json:"reported,omitempty"`          // providers that report the cost of a turn when it ends
	Unpriced    []string       `json:"unpriced,omitempty"`          // providers, or models of theirs, whose turns count as $0
	ReadsMore   []string       `json:"reads_more,omitempty"`        // providers whose programs send their models more than the prompt
}

// A ForecastStep is a task of a forecast.
type ForecastStep struct {
	Stage      int           `json:"stage"` // steps of a stage can run side by side
	Task       string        `json:"task"`
	Agent      string        `json:"agent"`
	Provider   string        `json:"provider"`
	Model      string        `json:"model,omitempty"`
	After      []string      `json:"after,omitempty"`
	Agents     int           `json:"agents,omitempty"` // of a swarm: how many do it at most
	Turns      int64         `json:"turns,omitempty"`  // of a swarm: how many they have at most
	Iterations int           `json:"iterations"`
	Retries    int           `json:"retries,omitempty"`
	Timeout    time.Duration `json:"timeout_ns,omitempty"`
	MaxPrompt  int64         `json:"max_prompt_bytes"`
	MinPrompt  int64         `json:"min_prompt_bytes"` // with empty outputs in it
}

// Forecast plays the plan through with every task succeeding.
func (b *Bundle) Forecast() (*Forecast, error) {
	p, texts := &b.Plan, b.texts()
	agents, specs := map[string]swarm.Agent{}, map[string]*swarm.ProviderSpec{}
	for _, ag := range p.Agents {
		agents[ag.Name] = ag
	}
	for i := range p.Providers {
		specs[p.Providers[i].Name] = &p.Providers[i]
	}
	f := &Forecast{Pipeline: p.Name, MaxParallel: p.MaxParallel, Budget: p.Budget, Steps: []ForecastStep{}}
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
				continue // it runs only if something fails
			}
			running = append(running, step.Task)
		}
		for _, i := range running {
			t, ag := s.Task(i), agents[s.Task(i).Agent]
			model := specs[ag.Provider].ModelFor(t, &ag)
			step := ForecastStep{
				Stage:      stage,
				Task:       t.Name,
				Agent:      t.Agent,
				Provider:   ag.Provider,
				Model:      cmp.Or(model, t.Tier, ag.Tier),
				Iterations: p.Groups[t.Group].Iterations,
				Retries:    t.Retries,
				Timeout:    t.Timeout,
			}
			for _, d := range t.DependsOn {
				step.After = append(step.After, d.Task)
			}
			step.MinPrompt = prompt.HeadBytes(t.Name, t.Agent, step.Iterations)
			step.MaxPrompt = step.MinPrompt
			for _, hash := range []swarm.Hash{t.Prompt, ag.Role} {
				if text := texts[hash]; text != nil {
					tpl, err := prompt.Unmarshal(text)
					if err != nil {
						return nil, err
					}
					step.MaxPrompt += tpl.MaxBytes(swarm.MaxOutput)
					step.MinPrompt += tpl.MaxBytes(0)
				}
			}
			turns := step.Iterations * (1 + t.Retries)
			if t.Swarm != nil {
				f.addSwarm(p, t, &ag, step, turns)
			} else {
				f.add(specs[ag.Provider], model, step, turns)
			}
			s.Ended(i, swarm.Completed)
		}
		if len(running) == 0 {
			break
		}
	}
	return f, nil
}

// addSwarm adds a step that a swarm does so many times.
func (f *Forecast) addSwarm(p *swarm.Plan, t *swarm.Task, ag *swarm.Agent, step ForecastStep, times int) {
	own, rules := *p, t.Swarm.Swarm
	rules.Worker = *ag
	growth.PlanSwarm(&own, &rules, t.Swarm.MaxAgents, nil)
	rules.Costs = swarmCosts(&own, strings.Repeat("x", int(min(step.MaxPrompt, 4*prompt.MaxIteration))))
	most := plan.BoundSwarm(&rules, own.Team, swarm.Budget{}, 1).Most
	step.Agents, step.Turns = t.Swarm.MaxAgents, most.Calls
	f.MaxTurns += times * int(most.Calls)
	f.MaxInput += int64(times) * most.InputTokens
	f.MaxOutput += int64(times) * most.OutputTokens
	f.MaxUSD += float64(times) * most.USD
	f.Steps = append(f.Steps, step)
}

// add adds a step that has so many turns. How long its answers are nobody knows.
func (f *Forecast) add(spec *swarm.ProviderSpec, model string, step ForecastStep, turns int) {
	need := providerkind.Bound(spec, model, step.MaxPrompt, 0)
	f.MaxTurns += turns
	f.MaxInput += int64(turns) * need.InputTokens
	f.MinInput += int64(step.Iterations) * swarm.EstimateTokens(step.MinPrompt)
	if providerkind.Of(spec.Kind).Model == providerkind.OwnModel && !slices.Contains(f.ReadsMore, spec.Name) {
		f.ReadsMore = append(f.ReadsMore, spec.Name)
	}
	if f.isPriced(spec, model) {
		f.MaxUSD += float64(turns) * need.USD
	}
	f.Steps = append(f.Steps, step)
}

// isPriced says whether the cost of a model's turns is known in advance. If it is not, the provider
// is noted.
func (f *Forecast) isPriced(spec *swarm.ProviderSpec, model string) bool {
	note := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	kind := providerkind.Of(spec.Kind)
	switch known := kind.KnowsCost(spec); {
	case spec.Price != (swarm.Price{}):
		return true
	case known && kind.ReportsCost:
		note(&f.Reported, spec.Name)
	case known && providerkind.HasPrice(model):
		return true
	case known:
		note(&f.Unpriced, spec.Name+" "+model)
	default:
		note(&f.Unpriced, spec.Name)
	}
	return false
}
