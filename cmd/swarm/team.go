package main

import (
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
)

func (a *app) teamCommand() *cobra.Command {
	var (
		src            source
		r              control.Request
		mode, phase    = oneOf(control.Modes), oneOf(control.Phases)
		detach         bool
		record, replay string
	)
	cmd := &cobra.Command{
		Use:   "team GOAL",
		Short: "Give a goal to a team of agents that message each other",
		Long: `Give a goal to a team: the agents of the compose file, with its edges. An edge permits one agent to
message another. The goal goes to the lead, or to the agent that --to names. An agent gets a turn when
it has mail.

The run ends when all agents are idle and no mail or approval is open, or when the lead reports that
the work is done. With --mode INTERACTIVE, it ends with: swarm close.

With --done-command, or team.expect of the file, the run checks the goal before it is completed. If the
check fails, the lead is told why and the team goes on. After 5 failed checks (team.max_checks) the run
fails. A sentence of --done is told to the agents, and reported as unchecked.

A context pack goes with the goal:
  done          when the goal is reached: --done, and team.done of the file; what the run checks
  constraints   team.constraints of the file
  facts         docs, language, test command of this folder, and the files that the goal names
Files that may hold secrets are not read. 'swarm artifact ls' lists the pack.

The lead is the agent with permissions: {orchestrate: true}, or else the one that --to names, or else
the first.`,
		Example: `  swarm team "Write a program that prints Roman numerals, with tests"
  swarm team "Speed up parse.go" --done-command "go test ./..." --done "BENCH.md has the figures"
  swarm team "Plan the next release" --phase PLANNING --to planner
  swarm team "Wait for my questions" --mode INTERACTIVE -d`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("done-command") && r.DoneCommand == "" {
				r.DoneCommand = " " // it is refused, and not left out
			}
			if detach {
				return a.detach("")
			}
			goal := src.request(a, nil)
			goal.Goal, goal.To, goal.Done, goal.DoneCommand, goal.Replay = args[0], strings.TrimPrefix(r.To, "@"), r.Done, r.DoneCommand, replay
			goal.Mode, goal.Phase, goal.Unattended = mode.value, phase.value, !a.attended()
			return a.plan(goal, record)
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.To, "to", "", "the `agent` that gets the goal (default the lead)")
	f.StringArrayVar(&r.Done, "done", nil, "a `sentence` that says when the goal is reached, which nothing checks; may be given again")
	f.StringVar(&r.DoneCommand, "done-command", "", "a `command` that checks whether the goal is reached; the run is completed only after it has passed")
	f.Var(&mode, "mode", "AUTO ends when all agents are idle, INTERACTIVE with swarm close")
	f.Var(&phase, "phase", "in PLANNING agents write only under docs/")
	detachFlag(cmd, &detach)
	recordFlags(cmd, &record, &replay)
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

// oneOf makes a flag with a few values, in upper or lower case. The first is the default.
func oneOf(values []string) choice { return choice{values[0], values} }

type choice struct {
	value  string
	values []string
}

func (o *choice) Set(text string) error {
	for _, v := range o.values {
		if strings.EqualFold(v, text) {
			o.value = v
			return nil
		}
	}
	return swarm.Errorf(swarm.BadInput, "choose one of %s", strings.Join(o.values, ", "))
}

func (o *choice) String() string { return o.value }

func (o *choice) Type() string { return strings.Join(o.values, "|") }
