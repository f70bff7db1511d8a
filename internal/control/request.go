package control

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/project"
)

// A Request asks for a run: of a pipeline or of tasks, or, with a goal, of a team. Defaults are
// those of `swarm up` and `swarm team`.
type Request struct {
	Dir         string   `json:"dir"`      // the folder to start it in; "" = the caller's
	File        string   `json:"file"`     // the compose file
	Pipeline    string   `json:"pipeline"` // the pipeline to run
	Tasks       []string `json:"tasks"`    // or the tasks, with their dependencies
	Only        bool     `json:"only"`     // without the dependencies
	Set         []string `json:"set"`      // changes to the compose file, such as pipelines.main.iterations=5
	Provider    string   `json:"provider"`
	Jobs        int      `json:"jobs"`         // maximum of parallel turns
	Stdin       string   `json:"stdin"`        // the text of {{STDIN}}
	Query       string   `json:"query"`        // a swarm's query
	Agents      *int     `json:"agents"`       // of a swarm: how many work at once; nil = the default
	Iterations  *int     `json:"iterations"`   // of a swarm: of one agent; nil = as the file says
	Strategy    string   `json:"strategy"`     // of a swarm: team or council; "" = as the file says
	ApprovePlan bool     `json:"approve_plan"` // of a swarm: a person decides whether its agents work on the plan
	Subtasks    string   `json:"-"`            // of a swarm: the file that divides the query; "" = the supervisor does
	Goal        string   `json:"goal"`         // a team's goal
	To          string   `json:"to"`           // the agent that gets the goal
	Done        []string `json:"done"`         // conditions that the goal is reached
	DoneCommand string   `json:"done_command"` // a shell command that checks whether the goal is reached
	Mode        string   `json:"mode"`
	Phase       string   `json:"phase"`
	Line        string   `json:"line"` // a line of a conversation; packages above start it

	Budget     swarm.Budget           `json:"-"` // the most that the run may use, whatever the file says; 0 = as the file says
	Structured json.RawMessage        `json:"-"` // structured data with the goal
	AnswerTo   string                 `json:"-"` // the file that gets a swarm's answer, absolute
	Origin     *swarm.Origin          `json:"-"` // the message of another program that begins the run
	Alone      bool                   `json:"-"` // in a team without edges only one agent works
	ReadStdin  func() ([]byte, error) `json:"-"` // instead of Stdin
	Args       []string               `json:"-"` // the command line, for the log
	Replay     string                 `json:"-"` // a recording that replaces the agents
	Unattended bool                   `json:"-"` // no person is there to decide: a team without progress ends
	Within     string                 `json:"-"` // the folder that File must be in; "" = any
	Lock       swarm.StoreLock        `json:"-"` // under which the run begins; nil = under none
}

// Held returns an error if the lock of the request may be another process's by now.
func (r *Request) Held(ctx context.Context) error { return held(ctx, r.Lock) }

// held is [swarm.StoreLock.Held] of a lock that may be nil.
func held(ctx context.Context, l swarm.StoreLock) error {
	if l == nil {
		return nil
	}
	return l.Held(ctx)
}

// The values of [Request.Mode] and [Request.Phase]. The first of each is the default.
var (
	Modes  = []string{string(swarm.AutoMode), string(swarm.InteractiveMode)}
	Phases = []string{string(swarm.ImplementationPhase), string(swarm.PlanningPhase)}
)

// Compose finds the project of a request and reads its compose file. If only the file is missing,
// the options are filled in all the same.
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
	if r.Within != "" && r.File != "" {
		p.Confine(r.Within)
	}
	file, text, err := p.Compose()
	return compose.Options{File: file, Source: text, Prompts: p, Select: selected, Only: r.Only, Set: r.Set, Provider: preferred,
		MaxParallel: r.Jobs, Dir: dir, Stdin: stdin}, p, err
}

// Plan makes the plan of a request. It starts nothing.
func (c *Control) Plan(r Request) (*Begin, error) {
	b, err := c.plan(r)
	if err == nil && r.Within != "" && len(r.Set) > 0 {
		err = confine(b, r.Within)
	}
	if err == nil && b.Replay == "" {
		b.Engine, err = c.engineOf(b.Bundle)
	}
	if err != nil {
		return nil, err
	}
	b.Key, b.lock = c.Caller.Actor().Client, r.Lock
	return b, nil
}

// confine returns an error if a plan names a folder or a file outside of this one. A file that a person wrote
// may do so. A client that may start runs in one folder must not by changing its keys.
func confine(b *Begin, within string) error {
	p, within := &b.Bundle.Plan, followLinks(within)
	folders := []string{workspaceOf(p), p.Desks}
	for _, a := range p.AllAgents() {
		folders = append(folders, a.Root)
	}
	for i := range p.Tasks {
		folders = append(append(folders, p.Tasks[i].Workdir), p.Tasks[i].Files...)
	}
	for _, f := range folders {
		if f == "" {
			continue
		}
		if !filepath.IsAbs(f) {
			f = filepath.Join(b.Dir, f)
		}
		f = followLinks(f)
		if rel, err := filepath.Rel(within, f); err != nil || !filepath.IsLocal(rel) {
			return swarm.Errorf(swarm.Denied, "this server acts in %s only, and the run names %s", within, f).
				WithHint("leave the folder out of set, or start the server with -g for every folder")
		}
	}
	return nil
}

// followLinks returns the path without links, as far as it exists.
func followLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent, name := filepath.Split(filepath.Clean(path))
	if parent = filepath.Clean(parent); parent == filepath.Clean(path) || name == ".." {
		return path
	}
	return filepath.Join(followLinks(parent), name)
}

func (c *Control) plan(r Request) (*Begin, error) {
	if r.Goal != "" {
		return c.planTeam(r)
	}
	if r.Query != "" {
		return c.planSwarm(r)
	}
	o, _, err := c.Compose(r)
	if err != nil {
		return nil, err
	}
	b, err := compileTasks(o)
	if err != nil {
		return nil, err
	}
	b.Plan.Budget = b.Plan.Budget.Within(r.Budget)
	if r.Args == nil {
		r.Args = append([]string{"up"}, o.Select...)
	}
	return &Begin{Bundle: b, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider, Args: r.Args, Replay: r.Replay}, nil
}

// compileTasks compiles a file that must have tasks. A file with agents only is for teams and
// lines.
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
	begin := &Begin{Bundle: b, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider, Args: r.Args, Origin: r.Origin, Key: c.Caller.Actor().Client, Replay: r.Replay}
	return begin, begin.addGoal(r)
}

// Team makes the part of a team's plan that does not depend on the goal.
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
	plan.Budget = plan.Budget.Within(r.Budget)
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
	plan.Team = &swarm.Team{Lead: lead, Mode: swarm.TeamMode(mode), Phase: swarm.Phase(phase), ReplyTimeout: b.Settings.ReplyTimeout,
		MaxAgents: b.Settings.Swarm.MaxAgents, Retries: b.Settings.Team.Retries, OnStall: b.Settings.Team.OnStall,
		Expect: b.Settings.Team.Expect, MaxChecks: b.Settings.Team.MaxChecks}
	if r.DoneCommand != "" {
		expect := swarm.Expect{}
		if plan.Team.Expect != nil {
			expect = *plan.Team.Expect
		}
		expect.Command, plan.Team.Expect = r.DoneCommand, &expect
	}
	if plan.Team.OnStall == "" && r.Unattended && plan.Team.Mode == swarm.AutoMode {
		plan.Team.OnStall = swarm.StallFails
	}
	return b, o, nil
}

// oneOf returns the value that a text means, in any case. An empty text means the first value.
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

// leaveAlone removes all agents but one from a plan, and the providers that only the others need.
func leaveAlone(p *swarm.Plan, name string) {
	p.Agents = slices.DeleteFunc(p.Agents, func(a swarm.Agent) bool { return a.Name != name })
	p.Providers = slices.DeleteFunc(p.Providers, func(s swarm.ProviderSpec) bool {
		return !slices.ContainsFunc(p.Agents, func(a swarm.Agent) bool { return a.Uses(s.Name) })
	})
}

// leadOf returns the lead of a team, after it has checked that the agent exists that gets the goal.
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

// firstWords returns the beginning of a text, as a name.
func firstWords(text string) string {
	const most = 60
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	return string(words)
}
