package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/term"
)

func (a *app) checkCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:   "check [PIPELINE | TASK…]",
		Short: "Find mistakes in the compose file and its prompts",
		Long: `Check the compose file and its prompts: references, edges, cycles, tasks that can never run, outputs
that no prompt reads, and the size that prompts can reach.

Nothing is started. Exits with 2 on errors, and with 0 when there are only warnings.`,
		Example: "  swarm check\n  swarm check --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := src.options(a, args)
			if err != nil {
				return err
			}
			o = o.ReadOnce()
			o.Stdin = nil // a check reads no input
			errs, warnings := compose.Check(o)
			if len(errs) == 0 {
				warnings = append(warnings, a.unconfirmed(o)...)
			}
			if len(errs) > 0 {
				a.exit = swarm.ExitBadInput
			}
			if a.json {
				return a.print(struct {
					File     string    `json:"file"`
					Errors   []problem `json:"errors"`
					Warnings []problem `json:"warnings"`
				}{o.File, problems(errs), problems(warnings)})
			}
			a.listProblems("error", errs)
			a.listProblems("warning", warnings)
			if len(errs) > 0 {
				fmt.Fprintf(a.stdout, "%s: %s, %s\n", o.File, term.Plural(len(errs), "error"), term.Plural(len(warnings), "warning"))
				return nil
			}
			fmt.Fprintf(a.stdout, "%s: no errors, %s\n", o.File, term.Plural(len(warnings), "warning"))
			return nil
		},
	}
	src.flags(cmd)
	src.selection(cmd)
	return cmd
}

// A problem is the JSON form of an error.
type problem struct {
	Error  string `json:"error"`
	Hint   string `json:"hint,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

func problemOf(e *swarm.Error) problem { return problem{e.Text(), e.Hint, e.File, e.Line, e.Column} }

func problems(errs []*swarm.Error) []problem {
	all := []problem{}
	for _, e := range errs {
		all = append(all, problemOf(e))
	}
	return all
}

// listProblems prints problems on standard error, for people.
func (a *app) listProblems(word string, errs []*swarm.Error) {
	paint := a.errorPaint()
	for _, e := range errs {
		fmt.Fprintf(a.stderr, "%s %s\n", rank(paint, word+":"), term.Escape(e.Error()))
		if e.Hint != "" {
			fmt.Fprintf(a.stderr, "  %s %s\n", rank(paint, "hint:"), term.Escape(e.Hint))
		}
	}
}
