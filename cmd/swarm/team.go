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
		Short: "Give a goal to agents that hand work to each other",
		Long: `Give a goal to a team: the agents of the compose file, and its edges, which say who may hand work to whom. The goal goes to the lead, or to the
agent that --to names. Each agent has a turn when somebody has written to it. The run ends when everybody is idle and nothing is open, or when the
lead reports that it is done; with --mode INTERACTIVE, when somebody ends it: swarm close.

With the goal goes a context pack: when it is reached (--done, and team.done of the file), what it has to keep to (team.constraints), and what this
folder tells of itself: docs, language, test command, the files that the goal names. Nothing is read that may hold secrets. 'swarm artifact ls' lists it.

The lead is the agent with permissions: {orchestrate: true}, else the one that --to names, else the first.`,
		Example: `  swarm team "Write a program that prints Roman numerals, with tests"
  swarm team "Speed up parse.go" --done "go test ./... passes" --done "BENCH.md has the figures"
  swarm team "Plan the next release" --phase PLANNING --to planner
  swarm team "Wait for my questions" --mode INTERACTIVE -d`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if detach {
				return a.detach()
			}
			goal := src.request(a, nil)
			goal.Goal, goal.To, goal.Done, goal.Replay = args[0], strings.TrimPrefix(r.To, "@"), r.Done, replay
			goal.Mode, goal.Phase, goal.Unattended = mode.value, phase.value, !a.attended()
			return a.plan(goal, record)
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.To, "to", "", "the `agent` that the goal is given to (default the lead)")
	f.StringArrayVar(&r.Done, "done", nil, "when the goal is reached, in a `sentence`; may be given again")
	f.Var(&mode, "mode", "AUTO ends when everybody is idle, INTERACTIVE when somebody says so")
	f.Var(&phase, "phase", "in PLANNING agents write under docs/ only; IMPLEMENTATION lets them work")
	f.BoolVarP(&detach, "detach", "d", false, "run in the background; 'swarm attach' looks in, 'swarm wait' waits")
	recordFlags(cmd, &record, &replay)
	return cmd
}

// oneOf makes a flag with a few values, in any case. The first is the default.
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
