package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/agentfile"
	"swarm/internal/desk"
	"swarm/internal/excerpt"
	"swarm/internal/term"
)

func (a *app) deskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "desk",
		Short: "Work with agents that only read and write files",
		Long: `A desk is a folder through which an agent works. It reads inbox/instructions.md, writes outbox/, and says
in status.json how far it is: pending, running, completed or failed. So a shell script, a notebook, a
person with an editor or a program in any language can be a teammate.

These commands need no compose file. They work on any folder that follows the protocol.`,
		Example: "  swarm desk new notes --template writer --objective 'Say what is new'\n" +
			"  swarm desk run notes -- claude -p 'Do what SKILL.md says'\n  swarm desk collect notes",
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.deskNewCommand(), a.deskRunCommand(), a.deskStatusCommand(), a.deskCollectCommand(),
		a.deskFixCommand(), a.deskDissolveCommand(), a.deskValidateCommand())
	return cmd
}

// completeDesks offers folders.
func completeDesks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeDesk offers folders for the first argument only.
func completeDesk(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func (a *app) deskNewCommand() *cobra.Command {
	var template, role string
	var objective, background string
	var requirements, criteria, constraints, outputs, inputs, after []string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a desk",
		Long: `Make the folder NAME with SKILL.md, inbox/instructions.md, outbox/, workspace/ and status.json. The flags
become the sections of the instructions; without --objective, edit them before somebody works there.

Inputs are copied to inbox/, read-only. Those larger than 4 MB are named in the instructions instead.
--role NAME takes name, description and text of .claude/agents/NAME.md, of this folder or the home folder,
into SKILL.md. --after AGENT:outbox/FILE makes the desk depend on an output of the desk AGENT beside it.`,
		Example: "  swarm desk new notes --template writer --objective 'Say what is new' --input CHANGELOG.md\n" +
			"  swarm desk new report --template integration --objective 'Merge them' --after notes:outbox/text.md",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := filepath.Base(filepath.Clean(args[0]))
			if err := swarm.CheckTaskName(name); err != nil {
				return err
			}
			if _, err := a.home(); err != nil { // it keeps what the inputs are
				return err
			}
			setup, err := desk.Template(template)
			if err != nil {
				return err
			}
			if role != "" {
				if setup.Skill, err = a.skillOf(role); err != nil {
					return err
				}
			}
			i := &setup.Instructions
			i.Task, i.Context = name, background
			if objective != "" {
				i.Objective = objective
			}
			i.Requirements, i.Constraints = append(i.Requirements, requirements...), constraints
			for _, c := range criteria {
				i.Criteria = append(i.Criteria, desk.Criterion{Text: c})
			}
			if outputs != nil {
				i.Outputs = append(outputs, desk.DefaultOutputs[1])
			}
			for _, file := range inputs {
				setup.Inputs = append(setup.Inputs, desk.Input{Name: filepath.Base(filepath.Clean(file)), Source: file})
			}
			if setup.Dependencies, err = dependencies(after); err != nil {
				return err
			}
			d, manifest, err := desk.Create(args[0], setup)
			if err != nil {
				return err
			}
			defer d.Close()
			if objective == "" { // a person is going to write it
				manifest.Files = slices.DeleteFunc(manifest.Files, func(f desk.Recorded) bool { return f.Path == desk.InstructionsFile })
			}
			if err := a.keepInputs(d, manifest); err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]string{"desk": name, "path": d.Path()})
			}
			fmt.Fprintf(a.stdout, "the desk %s is made\n", term.Escape(args[0]))
			if objective == "" {
				fmt.Fprintf(a.stdout, "next: write what is to be done into %s\n", term.Escape(filepath.Join(args[0], desk.InstructionsFile)))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&template, "template", "", "start from a `TEMPLATE`: "+strings.Join(desk.TemplateNames(), ", "))
	flags.StringVar(&role, "role", "", "be the agent `NAME` of .claude/agents")
	flags.StringVar(&objective, "objective", "", "what is to be accomplished")
	flags.StringVar(&background, "context", "", "what the worker should know about it")
	flags.StringArrayVar(&inputs, "input", nil, "copy a `FILE` or folder to the inbox; may be repeated")
	flags.StringArrayVar(&requirements, "requirement", nil, "a requirement; may be repeated")
	flags.StringArrayVar(&criteria, "criterion", nil, "a measurable outcome; may be repeated")
	flags.StringArrayVar(&constraints, "constraint", nil, "a constraint; may be repeated")
	flags.StringArrayVar(&outputs, "output", nil, "what is expected in the outbox, in words; may be repeated")
	flags.StringArrayVar(&after, "after", nil, "wait for `AGENT`, or AGENT:outbox/FILE to get this output too; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(desk.TemplateNames(), cobra.ShellCompDirectiveNoFileComp))
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

// skillOf is the SKILL.md of an agent of .claude/agents.
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
func dependencies(after []string) (*desk.Dependencies, error) {
	if len(after) == 0 {
		return nil, nil
	}
	deps := &desk.Dependencies{}
	at := map[string]int{}
	for _, text := range after {
		agent, output, found := strings.Cut(text, ":")
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

func (a *app) deskStatusCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "status [DESK…]",
		Short: "Show what desks say of themselves",
		Long: `Show the state and the progress of desks; without arguments, of those in this folder. DESK is a folder, or
a task of this folder's newest run that had a desk. A status.json that is just being written is not an
error: the last good state counts.

With -f, print each change until all have ended, and exit with 1 if one failed. With --json, the result
is an array; with -f, one object a line for each change.`,
		Example:           "  swarm desk status\n  swarm desk status -f notes report\n  swarm desk status --json",
		ValidArgsFunction: completeDesks,
		RunE: func(cmd *cobra.Command, args []string) error {
			desks, err := openDesks(args, a.findDesk)
			if err != nil {
				return err
			}
			defer closeDesks(desks)
			if follow {
				return a.followDesks(desks)
			}
			return a.listDesks(cmd.Context(), desks)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print each change until all have ended")
	return cmd
}

// openDesks opens the desks that the user names, or all in this folder.
func openDesks(names []string, open func(name string) (*desk.Desk, error)) (desks []*desk.Desk, err error) {
	named := len(names) > 0
	if !named {
		if names, err = filepath.Glob("*/" + desk.Inbox); err != nil {
			return nil, err
		}
		for i := range names {
			names[i] = filepath.Dir(names[i])
		}
		if _, err := os.Lstat(desk.Inbox); err == nil {
			names = append(names, ".")
		}
	}
	for _, name := range names {
		d, err := open(name)
		if err != nil && named {
			closeDesks(desks)
			return nil, err
		}
		if err == nil {
			desks = append(desks, d)
		}
	}
	return desks, nil
}

func closeDesks(desks []*desk.Desk) {
	for _, d := range desks {
		d.Close()
	}
}

// A deskReport is the JSON form of a desk's status.
type deskReport struct {
	Desk    string       `json:"desk"`
	Path    string       `json:"path"`
	Status  *desk.Status `json:"status"` // null = none could be read yet
	Writing bool         `json:"writing,omitempty"`
	Problem *problem     `json:"problem,omitempty"`
}

func reportOf(d *desk.Desk, r desk.Reading) deskReport {
	report := deskReport{Desk: d.Name(), Path: d.Path(), Writing: r.Writing}
	if r.Status.State != "" {
		report.Status = &r.Status
	}
	if e := problemOfReading(r); e != nil {
		p := problemOf(e)
		report.Problem = &p
	}
	return report
}

// problemOfReading is what is wrong with a status.
func problemOfReading(r desk.Reading) *swarm.Error {
	if r.Violation != nil {
		return r.Violation
	}
	return r.Unread
}

// deskWords tells a status to people.
func deskWords(r desk.Reading) (state, progress, wrong string) {
	state, progress = string(r.Status.State), r.Status.Progress.String()
	if state == "" {
		state = "unreadable"
	}
	switch e := problemOfReading(r); {
	case e != nil:
		wrong = e.Text()
	case r.Status.State == desk.Failed && r.Status.Error != nil:
		wrong = r.Status.Error.String()
	}
	return state, progress, wrong
}

func (a *app) listDesks(ctx context.Context, desks []*desk.Desk) error {
	reports := []deskReport{}
	table := term.NewTable("DESK", "STATE", "PROGRESS", "STARTED", "PROBLEM")
	for _, d := range desks {
		r := d.Status(ctx)
		reports = append(reports, reportOf(d, r))
		state, progress, wrong := deskWords(r)
		table.Row(d.Name(), state, progress, ago(r.Status.Started, time.Now()), wrong)
	}
	switch {
	case a.json:
		return a.print(reports)
	case len(desks) == 0:
		fmt.Fprintln(a.stdout, "there is no desk in this folder; to make one: swarm desk new NAME")
		return nil
	}
	return a.table(table)
}

// followDesks prints the changes of desks until each has ended.
func (a *app) followDesks(desks []*desk.Desk) error {
	ctx, end := leaveSignals()
	defer end()
	w := desk.NewWatcher(desk.WatchOptions{})
	defer w.Close()
	var printing sync.Mutex
	var all sync.WaitGroup
	ends := make([]desk.Reading, len(desks))
	errs := make([]error, len(desks))
	for i, d := range desks {
		all.Go(func() {
			ends[i], errs[i] = w.Follow(ctx, d, desk.Status{}, nil, func(r desk.Reading) {
				printing.Lock()
				defer printing.Unlock()
				a.tellDesk(a.stdout, d, r)
			})
		})
	}
	all.Wait()
	for _, r := range ends {
		if r.Status.State == desk.Failed || r.Violation != nil {
			a.exit = swarm.ExitFailed
		}
	}
	return errors.Join(errs...)
}

// tellDesk prints one change of a desk.
func (a *app) tellDesk(to io.Writer, d *desk.Desk, r desk.Reading) {
	if a.json {
		_ = a.print(reportOf(d, r)) // a person or program that has left gets no more
		return
	}
	state, progress, wrong := deskWords(r)
	line := d.Name() + "  " + state
	for _, more := range []string{progress, excerpt.OneLine(wrong)} {
		if more != "" {
			line += "  " + more
		}
	}
	fmt.Fprintln(to, term.Escape(line))
}

func (a *app) deskValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate DIR…",
		Short: "Check that a folder follows the protocol of desks",
		Long: `Check folders against the protocol: the folders and files that must be there, the sections of
instructions.md, the fields of status.json, the paths in dependencies.json, and, of a completed desk, that
it has a summary and a deliverable. Nothing is changed, and links are not followed.

Exits with 2 on errors, and with 0 when there are only warnings.`,
		Example:           "  swarm desk validate notes\n  swarm desk validate notes --json",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeDesks,
		RunE: func(_ *cobra.Command, args []string) error {
			var errs, warnings []*swarm.Error
			for _, dir := range args {
				e, w := desk.Validate(dir)
				errs, warnings = append(errs, e...), append(warnings, w...)
			}
			if len(errs) > 0 {
				a.exit = swarm.ExitBadInput
			}
			if a.json {
				return a.print(struct {
					Errors   []problem `json:"errors"`
					Warnings []problem `json:"warnings"`
				}{problems(errs), problems(warnings)})
			}
			a.listProblems("error", errs)
			a.listProblems("warning", warnings)
			count := "no errors"
			if len(errs) > 0 {
				count = term.Plural(len(errs), "error")
			}
			fmt.Fprintf(a.stdout, "%s: %s, %s\n", term.Escape(strings.Join(args, ", ")), count, term.Plural(len(warnings), "warning"))
			return nil
		},
	}
}
