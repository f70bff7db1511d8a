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

// A commandRow is a command, who may use it inside a turn, and its group in the help. It has no
// default, so that a new command cannot be forgotten.
type commandRow struct {
	command *cobra.Command
	inside  access
	group   string
}

// Groups of commands, in the order of the help.
const (
	toRun      = "Run agents:"
	toLook     = "Look at runs:"
	toControl  = "Control runs:"
	toWrite    = "Read and write messages:"
	toPrepare  = "Before a run:"
	forAgents  = "For agents, in their turns:"
	toKeep     = "Old and damaged runs:"
	forSystems = "For programs, and the rest:"
)

// commandTable lists all commands, in the order of the help.
func (a *app) commandTable() []commandRow {
	return []commandRow{
		{a.upCommand(), everyone, toRun},
		{a.runCommand(), everyone, toRun},
		{a.replCommand(), everyone, toRun}, // --resume: ownRuns
		{a.teamCommand(), everyone, toRun},
		{a.solveCommand(), everyone, toRun},
		{a.deskCommand(), everyone, toRun},

		{a.initCommand(), everyone, toPrepare},
		{a.checkCommand(), everyone, toPrepare},
		{a.planCommand(), everyone, toPrepare},
		{a.graphCommand(), everyone, toPrepare},
		{a.promptsCommand(), everyone, toPrepare},
		{a.configCommand(), everyone, toPrepare},
		{a.schemaCommand(), everyone, toPrepare},
		{a.doctorCommand(), everyone, toPrepare},
		{a.trustCommand(), people, toPrepare},

		{a.lsCommand(), everyone, toLook},
		{a.showCommand(), everyone, toLook},
		{a.logsCommand(), everyone, toLook},
		{a.outCommand(), everyone, toLook},
		{a.diffCommand(), everyone, toLook},
		{a.whyCommand(), everyone, toLook},
		{a.attachCommand(), everyone, toLook}, // the keys of the board: ownRuns
		{a.waitCommand(), everyone, toLook},
		{a.recordCommand(), everyone, toLook},
		{a.exportCommand(), everyone, toLook},

		{a.pauseCommand(), ownRuns, toControl},
		{a.resumeCommand(), ownRuns, toControl},
		{a.cancelCommand(), ownRuns, toControl},
		{a.closeCommand(), ownRuns, toControl},
		{a.retryCommand(), ownRuns, toControl},
		{a.forkCommand(), ownRuns, toControl},
		{a.startCommand(), ownRuns, toControl},
		{a.resetCommand(), ownRuns, toControl},
		{a.approveCommand(), ownRuns, toControl},
		{a.denyCommand(), ownRuns, toControl},

		{a.sendCommand(), everyone, toWrite},
		{a.inboxCommand(), everyone, toWrite},
		{a.replyCommand(), everyone, toWrite},
		{a.publishCommand(), everyone, toWrite},
		{a.mailCommand(), everyone, toWrite},
		{a.artifactCommand(), everyone, toWrite},

		{a.doneCommand(), everyone, forAgents},
		{a.askCommand(), everyone, forAgents},
		{a.waitForCommand(), everyone, forAgents},
		{a.spawnCommand(), everyone, forAgents},

		{a.pruneCommand(), ownRuns, toKeep},
		{a.dbCommand(), people, toKeep},

		{a.serveCommand(), people, forSystems},
		{a.workerCommand(), people, forSystems},
		{a.mcpCommand(), everyone, forSystems}, // it serves the tools of the agent that starts it
		{a.versionCommand(), everyone, forSystems},
	}
}

// otherNames are commands of other programs, and what does the same here.
var otherNames = map[string]string{
	"stop":    "swarm cancel ends a run, swarm pause lets its running turns finish",
	"down":    "swarm cancel ends a run",
	"kill":    "swarm cancel ends a run",
	"status":  "swarm show has the newest run, swarm ls all of this folder",
	"ps":      "swarm ls lists the runs of this folder",
	"restart": "swarm retry runs again what failed",
	"rm":      "swarm prune deletes old runs",
}

// commands returns all commands. Each checks who calls it before it does anything.
func (a *app) commands() (all []*cobra.Command) {
	for _, row := range a.commandTable() {
		a.runOptional(row.command)
		a.restrict(row.command, row.inside)
		row.command.GroupID = row.group
		all = append(all, row.command)
	}
	return all
}

// steers is the annotation of commands that steer runs.
const steers = "steers"

// restrict lets a command, and the commands below it, check who calls it.
func (a *app) restrict(cmd *cobra.Command, inside access) {
	for _, sub := range cmd.Commands() {
		a.restrict(sub, inside)
	}
	act := cmd.RunE
	if inside == everyone || act == nil {
		return
	}
	cmd.Annotations = map[string]string{steers: "yes"}
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
