package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"swarm/internal/compose"
	"swarm/internal/project"
	"swarm/internal/term"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of swarm.yaml, for editors",
		Example: "  swarm schema > swarm/swarm.schema.json\n  # and as the first line of swarm/swarm.yaml, as swarm init writes it:\n  # yaml-language-server: $schema=swarm.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(append(compose.Schema(), '\n'))
			return err
		},
	}
}

func (a *app) initCommand() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "init [TEMPLATE]",
		Short: "Write a small working swarm/swarm.yaml with prompts",
		Long: `Write a small working swarm/swarm.yaml with prompts into this folder. A script plays its agents, so
it needs no key. For agents that do the work, change the line "provider: demo".

The JSON Schema beside the file gives completion and checks in editors that have a YAML language
server. Existing files are never changed.`,
		Example: "  swarm init && swarm up\n  swarm init --list\n  swarm init review",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, t := range project.Templates {
				names = append(names, cobra.CompletionWithDesc(t.Name, t.About))
			}
			if len(args) > 0 {
				names = nil
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if list {
				return a.listTemplates()
			}
			return a.initProject(strings.Join(args, ""))
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the templates, and write nothing")
	return cmd
}

func (a *app) listTemplates() error {
	if a.json {
		return a.print(project.Templates)
	}
	table := term.NewTable("TEMPLATE", "WHAT IT IS")
	for i, t := range project.Templates {
		about := t.About
		if i == 0 {
			about += " (the default)"
		}
		table.Row(t.Name, about)
	}
	return a.table(table)
}

// initProject writes a template into this folder, and says how to run it.
func (a *app) initProject(template string) error {
	t, err := project.FindTemplate(template)
	if err != nil {
		return err
	}
	dir, err := a.dir()
	if err != nil {
		return err
	}
	files, err := t.Init(dir, append(compose.Schema(), '\n'))
	if err != nil {
		return err
	}
	if a.json {
		return a.print(map[string][]string{"files": files, "try": t.Try})
	}
	for _, f := range files {
		fmt.Fprintf(a.stdout, "wrote %s\n", f)
	}
	for i, command := range t.Try {
		lead := "to run it:"
		if i > 0 {
			lead = "or:"
		}
		fmt.Fprintf(a.stdout, "%-10s %s\n", lead, command)
	}
	return nil
}
