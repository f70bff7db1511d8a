package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"swarm/internal/statedir"
	"swarm/internal/term"
)

func (a *app) pruneCommand() *cobra.Command {
	var opt statedir.PruneOptions
	var age string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete old runs",
		Long: `Delete runs that ended or were interrupted longer ago than --older-than, with their logs, outputs,
streams and recorded trees. Without -g, delete only runs of this folder. A run that a process drives
is never deleted. Inside an agent's turn, only runs that the turn began are deleted. A run whose log
is damaged is deleted only with --damaged, and so are the damaged files that swarm db recover has
kept.

With --outputs, delete only the copies of outputs in the state folder. The runs and their logs stay.`,
		Example: "  swarm prune --dry-run\n  swarm prune --older-than 2w -g\n  swarm prune --outputs --older-than 0",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if opt.OlderThan, err = span(age); err != nil {
				return err
			}
			return a.prune(opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&age, "older-than", "7d", "the minimum `age` of the run's end, as in 12h, 7d or 2w; 0 for all ended runs")
	f.BoolVar(&opt.OutputsOnly, "outputs", false, "delete only the copies of outputs")
	f.BoolVar(&opt.Damaged, "damaged", false, "also delete damaged runs, and files that recoveries have kept")
	f.BoolVar(&opt.DryRun, "dry-run", false, "only list what would be deleted")
	return cmd
}

func (a *app) prune(opt statedir.PruneOptions) error {
	c, err := a.control()
	if err != nil {
		return err
	}
	opt.Now = time.Now()
	gone, failed := c.Prune(opt)
	if a.json {
		if gone == nil {
			gone = []statedir.Pruned{}
		}
		if err := a.print(gone); err != nil {
			return err
		}
		return failed
	}
	if err := a.printPruned(gone, opt); err != nil {
		return err
	}
	return failed
}

func (a *app) printPruned(gone []statedir.Pruned, opt statedir.PruneOptions) error {
	if len(gone) == 0 {
		_, err := fmt.Fprintln(a.stdout, "nothing to delete")
		return err
	}
	t := term.NewTable("RUN", "STATUS", "ENDED", "SIZE").Right(3)
	var bytes int64
	for _, p := range gone {
		t.Row(p.ID, string(p.Status), ago(p.Ended, opt.Now), term.Bytes(p.Bytes))
		bytes += p.Bytes
	}
	if err := a.table(t); err != nil {
		return err
	}
	what := "deleted"
	if opt.DryRun {
		what = "would delete"
	}
	of := "runs"
	if len(gone) == 1 {
		of = "run"
	}
	if opt.OutputsOnly {
		of = "outputs of " + fmt.Sprint(len(gone)) + " " + of
	} else {
		of = fmt.Sprint(len(gone)) + " " + of
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s, %s\n", what, of, term.Bytes(bytes))
	return err
}
