package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/term"
)

func (a *app) planCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "plan [PIPELINE | TASK…]",
		Short: "Show what would run, in which order, and the most it can cost",
		Long: `Show what "swarm up" would run: the tasks in the order in which they can start, with their agents and
providers. Also show upper limits: the number of turns with all retries, and the size of prompts. The
cost of prompts uses the providers' prices, or the list prices of their models. It does not include
the cost of answers. Nothing is started.

If the file has no tasks, show the team: the provider of each agent, and the agents it may message.`,
		Example: "  swarm plan\n  swarm plan main --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := src.compile(a, args)
			if err != nil {
				return err
			}
			if len(b.Plan.Tasks) == 0 {
				return a.printTeam(b)
			}
			f, err := b.Forecast()
			if err != nil {
				return err
			}
			if a.json {
				return a.print(f)
			}
			return a.printForecast(f)
		},
	}
	src.flags(cmd)
	src.selection(cmd)
	return cmd
}

func (a *app) printForecast(f *compose.Forecast) error {
	table := term.NewTable("STAGE", "TASK", "AGENT", "PROVIDER", "AFTER", "RUNS", "LARGEST PROMPT").Right(0, 5, 6).Cut(4)
	for _, s := range f.Steps {
		on := s.Provider
		if s.Model != "" {
			on += " " + s.Model
		}
		runs, by := fmt.Sprint(s.Iterations), "@"+s.Agent
		if s.Agents > 0 {
			by = "a swarm of " + by + ", at most " + term.Plural(s.Agents, "agent") + " and " + term.Plural(s.Turns, "turn")
		}
		if s.Retries > 0 {
			runs += fmt.Sprintf(" (+%d)", s.Iterations*s.Retries)
		}
		table.Row(fmt.Sprint(s.Stage), s.Task, by, on, strings.Join(s.After, ", "), runs, term.Bytes(s.MaxPrompt))
	}
	if err := a.table(table); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\nat most %s", term.Plural(f.MaxTurns, "turn"))
	if c := f.Budget.Calls; c > 0 && int64(f.MaxTurns) > c {
		fmt.Fprintf(a.stdout, ", of which the budget allows %d", c)
	}
	fmt.Fprintf(a.stdout, ", ~%s tokens of prompts", term.Count(f.MaxInput))
	if f.MaxOutput > 0 {
		fmt.Fprintf(a.stdout, " and %s of answers in swarms", term.Count(f.MaxOutput))
	}
	if f.Budget.Tokens > 0 {
		fmt.Fprintf(a.stdout, " (budget: %s in and out)", term.Count(f.Budget.Tokens))
	}
	if f.MaxUSD > 0 {
		fmt.Fprintf(a.stdout, ", %s for them without the %s", term.USD(f.MaxUSD), map[bool]string{true: "other answers", false: "answers"}[f.MaxOutput > 0])
	}
	if f.Budget.USD > 0 {
		fmt.Fprintf(a.stdout, " (budget: %s)", term.USD(f.Budget.USD))
	}
	fmt.Fprintln(a.stdout)
	if slices.ContainsFunc(f.Steps, func(s compose.ForecastStep) bool { return s.MaxPrompt >= s.MinPrompt+swarm.MaxOutput }) {
		a.note("an output in a prompt counts as %s, the most that is kept; with empty outputs it is ~%s tokens", term.Bytes(swarm.MaxOutput), term.Count(f.MinInput))
	}
	if len(f.ReadsMore) > 0 {
		a.note("not counted: instructions, files and tool results that programs send to their models: %s", strings.Join(f.ReadsMore, ", "))
	}
	if f.Budget.USD > 0 && len(f.Unpriced) > 0 {
		fmt.Fprintf(a.stdout, "without a price, so counted as $0: %s\n", strings.Join(f.Unpriced, ", "))
	}
	if f.Budget.USD > 0 && len(f.Reported) > 0 {
		fmt.Fprintf(a.stdout, "cost is known only after each turn: %s\n", strings.Join(f.Reported, ", "))
	}
	return nil
}

// note prints a sentence, wrapped at the width of the terminal.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stdout, term.Hang(fmt.Sprintf(format, args...), a.width(), 0))
}

// A teamMember is an agent of a team as `swarm plan` shows it.
type teamMember struct {
	Agent    string   `json:"agent"`
	Provider string   `json:"provider"`
	Model    string   `json:"model,omitempty"`
	Lead     bool     `json:"lead,omitempty"`
	WritesTo []string `json:"writes_to"`
}

// membersOf lists the agents of a plan without tasks.
func membersOf(p *swarm.Plan) (all []teamMember) {
	lead := p.Lead("")
	for _, ag := range p.Agents {
		m := teamMember{Agent: ag.Name, Provider: ag.Provider, Lead: ag.Name == lead, WritesTo: []string{}}
		for _, s := range p.Providers {
			if s.Name == ag.Provider {
				m.Model = s.ModelFor(&swarm.Task{}, &ag)
			}
		}
		for _, e := range p.Edges {
			switch {
			case e.From == ag.Name:
				m.WritesTo = append(m.WritesTo, e.To)
			case e.Both && e.To == ag.Name:
				m.WritesTo = append(m.WritesTo, e.From)
			}
		}
		all = append(all, m)
	}
	return all
}

// printTeam shows a team. It forecasts no number of turns, because each message causes one.
func (a *app) printTeam(b *compose.Bundle) error {
	p := &b.Plan
	team := membersOf(p)
	if a.json {
		return a.print(map[string]any{"team": team, "max_parallel": p.MaxParallel, "budget": p.Budget})
	}
	table := term.NewTable("AGENT", "PROVIDER", "MAY WRITE TO", "")
	for _, m := range team {
		note := ""
		if m.Lead && len(p.Edges) > 0 {
			note = "leads"
		}
		table.Row("@"+m.Agent, strings.TrimSpace(m.Provider+" "+m.Model), strings.Join(m.WritesTo, ", "), note)
	}
	if err := a.table(table); err != nil {
		return err
	}
	switch {
	case len(team) == 1:
		fmt.Fprintf(a.stdout, "\nto talk to it: swarm run '@%s …'; to have a swarm of it answer a question: swarm solve \"…\"\n", team[0].Agent)
	case len(p.Edges) == 0:
		fmt.Fprintf(a.stdout, "\nto talk to them: swarm run '@%s …' or swarm repl; without edges they cannot message each other\n", team[0].Agent)
	default:
		fmt.Fprintf(a.stdout, "\nto give them a goal: swarm team \"…\"; it goes to @%s unless --to names another\n", p.Lead(""))
	}
	switch bounds := boundsOf(p.Budget); {
	case bounds == "":
		fmt.Fprintln(a.stdout, "no budget limits the number of turns; to set one, write budget: {calls: 200}")
	default:
		fmt.Fprintf(a.stdout, "the budget limits the number of turns: %s\n", bounds)
	}
	return nil
}

// boundsOf describes the limits of a budget. It is "" when there are none.
func boundsOf(b swarm.Budget) string {
	var all []string
	if b.Calls > 0 {
		all = append(all, term.Plural(b.Calls, "call"))
	}
	if b.Tokens > 0 {
		all = append(all, term.Count(b.Tokens)+" tokens")
	}
	if b.USD > 0 {
		all = append(all, term.USD(b.USD))
	}
	if b.Wall > 0 {
		all = append(all, term.Duration(b.Wall))
	}
	return strings.Join(all, ", ")
}
