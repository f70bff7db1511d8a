package main

import (
	"github.com/spf13/cobra"
)

func (a *app) closeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close [RUN]",
		Short: "End a team's run after its running turns",
		Long: `Let running turns finish, start no others, and end the team's run. The run is completed, and exits
with 0. This is how a team in INTERACTIVE mode ends. Unread mail goes back to its senders. To stop
running turns instead, use swarm cancel.

` + namedRun,
		Example: "  swarm close\n  swarm close @last",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, id, err := a.steerable(args[0])
			if err != nil {
				return err
			}
			result, err := c.Close(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.printCommand(c, result)
		},
	}
}
