package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
)

func (a *app) teamCommand() *cobra.Command {
	var (
		src            source
		o              opening
		mode, phase    = teamModes(), teamPhases()
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
			o.goal, o.to = args[0], strings.TrimPrefix(o.to, "@")
			bundle, from, err := a.composeTeam(&src, o, swarm.TeamMode(mode.value), swarm.Phase(phase.value))
			if err != nil {
				return err
			}
			a.warn(bundle.Warnings)
			b := begin{bundle: bundle, file: from.File, dir: from.Dir, args: os.Args[1:], record: record, replay: replay}
			if err := b.open(o); err != nil {
				return err
			}
			return a.begin(b)
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "the `agent` that the goal is given to (default the lead)")
	f.StringArrayVar(&o.done, "done", nil, "when the goal is reached, in a `sentence`; may be given again")
	f.Var(&mode, "mode", "AUTO ends when everybody is idle, INTERACTIVE when somebody says so")
	f.Var(&phase, "phase", "in PLANNING agents write under docs/ only; IMPLEMENTATION lets them work")
	f.BoolVarP(&detach, "detach", "d", false, "run in the background; 'swarm attach' looks in, 'swarm wait' waits")
	recordFlags(cmd, &record, &replay)
	return cmd
}

func teamModes() oneOf { return oneOf{"AUTO", []string{"AUTO", "INTERACTIVE"}} }

func teamPhases() oneOf { return oneOf{"IMPLEMENTATION", []string{"PLANNING", "IMPLEMENTATION"}} }

// oneOf is a flag with a few values, in any case.
type oneOf struct {
	value  string
	values []string
}

func (o *oneOf) Set(text string) error {
	for _, v := range o.values {
		if strings.EqualFold(v, text) {
			o.value = v
			return nil
		}
	}
	return swarm.Errorf(swarm.BadInput, "choose one of %s", strings.Join(o.values, ", "))
}

func (o *oneOf) String() string { return o.value }

func (o *oneOf) Type() string { return strings.Join(o.values, "|") }

// composeTeam makes the plan of a team.
func (a *app) composeTeam(src *source, given opening, mode swarm.TeamMode, phase swarm.Phase) (*compose.Bundle, compose.Options, error) {
	o, p, err := src.read(a)
	if err != nil {
		return nil, o, err
	}
	defer p.Close()
	b, err := compose.CompileTeam(o)
	if err != nil {
		return nil, o, err
	}
	plan := &b.Plan
	switch {
	case len(plan.Edges) > 0 || len(plan.Agents) == 1:
	case src.alone && given.to != "":
		leaveAlone(plan, given.to)
	case !src.alone:
		return nil, o, (&swarm.Error{Kind: swarm.BadInput, File: o.File, Msg: "nobody may hand work to anybody: there are no edges"}).
			WithHint(`write edges: ["%s <-> %s"]`, plan.Agents[0].Name, plan.Agents[1].Name)
	}
	lead, err := leadOf(plan, given.to)
	if err != nil {
		return nil, o, err
	}
	plan.Kind, plan.Name = swarm.TeamRun, firstWords(given.goal)
	plan.Team = &swarm.Team{Lead: lead, Mode: mode, Phase: phase, ReplyTimeout: b.Settings.ReplyTimeout, MaxAgents: b.Settings.Swarm.MaxAgents}
	plan.Groups = []swarm.Group{{Iterations: 1}}
	for _, agent := range plan.Agents {
		plan.Tasks = append(plan.Tasks, swarm.Task{Name: agent.Name, Agent: agent.Name})
	}
	return b, o, nil
}

// leaveAlone takes everybody out of a plan but one agent, and what nobody else needs.
func leaveAlone(p *swarm.Plan, name string) {
	p.Agents = slices.DeleteFunc(p.Agents, func(a swarm.Agent) bool { return a.Name != name })
	p.Providers = slices.DeleteFunc(p.Providers, func(s swarm.ProviderSpec) bool {
		return !slices.ContainsFunc(p.Agents, func(a swarm.Agent) bool { return a.Provider == s.Name })
	})
}

// leadOf is who leads, when that is known, and whether the agent is there that the goal is meant for.
func leadOf(p *swarm.Plan, to string) (string, error) {
	var names []string
	for _, a := range p.Agents {
		names = append(names, a.Name)
	}
	if to != "" && !slices.Contains(names, to) {
		return "", swarm.UnknownAgent(to, names)
	}
	return p.Lead(to), nil
}

// maxGoal is as long as any message may be.
const maxGoal = 8 << 10

// firstWords is the beginning of a text, as a name.
func firstWords(text string) string {
	const most = 60
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	return string(words)
}
