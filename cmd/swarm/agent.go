package main

import (
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
)

const agentHelp = runHelp + " Without RUN, @AGENT is one of the newest run of this folder that still goes on."

func (a *app) startCommand() *cobra.Command {
	return a.agentCommand(run.StartAgent, "Let an agent that has ended have turns again",
		`Let an agent of a team that failed or was cancelled have turns again: it gets mail again, in an inbox that is empty, for what lay in it when
it ended went back. In a pipeline, try again a task of the agent that failed and waits for a person.`)
}

func (a *app) resetCommand() *cobra.Command {
	return a.agentCommand(run.ResetAgent, "Have an agent begin anew",
		`Forget the session of an agent: its next turn begins a fresh one, with the whole prompt. A turn that runs is cut and begun anew with the same
inputs; what it has sent stands. Its attempts are counted anew, and one that waits for its next attempt has it at once.`)
}

// agentCommand makes a command that does something to one agent.
func (a *app) agentCommand(do run.Action, short, long string) *cobra.Command {
	name := string(do)
	return &cobra.Command{
		Use:               name + " [RUN] @AGENT",
		Short:             short,
		Long:              long + "\n\n" + agentHelp,
		Example:           "  swarm " + name + " @coder\n  swarm " + name + " @last @coder",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeRunOrAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, agent, err := a.meant(args)
			switch {
			case err != nil:
				return err
			case agent == "":
				return swarm.Errorf(swarm.BadInput, "which agent?").WithHint("name one: swarm %s %s @AGENT", name, ref)
			}
			return a.act(cmd, ref, agent, do)
		},
	}
}

// meant is the run and the agent that a user means by [RUN] [@AGENT]; agent is "" when it is the run.
func (a *app) meant(args []string) (ref, agent string, err error) {
	if len(args) == 1 {
		if name, ok := strings.CutPrefix(args[0], "@"); ok && args[0] != "@last" {
			c, failed := a.control()
			if failed != nil {
				return "", "", failed
			}
			ref, err = c.Newest()
			return ref, name, err
		}
		return args[0], "", nil
	}
	name, ok := strings.CutPrefix(args[1], "@")
	if !ok || name == "" {
		return "", "", swarm.Errorf(swarm.BadInput, "%s is no agent", swarm.Quote(args[1])).WithHint("agents are written with @: @%s", args[1])
	}
	return args[0], name, nil
}

// act does something to one agent of a run that has not ended.
func (a *app) act(cmd *cobra.Command, ref, agent string, do run.Action) error {
	c, id, err := a.steerable(ref)
	if err != nil {
		return err
	}
	result, err := c.Act(cmd.Context(), id, agent, do)
	if err != nil {
		return err
	}
	return a.said(c, result)
}

// completeRunOrAgent offers the agents of the newest run and the runs there are, and then the agents of the run that was named.
func (a *app) completeRunOrAgent(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 1 || len(args) == 1 && strings.HasPrefix(args[0], "@") && args[0] != "@last" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ref := ""
	if len(args) == 1 {
		ref = args[0]
	}
	agents, how := a.offerOf(ref, begun, offerAgents)
	if len(args) == 1 {
		return agents, how
	}
	runs, how := a.completeRun(cmd, args, begun)
	return append(agents, runs...), how
}
