package main

import (
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
)

// namedRun is for commands that end a run: an older one must be named.
const namedRun = "Without RUN, use the newest run of this folder. If it has ended, name the run.\n" + runHelp

const agentHelp = "Without RUN, use the newest run of this folder. If it has ended, use the newest that a process drives.\n" + runHelp

func (a *app) startCommand() *cobra.Command {
	return a.agentCommand(run.StartAgent, "Restart an agent that failed or was cancelled",
		`Restart an agent of a team that failed or was cancelled: it gets mail and turns again. Its inbox is
empty at first, because unread mail went back to the senders when the agent ended.

In a pipeline, retry the agent's task that failed and waits for a person.`)
}

func (a *app) resetCommand() *cobra.Command {
	return a.agentCommand(run.ResetAgent, "Make an agent start over with a new session",
		`Forget the session of an agent. Its next turn starts a new session, with the full prompt.

A running turn is stopped and started again with the same inputs; messages it has sent stay sent.
The attempt counter starts at 1 again, and an agent that waits to retry does so at once.`)
}

// agentCommand makes a command that applies one action to one agent.
func (a *app) agentCommand(do run.Action, short, long string) *cobra.Command {
	name := string(do)
	return &cobra.Command{
		Use:     name + " [RUN] @AGENT",
		Short:   short,
		Long:    long + "\n\n" + agentHelp,
		Example: "  swarm " + name + " @coder\n  swarm " + name + " @last @coder",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, agent := runAndAgent(args)
			if agent == "" {
				return swarm.Errorf(swarm.BadInput, "the agent is missing").WithHint("name one: swarm %s @AGENT", name)
			}
			return a.act(cmd, ref, agent, do)
		},
	}
}

// runAndAgent reads the arguments RUN [@AGENT]. The agent is "" when the command is about the whole
// run.
func runAndAgent(args []string) (ref, agent string) {
	if len(args) == 1 {
		return args[0], ""
	}
	return args[0], strings.TrimPrefix(args[1], "@")
}

// act applies an action to one agent of a run that has not ended.
func (a *app) act(cmd *cobra.Command, ref, agent string, do run.Action) error {
	c, id, err := a.steerable(ref)
	if err != nil {
		return err
	}
	result, err := c.Act(cmd.Context(), id, agent, do)
	if err != nil {
		return err
	}
	return a.printCommand(c, result)
}
