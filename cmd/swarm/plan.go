package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"swarm/internal/compose"
	"swarm/internal/term"
)

func (a *app) planCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "plan [PIPELINE | TASK…]",
		Short: "Show what would run, in which order, by whom and for how much at most",
		Long: `Show what "swarm up" would run: the tasks in the order in which they could start if all went well, who does them on which provider, and the most that
it can take: turns with all retries, and the largest prompts. Nothing is started.`,
		Example: "  swarm plan\n  swarm plan main --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := src.compile(a, args)
			if err != nil {
				return err
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
	return cmd
}

func (a *app) printForecast(f *compose.Forecast) error {
	table := term.NewTable("STAGE", "TASK", "AGENT", "PROVIDER", "AFTER", "RUNS", "LARGEST PROMPT").Right(0, 5, 6)
	for _, s := range f.Steps {
		on := s.Provider
		if s.Model != "" {
			on += " " + s.Model
		}
		runs := fmt.Sprint(s.Iterations)
		if s.Retries > 0 {
			runs += fmt.Sprintf(" (+%d)", s.Iterations*s.Retries)
		}
		table.Row(fmt.Sprint(s.Stage), s.Task, "@"+s.Agent, on, strings.Join(s.After, ", "), runs, term.Bytes(s.MaxPrompt))
	}
	if err := a.table(table); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\nat most %s", count(f.MaxTurns, "turn"))
	if c := f.Budget.Calls; c > 0 && int64(f.MaxTurns) > c {
		fmt.Fprintf(a.stdout, ", of which the budget allows %d", c)
	}
	fmt.Fprintf(a.stdout, ", ~%s tokens of prompts", term.Count(f.MaxInput))
	if f.Budget.Tokens > 0 {
		fmt.Fprintf(a.stdout, " (budget: %s in and out)", term.Count(f.Budget.Tokens))
	}
	if f.MaxUSD > 0 || f.Budget.USD > 0 {
		fmt.Fprintf(a.stdout, ", %s for them (budget: %s)", term.USD(f.MaxUSD), term.USD(f.Budget.USD))
	}
	fmt.Fprintln(a.stdout)
	if f.Budget.USD > 0 && len(f.Unpriced) > 0 {
		fmt.Fprintf(a.stdout, "without a price, and so counted as $0: %s\n", strings.Join(f.Unpriced, ", "))
	}
	return nil
}
