package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
)

func (a *app) teamCommand() *cobra.Command {
	var (
		src            source
		to             string
		mode, phase    = teamModes(), teamPhases()
		detach         bool
		record, replay string
	)
	cmd := &cobra.Command{
		Use:   "team GOAL",
		Short: "Give a goal to agents that hand work to each other",
		Long: `Give a goal to a team: the agents of the compose file, and its edges, which say who may hand work to whom. The goal goes to the lead, or to the
agent that --to names. Each agent has a turn when somebody has written to it. The run ends when everybody is idle and nothing is open, or when the
lead reports that it is done; with --mode INTERACTIVE, when somebody ends it.

The lead is the agent with permissions: {orchestrate: true}, else the one that --to names, else the first.`,
		Example: `  swarm team "Write a program that prints Roman numerals, with tests"
  swarm team "Plan the next release" --phase PLANNING --to planner
  swarm team "Wait for my questions" --mode INTERACTIVE -d`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if detach {
				return a.detach()
			}
			b, o, err := a.composeTeam(&src, args[0], to, swarm.TeamMode(mode.value), swarm.Phase(phase.value))
			if err != nil {
				return err
			}
			a.warn(b.Warnings)
			goal, err := goalFor(&b.Plan, to, args[0])
			if err != nil {
				return err
			}
			return a.begin(begin{bundle: b, file: o.File, dir: o.Dir, args: os.Args[1:], record: record, replay: replay, kept: []swarm.Event{goal}})
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "the `agent` that the goal is given to (default the lead)")
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
func (a *app) composeTeam(src *source, goal, to string, mode swarm.TeamMode, phase swarm.Phase) (*compose.Bundle, compose.Options, error) {
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
	if len(plan.Edges) == 0 && len(plan.Agents) > 1 {
		return nil, o, (&swarm.Error{Kind: swarm.BadInput, File: o.File, Msg: "nobody may hand work to anybody: there are no edges"}).
			WithHint(`write edges: ["%s <-> %s"]`, plan.Agents[0].Name, plan.Agents[1].Name)
	}
	lead, err := leadOf(plan, to)
	if err != nil {
		return nil, o, err
	}
	plan.Kind, plan.Name = swarm.TeamRun, firstWords(goal)
	plan.Team = &swarm.Team{Lead: lead, Mode: mode, Phase: phase, ReplyTimeout: b.Settings.ReplyTimeout, MaxAgents: b.Settings.Swarm.MaxAgents}
	plan.Groups = []swarm.Group{{Iterations: 1}}
	for _, agent := range plan.Agents {
		plan.Tasks = append(plan.Tasks, swarm.Task{Name: agent.Name, Agent: agent.Name})
	}
	return b, o, nil
}

// leadOf is who leads, when that is known, and whether the agent is there that the goal is meant for.
func leadOf(p *swarm.Plan, to string) (string, error) {
	var names []string
	lead := ""
	for _, a := range p.Agents {
		names = append(names, a.Name)
		if lead == "" && a.Permissions.Orchestrate {
			lead = a.Name
		}
	}
	switch {
	case to != "" && !slices.Contains(names, to):
		return "", swarm.Errorf(swarm.BadInput, "Unknown agent: '%s'. Valid agents: %s", to, strings.Join(names, ", ")).WithHint("%s", swarm.DidYouMean(to, names))
	case lead != "":
		return lead, nil
	case to != "":
		return to, nil
	}
	return names[0], nil
}

// maxGoal is as long as any message may be.
const maxGoal = 8 << 10

// goalFor is the first envelope of a team: the goal, from a person.
func goalFor(p *swarm.Plan, to, goal string) (swarm.Event, error) {
	if to == "" {
		to = p.Team.Lead
	}
	switch {
	case strings.TrimSpace(goal) == "":
		return swarm.Event{}, swarm.Errorf(swarm.BadInput, "the goal is empty").WithHint(`write what the team is to do: swarm team "Write …"`)
	case len(goal) > maxGoal:
		return swarm.Event{}, swarm.Errorf(swarm.BadInput, "the goal has %d bytes, and a message has room for %d", len(goal), maxGoal).
			WithHint("write it into a file of this folder, and have the goal name the file")
	}
	env := swarm.Envelope{Kind: swarm.Handoff, ID: "goal", FromNodeID: swarm.User, ToNodeID: to, CreatedAt: time.Now().UTC(), Payload: swarm.Payload{Message: goal}}
	body, err := json.Marshal(env)
	return swarm.Event{Kind: swarm.HandoffStored, Key: swarm.MailKey(env.Ref()), To: swarm.ToAgent(to), Agent: swarm.User, Data: body}, err
}

// firstWords is the beginning of a text, as a name.
func firstWords(text string) string {
	const most = 60
	words := []rune(strings.Join(strings.Fields(text), " "))
	if len(words) > most {
		return string(words[:most]) + "…"
	}
	return string(words)
}
