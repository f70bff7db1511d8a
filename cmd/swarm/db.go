package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/term"
)

func (a *app) dbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "db",
		Short:   "Check the log of a run, and recover a damaged one",
		Long:    "Check the log of a run for damage, and recover what is intact of a damaged one.",
		Example: "  swarm db check @last\n  swarm db recover 20261115-143205-g7k3f9q",
	}
	cmd.AddCommand(a.dbCheckCommand(), a.dbRecoverCommand())
	return cmd
}

func (a *app) dbCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check RUN",
		Short: "Check the log of a run for damage",
		Long: `Read the whole log of a run and print what is damaged: pages of the file, frames of the write-ahead
log, events, texts, indices and the log's end. Nothing is changed. The exit code is 1 if something is
damaged.

` + runHelp,
		Example:           "  swarm db check @last\n  swarm db check @last --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, run, err := a.recoverer(args[0])
			if err != nil {
				return err
			}
			check, err := store.Check(cmd.Context(), run, a.progress())
			if err != nil {
				return err
			}
			if a.json {
				err = a.print(check)
			} else {
				err = a.printCheck(check)
			}
			if err == nil && check.Damaged {
				err = (&swarm.Error{Kind: swarm.Storage, File: check.File, Err: swarm.ErrDamaged}).
					WithHint("copy the files of a backup, or save what is intact: swarm db recover %s", run)
			}
			return err
		},
	}
}

func (a *app) dbRecoverCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "recover RUN",
		Short: "Save what is intact of a damaged log",
		Long: `Put a new log in the place of a damaged one. The new log has all events before the first one that is
damaged or missing, and all intact texts. swarm resume can continue it: turns whose end is lost run
again. The damaged files stay beside it; their names end in the time of the recovery. A run that a
process drives is refused.

Without --yes, a person is asked first.

` + runHelp,
		Example:           "  swarm db recover @last\n  swarm db recover @last --yes && swarm resume @last",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, run, err := a.recoverer(args[0])
			if err != nil {
				return err
			}
			if !yes {
				if err := a.confirmRecovery(cmd.Context(), store, run); err != nil {
					return err
				}
			}
			done, err := store.Recover(cmd.Context(), run)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(done)
			}
			return a.printRecovery(done)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// recoverer finds a run, and its store as one that can check and recover logs.
func (a *app) recoverer(ref string) (swarm.Recoverer, swarm.RunID, error) {
	c, run, err := a.find(ref)
	if err != nil {
		return nil, "", err
	}
	store, ok := c.Home.Store.(swarm.Recoverer)
	if !ok {
		return nil, "", swarm.Errorf(swarm.BadInput, "this store has no logs to check")
	}
	return store, run, nil
}

// progress prints how far a check has come, once a second.
func (a *app) progress() func(part string, done, total int64) {
	last := time.Now()
	return func(part string, done, total int64) {
		if now := time.Now(); now.Sub(last) >= time.Second {
			last = now
			fmt.Fprintf(a.stderr, "checking: %s, %d of %d\n", part, done, max(done, total))
		}
	}
}

func (a *app) printCheck(check swarm.LogCheck) error {
	t := term.NewTable("PART", "CHECKED", "DAMAGED", "WHAT").Right(1, 2)
	for _, p := range check.Parts {
		t.Row(p.Part, fmt.Sprint(p.Checked), fmt.Sprint(p.Damaged), term.Escape(p.Note))
	}
	if err := a.table(t); err != nil {
		return err
	}
	state := "is whole"
	switch {
	case check.Damaged && check.Intact == 0:
		state = "is damaged; no event can be read in place, and a recovery may find some"
	case check.Damaged:
		state = fmt.Sprintf("is damaged; its first %s intact", areEvents(check.Intact))
	}
	_, err := fmt.Fprintf(a.stdout, "run %s %s\n", check.Run, state)
	return err
}

func areEvents(n int64) string {
	if n == 1 {
		return "event is"
	}
	return fmt.Sprintf("%d events are", n)
}

// confirmRecovery shows what is damaged, and asks.
func (a *app) confirmRecovery(ctx context.Context, store swarm.Recoverer, run swarm.RunID) error {
	refused := swarm.Errorf(swarm.BadInput, "nothing was changed").WithHint("swarm db recover %s --yes", run)
	check, err := store.Check(ctx, run, a.progress())
	switch {
	case err != nil:
		return err
	case !check.Damaged:
		return nil // The recovery says so.
	case !a.typed():
		refused.Msg = "a recovery replaces the run's log, and nobody is here to confirm it"
		return refused
	}
	if err := a.printCheck(check); err != nil {
		return err
	}
	if !a.yes("replace the log by what is intact? The damaged files are kept.") {
		return refused
	}
	return nil
}

func (a *app) printRecovery(done swarm.LogRecovery) error {
	t := term.NewTable("", "SAVED", "LOST").Right(1, 2)
	t.Row("events", fmt.Sprint(done.Events), fmt.Sprint(done.LostEvents))
	t.Row("texts", fmt.Sprint(done.Texts), fmt.Sprint(done.LostTexts))
	if err := a.table(t); err != nil {
		return err
	}
	for _, turn := range done.Turns {
		fmt.Fprintf(a.stdout, "lost, at least in part: turn %s\n", term.Escape(string(turn)))
	}
	for _, file := range done.Kept {
		fmt.Fprintf(a.stdout, "kept: %s\n", file)
	}
	next := fmt.Sprintf("to see what it has: swarm show %s", done.Run)
	if _, s, err := a.state(string(done.Run)); err == nil && !s.Status.Ended() {
		next = fmt.Sprintf("`swarm resume %s` continues it, and turns whose end is lost run again", done.Run)
	}
	_, err := fmt.Fprintf(a.stdout, "run %s is recovered; %s\n", done.Run, next)
	return err
}
