package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/agentfile"
	"swarm/internal/desk"
	"swarm/internal/term"
)

// A newDesk holds the flags of `swarm desk new`.
type newDesk struct {
	template, role        string
	objective, background string
	requirements          []string
	criteria              []string
	constraints           []string
	outputs               []string
	inputs                []string
	after                 []string
}

func (a *app) deskNewCommand() *cobra.Command {
	var n newDesk
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a desk",
		Long: `Make the folder NAME with SKILL.md, inbox/instructions.md, outbox/, workspace/ and status.json. The flags
become the sections of the instructions; without --objective, edit them before the work begins.

Inputs are copied to inbox/, read-only. Those larger than 4 MB are named in the instructions instead.
--role NAME takes name, description and text of .claude/agents/NAME.md, of this folder or the home folder,
into SKILL.md. --after AGENT:outbox/FILE makes the desk depend on an output of the desk AGENT beside it.`,
		Example: "  swarm desk new notes --template writer --objective 'Say what is new' --input CHANGELOG.md\n" +
			"  swarm desk new report --template integration --objective 'Merge them' --after notes:outbox/text.md",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.makeDesk(args[0], &n) },
	}
	n.flags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("role", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		p, err := a.project()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer p.Close()
		return p.AgentFiles(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (n *newDesk) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&n.template, "template", "", "start from a `TEMPLATE`: "+strings.Join(desk.TemplateNames(), ", "))
	flags.StringVar(&n.role, "role", "", "take the role of the agent `NAME` in .claude/agents")
	flags.StringVar(&n.objective, "objective", "", "what is to be accomplished")
	flags.StringVar(&n.background, "context", "", "what the worker should know about it")
	flags.StringArrayVar(&n.inputs, "input", nil, "copy a `FILE` or folder to the inbox; may be repeated")
	flags.StringArrayVar(&n.requirements, "requirement", nil, "a requirement; may be repeated")
	flags.StringArrayVar(&n.criteria, "criterion", nil, "a measurable outcome; may be repeated")
	flags.StringArrayVar(&n.constraints, "constraint", nil, "a constraint; may be repeated")
	flags.StringArrayVar(&n.outputs, "output", nil, "what is expected in the outbox, in words; may be repeated")
	flags.StringArrayVar(&n.after, "after", nil, "wait for the desk `AGENT`; AGENT:outbox/FILE also copies that output; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(desk.TemplateNames(), cobra.ShellCompDirectiveNoFileComp))
}

// makeDesk makes the desk, and says what to do next.
func (a *app) makeDesk(dir string, n *newDesk) error {
	name := filepath.Base(filepath.Clean(dir))
	if dir == "" {
		name = ""
	}
	if err := swarm.CheckTaskName(name); err != nil {
		if !slices.Contains(swarm.Reserved, name) {
			err = swarm.Errorf(swarm.BadInput, "%s is not a name for a desk", swarm.Quote(name)).WithHint("%s", swarm.HintOf(err))
		}
		return err
	}
	if _, err := a.home(); err != nil { // the state folder records the inputs
		return err
	}
	n.objective = strings.TrimSpace(n.objective)
	setup, err := a.setupOf(name, n)
	if err != nil {
		return err
	}
	d, manifest, err := desk.Create(dir, setup)
	if err != nil {
		return err
	}
	defer d.Close()
	if n.objective == "" { // a person will write it
		manifest.Files = slices.DeleteFunc(manifest.Files, func(f desk.Recorded) bool { return f.Path == desk.InstructionsFile })
	}
	if err := a.keepInputs(d, manifest); err != nil {
		return err
	}
	if a.json {
		return a.print(map[string]string{"desk": name, "path": d.Path()})
	}
	next := "swarm desk run " + dir + " -- COMMAND"
	if n.objective == "" {
		next = "write the task into " + filepath.Join(dir, desk.InstructionsFile)
	}
	fmt.Fprintf(a.stdout, "created the desk %s\nnext: %s\n", term.Escape(dir), term.Escape(next))
	return nil
}

// setupOf returns the initial content of the desk: the template, the role, and what the flags add.
func (a *app) setupOf(name string, n *newDesk) (desk.Setup, error) {
	setup, err := desk.Template(n.template)
	if err != nil {
		return setup, err
	}
	if n.role != "" {
		if setup.Skill, err = a.skillOf(n.role); err != nil {
			return setup, err
		}
	}
	i := &setup.Instructions
	i.Task, i.Context = name, n.background
	if n.objective != "" {
		i.Objective = n.objective
	}
	i.Requirements, i.Constraints = append(i.Requirements, n.requirements...), n.constraints
	for _, c := range n.criteria {
		i.Criteria = append(i.Criteria, desk.Criterion{Text: c})
	}
	if n.outputs != nil {
		i.Outputs = append(n.outputs, desk.DefaultOutputs[1])
	}
	for _, file := range n.inputs {
		if file == "" {
			return setup, swarm.Errorf(swarm.BadInput, "an --input has no name").WithHint("name a file or a folder: --input FILE")
		}
		abs, err := filepath.Abs(file) // so that . and .. have a name
		if err != nil {
			return setup, err
		}
		setup.Inputs = append(setup.Inputs, desk.Input{Name: filepath.Base(abs), Source: file})
	}
	if setup.Dependencies, err = dependencies(name, n.after); err == nil && setup.Dependencies != nil {
		i.Inputs = setup.Dependencies.Provided()
	}
	return setup, err
}

// skillOf returns the SKILL.md of an agent in .claude/agents.
func (a *app) skillOf(name string) (string, error) {
	p, err := a.project()
	if err != nil {
		return "", err
	}
	defer p.Close()
	file, text, err := p.AgentFile(name)
	if err != nil {
		return "", err
	}
	role, bad := agentfile.Parse(file, text)
	if bad != nil {
		return "", bad
	}
	return desk.Skill(role.Name, strings.TrimSpace(role.Description+"\n\n"+strings.TrimSpace(role.Body))), nil
}

// dependencies reads the values of --after. The outputs of an agent are copied to a folder of its own.
func dependencies(name string, after []string) (*desk.Dependencies, error) {
	if len(after) == 0 {
		return nil, nil
	}
	deps := &desk.Dependencies{}
	at := map[string]int{}
	for _, text := range after {
		agent, output, found := strings.Cut(text, ":")
		if agent == name {
			return nil, swarm.Errorf(swarm.BadInput, "the desk %s would wait for itself", name).
				WithHint("name another desk: --after OTHER")
		}
		if _, known := at[agent]; !known {
			at[agent] = -1
			deps.WaitFor = append(deps.WaitFor, agent)
		}
		if !found {
			continue
		}
		if at[agent] < 0 {
			at[agent] = len(deps.DependsOn)
			deps.DependsOn = append(deps.DependsOn, desk.Dependency{Agent: agent, CopyTo: desk.Inbox + "/" + agent + "/"})
		}
		dep := &deps.DependsOn[at[agent]]
		dep.Outputs = append(dep.Outputs, output)
	}
	if err := deps.Check(); err != nil {
		return nil, err
	}
	return deps, nil
}
