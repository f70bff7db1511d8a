package control

import (
	"cmp"

	"swarm"
	"swarm/internal/compose"
)

// A Project is what a folder's compose file has: what can be started, and what is wrong with it.
type Project struct {
	Dir       string            `json:"dir"`
	File      string            `json:"file,omitempty"` // "" = there is none
	Problems  []Problem         `json:"problems"`       // as `swarm check` says them
	Pipelines []ProjectPipeline `json:"pipelines"`
	Tasks     []ProjectTask     `json:"tasks"` // of all pipelines, and of none
	Agents    []ProjectAgent    `json:"agents"`
	Edges     []swarm.Edge      `json:"edges"`
	Prompts   []string          `json:"prompts"` // names
}

// A ProjectPipeline is a set of tasks that can be started together.
type ProjectPipeline struct {
	Name  string        `json:"name"`
	Tasks []ProjectTask `json:"tasks"`
}

// A ProjectTask is a task of the compose file.
type ProjectTask struct {
	Name      string             `json:"name"`
	Agent     string             `json:"agent"`
	DependsOn []swarm.Dependency `json:"depends_on,omitempty"`
}

// A ProjectAgent is an agent of the compose file.
type ProjectAgent struct {
	Name     string `json:"name"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Role     string `json:"role,omitempty"` // the name of its role prompt
}

// A Problem is an error or a warning about a compose file and its prompts.
type Problem struct {
	Level  string `json:"level"` // error or warning
	Error  string `json:"error"`
	Hint   string `json:"hint,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Project reads what a folder's compose file has. A file that is missing or wrong is a problem of the
// project. A file that may not be read is an error.
func (c *Control) Project(r Request) (Project, error) {
	all := Project{Dir: cmp.Or(r.Dir, c.Dir), Problems: []Problem{}, Pipelines: []ProjectPipeline{}, Tasks: []ProjectTask{}, Agents: []ProjectAgent{}, Edges: []swarm.Edge{}, Prompts: []string{}}
	o, p, err := c.Compose(r)
	if p != nil {
		defer p.Close()
		for _, prompt := range p.List() {
			if !prompt.Hidden {
				all.Prompts = append(all.Prompts, prompt.Name)
			}
		}
	}
	if err != nil {
		if kind := swarm.KindOf(err); kind != swarm.NotFound && kind != swarm.BadInput {
			return Project{}, err
		}
		all.addProblem("error", err)
		return all, nil
	}
	all.File, o.Stdin = o.File, nil
	o = o.ReadOnce()
	all.check(c, o)
	b, err := compose.CompileAll(o)
	if err != nil { // the check has reported it
		return all, nil
	}
	all.Tasks = projectTasks(&b.Plan)
	for _, name := range b.Settings.Pipelines {
		o.Select = []string{name}
		if one, err := compose.Compile(o); err == nil {
			all.Pipelines = append(all.Pipelines, ProjectPipeline{name, projectTasks(&one.Plan)})
		}
	}
	o.Select = nil
	agents := &b.Plan
	if team, err := compose.CompileTeam(o); err == nil { // else its agents cannot work without tasks
		agents = &team.Plan
	}
	for _, a := range agents.Agents {
		all.Agents = append(all.Agents, ProjectAgent{a.Name, a.Provider, a.Model, a.RoleName})
	}
	all.Edges = append(all.Edges, agents.Edges...)
	return all, nil
}

// check adds what `swarm check` says about the file.
func (p *Project) check(c *Control, o compose.Options) {
	errs, warnings := compose.Check(o)
	for _, e := range errs {
		p.addProblem("error", e)
	}
	if len(errs) == 0 {
		warnings = append(warnings, c.Unconfirmed(o)...)
	}
	for _, e := range warnings {
		p.addProblem("warning", e)
	}
}

func (p *Project) addProblem(level string, err error) {
	one := Problem{Level: level, Error: err.Error(), Hint: swarm.HintOf(err)}
	if e, ok := err.(*swarm.Error); ok { //nolint:errorlint // the place of a wrapped error is not that of the whole
		one = Problem{level, e.Text(), e.Hint, e.File, e.Line, e.Column}
	}
	p.Problems = append(p.Problems, one)
}

func projectTasks(p *swarm.Plan) []ProjectTask {
	tasks := []ProjectTask{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		tasks = append(tasks, ProjectTask{t.Name, t.Agent, t.DependsOn})
	}
	return tasks
}

// Unconfirmed returns warnings about what a person has not confirmed yet.
func (c *Control) Unconfirmed(o compose.Options) (warnings []*swarm.Error) {
	all, err := c.ConfirmationsOf(o)
	if err != nil { // the check itself has reported it
		return nil
	}
	for _, q := range all {
		if q.Open() {
			warnings = append(warnings, q.Refusal())
		}
	}
	return warnings
}
