package main

import "github.com/spf13/cobra"

// commands lists all commands, in the groups in which help shows them.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.initCommand(), a.replCommand(), a.upCommand(), a.runCommand(), a.teamCommand(), a.resumeCommand(), a.retryCommand(), a.closeCommand(), a.cancelCommand(), a.pauseCommand(), a.startCommand(), a.resetCommand(), a.approveCommand(), a.denyCommand(),
		a.sendCommand(), a.inboxCommand(), a.replyCommand(), a.publishCommand(), a.mailCommand(), a.artifactCommand(),
		a.doneCommand(), a.askCommand(), a.waitForCommand(), a.spawnCommand(),
		a.lsCommand(), a.showCommand(), a.logsCommand(), a.outCommand(), a.whyCommand(), a.attachCommand(), a.waitCommand(), a.diffCommand(), a.recordCommand(), a.pruneCommand(),
		a.checkCommand(), a.planCommand(), a.graphCommand(), a.promptsCommand(),
		a.configCommand(), a.schemaCommand(), a.doctorCommand(), a.serveCommand(), a.mcpCommand(), a.versionCommand(),
	}
}
