package main

import "github.com/spf13/cobra"

// An access says who may use a command inside an agent's turn. Outside of turns a person may use
// every command.
type access int

const (
	// everyone: the command only reads, or begins a run, or acts as the agent.
	everyone access = iota
	// ownRuns: an agent may use it on runs that its turn began. Its [control.Control] finds no other.
	ownRuns
	// people: it is refused inside a turn.
	people
)

// A commandRow is a command and who may use it inside a turn. It has no default, so that a new
// command cannot be forgotten.
type commandRow struct {
	command *cobra.Command
	inside  access
}

// commandTable lists all commands.
func (a *app) commandTable() []commandRow {
	return []commandRow{
		{a.initCommand(), everyone},
		{a.replCommand(), everyone}, // --resume: ownRuns
		{a.upCommand(), everyone},
		{a.runCommand(), everyone},
		{a.teamCommand(), everyone},
		{a.solveCommand(), everyone},
		{a.deskCommand(), everyone},
		{a.resumeCommand(), ownRuns},
		{a.retryCommand(), ownRuns},
		{a.closeCommand(), ownRuns},
		{a.cancelCommand(), ownRuns},
		{a.pauseCommand(), ownRuns},
		{a.startCommand(), ownRuns},
		{a.resetCommand(), ownRuns},
		{a.approveCommand(), ownRuns},
		{a.denyCommand(), ownRuns},

		{a.sendCommand(), everyone},
		{a.inboxCommand(), everyone},
		{a.replyCommand(), everyone},
		{a.publishCommand(), everyone},
		{a.mailCommand(), everyone},
		{a.artifactCommand(), everyone},
		{a.doneCommand(), everyone},
		{a.askCommand(), everyone},
		{a.waitForCommand(), everyone},
		{a.spawnCommand(), everyone},

		{a.lsCommand(), everyone},
		{a.showCommand(), everyone},
		{a.logsCommand(), everyone},
		{a.outCommand(), everyone},
		{a.whyCommand(), everyone},
		{a.attachCommand(), everyone}, // the keys of the board: ownRuns
		{a.waitCommand(), everyone},
		{a.diffCommand(), everyone},
		{a.recordCommand(), everyone},
		{a.dbCommand(), people},
		{a.pruneCommand(), ownRuns},

		{a.checkCommand(), everyone},
		{a.planCommand(), everyone},
		{a.graphCommand(), everyone},
		{a.promptsCommand(), everyone},
		{a.configCommand(), everyone},
		{a.schemaCommand(), everyone},
		{a.doctorCommand(), everyone},
		{a.trustCommand(), people},
		{a.serveCommand(), people},
		{a.mcpCommand(), everyone}, // it serves the tools of the agent that starts it
		{a.versionCommand(), everyone},
	}
}

// commands returns all commands. Each checks who calls it before it does anything.
func (a *app) commands() (all []*cobra.Command) {
	for _, row := range a.commandTable() {
		a.runOptional(row.command)
		a.restrict(row.command, row.inside)
		all = append(all, row.command)
	}
	return all
}

// restrict lets a command, and the commands below it, check who calls it.
func (a *app) restrict(cmd *cobra.Command, inside access) {
	for _, sub := range cmd.Commands() {
		a.restrict(sub, inside)
	}
	act := cmd.RunE
	if inside == everyone || act == nil {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.steering = true; inside == people {
			c, err := a.control()
			if err == nil {
				err = c.Caller.Person(cmd.CommandPath())
			}
			if err != nil {
				return err
			}
		}
		return act(cmd, args)
	}
}
