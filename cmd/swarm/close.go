package main

import (
	"github.com/spf13/cobra"
)

func (a *app) closeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close [RUN]",
		Short: "End a team when the turns that run now are through",
		Long: `Let running turns finish, start no other, and end the team's run: it is completed, and exits with 0. That is how a team in INTERACTIVE mode
comes to its end. What nobody has read then goes back; swarm cancel cuts what runs instead.

Without RUN it is the newest run of this folder that still goes on, else the newest. ` + runHelp,
		Example:           "  swarm close\n  swarm close @last",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref := ""
			if len(args) > 0 {
				ref = args[0]
			} else if c, err := a.control(); err != nil {
				return err
			} else if ref, err = c.Newest(); err != nil {
				return err
			}
			c, id, err := a.steerable(ref)
			if err != nil {
				return err
			}
			result, err := c.Close(cmd.Context(), id)
			if err != nil {
				return err
			}
			return a.said(c, result)
		},
	}
}
