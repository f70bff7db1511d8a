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

A context pack goes with the goal:
  done          when the goal is reached: --done, and team.done of the file
  constraints   team.constraints of the file
  facts         docs, language, test command of this folder, and the files that the goal names
Files that may hold secrets are not read. 'swarm artifact ls' lists the pack.

The lead is the agent with permissions: {orchestrate: true}, or else the one that --to names, or else
the first.`,
		Example: `  swarm team "Write a program that prints Roman numerals, with tests"
  swarm team "Speed up parse.go" --done "go test ./... passes" --done "BENCH.md has the figures"
  swarm team "Plan the next release" --phase PLANNING --to planner
  swarm team "Wait for my questions" --mode INTERACTIVE -d`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if detach {
				return a.detach("")
			}
			goal := src.request(a, nil)
			goal.Goal, goal.To, goal.Done, goal.Replay = args[0], strings.TrimPrefix(r.To, "@"), r.Done, replay
			goal.Mode, goal.Phase, goal.Unattended = mode.value, phase.value, !a.attended()
			return a.plan(goal, record)
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.To, "to", "", "the `agent` that gets the goal (default the lead)")
	f.StringArrayVar(&r.Done, "done", nil, "a `sentence` that says when the goal is reached; may be given again")
	f.Var(&mode, "mode", "AUTO ends when all agents are idle, INTERACTIVE with swarm close")
	f.Var(&phase, "phase", "in PLANNING agents write only under docs/")
	f.BoolVarP(&detach, "detach", "d", false, "run in the background; see swarm attach and swarm wait")
	recordFlags(cmd, &record, &replay)
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
