package main

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/statedir"
	"swarm/internal/term"
)

// runStatuses lists the statuses of runs as strings, for flags.
func runStatuses() (names []string) {
	for _, s := range swarm.RunStatuses {
		names = append(names, string(s))
	}
	return names
}

func (a *app) lsCommand() *cobra.Command {
	var most int
	var status string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the runs of this folder",
		Long: `List the runs that were started in this folder, newest first. With -g, list those of every folder.
With --json the result is an array of all runs, unless -n is given.

The status of a run is running, pausing, paused, completed, failed, cancelled or interrupted. No
process drives an interrupted run; swarm resume continues it.`,
		Example: "  swarm ls\n  swarm ls -g -n 5\n  swarm ls --status interrupted",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 0 {
				return swarm.Errorf(swarm.BadInput, "-n %d: the number of runs cannot be negative", most).WithHint("-n 0 lists all")
			}
			if a.json && !cmd.Flags().Changed("number") {
				most = 0
			}
			return a.listRuns(most, swarm.Status(status))
		},
	}
	cmd.Flags().IntVarP(&most, "number", "n", 20, "list at most `N` runs; 0 lists all")
	cmd.Flags().StringVar(&status, "status", "", "only runs with this `status`")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(runStatuses(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) listRuns(most int, status swarm.Status) error {
	if err := checkStatus(status); err != nil {
		return err
	}
	c, err := a.control()
	if err != nil {
		return err
	}
	runs, seen, more := []swarm.RunSummary{}, 0, false
	for s, err := range c.Runs("") {
		if err != nil {
			return err
		}
		seen++
		if status != "" && s.Status != status {
			continue
		}
		if more = most > 0 && len(runs) == most; more {
			break // older runs are not read: there may be thousands
		}
		runs = append(runs, s)
	}
	if a.json {
		return a.print(runs)
	}
	if len(runs) == 0 {
		return a.noRuns(seen, status)
	}
	if err := a.table(runTable(runs, a.anywhere, time.Now())); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(a.stdout, "… and more: "+a.listAll(status))
	}
	return nil
}

// listAll is the command that lists all runs of a list that was cut.
func (a *app) listAll(status swarm.Status) string {
	command := "swarm ls -n 0"
	if a.anywhere {
		command += " -g"
	}
	if status != "" {
		command += " --status " + string(status)
	}
	return command
}

func checkStatus(s swarm.Status) error {
	for _, known := range runStatuses() {
		if s == "" || string(s) == known {
			return nil
		}
	}
	return swarm.Errorf(swarm.BadInput, "there is no run status %q", s).WithHint("%s", swarm.DidYouMean(string(s), runStatuses()))
}

func (a *app) noRuns(others int, status swarm.Status) error {
	where := " was started in this folder yet"
	if a.anywhere {
		where = " was started yet"
	}
	switch {
	case others > 0:
		fmt.Fprintf(a.stdout, "no run is %s\n", status)
	case a.anywhere:
		fmt.Fprintf(a.stdout, "no run%s; %s\n", where, statedir.HowToStart)
	default:
		fmt.Fprintf(a.stdout, "no run%s; %s; `swarm ls -g` lists those of all folders\n", where, statedir.HowToStart)
	}
	return nil
}

func runTable(runs []swarm.RunSummary, folders bool, now time.Time) *term.Table {
	t := term.NewTable("RUN", "WHAT", "STATUS", "TASKS", "STARTED", "TOOK", "TOKENS", "EXIT", "FOLDER", "NOTE").Right(3, 5, 6, 7).Cut(1, 9)
	for _, s := range runs {
		row := []string{string(s.ID), s.Name, string(s.Status), "", ago(s.Started, now), "", term.Tokens(s.Usage), "", "", cmp.Or(s.Problem, s.Waits)}
		if row[9] == "" && s.Host != "" && s.Status != swarm.Interrupted && !s.Status.Ended() {
			row[9] = "on " + s.Host
		}
		if s.Name == "" {
			row[1] = string(s.Kind)
		}
		if s.Tasks > 0 {
			row[3] = fmt.Sprintf("%d/%d", s.Done, s.Tasks)
		}
		switch {
		case s.Status.Ended():
			row[5] = term.Duration(s.Elapsed(now))
			if s.Exit > 1 { // the status says the others
				row[7] = strconv.Itoa(s.Exit)
			}
		case s.Status != "" && s.Status != swarm.Interrupted:
			row[5] = term.Duration(s.Elapsed(now).Truncate(time.Second))
		}
		if folders {
			row[8] = s.Dir
		}
		t.Row(row...)
	}
	return t
}
