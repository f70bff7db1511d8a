package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"swarm/internal/compose"
	"swarm/internal/project"
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
	return &cobra.Command{
		Use:   "init",
		Short: "Write a small working swarm/swarm.yaml with prompts",
		Long: `Write a small working swarm/swarm.yaml with prompts into this folder. The JSON Schema beside it
gives completion and checks in editors that have a YAML language server.

Existing files are never changed.`,
		Example: "  swarm init && swarm up",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.dir()
			if err != nil {
				return err
			}
			files, err := project.Init(dir, append(compose.Schema(), '\n'))
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string][]string{"files": files})
			}
			for _, f := range files {
				fmt.Fprintf(a.stdout, "wrote %s\n", f)
			}
			_, err = fmt.Fprintln(a.stdout, "to run it: swarm up")
			return err
		},
	}
}
