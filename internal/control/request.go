package control

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/project"
)

// A Request is a run that is to begin: of a pipeline or tasks, or, with a goal, of a team. What is left out is as `swarm up`, or
// `swarm team`, has it.
type Request struct {
	Dir      string   `json:"dir"`      // where it is started; "" = the caller's folder
	File     string   `json:"file"`     // the compose file
	Pipeline string   `json:"pipeline"` // this one,
	Tasks    []string `json:"tasks"`    // or these tasks, with what they depend on
	Only     bool     `json:"only"`     // without what they depend on
	Set      []string `json:"set"`      // changes of the compose file, as in pipelines.main.iterations=5
	Provider string   `json:"provider"`
	Jobs     int      `json:"jobs"`  // turns at once
	Stdin    string   `json:"stdin"` // what {{STDIN}} stands for
	Goal     string   `json:"goal"`  // of a team,
	To       string   `json:"to"`    // which is given to this agent
	Done     []string `json:"done"`  // and reached when this holds
	Mode     string   `json:"mode"`
	Phase    string   `json:"phase"`

	Structured json.RawMessage        `json:"-"` // what comes with the goal beside its text
	Origin     *swarm.Origin          `json:"-"` // the message of another program by which the run begins
	Alone      bool                   `json:"-"` // without edges each agent of a team works alone
	ReadStdin  func() ([]byte, error) `json:"-"` // instead of Stdin
	Args       []string               `json:"-"` // the command line, for the record
	Replay     string                 `json:"-"` // a recording to take the agents' answers from
	Unattended bool                   `json:"-"` // no person is there to decide: a team that makes no progress ends
}

// The values of [Request.Mode] and [Request.Phase]. The first of each is the default.
var (
	Modes  = []string{string(swarm.AutoMode), string(swarm.InteractiveMode)}
	Phases = []string{string(swarm.ImplementationPhase), string(swarm.PlanningPhase)}
)

// Compose finds the project of a request and reads its compose file. When only that is missing, everything else is filled in.
func (c *Control) Compose(r Request) (compose.Options, *project.Project, error) {
	dir := r.Dir
	if dir == "" {
		dir = c.Dir
	}
	preferred := r.Provider
	if preferred == "" {
		preferred = os.Getenv("SWARM_PROVIDER")
	}
	selected := r.Tasks
	if r.Pipeline != "" {
		selected = []string{r.Pipeline}
	}
	stdin := r.ReadStdin
	if stdin == nil {
		stdin = func() ([]byte, error) { return []byte(r.Stdin), nil }
	}
	p := project.Open(dir, r.File, c.Home.PromptPath())
	file, text, err := p.Compose()
	return compose.Options{File: file, Source: text, Prompts: p, Select: selected, Only: r.Only, Set: r.Set, Provider: preferred,
		MaxParallel: r.Jobs, Dir: dir, Stdin: stdin}, p, err
}

// Plan makes the plan of a request. Nothing has started when it returns.
func (c *Control) Plan(r Request) (*Begin, error) {
	if r.Goal != "" {
		return c.planTeam(r)
	}
	o, _, err := c.Compose(r)
	if err != nil {
		return nil, err
	}
	b, err := compileTasks(o)
	if err != nil {
		return nil, err
	}
	if r.Args == nil {
		r.Args = append([]string{"up"}, o.Select...)
	}
	return &Begin{Bundle: b, File: o.File, Dir: o.Dir, Args: r.Args, Replay: r.Replay}, nil
}

// compileTasks makes the plan of something to do. A file of agents only is for those who tell them what to do.
func compileTasks(o compose.Options) (*compose.Bundle, error) {
	b, err := compose.Compile(o)
	if err != nil || len(b.Plan.Tasks) > 0 {
		return b, err
	}
	e := &swarm.Error{Kind: swarm.BadInput, File: o.File, Msg: "this file has no tasks"}
	if len(b.Plan.Agents) == 0 {
		return nil, e.WithHint("write at least one: tasks: {hello: {prompt-string: \"Say hello.\"}}")
	}
	return nil, e.WithHint("give its agents something to do: swarm team \"…\", swarm run '@%s …' or swarm repl", b.Plan.Agents[0].Name)
}

func (c *Control) planTeam(r Request) (*Begin, error) {
	b, o, err := c.Team(r)
	if err != nil {
		return nil, err
	}
	if r.Args == nil {
		r.Args = []string{"team", r.Goal}
	}
	begin := &Begin{Bundle: b, File: o.File, Dir: o.Dir, Args: r.Args, Origin: r.Origin, Replay: r.Replay}
	return begin, begin.open(r)
}

// Team makes the plan of a team, as far as it does not depend on the goal.
func (c *Control) Team(r Request) (*compose.Bundle, compose.Options, error) {
	mode, err := oneOf("mode", r.Mode, Modes)
	if err != nil {
		return nil, compose.Options{}, err
	}
	phase, err := oneOf("phase", r.Phase, Phases)
	if err != nil {
		return nil, compose.Options{}, err
	}
	o, p, err := c.Compose(r)
	if err != nil {
		return nil, o, err
	}
	defer p.Close()
	b, err := compose.CompileTeam(o)
	if err != nil {
		return nil, o, err
	}
	plan := &b.Plan
	switch {
	case len(plan.Edges) > 0 || len(plan.Agents) == 1:
	case r.Alone && r.To != "":
		leaveAlone(plan, r.To)
	case !r.Alone:
		return nil, o, (&swarm.Error{Kind: swarm.BadInput, File: o.File, Msg: "this team has no edges, so its agents cannot message each other"}).
			WithHint(`write edges: ["%s <-> %s"]`, plan.Agents[0].Name, plan.Agents[1].Name)
	}
	lead, err := leadOf(plan, r.To)
	if err != nil {
		return nil, o, err
	}
	plan.Kind, plan.Name = swarm.TeamRun, firstWords(r.Goal)
	plan.Team = &swarm.Team{Lead: lead, Mode: swarm.TeamMode(mode), Phase: swarm.Phase(phase), ReplyTimeout: b.Settings.ReplyTimeout, MaxAgents: b.Settings.Swarm.MaxAgents,
		Retries: b.Settings.Team.Retries, OnStall: b.Settings.Team.OnStall}
	if plan.Team.OnStall == "" && r.Unattended && plan.Team.Mode == swarm.AutoMode {
		plan.Team.OnStall = swarm.StallFails
	}
	return b, o, nil
}

// oneOf is the value that a text means, in any case; the first one when there is none.
func oneOf(what, text string, values []string) (string, error) {
	if text == "" {
		return values[0], nil
	}
	for _, v := range values {
		if strings.EqualFold(v, text) {
			return v, nil
		}
	}
	return "", swarm.Errorf(swarm.BadInput, "no team has the %s %s", what, swarm.Quote(text)).WithHint("choose one of %s", strings.Join(values, ", "))
}

// leaveAlone takes all agents out of a plan but one, and the providers that only the others need.
func leaveAlone(p *swarm.Plan, name string) {
	p.Agents = slices.DeleteFunc(p.Agents, func(a swarm.Agent) bool { return a.Name != name })
	p.Providers = slices.DeleteFunc(p.Providers, func(s swarm.ProviderSpec) bool {
		return !slices.ContainsFunc(p.Agents, func(a swarm.Agent) bool { return a.Provider == s.Name })
	})
}

// leadOf is the lead of a team, once it is known that the agent is there that the goal is meant for.
func leadOf(p *swarm.Plan, to string) (string, error) {
	var names []string
	for _, a := range p.Agents {
		names = append(names, a.Name)
	}
	if to != "" && !slices.Contains(names, to) {
		return "", swarm.UnknownAgent(to, names)
	}
	return p.Lead(to), nil
}

// firstWords is the beginning of a text, as a name.
func firstWords(text string) string {
	const most = 60
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	return string(words)
}
