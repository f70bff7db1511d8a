package main

import "github.com/spf13/cobra"

// commands lists all commands, in the groups in which help shows them.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.upCommand(), a.resumeCommand(), a.retryCommand(), a.cancelCommand(), a.pauseCommand(),
	}
}
