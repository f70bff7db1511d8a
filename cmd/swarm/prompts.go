package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/project"
	"swarm/internal/prompt"
	"swarm/internal/term"
)

func (a *app) promptsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prompts",
		Short: "List, show, write and check prompts",
		Long: `Prompts are files: swarm/prompts/NAME.md in the project, or else prompts/NAME.md in the state folder.

In a prompt:
  {{output:planner}}                 the last output of the task planner, between two marker lines
  {{output:tests:last_50_lines}}     its end; also first_N_lines
  {{output:report:.summary.title}}   a part of an output that is JSON
  {{input:plan}}                     the output of the task that inputs.plan names
  {{include: style}}                 another prompt file, relative to this one
  {{STDIN}}                          the text from standard input
  \{{                                a literal {{`,
		Example: "  swarm prompts list\n  swarm prompts new reviewer\n  swarm prompts check",
		Args:    knownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.promptsListCommand(), a.promptsShowCommand(), a.promptsNewCommand(), a.promptsCheckCommand())
	return cmd
}

func (a *app) project() (*project.Project, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	return project.Open(dir, "", h.PromptPath()), nil
}

func (a *app) promptsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the prompts of this project and of the state folder",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			defer p.Close()
			all := p.List()
			if a.json {
				if all == nil {
					all = []project.PromptInfo{}
				}
				return a.print(all)
			}
			if len(all) == 0 {
				fmt.Fprintln(a.stdout, "there are no prompts here; to write one: swarm prompts new NAME")
				return nil
			}
			table := term.NewTable("NAME", "FILE", "")
			for _, one := range all {
				note := ""
				if one.Hidden {
					note = "hidden by another of the same name"
				}
				table.Row(one.Name, one.Path, note)
			}
			return a.table(table)
		},
	}
}

func (a *app) promptsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a prompt with its includes in place",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			defer p.Close()
			file, text, err := p.Prompt(args[0])
			if err != nil {
				return err
			}
			tpl, _, err := prompt.Parse(prompt.Source{File: file, Text: text}, p.Include)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]any{"name": args[0], "file": file, "text": string(text), "parts": tpl.Parts})
			}
			for _, part := range tpl.Parts {
				if a.onTerminal() {
					fmt.Fprint(a.stdout, term.Escape(part.String()))
				} else {
					fmt.Fprint(a.stdout, part.String())
				}
			}
			return nil
		},
	}
}

func (a *app) promptsNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "new NAME",
		Short:   "Write a new prompt file",
		Example: "  swarm prompts new reviewer",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			defer p.Close()
			file, err := p.NewPrompt(args[0], []byte("# "+args[0]+"\n\nSay here what the agent should do.\n"))
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]string{"file": file})
			}
			_, err = fmt.Fprintf(a.stdout, "wrote %s\n", term.OneLine(file))
			return err
		},
	}
}

func (a *app) promptsCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [NAME…]",
		Short: "Find mistakes in prompts: includes, directives, names",
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.project()
			if err != nil {
				return err
			}
			defer p.Close()
			if len(args) == 0 {
				for _, one := range p.List() {
					if !one.Hidden {
						args = append(args, one.Name)
					}
				}
			}
			var errs, warnings []*swarm.Error
			for _, name := range args {
				file, text, err := p.Prompt(name)
				if err == nil {
					var doubts []*swarm.Error
					_, doubts, err = prompt.Parse(prompt.Source{File: file, Text: text}, p.Include)
					warnings = append(warnings, doubts...)
				}
				wrong := prompt.Errors(err)
				if errs = append(errs, wrong...); err != nil && len(wrong) == 0 {
					return err
				}
			}
			if len(errs) > 0 {
				a.exit = swarm.ExitBadInput
			}
			if a.json {
				return a.print(map[string][]problem{"errors": problems(errs), "warnings": problems(warnings)})
			}
			a.listProblems("error", errs)
			a.listProblems("warning", warnings)
			_, err = fmt.Fprintf(a.stdout, "%s: %s, %s\n", term.Plural(len(args), "prompt"), term.Plural(len(errs), "error"), term.Plural(len(warnings), "warning"))
			return err
		},
	}
}
